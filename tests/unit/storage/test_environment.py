"""What LMDB, the disk and other processes can answer, each by its name."""

import errno
import subprocess
import sys
from pathlib import Path

import lmdb
import pytest

from quipu.storage import environment
from quipu.storage.backup import BackupFailed, copy_store
from quipu.storage.environment import (
    CRASH_FILE,
    DATA_FILE,
    Snapshot,
    StoreDamaged,
    open_environment,
    open_readonly,
)
from quipu.storage.lmdb_store import open_store
from quipu.storage.store import DiskFailed, StoreError
from quipu.storage.verification import verify_store
from tests.made_events import MadeCluster, entry_of, lived_through

WRITING = """
import sys
from pathlib import Path
from quipu.storage.lmdb_store import open_store
from tests.made_events import MadeCluster, entry_of
cluster = MadeCluster()
store = open_store(Path(sys.argv[1]), cluster.owner())
store.commit([cluster.write(2, (), [entry_of("x" * 500_000)] * 4) for _ in range(4)])
store.close()
"""


@pytest.fixture
def cluster() -> MadeCluster:
    return MadeCluster()


def test_reader_follows_a_file_that_another_process_lets_grow(
    tmp_path: Path, cluster: MadeCluster
) -> None:
    open_store(tmp_path, cluster.owner()).close()
    env = open_environment(tmp_path, 1 << 16, readonly=True)
    tables = environment.open_tables(env, tmp_path, create=False)
    snapshot = Snapshot(env, tmp_path)
    with snapshot as txn:
        assert txn.stat(tables.events)["entries"] == 0
    subprocess.run([sys.executable, "-c", WRITING, str(tmp_path)], check=True)
    with snapshot as txn:
        assert txn.stat(tables.events)["entries"] == 0  # still the same snapshot
    snapshot.renew()
    with snapshot as txn:
        assert txn.stat(tables.events)["entries"] == 4
    snapshot.close()
    env.close()


class Failing:
    """Stands for an environment whose calls fail with one error."""

    def __init__(self, error: lmdb.Error) -> None:
        self._error = error

    def begin(self, *, buffers: bool) -> None:
        raise self._error

    def reader_check(self) -> None:
        raise self._error

    def info(self) -> dict[str, int]:
        return {"map_size": 1}


def failure(kind: type[lmdb.Error], code: int) -> lmdb.Error:
    error = kind("call")
    object.__setattr__(error, "code", code)
    return error


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (failure(lmdb.CorruptedError, -30796), StoreDamaged),
        (failure(lmdb.DiskError, errno.EIO), DiskFailed),
        (failure(lmdb.ReadersFullError, -30790), StoreError),
        (lmdb.Error("no code"), StoreError),
    ],
)
def test_failed_reads_and_growths_are_named(
    tmp_path: Path,
    cluster: MadeCluster,
    monkeypatch: pytest.MonkeyPatch,
    error: lmdb.Error,
    name: type[StoreError],
) -> None:
    store = open_store(tmp_path, cluster.owner())
    with monkeypatch.context() as patch:
        patch.setattr(store._snapshot, "env", Failing(error))
        patch.setattr(store, "_env", Failing(error))
        with pytest.raises(name) as read:
            store.saved()
        with pytest.raises(name) as grown:
            store._grow()
    assert type(read.value) is type(grown.value) is name
    # The lock was let go of, and nothing is lost.
    assert store.saved().branches == []
    store.close()


def test_short_file_is_a_suspicion_that_a_look_at_its_pages_clears(
    tmp_path: Path, cluster: MadeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path, cluster.owner())
    store.commit([cluster.write(1, (), [entry_of("x" * 100_000)])])
    used_bytes = store.stats().used_bytes
    store.close()
    looks: list[Path] = []

    def look(path: Path) -> list[str]:
        looks.append(path)
        return []

    monkeypatch.setattr(environment, "broken_pages", look)
    open_store(tmp_path, cluster.owner()).close()
    assert looks == []
    env = open_readonly(tmp_path)
    with (tmp_path / DATA_FILE).open("r+b") as file:
        file.truncate(used_bytes - 4096)
    environment._refuse_cut_file(env, tmp_path)
    assert looks == [tmp_path]
    env.close()


