"""Each safeguard of peers, store and executors is missed by the test that is named for it."""

import subprocess
import sys

from tests import tree
from tests.safeguards import SAFEGUARDS


def test_the_absence_of_each_is_noticed() -> None:
    """In a process of its own, which forks one for each of them."""
    command = [sys.executable, "-m", "tests.safeguards"]
    done = subprocess.run(command, cwd=tree.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()[:-1]
    assert len(lines) == len(SAFEGUARDS)
    for line, safeguard in zip(lines, SAFEGUARDS, strict=True):
        assert safeguard.what in line
        assert safeguard.noticed_by.partition("[")[0] in line


def test_a_safeguard_has_one_name() -> None:
    assert len({one.what for one in SAFEGUARDS}) == len(SAFEGUARDS)
