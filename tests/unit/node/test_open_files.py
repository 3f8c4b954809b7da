"""How many files may be open, in a process that had few."""

import subprocess
import sys

import pytest

from quipu.node.open_files import needed
from quipu.node.settings import ApiSettings, Settings

PROGRAM = """
import resource, sys
from quipu.node.open_files import raise_to
soft, hard, count = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(raise_to(count), resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "count", "answer"),
    [
        (256, 2_000, 1_000, "1000 (1000, 2000)"),
        (256, 500, 1_000, "500 (500, 500)"),
        (600, 600, 300, "600 (600, 600)"),
    ],
)
def test_it_is_raised_as_far_as_it_may_be(soft: int, hard: int, count: int, answer: str) -> None:
    line = [sys.executable, "-c", PROGRAM, str(soft), str(hard), str(count)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == answer


def test_more_connections_want_more_files() -> None:
    few, many = (Settings(api=ApiSettings(connections_max=n)) for n in (10, 1_010))
    assert needed(many) - needed(few) == 1_000
