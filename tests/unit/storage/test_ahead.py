"""Room ahead of the last page: it is there, it harms nothing, and a full disk gets none."""

import os
from pathlib import Path

import pytest

from quipu.ledger.effects import PutOwnState
from quipu.ledger.words import Journal
from quipu.storage import limits
from quipu.storage.ahead import Ahead
from quipu.storage.environment import DATA_FILE
from quipu.storage.lmdb_store import open_store
from tests.made_events import MadeCluster


def test_a_commit_leaves_room_for_the_next_ones_and_what_is_stored_stays(tmp_path: Path) -> None:
    owner = MadeCluster().owner()
    store = open_store(tmp_path / "store", owner)
    for number in range(1, 4):
        store.commit([PutOwnState(Journal(number), False)])
        stats = store.stats()
        assert stats.file_bytes - stats.used_bytes >= limits.AHEAD_BYTES_LEAST
    size = (tmp_path / "store" / DATA_FILE).stat().st_size
    assert size < 3 * limits.AHEAD_BYTES
    store.close()
    again = open_store(tmp_path / "store", owner)
    assert again.saved().newest_journal_own == Journal(3)
    again.commit([PutOwnState(Journal(4), False)])
    assert (tmp_path / "store" / DATA_FILE).stat().st_size == size
    again.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(b"x" * 10_000)
    return path


def test_nothing_that_is_there_is_written_over(file: Path) -> None:
    ahead = Ahead(file)
    ahead.make(10_000)
    ahead.make(10_000)
    ahead.close()
    assert file.read_bytes() == b"x" * 10_000 + bytes(limits.AHEAD_BYTES)


def test_a_disk_with_little_room_is_left_alone(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "AHEAD_ROOM_LEAST", 1 << 62)
    ahead = Ahead(file)
    ahead.make(10_000)
    ahead.close()
    assert file.stat().st_size == 10_000


def test_a_disk_that_refuses_is_no_failure(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(fd: int, data: bytes, offset: int) -> int:
        del fd, data, offset
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", refused)
    ahead = Ahead(file)
    ahead.make(10_000)
    ahead.close()
    assert file.stat().st_size == 10_000
