"""A disk without room: nothing of the batch is written, reading goes on, and so does writing as
soon as there is room again. Each case is a process of its own: a small disk is mounted where no
other process sees it, and a limit on the size of files would hold for the whole of pytest."""

import resource
import subprocess
from pathlib import Path

import pytest

from quipu.ledger.effects import StoreEvent
from quipu.storage.lmdb_store import LmdbStore, open_store
from quipu.storage.store import StoreFull
from quipu.storage.verification import verify_store
from tests.apart import AS_ROOT, may_run, run_apart
from tests.made_events import MadeCluster, entry_of

ALONE = (*AS_ROOT, "--mount")
LIMIT_BYTES = 2_000_000


def mount(path: Path, option: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", option, "tmpfs", str(path)], check=True)


def fill(store: LmdbStore, cluster: MadeCluster) -> tuple[list[StoreEvent], StoreEvent]:
    """Commits until the disk is full: what was taken, and what was not."""
    taken: list[StoreEvent] = []
    while True:
        event = cluster.write(1, (), [entry_of("x" * 200_000)])
        try:
            store.commit([event])
        except StoreFull:
            return taken, event
        taken.append(event)


def full_disk_takes_nothing_and_recovers(path: Path) -> None:
    mount(path, "size=3m")
    cluster = MadeCluster()
    store = open_store(path / "store", cluster.owner())
    taken, refused = fill(store, cluster)
    assert len(taken) > 3
    for _ in range(3):
        with pytest.raises(StoreFull):
            store.commit([refused])
    assert [store.event(one.event.id) for one in taken] == [one.event for one in taken]
    assert store.event(refused.event.id) is None
    mount(path, "size=20m,remount")
    store.commit([refused])
    assert store.event(refused.event.id) == refused.event
    store.close()
    assert verify_store(path / "store").findings == ()


def start_on_a_full_disk_reads(path: Path) -> None:
    mount(path, "size=3m")
    cluster = MadeCluster()
    store = open_store(path / "store", cluster.owner())
    taken, refused = fill(store, cluster)
    store.close()
    with pytest.raises(OSError, match="No space"):
        (path / "rest").write_bytes(bytes(8 << 20))
    store = open_store(path / "store", cluster.owner())
    assert store.event(taken[-1].event.id) == taken[-1].event
    with pytest.raises(StoreFull):
        store.commit([refused])
    store.close()


def limit_on_the_size_of_a_file_is_a_full_disk(path: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, resource.RLIM_INFINITY))
    cluster = MadeCluster()
    store = open_store(path / "store", cluster.owner())
    taken, refused = fill(store, cluster)
    assert len(taken) > 2
    assert store.event(taken[0].event.id) == taken[0].event
    assert store.event(refused.event.id) is None
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    store.commit([refused])
    assert store.event(refused.event.id) == refused.event
    store.close()
    assert verify_store(path / "store").findings == ()


@pytest.mark.parametrize(
    "case", ["full_disk_takes_nothing_and_recovers", "start_on_a_full_disk_reads"]
)
def test_small_disk(tmp_path: Path, case: str) -> None:
    if not may_run(*ALONE, "mount", "-t", "tmpfs", "tmpfs", str(tmp_path)):
        pytest.skip("no small disk may be mounted here; the limit on file size is tested")
    run_apart(__name__, case, tmp_path, *ALONE)


def test_limit_on_the_size_of_a_file(tmp_path: Path) -> None:
    run_apart(__name__, "limit_on_the_size_of_a_file_is_a_full_disk", tmp_path)
