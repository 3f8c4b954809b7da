"""A disk without room: nothing of the batch is written, reading goes on, and so does writing as
soon as there is room again."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quipu.ledger.effects import StoreEvent
from quipu.storage.lmdb_store import LmdbStore, open_store
from quipu.storage.store import StoreFull
from quipu.storage.verification import verify_store
from tests.made_events import MadeCluster, entry_of

SMALL_MIB = 3


def _mount(path: Path, size_mib: int, *options: str) -> bool:
    option = ",".join((f"size={size_mib}m", *options))
    command = ["mount", "-t", "tmpfs", "-o", option, "tmpfs", str(path)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "disk"
    path.mkdir()
    if os.geteuid() != 0 or not _mount(path, SMALL_MIB):
        pytest.skip("this user may not mount a small disk; the limit on file size is tested")
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


def _large(cluster: MadeCluster) -> StoreEvent:
    return cluster.write(1, (), [entry_of("x" * 200_000)])


def _fill(store: LmdbStore, cluster: MadeCluster) -> tuple[list[StoreEvent], StoreEvent]:
    """Commits until the disk is full: what was taken, and what was not."""
    taken: list[StoreEvent] = []
    while True:
        event = _large(cluster)
        try:
            store.commit([event])
        except StoreFull:
            return taken, event
        taken.append(event)


def test_full_disk_takes_nothing_and_recovers(small_disk: Path) -> None:
    cluster = MadeCluster()
    store = open_store(small_disk / "store", cluster.owner())
    taken, refused = _fill(store, cluster)
    assert len(taken) > 3
    for _ in range(3):
        with pytest.raises(StoreFull):
            store.commit([refused])
    assert [store.event(one.event.id) for one in taken] == [one.event for one in taken]
    assert store.event(refused.event.id) is None
    assert _mount(small_disk, 20, "remount")
    store.commit([refused])
    assert store.event(refused.event.id) == refused.event
    store.close()
    assert verify_store(small_disk / "store").findings == ()


def test_start_on_a_full_disk_reads(small_disk: Path) -> None:
    cluster = MadeCluster()
    store = open_store(small_disk / "store", cluster.owner())
    taken, refused = _fill(store, cluster)
    store.close()
    (small_disk / "rest").write_bytes(b"")
    try:
        with (small_disk / "rest").open("wb", buffering=0) as rest:
            while rest.write(b"x" * 4096):
                pass
    except OSError:
        pass
    store = open_store(small_disk / "store", cluster.owner())
    assert store.event(taken[-1].event.id) == taken[-1].event
    with pytest.raises(StoreFull):
        store.commit([refused])
    store.close()


LIMITED = """
import resource, sys
from pathlib import Path
from quipu.storage.lmdb_store import open_store
from tests.made_events import MadeCluster
from tests.unit.storage.test_disk_full import _fill, lift
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, resource.RLIM_INFINITY))
cluster = MadeCluster()
store = open_store(Path(sys.argv[1]), cluster.owner())
taken, refused = _fill(store, cluster)
assert len(taken) > 2
assert store.event(taken[0].event.id) == taken[0].event
assert store.event(refused.event.id) is None
lift()
store.commit([refused])
assert store.event(refused.event.id) == refused.event
store.close()
"""


def lift() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def test_limit_on_the_size_of_a_file_is_a_full_disk(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "store")],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert verify_store(tmp_path / "store").findings == ()
