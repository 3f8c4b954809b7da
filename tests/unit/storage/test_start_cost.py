"""Opening a store is the same work however many events it holds: counted, not timed."""

import sys
from pathlib import Path
from types import FrameType

from quipu.storage.lmdb_store import open_store
from tests.made_events import MadeCluster, lived_through, slot


def calls_to_open(path: Path, cluster: MadeCluster) -> int:
    """Calls of compiled functions, LMDB's among them, from opening to the first reads."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "c_call"

    sys.setprofile(count)
    try:
        store = open_store(path, cluster.owner())
        saved = store.saved()
        for record in saved.branches:
            assert store.meta(record.held_id) is not None
        assert store.id_at(slot(1, 1)) is not None
        store.feed(max(0, store.stats().feed - 10), 10)
    finally:
        sys.setprofile(None)
    store.close()
    return calls


def test_opening_does_not_grow_with_the_ledger(tmp_path: Path) -> None:
    counted = {}
    for turns in (300, 6_000):
        cluster = MadeCluster()
        store = open_store(tmp_path / str(turns), cluster.owner())
        store.commit([effect for batch in lived_through(cluster, turns) for effect in batch])
        store.close()
        counted[turns] = calls_to_open(tmp_path / str(turns), cluster)
    # A deeper tree is no more calls; the numbers in the records are a few octets longer.
    assert abs(counted[6_000] - counted[300]) <= 10, counted
