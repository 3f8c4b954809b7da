"""What a store costs: a start, which must not grow with the ledger, and a turn.

    python -m bench.store_start [--events N ...] [--directory DIR]

The stores are filled with events that are not signed: opening checks no signature, and signing a
million would take longer than everything else here.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb

from bench.figures import note_figure
from bench.lock import one_benchmark_at_a_time
from quipu.ledger import merkle, signing
from quipu.ledger.canonical import encode
from quipu.ledger.effects import AppendFeed, Durable, PutBranch, StoreEvent
from quipu.ledger.entry import data_entry, encode_entry
from quipu.ledger.event import Header, Place, SignedEvent, build_event, event_id, meta_of
from quipu.ledger.history import BranchRecord
from quipu.ledger.words import (
    GENESIS_EPOCH,
    BranchKey,
    Cord,
    EventId,
    Hlc,
    Journal,
    NodeId,
    NodeNo,
    Seq,
)
from quipu.storage.environment import DATA_FILE
from quipu.storage.event_blob import encode_blob
from quipu.storage.lmdb_store import open_store
from quipu.storage.store import Owner

CLUSTER_ID = bytes(32)
OWNER = Owner(CLUSTER_ID, NodeId(b"n" * 32))
NOT_SIGNED = bytes(signing.SIGNATURE_BYTES)
AUTHORS = 3
EVENTS_PER_COMMIT = 20_000
START_MS = 1_700_000_000_000

SECONDS_MAX = 5.0
RATIO_MAX = 1.2
NOISE_MS = 5.0  # below this, two runs of the same start differ by more than the ratio asks
RUNS = 9

ENTRIES, ENTRY_BYTES = 256, 256
TURNS = 100


def unsigned_events(
    count: int, cluster_id: bytes = CLUSTER_ID, entries: int = 1
) -> Iterator[tuple[StoreEvent, ...]]:
    """Rounds of one event of so many entries by each author, each on the newest of another."""
    made_entries = [encode_entry(data_entry(b"x" * 64))] * entries
    body, leaves = encode(made_entries), merkle.leaf_hashes(made_entries)
    root = merkle.root_of(leaves)
    heads = [EventId(cluster_id)] * AUTHORS
    for number in range(0, count, AUTHORS):
        made = []
        for author in range(min(AUTHORS, count - number)):
            seq, parent = number // AUTHORS + 1, heads[author - 1]
            header = Header(
                1, cluster_id, bytes([author]) * 32, GENESIS_EPOCH, 1, seq, heads[author],
                [parent] if parent != cluster_id else [], (START_MS << 16) + number + author,
                number + author + 1, 0, entries, len(body), root,
            )  # fmt: skip
            header_bytes = encode(header)
            identity = event_id(header_bytes)
            event = SignedEvent(identity, header, header_bytes, NOT_SIGNED, body, leaves)
            made.append(StoreEvent(event, meta_of(event, NodeNo(author + 1), 0)))
            heads[author] = identity
        yield tuple(made)


def fill(path: Path, count: int, owner: Owner = OWNER, entries: int = 1) -> float:
    """Makes the store; answers the seconds it took."""
    began = time.monotonic()
    store = open_store(path, owner)
    batch: list[Durable] = []
    ids: list[EventId] = []
    newest: tuple[StoreEvent, ...] = ()
    for newest in unsigned_events(count, owner.cluster_id, entries):
        batch.extend(newest)
        ids.extend(effect.event.id for effect in newest)
        if len(ids) >= EVENTS_PER_COMMIT:
            store.commit([*batch, AppendFeed(tuple(ids))])
            batch, ids = [], []
    store.commit([*batch, AppendFeed(tuple(ids)), *map(_record, newest)])
    store.close()
    return time.monotonic() - began


def _record(head: StoreEvent) -> PutBranch:
    meta = head.meta
    key = BranchKey(meta.slot.author_no, meta.slot.journal, 0)
    return PutBranch(
        BranchRecord(key, Seq(0), 0, meta.seq, meta.id, meta.hlc, meta.seq, meta.id, leaf=True)
    )


def start_ms(path: Path, *, cold: bool) -> float:
    """Opening, all that a core needs to go on, and its first looks into the past."""
    if cold:
        forget_pages(path / DATA_FILE)
    began = time.perf_counter()
    store = open_store(path, OWNER)
    saved = store.saved()
    for record in saved.branches:
        assert store.meta(record.held_id) is not None
        assert store.event(record.read_id) is not None
    last = store.stats().feed
    assert len(store.feed(last - 64, 64)) == 64
    took = time.perf_counter() - began
    store.close()
    return took * 1_000


def forget_pages(file: Path) -> None:
    fd = os.open(file, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def compare_starts(directory: Path, counts: list[int], note: bool) -> bool:
    print(f"start: open, saved(), first reads; median of {RUNS} runs")
    bests: list[tuple[float, float]] = []  # of a busy machine only the best run says much
    longest = 0.0
    for count in counts:
        path = directory / f"{count}"
        took = fill(path, count)
        size = (path / DATA_FILE).stat().st_size / 2**20
        times = [start_ms(path, cold=False) for _ in range(RUNS)]
        colds = [start_ms(path, cold=True) for _ in range(RUNS)]
        bests.append((min(times), min(colds)))
        if note:
            note_figure("bench.store_start", f"ms to start, {count} events, cold", min(colds))
        longest = max(longest, *times, *colds)
        print(
            f"  {count:>10,} events {size:>8,.0f} MiB: {statistics.median(times):7.2f} ms"
            f" (best {bests[-1][0]:.2f}),"
            f" {statistics.median(colds):7.2f} ms (best {bests[-1][1]:.2f}) with no page in memory;"
            f" made in {took:.0f} s"
        )
        shutil.rmtree(path)
    fine = longest < SECONDS_MAX * 1_000
    verdict = "fine" if fine else "TOO SLOW"
    print(f"  the longest took {longest:.2f} ms, at most {SECONDS_MAX} s: {verdict}")
    for kind, low, high in zip(("warm", "cold"), bests[0], bests[-1], strict=True):
        within = high <= RATIO_MAX * low + NOISE_MS
        fine = fine and within
        print(
            f"  {kind}: {high / low:.2f} x from {counts[0]:,} to {counts[-1]:,} events, at most"
            f" {RATIO_MAX} x + {NOISE_MS} ms of noise: {'fine' if within else 'TOO SLOW'}"
        )
    return fine


def compare_turns(directory: Path) -> None:
    """A turn that stores one event, beside LMDB alone with the same bytes."""
    key = signing.KeyPair.from_seed(bytes(signing.SEED_BYTES))
    entries = [encode_entry(data_entry(b"x" * ENTRY_BYTES)) for _ in range(ENTRIES)]
    effects, prev = [], EventId(CLUSTER_ID)
    for seq in range(1, TURNS + 1):
        cord = Cord(NodeNo(1), Journal(1))
        hlc = Hlc((START_MS << 16) + seq)
        place = Place(CLUSTER_ID, GENESIS_EPOCH, cord, Seq(seq), prev, (), hlc, seq)
        event = build_event(key, place, entries)
        effects.append(StoreEvent(event, meta_of(event, NodeNo(1), 0)))
        prev = event.id
    print(f"turn: one event of {ENTRIES} entries of {ENTRY_BYTES} B, one commit; mean of {TURNS}")
    store = open_store(directory / "turns", OWNER)
    _tell("store.commit", lambda n: store.commit([effects[n], _record(effects[n])]))
    store.close()
    store = open_store(directory / "unhashed", OWNER)
    unhashed = [StoreEvent(e.event._replace(leaves=()), e.meta) for e in effects]
    _tell(
        "  without leaf hashes at hand", lambda n: store.commit([unhashed[n], _record(effects[n])])
    )
    _tell("store.event", lambda n: store.event(effects[n].event.id))
    _tell("store.entry", lambda n: store.entry(effects[n].event.id, n % ENTRIES))
    _tell("store.meta", lambda n: store.meta(effects[n].event.id))
    store.close()
    _tell("encoding alone", lambda n: encode_blob(effects[n].event))
    blob = encode_blob(effects[0].event)
    env = lmdb.Environment(str(directory / "bare"), map_size=1 << 30)

    def put(number: int) -> None:
        with env.begin(write=True) as txn:
            txn.put(b"%08d" % number, blob)

    _tell("lmdb put + fsync, same bytes", put)
    env.close()


def _tell(name: str, step: Callable[[int], object]) -> None:
    cpu, wall = time.process_time(), time.perf_counter()
    for number in range(TURNS):
        step(number)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(f"  {name:<30} {cpu / TURNS * 1e6:8.0f} us CPU {wall / TURNS * 1e6:8.0f} us")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.store_start", description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--directory", type=Path, help="where to make the stores")
    parser.add_argument("--note", action="store_true", help="append to docs/figures.csv")
    options = parser.parse_args()
    made = tempfile.TemporaryDirectory(prefix="quipu-bench-", dir=options.directory)
    with one_benchmark_at_a_time(), made as folder:
        compare_turns(Path(folder))
        fine = compare_starts(Path(folder), sorted(options.events), options.note)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
