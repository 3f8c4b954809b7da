"""The disk gets back what a store needs no more, and a store that cannot be compacted stays."""

import os
from pathlib import Path

import lmdb
import pytest

from quipu.storage import compaction, keys
from quipu.storage.compaction import CompactionFailed, compact_store
from quipu.storage.environment import DATA_FILE, StoreLocked, StoreMissing
from quipu.storage.lmdb_store import open_store
from quipu.storage.scrub import ScrubProgress
from quipu.storage.verification import verify_store
from tests.made_events import MadeCluster, lived_through, slot
from tests.unit.storage.lmdb_files import flip, tampering


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of which much was deleted."""
    cluster = MadeCluster()
    store = open_store(tmp_path / "store", cluster.owner())
    for batch in lived_through(cluster, 60):
        store.commit(batch)
    store.close()
    with tampering(tmp_path / "store") as (txn, tables):
        for number in range(600):
            txn.put(b"filler %d" % number, bytes(2_000), db=tables.meta)
    with tampering(tmp_path / "store") as (txn, tables):
        for number in range(600):
            txn.delete(b"filler %d" % number, db=tables.meta)
    return tmp_path / "store"


def files(path: Path) -> dict[str, bytes]:
    return {item.name: item.read_bytes() for item in path.iterdir() if item.name != "owner.lock"}


def test_it_is_smaller_and_the_same(path: Path) -> None:
    before = verify_store(path, signatures=True)
    phases: list[str] = []

    def report(progress: ScrubProgress) -> None:
        phases.append(progress.phase)

    done = compact_store(path, report)
    assert done["bytes_after"] < done["bytes_before"] / 4
    assert done["bytes_after"] == (path / DATA_FILE).stat().st_size
    assert (path / DATA_FILE).stat().st_mode & 0o777 == 0o600
    after = verify_store(path, signatures=True)
    assert (after.found, after.events, after.owner) == (0, before.events, before.owner)
    assert "events" in phases
    assert not (path / compaction.PARTIAL).exists()
    store = open_store(path, MadeCluster().owner())
    assert store.saved().recovering is False
    store.close()


def test_a_store_in_use_is_left_alone(path: Path) -> None:
    store = open_store(path, MadeCluster().owner())
    with pytest.raises(StoreLocked):
        compact_store(path)
    assert store.stats().events == 60
    store.close()


def test_a_damaged_store_is_not_replaced(path: Path) -> None:
    flip(path, "events", keys.slot_key(slot(1, 3)), -1)
    before = files(path)
    with pytest.raises(CompactionFailed, match="not sound: events: author 1 journal 1 seq 3"):
        compact_store(path)
    assert files(path)[DATA_FILE] == before[DATA_FILE]
    assert not (path / compaction.PARTIAL).exists()


def test_a_copy_that_lacks_something_is_not_taken(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(source: Path, partial: Path, report: object) -> None:
        open_store(partial, MadeCluster().owner()).close()

    monkeypatch.setattr(compaction, "_copy", lose)
    before = files(path)
    with pytest.raises(CompactionFailed, match="the copy holds"):
        compact_store(path)
    assert files(path)[DATA_FILE] == before[DATA_FILE]


@pytest.mark.parametrize("step", ["_copy", "_check", "_take_over"])
def test_whatever_fails_nothing_has_changed(
    step: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compaction, step, fail)
    before = files(path)
    with pytest.raises(CompactionFailed, match="No space left"):
        compact_store(path)
    assert files(path)[DATA_FILE] == before[DATA_FILE]
    monkeypatch.undo()
    assert compact_store(path)["bytes_after"] < len(before[DATA_FILE])


def test_what_a_killed_one_left_is_cleared(path: Path) -> None:
    (path / compaction.PARTIAL).mkdir()
    (path / compaction.PARTIAL / DATA_FILE).write_bytes(b"half")
    compact_store(path)
    assert verify_store(path).found == 0


def test_nothing_and_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing):
        compact_store(tmp_path)
    assert os.listdir(tmp_path) == []
    lmdb.Environment(str(tmp_path)).close()
    with pytest.raises(StoreMissing):
        compact_store(tmp_path)
