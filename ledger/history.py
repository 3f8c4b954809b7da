"""History: the past, as the core reads it. An LMDB snapshot in production, dicts in the simulator.

It shows what has been committed. What a turn has decided and not yet committed, the core itself
remembers until the next turn begins.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from quipu.ledger.event import EventMeta, SignedEvent
from quipu.ledger.messages import EventBytes
from quipu.ledger.words import (
    BranchKey,
    EpochNo,
    EventId,
    Hlc,
    InvNumber,
    Journal,
    NodeNo,
    Seq,
    Slot,
)


@dataclass(slots=True)
class BranchRecord:
    """One line of a cord: what is held of it, what of that is Read, and who said so.

    Invariant: cut_seq, read_seq, signed_seq <= held_seq; base_seq < held_seq; number 0 has
    base_seq 0. An event of the line has seq base_seq + 1 .. held_seq; below lie those of `parent`.
    What has been pruned lies below the cut: gone_upto < cut_seq, and a cord with several branches
    is never pruned.
    `receipts` count in the newest epoch opened alone.
    """

    key: BranchKey
    base_seq: Seq  # the last seq shared with `parent`
    parent: int  # number of the branch that this one left
    held_seq: Seq
    held_id: EventId
    held_hlc: Hlc
    read_seq: Seq = Seq(0)
    read_id: EventId = EventId(b"")
    cut_seq: Seq = Seq(0)
    signed_seq: Seq = Seq(0)  # highest that this node has acknowledged on this branch
    leaf: bool = False  # the event at read_seq is a leaf of the Model
    lender: bytes = b""  # the peer on whose word alone this branch is held; empty: vouched for
    moved_ms: int = 0  # wall time of the last change of held_seq
    receipts: dict[NodeNo, tuple[Seq, InvNumber]] = field(default_factory=dict)
    spared_from: Seq = Seq(0)  # lowest seq whose signature has not been verified; 0: none
    spared_upto: Seq = Seq(0)
    gone_upto: Seq = Seq(0)  # events up to this one are held no more, or never were

    def copy(self) -> "BranchRecord":
        return BranchRecord(
            self.key,
            self.base_seq,
            self.parent,
            self.held_seq,
            self.held_id,
            self.held_hlc,
            self.read_seq,
            self.read_id,
            self.cut_seq,
            self.signed_seq,
            self.leaf,
            self.lender,
            self.moved_ms,
            dict(self.receipts),
            self.spared_from,
            self.spared_upto,
            self.gone_upto,
        )


@dataclass(slots=True)
class SignerRecord:
    """The newest Inv held of a signer."""

    signer_no: NodeNo
    number: InvNumber
    inv_id: bytes
    epoch: EpochNo
    sealed: bytes = b""  # own record only: the CLOSE that the last Inv of an epoch named


@dataclass(slots=True)
class Saved:
    """All that a core needs to go on after a start. Its size does not grow with the ledger."""

    branches: list[BranchRecord] = field(default_factory=list)
    signers: list[SignerRecord] = field(default_factory=list)
    # documents in order with their seals, genesis not among them
    epochs: list[tuple[bytes, tuple[bytes, ...]]] = field(default_factory=list)
    proofs: list[bytes] = field(default_factory=list)
    newest_journal_own: Journal = Journal(0)
    recovering: bool = False
    pruned_to: EpochNo = EpochNo(0)  # the checkpoint that history begins with; 0: all is there
    overruling: tuple[bytes, tuple[bytes, ...]] | None = None  # a forced epoch, and its seals


class Held(NamedTuple):
    """An event on its way out: its bytes as they lie on disk, and what orders them."""

    branch: BranchKey
    seq: Seq
    id: EventId
    hlc: Hlc
    size: int
    data: EventBytes


class History(Protocol):
    def meta(self, identity: EventId) -> EventMeta | None:
        """The place and edges of a committed event."""

    def meta_by_prefix(self, prefix: bytes) -> EventMeta | None:
        """The same by the first 16 bytes of the id."""

    def id_at(self, slot: Slot) -> EventId | None:
        """The event at (author, journal, seq) on one branch; only where that branch has its own."""

    def event(self, identity: EventId) -> SignedEvent | None:
        """The whole event, its bytes checked against its id."""

    def run(self, first: Slot, last: Seq, bytes_max: int) -> list[Held]:
        """The bytes, checked in the same way, of what one branch has of its own from `first` up to
        `last`, in order: about so many bytes, and one event at least."""

    def metas_from(self, first: Slot, last: Seq, count_max: int) -> list[EventMeta]:
        """The places and edges of the same, at most so many; none where `first` is not there."""

    def inv(self, signer_no: NodeNo, number: InvNumber) -> bytes | None:
        """One kept receipt."""

    def epoch_document(self, number: EpochNo) -> tuple[bytes, tuple[bytes, ...]] | None:
        """The document of an epoch after the genesis, and its seals."""

    def invs_from(self, signer_no: NodeNo, number: InvNumber) -> Iterable[bytes]:
        """The kept receipts of a signer with at least this number, in order."""
