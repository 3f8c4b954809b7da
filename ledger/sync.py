"""Reconciliation (seed 003: Synchronization): every 2 s each peer is told what is held here.

One view a peer. Only what changed since the SyncEvent that the peer acknowledged is sent; equal
digests end it. Otherwise who is behind asks: this module says what for, `fetch` asks.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TypeVar

from quipu.ledger import limits
from quipu.ledger.canonical import encode
from quipu.ledger.dag import Dag
from quipu.ledger.history import BranchRecord
from quipu.ledger.messages import PREFIX_BYTES, ReceiptRow, SyncEvent, SyncRow
from quipu.ledger.receipts import Receipts
from quipu.ledger.words import Cord, EpochNo, EventId, InvNumber, Journal, NodeId, NodeNo, Now

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class PeerView:
    """What a peer has said of itself on this link, and what it has heard of this node."""

    heard: int = 0
    rows: dict[Cord, tuple[SyncRow, ...]] = field(default_factory=dict)
    receipts: dict[NodeNo, InvNumber] = field(default_factory=dict)
    leaves: list[EventId] = field(default_factory=list)
    epoch: EpochNo = EpochNo(0)
    digest: bytes = b""
    recovering: bool = False
    ask_ms: int | None = None  # when differences are old enough to be asked for
    last_sent: int = 0
    sent: dict[int, int] = field(default_factory=dict)  # number -> version of what it said
    known_version: int = 0  # the peer has acknowledged everything up to this version
    known_number: int = 0


class Sync:
    """Invariant: a row that changed has a version above all that was sent before."""

    def __init__(self, dag: Dag, receipts: Receipts) -> None:
        self._dag = dag
        self._receipts = receipts
        self.views: dict[NodeId, PeerView] = {}
        self._version = 1
        self._cord_versions: dict[Cord, int] = dict.fromkeys(dag.cords, 1)
        self._signer_versions: dict[NodeNo, int] = dict.fromkeys(receipts.newest, 1)
        self._leaves_version = 1
        self._digest: tuple[int, bytes, bytes] | None = None

    def connect(self, peer: NodeId) -> None:
        self.views[peer] = PeerView()

    def lose(self, peer: NodeId) -> None:
        self.views.pop(peer, None)

    def cord_changed(self, cord: Cord) -> None:
        self._version += 1
        self._cord_versions[cord] = self._version

    def signer_changed(self, signer: NodeNo) -> None:
        self._version += 1
        self._signer_versions[signer] = self._version

    def leaves_changed(self) -> None:
        self._version += 1
        self._leaves_version = self._version

    # --- what is said ---------------------------------------------------------------------------
    def rows_of(self, cord: Cord) -> list[BranchRecord]:
        """The branches of a cord that are told to others: what rests on one peer's word is not,
        nor what lies at rest in the newest cut."""
        branches = [record for record in self._dag.cords[cord] if not record.lender]
        at_rest = all(record.held_seq == record.cut_seq for record in branches)
        if at_rest and cord.journal != self._dag.newest_journal[cord.author_no]:
            return []
        return branches

    def digest(self, epoch_hash: bytes) -> bytes:
        """Over all rows with full ids. Rows at rest stand in it as the epoch document's hash."""
        if self._digest is not None and self._digest[:2] == (self._version, epoch_hash):
            return self._digest[2]
        hashed = sha256(epoch_hash)
        for cord in sorted(self._dag.cords):
            rows = sorted((r.held_seq, r.held_id, r.read_seq) for r in self.rows_of(cord))
            if rows:
                hashed.update(encode([cord, rows]))
        self._digest = (self._version, epoch_hash, hashed.digest())
        return hashed.digest()

    def tell(
        self,
        peer: NodeId,
        epoch: EpochNo,
        epoch_hash: bytes,
        proofs: bytes,
        recovering: bool,
        now: Now,
    ) -> SyncEvent:
        view = self.views[peer]
        number = max(view.last_sent + 1, now.wall_ms, 1)
        view.last_sent = number
        view.sent[number] = self._version
        while len(view.sent) > limits.SYNC_SENT_KEPT:
            del view.sent[next(iter(view.sent))]
        known = view.known_version
        leaves_news = self._leaves_version > known
        return SyncEvent(
            number=number,
            heard=view.heard,
            base=view.known_number,
            leaves=list(self._dag.oldest_leaves()) if leaves_news else [],
            leaf_count=len(self._dag.leaves),
            rows=self._rows_since(known),
            receipts=self._receipts_since(known),
            epoch=epoch,
            digest=self.digest(epoch_hash),
            proofs=proofs,
            wall_ms=now.wall_ms,
            recovering=recovering,
        )

    def _rows_since(self, version: int) -> list[SyncRow]:
        rows: list[SyncRow] = []
        for cord, changed in sorted(self._cord_versions.items()):
            if changed > version:
                rows += [
                    SyncRow(*cord, r.held_seq, r.held_id[:PREFIX_BYTES], r.read_seq)
                    for r in self.rows_of(cord)
                ]
        return rows[: limits.SYNC_ROWS_MAX]

    def _receipts_since(self, version: int) -> list[ReceiptRow]:
        return [
            ReceiptRow(signer, record.number, record.inv_id[:PREFIX_BYTES])
            for signer, record in sorted(self._receipts.newest.items())
            if self._signer_versions.get(signer, 0) > version
        ][: limits.SYNC_RECEIPTS_MAX]

    # --- what is heard --------------------------------------------------------------------------
    def hear(self, peer: NodeId, message: SyncEvent, epoch_hash: bytes, now: Now) -> bool:
        """Takes a peer's SyncEvent into its view; False for one that came late or twice."""
        view = self.views[peer]
        if message.number <= view.heard:
            return False
        self._hear_acknowledgement(view, message.heard)
        if message.base > view.heard:
            return True  # rows above something not heard here: the next one brings all of them
        if message.base == 0:
            view.rows.clear()
            view.receipts.clear()
        view.heard = message.number
        for cord, rows in _by_cord(message.rows):
            view.rows[cord] = tuple(rows)
        for row in message.receipts:
            view.receipts[NodeNo(row.signer_no)] = InvNumber(row.number)
        _bound(view.rows, limits.SYNC_ROWS_MAX)
        _bound(view.receipts, limits.SYNC_RECEIPTS_MAX)
        if message.leaves or not message.leaf_count:
            view.leaves = [EventId(leaf) for leaf in message.leaves]
        view.epoch, view.digest = EpochNo(message.epoch), message.digest
        view.recovering = message.recovering
        is_equal = message.digest == self.digest(epoch_hash)
        ask_ms = now.monotonic_ms + limits.SYNC_DIFFERENCE_AGE_MS
        view.ask_ms = None if is_equal and not self._lacks_receipts(view) else ask_ms
        return True

    def _hear_acknowledgement(self, view: PeerView, number: int) -> None:
        if number in view.sent:
            view.known_number, view.known_version = number, view.sent[number]
        elif number != view.known_number:  # the peer knows another life of this link
            view.known_number = view.known_version = 0
            view.last_sent = max(view.last_sent, min(number, limits.SYNC_NUMBER_TAKEN_MAX))

    def _lacks_receipts(self, view: PeerView) -> bool:
        newest = self._receipts.newest
        return any(
            signer not in newest or newest[signer].number < number
            for signer, number in view.receipts.items()
        )


def _by_cord(rows: Iterable[SyncRow]) -> list[tuple[Cord, list[SyncRow]]]:
    cords: dict[Cord, list[SyncRow]] = {}
    for row in rows:
        cords.setdefault(Cord(NodeNo(row.author_no), Journal(row.journal)), []).append(row)
    return list(cords.items())


def _bound(kept: dict[K, V], count: int) -> None:
    while len(kept) > count:
        del kept[next(iter(kept))]
