"""A process that commits for ever and says each time what it may be held to."""

import sys
from pathlib import Path

from quipu.storage.lmdb_store import open_store
from tests.made_events import MadeCluster, lived_through

TURNS = 400


def main() -> None:
    path = Path(sys.argv[1])
    cluster = MadeCluster()
    batches = lived_through(cluster, TURNS)
    store = open_store(path, cluster.owner(), map_bytes=1 << 18)
    done = store.stats().events
    for number, batch in enumerate(batches[done:], start=done + 1):
        store.commit(batch)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
