"""What an event costs in memory: final, and Unread. `python -m bench.memory`.

A roster of one makes every event final; a roster of three of which one is there makes none.
The store is LMDB, in memory where the machine has a place for that, for here nothing but the core
is measured. Python's own allocations are counted, after a
warm-up that fills what is bounded.
"""

import argparse
import gc
import sys
import tempfile
import tracemalloc
from pathlib import Path

from bench.figures import note_figure
from bench.lock import one_benchmark_at_a_time
from quipu.ledger import limits, signing
from quipu.ledger.canonical import encode
from quipu.ledger.core import Core, CoreConfig
from quipu.ledger.entry import data_entry, encode_entry
from quipu.ledger.epochs import Founder, Genesis, cluster_id_of
from quipu.ledger.inputs import EntriesSubmitted
from quipu.ledger.words import Now, Ticket
from quipu.storage.lmdb_store import open_store
from quipu.storage.store import Owner

START_MS = 1_750_000_000_000
TURN_MS = 10


def bytes_per_event(folder: Path, roster: int, events: int) -> float:
    keys = [signing.KeyPair.from_seed(bytes([number]) * 32) for number in range(1, roster + 1)]
    founders = [Founder(key.node_id, f"n{i}", []) for i, key in enumerate(keys, start=1)]
    genesis = encode(Genesis(1, "bench", START_MS, "majority", founders, bytes(16), []))
    store = open_store(folder / str(roster), Owner(cluster_id_of(genesis), keys[0].node_id))
    core = Core(CoreConfig(keys[0], genesis, 1), store.saved(), store, Now(START_MS, 0))
    entry = (encode_entry(data_entry(bytes(256))),)
    warm_up = 3 * limits.METAS_RECENT_MAX  # dicts that are bounded still grow once or twice
    before = 0
    tracemalloc.start()
    for number in range(warm_up + events):
        if number == warm_up:
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
        now_ms = number * TURN_MS
        effects = core.step(
            [EntriesSubmitted(Ticket(number), entry)], Now(START_MS + now_ms, now_ms)
        )
        store.commit(effects.durable)
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    read = store.stats().feed
    expected = warm_up + events if roster == 1 else 0
    if read != expected:
        raise SystemExit(f"{read} events are final, {expected} should be")
    store.close()
    return (after - before) / events


def in_memory() -> tempfile.TemporaryDirectory[str]:
    shared = Path("/dev/shm")
    return tempfile.TemporaryDirectory(
        prefix="quipu-bench-", dir=shared if shared.exists() else None
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description=__doc__)
    parser.add_argument("--events", type=int, default=20_000, help="events measured (20,000)")
    parser.add_argument("--note", action="store_true", help="append to docs/figures.csv")
    given = parser.parse_args()
    with one_benchmark_at_a_time(), in_memory() as path:
        for name, roster in (("final", 1), ("Unread", 3)):
            figure = bytes_per_event(Path(path), roster, given.events)
            print(f"{name:8} {figure:8.2f} bytes of memory an event")
            if given.note:
                note_figure("bench.memory", f"bytes of memory per {name} event", figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
