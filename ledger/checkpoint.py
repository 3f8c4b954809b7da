"""The checkpoints of a member that is alone: CLOSE and OPEN with an unchanged roster.

Decides when one is due and what its document says (DESIGN section 5). Without them the journals
of a node that restarts often would get no receipts after the sixteenth. A roster of several
agrees on its epochs in the log. Told what was committed; its inputs go to the core like any other.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from quipu.ledger import limits
from quipu.ledger.canonical import encode
from quipu.ledger.effects import Durable, PutBranch, StoreEpoch, StoreEvent, StoreInv
from quipu.ledger.epochs import (
    EPOCH_VERSION,
    CutRow,
    EpochDocument,
    Member,
    close_hash,
    cluster_id_of,
    decode_document,
    decode_genesis,
    document_hash,
)
from quipu.ledger.history import BranchRecord, History, Saved
from quipu.ledger.inputs import EpochClosed, EpochOpened
from quipu.ledger.inv import Inv, decode_inv
from quipu.ledger.words import GENESIS_EPOCH, Cord, EventId, NodeId, Now, Seq

FIRST_ATTEMPT = 1


class Standing(NamedTuple):
    """The newest epoch, as far as the next document repeats it."""

    cluster_id: bytes
    number: int
    hash: bytes
    policy: str
    members: tuple[Member, ...]
    streams_erasable: tuple[str, ...]
    cut_hlc: int

    @classmethod
    def of(cls, genesis_bytes: bytes, documents: Sequence[bytes]) -> "Standing":
        genesis, cluster_id = decode_genesis(genesis_bytes), cluster_id_of(genesis_bytes)
        members = tuple(
            Member(number, founder.node_id, founder.name, founder.roles)
            for number, founder in enumerate(genesis.members, start=1)
        )
        streams = tuple(genesis.streams_erasable)
        standing = cls(cluster_id, GENESIS_EPOCH, cluster_id, genesis.policy, members, streams, 0)
        for data in documents:
            standing = standing.after(data)
        return standing

    def after(self, data: bytes) -> "Standing":
        document = decode_document(data)
        return Standing(
            self.cluster_id,
            document.number,
            document_hash(data),
            document.policy,
            tuple(document.members),
            tuple(document.streams_erasable),
            max(self.cut_hlc, document.cut_hlc),
        )

    def next_document(self) -> EpochDocument:
        """The same roster once more; its cut is decided by the seals."""
        return EpochDocument(
            version=EPOCH_VERSION,
            cluster_id=self.cluster_id,
            number=self.number + 1,
            previous=self.hash,
            attempt=FIRST_ATTEMPT,
            policy=self.policy,
            members=list(self.members),
            streams_erasable=list(self.streams_erasable),
            cut=[],
            cut_hlc=self.cut_hlc,
        )


@dataclass(slots=True)
class Checkpoint:
    """Invariant: for one epoch it only ever asks for the same CLOSE, so that a seal from before a
    crash serves the OPEN after it."""

    me: NodeId
    standing: Standing
    history: History
    events: int = 0  # stored since the last one
    seal: Inv | None = None
    _above: dict[Cord, Seq] = field(default_factory=dict)  # held above the cut; with its cut_seq
    _due_ms: int | None = None  # there is something new: when it is due at the latest
    _not_before_ms: int = 0  # it was asked for: until then the core has time to answer

    @property
    def is_alone(self) -> bool:
        return [member.node_id for member in self.standing.members] == [self.me]

    @property
    def journals_open(self) -> int:
        return len(self._above)

    def resume(self, saved: Saved, now: Now) -> None:
        """After a start."""
        for record in saved.branches:
            self._note_branch(record, now)
        for signer in saved.signers:
            data = self.history.inv(signer.signer_no, signer.number) if signer.sealed else None
            if data is not None:
                self._note_seal(decode_inv(data))

    def committed(self, durable: Iterable[Durable], now: Now) -> None:
        for effect in durable:
            match effect:
                case StoreEvent():
                    self.events += 1
                case PutBranch(record=record):
                    self._note_branch(record, now)
                case StoreInv(inv=inv):
                    self._note_seal(inv)
                case StoreEpoch(document=document):
                    self.standing = self.standing.after(document)
                    self.seal, self.events, self._not_before_ms = None, 0, 0

    def propose(self, now: Now) -> EpochClosed | EpochOpened | None:
        """What the next step is to be told, if anything."""
        if not self.is_alone or now.monotonic_ms < self._not_before_ms:
            return None
        if self.seal is None and not self._is_due(now):
            return None
        self._not_before_ms = now.monotonic_ms + limits.CHECKPOINT_RETRY_MS
        if self.seal is None:
            return EpochClosed(close_hash(self.standing.next_document()))
        return EpochOpened(encode(self._document(self.seal)), (self.seal.data,))

    def next_deadline(self) -> int | None:
        if not self.is_alone or self._due_ms is None:
            return None
        if self.seal is not None or self._is_enough():
            return self._not_before_ms
        return max(self._due_ms, self._not_before_ms)

    def _is_due(self, now: Now) -> bool:
        is_late = self._due_ms is not None and now.monotonic_ms >= self._due_ms
        return is_late or self._is_enough()

    def _is_enough(self) -> bool:
        return (
            len(self._above) >= limits.CHECKPOINT_JOURNALS
            or self.events >= limits.CHECKPOINT_EVENTS
        )

    def _document(self, seal: Inv) -> EpochDocument:
        """Alone, a member can certify what it has signed and nothing else."""
        rows = [row for row in seal.rows if row.seq > self._above.get(row.cord, row.seq)]
        hlcs = [self._hlc_of(EventId(row.id)) for row in rows]
        return msgspec.structs.replace(
            self.standing.next_document(),
            cut=[CutRow(row.author_no, row.journal, row.seq, row.id) for row in rows],
            cut_hlc=max([self.standing.cut_hlc, *hlcs]),
        )

    def _hlc_of(self, identity: EventId) -> int:
        meta = self.history.meta(identity)
        assert meta is not None  # it was signed, so it is held
        return meta.hlc

    def _note_branch(self, record: BranchRecord, now: Now) -> None:
        """Of a cord with several branches the one with the lowest cut says what is new."""
        if record.held_seq > record.cut_seq:
            self._above[record.key.cord] = record.cut_seq
            if self._due_ms is None:
                self._due_ms = now.monotonic_ms + limits.CHECKPOINT_INTERVAL_MS
        else:
            self._above.pop(record.key.cord, None)
            if not self._above:
                self._due_ms = None

    def _note_seal(self, inv: Inv) -> None:
        close = inv.array.close
        if close is None or inv.signer != self.me or inv.epoch != self.standing.number:
            return
        if close == close_hash(self.standing.next_document()):
            self.seal, self._not_before_ms = inv, 0
