"""An answered entry survives a loss of power: kill -9, and what was never synced is gone.

kill -9 alone keeps the page cache. `power.c` notes what each unsynced write replaced; after the
kill all of it, or a random part, is put back, as a disk may have written some pages and not others.
"""

import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from tests.process.apps import Apps, missing
from tests.process.command import WAIT_S, RunningCommand

HEAD = struct.Struct("=QQ")
COMPILER = shutil.which("cc")

pytestmark = pytest.mark.skipif(
    COMPILER is None, reason="a C compiler makes the failing disk: apt-get install -y gcc"
)


@pytest.fixture(scope="module")
def failing_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert COMPILER is not None
    library = tmp_path_factory.mktemp("power") / "power.so"
    source = Path(__file__).with_name("power.c")
    command = [COMPILER, "-shared", "-fPIC", "-O1", "-o", str(library), str(source)]
    subprocess.run([*command, "-ldl"], check=True)
    return library


def lose_power(data: Path, undo: Path, chance: float, seed: int) -> int:
    """Puts back what unsynced writes replaced, newest first, each with that chance."""
    dice, records, noted = random.Random(seed), [], undo.read_bytes()
    while len(noted) >= HEAD.size:
        offset, length = HEAD.unpack_from(noted)
        records.append((offset, noted[HEAD.size : HEAD.size + length]))
        noted = noted[HEAD.size + length :]
    with data.open("r+b") as file:
        for offset, old in reversed(records):
            if dice.random() < chance:
                file.seek(offset)
                file.write(old)
    undo.unlink()
    return len(records)


def live_and_lose_power(folder: Path, library: Path, site: str, **more: str) -> list[str]:
    """What was acknowledged in one life."""
    armed = {"LD_PRELOAD": str(library), "POWER_UNDO": str(folder / "undo"), **more}
    with RunningCommand(folder / "data", QUIPU_FAILPOINTS=site, **armed) as node:
        apps = Apps(node.facts["api"])
        if not site:
            assert apps.enough.wait(WAIT_S)
            node.process.kill()
        node.process.wait(WAIT_S)
        apps.end()
    return apps.acknowledged


def test_what_was_acknowledged_survives_a_loss_of_power(tmp_path: Path, failing_disk: Path) -> None:
    acknowledged: list[str] = []
    for seed, site in enumerate(("", "commit.durable=kill@20", "commit.begin=kill@20", "")):
        acknowledged += live_and_lose_power(tmp_path, failing_disk, site)
        chance = (1.0, 0.5)[seed % 2]
        lose_power(tmp_path / "data/store/data.mdb", tmp_path / "undo", chance, seed)
        with RunningCommand(tmp_path / "data") as node:
            assert missing(node.facts["api"], acknowledged) == []
    assert acknowledged


def test_a_disk_that_lies_is_noticed(tmp_path: Path, failing_disk: Path) -> None:
    """The test above bites: where syncing does nothing, what was acknowledged is lost."""
    acknowledged = live_and_lose_power(tmp_path, failing_disk, "", POWER_LIES="1")
    assert lose_power(tmp_path / "data/store/data.mdb", tmp_path / "undo", 1.0, 0)
    with RunningCommand(tmp_path / "data") as node:
        assert not node.facts or missing(node.facts["api"], acknowledged)
