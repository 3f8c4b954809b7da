"""Stores that have lived, and signed dumps of them."""

from pathlib import Path
from typing import Any

from quipu.dumps.manifest import ENTRIES_CHOICES, finish
from quipu.storage.export import ExportOrder, export_store
from quipu.storage.lmdb_store import open_store
from tests.made_events import MadeCluster, lived_through


def grown(folder: Path, cluster: MadeCluster, turns: int, entries: int = 1) -> Path:
    """A store in which so many turns more have been lived."""
    store = open_store(folder / "store", cluster.owner())
    for batch in lived_through(cluster, turns, entries):
        store.commit(batch)
    store.close()
    return folder / "store"


def dumped(
    store: Path, target: Path, cluster: MadeCluster, entries: str = ENTRIES_CHOICES[0]
) -> dict[str, Any]:
    done = export_store(ExportOrder(store, target, cluster.genesis, entries))
    finish(target, cluster.keys[0].sign)
    return done
