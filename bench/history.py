"""What a node missed, made without HTTP: the real cores of the other members write it.

Each member has its own core over its own store, and the messages between them are carried here. The
stores lie in memory while they are written, where a sync costs nothing, and are then put into the
data directories of nodes that are stopped.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path

from bench.core import Member
from quipu.ledger.core import Core, CoreConfig
from quipu.ledger.entry import data_entry, encode_entry
from quipu.ledger.inputs import EntriesSubmitted, MessageReceived, PeerConnected
from quipu.ledger.limits import START_WAIT_MS
from quipu.ledger.words import NodeId, Now, Ticket
from quipu.node.data_directory import read_directory
from quipu.storage import environment
from quipu.storage.lmdb_store import open_store
from quipu.storage.store import Owner

TURN_MS = 6  # above the pace of Invs: every turn ends with one
EVENTS_PER_TURN = 8  # of one member before the others hear of them
QUIET_TURNS = 4  # until the last receipts have been exchanged
MS_PER_S = 1_000


class Writers:
    """Members that write by turns, each naming what it has heard of the others."""

    def __init__(self, folders: Sequence[Path], turns: int) -> None:
        self._now_ms = int(time.time() * MS_PER_S) - TURN_MS * (turns + 2 * QUIET_TURNS)
        self._now_ms -= START_WAIT_MS
        self._begun_ms = self._now_ms
        self._tickets = 0
        self._members: dict[NodeId, Member] = {}
        for number, folder in enumerate(folders, start=1):
            directory = read_directory(folder)
            key, genesis = directory.key, directory.genesis
            store = open_store(directory.store_path, Owner(directory.cluster_id, key.node_id))
            # What is checked here was signed here.
            config = CoreConfig(key, genesis, number, verify=lambda public, message, sign: True)
            core = Core(config, store.saved(), store, self._now())
            self._members[key.node_id] = Member(key.node_id, core, store)
        for member in self._members.values():
            member.inbox += [PeerConnected(i) for i in self._members if i != member.node_id]

    def write(self, events: int, entry: bytes, entries: int) -> None:
        self._pass()
        self._now_ms += START_WAIT_MS
        self._pass()
        written = 0
        while written < events:
            for member in self._members.values():
                for _ in range(min(EVENTS_PER_TURN, events - written)):
                    self._tickets += 1
                    ticket = Ticket(self._tickets)
                    member.inbox.append(EntriesSubmitted(ticket, (entry,) * entries))
                    self._step(member)
                    written += 1
                self._now_ms += TURN_MS
        for _ in range(QUIET_TURNS):
            self._pass()
        if any(member.counts["read"] != events for member in self._members.values()):
            counts = [member.counts["read"] for member in self._members.values()]
            raise SystemExit(f"of {events} events Read: {counts}")

    def close(self) -> None:
        for member in self._members.values():
            member.store.close()

    def _now(self) -> Now:
        return Now(self._now_ms, self._now_ms - self._begun_ms)

    def _pass(self) -> None:
        self._now_ms += TURN_MS
        for member in self._members.values():
            self._step(member)

    def _step(self, member: Member) -> None:
        for receiver, data in member.turn(self._now()):
            self._members[receiver].inbox.append(MessageReceived(member.node_id, data))


@contextmanager
def _in_memory(folders: Sequence[Path]) -> Iterator[list[Path]]:
    """Copies of data directories; their stores come back when all went well."""
    with tempfile.TemporaryDirectory(prefix="quipu-bench-", dir="/dev/shm") as memory:
        copies = [Path(memory) / str(number) for number, _ in enumerate(folders)]
        for folder, copy in zip(folders, copies, strict=True):
            shutil.copytree(folder, copy)
        yield copies
        for folder, copy in zip(folders, copies, strict=True):
            store = read_directory(folder).store_path
            store.mkdir(mode=0o700, exist_ok=True)
            name = environment.DATA_FILE
            shutil.copyfile(copy / store.name / name, store / name)


def write(folders: Sequence[Path], events: int, stream: str, size: int, entries: int) -> None:
    """So many events of so many entries each, on all of these nodes; none of them runs."""
    entry = encode_entry(data_entry(bytes(size), stream=stream))
    turns = events // EVENTS_PER_TURN + len(folders)
    with _in_memory(folders) as copies:
        writers = Writers(copies, turns)
        try:
            writers.write(events, entry, entries)
        finally:
            writers.close()


def difference(one: Path, other: Path) -> str:
    """How the events of two stopped nodes differ, byte for byte; empty: they do not."""
    pairs = zip_longest(_events(one), _events(other))
    for number, (first, second) in enumerate(pairs, start=1):
        if first != second:
            return f"event {number}, in the order of cords, is not the same"
    return ""


def _events(folder: Path) -> Iterator[tuple[bytes, bytes]]:
    path = read_directory(folder).store_path
    env = environment.open_readonly(path)
    try:
        tables = environment.open_tables(env, path, create=False)
        with env.begin(buffers=True) as txn:
            for key, blob in environment.records_from(txn, tables.events):
                yield bytes(key), bytes(blob)
    finally:
        env.close()
