"""What is committed, as the node's readers see it: branches, epochs, proofs, times.

The core is one turn ahead of the disk while a commit runs; this follows behind it, effect by
effect, so that nobody is told what a loss of power could still take back.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from quipu.ledger import signing
from quipu.ledger.bundle_build import Lineage
from quipu.ledger.effects import (
    AppendFeed,
    DropFeed,
    Durable,
    PutBranch,
    PutOwnState,
    StoreEpoch,
    StoreEvent,
    StoreProof,
)
from quipu.ledger.epochs import Epoch, Epochs
from quipu.ledger.event import EventMeta
from quipu.ledger.evidence import Conviction, check_proof
from quipu.ledger.history import BranchRecord, Saved
from quipu.ledger.standing import Standing
from quipu.ledger.words import BranchKey, EpochNo, EventId, NodeNo
from quipu.node import limits
from quipu.node.service import EventRead, EventStored, FrontierRow, News, ReceiptRow


@dataclass(slots=True)
class Times:
    """When an event came and when it became Read, by this node's wall clock."""

    first_seen_ms: int
    author_no: NodeNo
    read_ms: int | None = None


@dataclass(slots=True)
class View:
    """Invariant: equal to what a start would read from the store now, times apart."""

    genesis: bytes
    epochs: Epochs
    standing: Standing
    feed_number: int
    branches: dict[BranchKey, BranchRecord] = field(default_factory=dict)
    documents: list[tuple[bytes, tuple[bytes, ...]]] = field(default_factory=list)
    convictions: dict[tuple[bytes, bool], Conviction] = field(default_factory=dict)
    times: dict[EventId, Times] = field(default_factory=dict)  # oldest first
    leaves: dict[BranchKey, EventId] = field(default_factory=dict)
    unread: dict[BranchKey, None] = field(default_factory=dict)  # these hold Unread events
    has_gone: bool = False  # something has been pruned
    feed_first: int = 1  # the lowest number that the feed still has
    pruned_to: EpochNo = EpochNo(0)
    receipts_moved: int = 0  # rises with every branch that is written: receipts lie in them
    _lineage: Lineage | None = None

    @classmethod
    def of(cls, genesis: bytes, saved: Saved, feed_number: int, feed_first: int = 1) -> "View":
        epochs = Epochs.from_genesis(genesis)
        view = cls(genesis, epochs, Standing.of(genesis, ()), feed_number)
        view.feed_first, view.pruned_to = feed_first, saved.pruned_to
        for record in saved.branches:
            view._put_branch(record.copy())
        for document, seals in saved.epochs:
            view._open(document, seals)
        for proof in saved.proofs:
            view._put_conviction(check_proof(proof, epochs.cluster_id, signing.verify))
        return view

    @property
    def epoch(self) -> Epoch:
        return self.epochs.newest

    @property
    def has_anybody_left(self) -> bool:
        """Only then can an event be void."""
        return len(self.epochs.node_ids) > len(self.epoch.members)

    @property
    def lineage(self) -> Lineage:
        if self._lineage is None:
            self._lineage = Lineage.of(self.genesis, self.documents)
        return self._lineage

    def committed(self, durable: Sequence[Durable], wall_ms: int) -> list[News]:
        """Takes what a turn made durable; answers what is to be told of it."""
        news: list[News] = []
        for effect in durable:
            match effect:
                case StoreEvent(event=event, meta=meta):
                    self._remember(event.id, Times(wall_ms, meta.slot.author_no))
                    news.append(EventStored(event.id))
                case AppendFeed(ids=ids):
                    for identity in ids:
                        self.feed_number += 1
                        news.append(EventRead(self.feed_number, identity))
                        if identity in self.times:
                            self.times[identity].read_ms = wall_ms
                case PutBranch(record=record):
                    self._put_branch(record)
                case StoreEpoch(document=document, seals=seals):
                    self._open(document, seals)
                case StoreProof(conviction=conviction):
                    self._put_conviction(conviction)
                case PutOwnState(pruned_to=pruned_to):
                    self.pruned_to = pruned_to
                case DropFeed(upto=upto):
                    self.feed_first = max(self.feed_first, min(upto, self.feed_number) + 1)
        return news

    def is_read(self, meta: EventMeta) -> bool:
        record = self.branches.get(meta.branch)
        return record is not None and record.read_seq >= meta.seq

    def frontier(self) -> list[FrontierRow]:
        return [
            FrontierRow(
                record.key.author_no,
                record.key.journal,
                record.key.number,
                record.held_seq,
                record.held_id,
                record.read_seq,
                record.read_id,
            )
            for _, record in sorted(self.branches.items())
        ]

    def receipts(self, limit: int) -> list[ReceiptRow]:
        """The newest journals first."""
        newest = sorted(self.branches, key=lambda key: (-key.journal, key.author_no, key.number))
        return [
            ReceiptRow(
                key.author_no,
                key.journal,
                key.number,
                record.held_seq,
                record.read_seq,
                tuple((number, seq) for number, (seq, _) in sorted(record.receipts.items())),
            )
            for key, record in ((key, self.branches[key]) for key in newest[:limit])
        ]

    def finality_ms(self, limit: int) -> list[int]:
        """Of the last events that are Read, the newest first."""
        read = (
            max(0, times.read_ms - times.first_seen_ms)
            for times in reversed(self.times.values())
            if times.read_ms is not None
        )
        return list(islice(read, limit))

    def unread_count(self) -> int:
        records = (self.branches[key] for key in self.unread)
        return sum(record.held_seq - max(record.read_seq, record.base_seq) for record in records)

    def journals_above_cut(self) -> int:
        return len({r.key.cord for r in self.branches.values() if r.held_seq > r.cut_seq})

    def _open(self, document: bytes, seals: tuple[bytes, ...]) -> None:
        self.epochs.open(document)
        self.standing = self.standing.after(document)
        self.documents.append((document, seals))
        self._lineage = None

    def _put_branch(self, record: BranchRecord) -> None:
        key = record.key
        self.branches[key] = record
        self.has_gone |= record.gone_upto > 0
        self.receipts_moved += 1
        if record.leaf:
            self.leaves[key] = record.read_id
        else:
            self.leaves.pop(key, None)
        if record.held_seq > max(record.read_seq, record.base_seq):
            self.unread[key] = None
        else:
            self.unread.pop(key, None)

    def _put_conviction(self, conviction: Conviction) -> None:
        self.convictions[conviction.culprit, conviction.as_signer] = conviction

    def _remember(self, identity: EventId, times: Times) -> None:
        self.times[identity] = times
        if len(self.times) > limits.TIMES_RECENT_MAX:
            del self.times[next(iter(self.times))]
