"""A small cluster whose members write real events with deterministic keys."""

from collections.abc import Sequence
from hashlib import sha256

from quipu.ledger import epochs, signing
from quipu.ledger.canonical import encode
from quipu.ledger.effects import AppendFeed, Durable, PutBranch, StoreEvent, StoreInv
from quipu.ledger.entry import data_entry, encode_entry
from quipu.ledger.event import EventMeta, Place, SignedEvent, build_event, meta_of
from quipu.ledger.history import BranchRecord
from quipu.ledger.inv import build_inv
from quipu.ledger.words import (
    GENESIS_EPOCH,
    Cord,
    EventId,
    Hlc,
    InvNumber,
    Journal,
    NodeNo,
    Seq,
    Slot,
)
from quipu.storage.store import Owner

CREATED_MS = 1_700_000_000_000


def key_of(name: str) -> signing.KeyPair:
    return signing.KeyPair.from_seed(sha256(name.encode()).digest())


def entry_of(text: str, key: str | None = None, submitter: str | None = None) -> bytes:
    return encode_entry(data_entry(text.encode(), idempotency_key=key, submitter=submitter))


class MadeCluster:
    """Members n1, n2, n3 …; every event is written on what was written before."""

    def __init__(self, members: int = 3, salt: bytes = bytes(16)) -> None:
        self.keys = [key_of(f"n{number}") for number in range(1, members + 1)]
        founders = [
            epochs.Founder(key.node_id, f"n{number}", ["member"])
            for number, key in enumerate(self.keys, start=1)
        ]
        genesis = epochs.Genesis(1, "made", CREATED_MS, "majority", founders, salt, [])
        self.genesis = encode(genesis)
        self.cluster_id = epochs.cluster_id_of(self.genesis)
        self.metas: dict[EventId, EventMeta] = {}
        self._heads: dict[tuple[int, int, int], EventMeta] = {}

    def owner(self, number: int = 1) -> Owner:
        return Owner(self.cluster_id, self.keys[number - 1].node_id)

    def head(self, author_no: int, journal: int = 1, branch: int = 0) -> EventMeta | None:
        return self._heads.get((author_no, journal, branch))

    def write(
        self,
        author_no: int,
        parents: Sequence[EventMeta] = (),
        entries: Sequence[bytes] = (),
        *,
        journal: int = 1,
        branch: int = 0,
    ) -> StoreEvent:
        """The next event of that branch of the author's cord."""
        return self._write(
            author_no, self.head(author_no, journal, branch), parents, entries, journal, branch
        )

    def fork(self, above: EventMeta | None, author_no: int, branch: int, text: str) -> StoreEvent:
        """Another event on top of `above`, which the author has built upon already."""
        journal = above.slot.journal if above else 1
        return self._write(author_no, above, (), [entry_of(text)], journal, branch)

    def _write(
        self,
        author_no: int,
        prev: EventMeta | None,
        parents: Sequence[EventMeta],
        entries: Sequence[bytes],
        journal: int,
        branch: int,
    ) -> StoreEvent:
        below = [meta for meta in (prev, *parents) if meta is not None]
        seq = Seq(prev.seq + 1 if prev else 1)
        place = Place(
            cluster_id=self.cluster_id,
            epoch=GENESIS_EPOCH,
            cord=Cord(NodeNo(author_no), Journal(journal)),
            seq=seq,
            prev=prev.id if prev else EventId(self.cluster_id),
            parents=tuple(sorted(meta.id for meta in parents)),
            hlc=Hlc(max([meta.hlc for meta in below], default=CREATED_MS << 16) + 1),
            depth=1 + max([meta.depth for meta in below], default=0),
        )
        text = f"n{author_no} {journal} {seq} {branch}"
        event = build_event(self.keys[author_no - 1], place, entries or [entry_of(text)])
        return self._stored(event, NodeNo(author_no), branch)

    def _stored(self, event: SignedEvent, author_no: NodeNo, branch: int) -> StoreEvent:
        meta = meta_of(event, author_no, branch)
        self.metas[event.id] = meta
        self._heads[author_no, meta.slot.journal, branch] = meta
        return StoreEvent(event, meta)

    def inv(
        self,
        signer_no: int,
        number: int,
        heads: Sequence[EventMeta],
        *,
        newest: bool = True,
        close: bytes | None = None,
    ) -> StoreInv:
        rows = sorted((meta.branch.cord, meta.seq, meta.id) for meta in heads)
        key = self.keys[signer_no - 1]
        inv = build_inv(key, self.cluster_id, GENESIS_EPOCH, InvNumber(number), rows, close)
        return StoreInv(NodeNo(signer_no), inv, newest)


def branch_of(head: EventMeta, **changes: object) -> PutBranch:
    """The record of a branch that holds up to this event."""
    record = BranchRecord(
        key=head.branch,
        base_seq=Seq(0),
        parent=0,
        held_seq=head.seq,
        held_id=head.id,
        held_hlc=head.hlc,
    )
    for name, value in changes.items():
        setattr(record, name, value)
    return PutBranch(record)


def slot(author_no: int, seq: int, *, journal: int = 1, branch: int = 0) -> Slot:
    return Slot(NodeNo(author_no), Journal(journal), Seq(seq), branch)


def lived_through(cluster: MadeCluster, turns: int, entries: int = 1) -> list[list[Durable]]:
    """What the turns of one node order: an event each, the one before it Read, and a receipt."""
    batches: list[list[Durable]] = []
    waiting: list[EventMeta] = []
    read: dict[int, EventMeta] = {}
    for turn in range(turns):
        author_no = 1 + turn % len(cluster.keys)
        others = [
            head
            for no in range(1, len(cluster.keys) + 1)
            if no != author_no
            if (head := cluster.head(no)) is not None
        ]
        body = [
            entry_of(f"turn {turn} entry {number}", f"key {turn}" if number == 2 else None)
            for number in range(entries)
        ]
        written = cluster.write(author_no, others, body)
        batch: list[Durable] = [written]
        if waiting:
            done = waiting.pop()
            read[done.slot.author_no] = done
            batch.append(AppendFeed((done.id,)))
            if done.slot.author_no != author_no:
                batch.append(_record(cluster, done.slot.author_no, read))
        batch.append(_record(cluster, author_no, read))
        batch.append(cluster.inv(author_no, turn + 1, [written.meta]))
        waiting.append(written.meta)
        batches.append(batch)
    return batches


def _record(cluster: MadeCluster, author_no: int, read: dict[int, EventMeta]) -> PutBranch:
    head = cluster.head(author_no)
    assert head is not None
    done = read.get(author_no)
    return branch_of(
        head,
        read_seq=done.seq if done else Seq(0),
        read_id=done.id if done else EventId(b""),
        receipts={NodeNo(author_no): (head.seq, InvNumber(head.depth))},
    )