def test_what_a_look_at_the_pages_finds_is_told_before_lmdb_meets_it(
    tmp_path: Path, cluster: MadeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash, and where the file is short: to touch such a page may end the process."""
    store = open_store(tmp_path, cluster.owner())
    store.commit([cluster.write(1, (), [entry_of("x" * 100_000)])])
    used_bytes = store.stats().used_bytes
    store.close()
    monkeypatch.setattr(environment, "broken_pages", lambda path: ["page 7 is no page"])
    (tmp_path / CRASH_FILE).write_text("Fatal Python error: Aborted")
    with pytest.raises(StoreDamaged, match="page 7"):
        open_store(tmp_path, cluster.owner())
    (tmp_path / CRASH_FILE).unlink()
    env = open_readonly(tmp_path)
    with (tmp_path / DATA_FILE).open("r+b") as file:
        file.truncate(used_bytes - 4096)
    with pytest.raises(StoreDamaged, match="page 7"):
        environment._refuse_cut_file(env, tmp_path)
    env.close()


def test_note_of_a_crash_before_anything_was_written(tmp_path: Path, cluster: MadeCluster) -> None:
    tmp_path.joinpath(CRASH_FILE).write_text("Fatal Python error: Aborted")
    open_store(tmp_path, cluster.owner()).close()
    open_store(tmp_path, cluster.owner()).close()


def test_file_that_lmdb_never_wrote_is_damage(tmp_path: Path, cluster: MadeCluster) -> None:
    (tmp_path / DATA_FILE).write_bytes(b"not LMDB" * 1024)
    with pytest.raises(StoreDamaged):
        open_store(tmp_path, cluster.owner())
    (tmp_path / CRASH_FILE).write_text("Fatal Python error: Aborted")
    with pytest.raises(StoreDamaged):
        open_store(tmp_path, cluster.owner())
    assert verify_store(tmp_path).found == 1


def test_directory_that_may_not_be_written_is_an_error(
    tmp_path: Path, cluster: MadeCluster
) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OSError, match="file"):
        open_store(tmp_path / "file" / "store", cluster.owner())


class Copying:
    """An environment that fails to copy so and so often."""

    def __init__(self, env: lmdb.Environment, *errors: lmdb.Error) -> None:
        self._env = env
        self._errors = list(errors)

    def copy(self, path: str, *, compact: bool = False) -> None:
        if self._errors:
            raise self._errors.pop(0)
        self._env.copy(path, compact=compact)

    def close(self) -> None:
        self._env.close()


def test_copy_goes_on_without_compacting(
    tmp_path: Path, cluster: MadeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path / "store", cluster.owner())
    for batch in lived_through(cluster, 10):
        store.commit(batch)
    store.close()
    leaked = lmdb.IncompatibleError("copy")
    opened = open_readonly

    def failing(path: Path) -> Copying:
        return Copying(opened(path), leaked)

    monkeypatch.setattr("quipu.storage.environment.open_readonly", failing)
    copy_store(tmp_path / "store", tmp_path / "copy")
    monkeypatch.undo()
    assert verify_store(tmp_path / "copy").findings == ()

    def failing_twice(path: Path) -> Copying:
        return Copying(opened(path), leaked, lmdb.DiskError("copy"))

    monkeypatch.setattr("quipu.storage.environment.open_readonly", failing_twice)
    with pytest.raises(BackupFailed):
        copy_store(tmp_path / "store", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_copy_that_cannot_be_marked_is_none(
    tmp_path: Path, cluster: MadeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(tmp_path / "store", cluster.owner()).close()

    def fail(*_: object) -> None:
        raise lmdb.DiskError("get")

    monkeypatch.setattr("quipu.storage.ownership.read_owner", fail)
    with pytest.raises(BackupFailed):
        copy_store(tmp_path / "store", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    assert not (tmp_path / "copy.partial").exists()
