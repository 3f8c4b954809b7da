"""The pure path: two members, real LMDB, no network. `make bench-core`.

One author builds and signs events of 256 entries of 256 bytes, a peer accepts and stores them,
both make and count receipts, until everything is Read at both. Beside it stands what the
primitives that this needed cost in the same run: the sum of signatures, hashes, encodings, and
LMDB commits with fsync.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from bench import primitives
from bench.figures import note_figure
from bench.lock import one_benchmark_at_a_time
from quipu.ledger import signing
from quipu.ledger.canonical import encode
from quipu.ledger.core import Core, CoreConfig
from quipu.ledger.effects import AskEarly, EventsRead, SendEarly, SendMessage, StoreInv
from quipu.ledger.entry import data_entry, encode_entry
from quipu.ledger.epochs import Founder, Genesis, cluster_id_of
from quipu.ledger.inputs import EntriesSubmitted, Input, MessageReceived, PeerConnected
from quipu.ledger.words import NodeId, Now, Ticket
from quipu.storage.lmdb_store import LmdbStore, open_store
from quipu.storage.store import Owner

START_MS = 1_750_000_000_000
TURN_MS = 6  # above the pace of Invs, so that every event gets its receipts at once


@dataclass
class Member:
    """One core over its own store, with what it spent and did."""

    node_id: NodeId
    core: Core
    store: LmdbStore
    inbox: list[Input] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    step_s: float = 0.0
    commit_s: float = 0.0

    def turn(self, now: Now) -> list[tuple[NodeId, bytes]]:
        started = time.process_time()
        inputs, self.inbox = self.inbox, []
        effects = self.core.step(inputs, now)
        stepped = time.process_time()
        if effects.durable:
            self.store.commit(effects.durable)
            self.counts["commits"] += 1
        self.step_s += stepped - started
        self.commit_s += time.process_time() - stepped
        self.counts["invs"] += sum(
            isinstance(effect, StoreInv) and effect.inv.signer == self.node_id
            for effect in effects.durable
        )
        out: list[tuple[NodeId, bytes]] = []
        for spoken in effects.spoken:
            if isinstance(spoken, SendMessage | SendEarly | AskEarly):
                out.append((spoken.peer, spoken.data))
            elif isinstance(spoken, EventsRead):
                self.counts["read"] += len(spoken.ids)
        return out


class Pair:
    """An author and a peer, and the messages between them."""

    def __init__(self, folder: Path, folders: tuple[Path, ...] = ()) -> None:
        keys = [signing.KeyPair.from_seed(bytes([number]) * 32) for number in (1, 2)]
        founders = [Founder(key.node_id, f"n{i}", []) for i, key in enumerate(keys, start=1)]
        genesis = encode(Genesis(1, "bench", START_MS, "majority", founders, bytes(16), []))
        self.now_ms = 0
        self.members: dict[NodeId, Member] = {}
        for key, place in zip(keys, folders or (folder, folder), strict=True):
            owner = Owner(cluster_id_of(genesis), key.node_id)
            store = open_store(place / key.node_id.hex()[:8], owner)
            core = Core(CoreConfig(key, genesis, 1), store.saved(), store, self.now())
            self.members[key.node_id] = Member(key.node_id, core, store)
        self.author, self.peer = self.members.values()
        self.author.inbox.append(PeerConnected(self.peer.node_id))
        self.peer.inbox.append(PeerConnected(self.author.node_id))

    def now(self) -> Now:
        return Now(START_MS + self.now_ms, self.now_ms)

    def turn(self) -> None:
        """Author, then peer, then the author again with the peer's receipt, and so the peer."""
        for member in (self.author, self.peer, self.author, self.peer):
            self.now_ms += TURN_MS
            for receiver, data in member.turn(self.now()):
                self.members[receiver].inbox.append(MessageReceived(member.node_id, data))

    def close(self) -> None:
        for member in self.members.values():
            member.store.close()


def measure(folder: Path, events: int, count: int, size: int) -> dict[str, float]:
    pair = Pair(folder)
    pair.turn()
    pair.turn()
    entries = tuple(encode_entry(data_entry(number.to_bytes(size))) for number in range(count))
    for warm_up in (True, False):
        for member in pair.members.values():
            member.counts.clear()
            member.step_s = member.commit_s = 0.0
        for number in range(20 if warm_up else events):
            pair.author.inbox.append(EntriesSubmitted(Ticket(number), entries))
            pair.turn()
    pair.turn()
    pair.close()
    members = (pair.author, pair.peer)
    if any(member.counts["read"] != events for member in members):
        raise SystemExit(f"not everything became Read: {[m.counts for m in members]}")
    return {
        "step_s": sum(member.step_s for member in members),
        "author_step_s": pair.author.step_s,
        "peer_step_s": pair.peer.step_s,
        "commit_s": sum(member.commit_s for member in members),
        "commits": sum(member.counts["commits"] for member in members),
        "invs": sum(member.counts["invs"] for member in members),
    }


@dataclass(frozen=True)
class Part:
    name: str
    times: float
    each_us: float

    @property
    def total_us(self) -> float:
        return self.times * self.each_us


def parts_of(run: dict[str, float], folder: Path, events: int, count: int, size: int) -> list[Part]:
    """The primitives that the run cannot do without, with what one of each costs here."""
    entry_bytes = len(encode_entry(data_entry(bytes(size))))
    sign_us, verify_us = primitives.signature_us()
    _, decode_us = primitives.entry_us(size)
    event_bytes = count * (entry_bytes + 3)
    commit_us, _ = primitives.commit_us(folder, event_bytes)
    small_us, _ = primitives.commit_us(folder, 300)
    return [
        Part("sign (events, Invs)", events + run["invs"], sign_us),
        Part("verify (events, Invs)", events + run["invs"], verify_us),
        Part(
            "hash a leaf, author and peer", 2 * events * count, primitives.hash_us(entry_bytes + 1)
        ),
        Part("hash a tree node, author and peer", 2 * events * (count - 1), primitives.hash_us(65)),
        Part("decode and encode an entry, both", 2 * events * count, decode_us),
        Part("encode a body, author and peer", 2 * events, primitives.body_us(count, entry_bytes)),
        Part("LMDB put of an event, commit, fsync", 2 * events, commit_us),
        Part("LMDB put of a receipt, commit, fsync", run["commits"] - 2 * events, small_us),
    ]


def report(run: dict[str, float], parts: list[Part], entries: int) -> dict[str, float]:
    total_us = (run["step_s"] + run["commit_s"]) * 1e6
    primitive_us = sum(part.total_us for part in parts)
    for part in parts:
        print(
            f"  {part.name:38} {part.times:9.0f} x {part.each_us:8.2f} us"
            f" = {part.total_us / entries:6.3f} us an entry"
        )
    figures = {
        "entries": float(entries),
        "primitives_us_per_entry": primitive_us / entries,
        "author_step_us_per_entry": run["author_step_s"] * 1e6 / entries,
        "peer_step_us_per_entry": run["peer_step_s"] * 1e6 / entries,
        "commit_us_per_entry": run["commit_s"] * 1e6 / entries,
        "total_us_per_entry": total_us / entries,
        "ratio_to_primitives": total_us / primitive_us,
    }
    for name, value in figures.items():
        print(f"{name:38} {value:10.3f}")
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.core", description=__doc__)
    parser.add_argument("--events", type=int, default=1000, help="events measured (1000)")
    parser.add_argument("--entries", type=int, default=256, help="entries in an event (256)")
    parser.add_argument("--size", type=int, default=256, help="bytes of data in an entry (256)")
    parser.add_argument("--json", action="store_true", help="the figures as JSON, last line")
    parser.add_argument("--note", action="store_true", help="append to docs/figures.csv")
    given = parser.parse_args()
    with one_benchmark_at_a_time(), tempfile.TemporaryDirectory(prefix="quipu-bench-") as path:
        folder = Path(path)
        run = measure(folder, given.events, given.entries, given.size)
        parts = parts_of(run, folder, given.events, given.entries, given.size)
    figures = report(run, parts, given.events * given.entries)
    if given.json:
        print(json.dumps(figures))
    if given.note:
        note_figure("bench-core", "total us per entry", figures["total_us_per_entry"])
        note_figure("bench-core", "ratio to primitives", figures["ratio_to_primitives"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
