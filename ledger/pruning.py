"""Letting history go behind a checkpoint, and beginning with one that others have kept.

Decides what may go, and which events of a cut may be held though what lies below them is held
nowhere. A cut that was opened here makes all of it Read, so the last event of each cord in it
stands for the cord: nobody asks what it rests on. When and how much goes, the node says.
"""

from dataclasses import dataclass, field

from quipu.ledger import limits
from quipu.ledger.effects import DropEvents, DropFeed, DropInvs, EraseEntry
from quipu.ledger.epochs import decode_document
from quipu.ledger.history import BranchRecord
from quipu.ledger.inputs import EntryErased, HistoryPruned
from quipu.ledger.intake import Intake
from quipu.ledger.known import EntryPoint, Known
from quipu.ledger.messages import Pruned
from quipu.ledger.turn import Turn
from quipu.ledger.words import (
    GENESIS_EPOCH,
    Cord,
    EpochNo,
    EventId,
    Journal,
    NodeId,
    NodeNo,
    Seq,
)


def prunable_seq(record: BranchRecord) -> Seq:
    """The last event of a branch that may go: the tip of the cut stays, and so does what still
    has a signature to be verified."""
    top = min(record.cut_seq, record.read_seq) - 1
    if record.spared_from:
        top = min(top, record.spared_from - 1)
    return Seq(max(top, record.gone_upto))


def let_go(record: BranchRecord, upto: Seq) -> DropEvents | None:
    """Changes the record; None where nothing goes."""
    last = min(upto, prunable_seq(record))
    first = Seq(record.gone_upto + 1)
    if last < first:
        return None
    record.gone_upto = Seq(last)
    return DropEvents(record.key, first, Seq(last))


@dataclass(slots=True)
class Pruning:
    """Invariant: of a cord that has events below `pruned_to`'s cut gone, the event of that cut is
    held."""

    known: Known
    intake: Intake
    pruned_to: EpochNo
    _told: dict[NodeId, EpochNo] = field(default_factory=dict)  # by members that begin there

    def take(self, given: HistoryPruned | EntryErased, turn: Turn) -> None:
        match given:
            case HistoryPruned():
                self.prune(given, turn)
            case EntryErased():
                self._erase(given, turn)

    # --- letting go -----------------------------------------------------------------------------
    def _erase(self, given: EntryErased, turn: Turn) -> None:
        """Of an event that a cut contains: others take it with a hole."""
        meta = self.known.past.meta(given.event)
        if meta is None or meta.seq > self.known.dag.branches[meta.branch].cut_seq:
            return
        if given.index < meta.entry_count:
            turn.keep(EraseEntry(meta.slot, given.index))

    def prune(self, given: HistoryPruned, turn: Turn) -> None:
        dag = self.known.dag
        if not GENESIS_EPOCH < given.epoch < self.known.epochs.newest.number:
            return
        for key, upto in given.rows:
            record = dag.branches.get(key)
            if record is None or len(dag.cords[key.cord]) > 1:
                continue
            dropped = let_go(record, upto)
            if dropped is not None:
                self.known.past.forget(key, dropped.first, dropped.last)
                dag.changed[key] = record
                dag.has_gone = True
                turn.keep(dropped)
        if given.feed_upto:
            turn.keep(DropFeed(given.feed_upto))
        for signer, below in given.invs:
            turn.keep(DropInvs(signer, below))
        self.pruned_to = max(self.pruned_to, given.epoch)

    # --- beginning with a checkpoint ------------------------------------------------------------
    def told(self, peer: NodeId, said: Pruned) -> None:
        """What was asked for is gone at a member that begins with this epoch's cut."""
        epoch, newest = EpochNo(said.epoch), self.known.epochs.newest
        if peer not in newest.numbers or not self.intake.fetch.is_asked(peer, said.request_id):
            return
        self._told[peer] = epoch
        self.known.checkpoint_told = max(self.known.checkpoint_told, epoch)

    def begin(self, turn: Turn) -> None:
        """Wants the tips of that cut, once it is opened here. Nothing below them will come."""
        past = self.known.past  # it shows what is committed: what was opened in this turn is not
        due = {peer: no for peer, no in self._told.items() if past.epoch_document(no) is not None}
        if not due:
            return
        peer, epoch = max(due.items(), key=lambda pair: (pair[1], pair[0]))
        for told in due:
            del self._told[told]
        tips = self._tips(epoch)
        newest_journals: dict[NodeNo, Journal] = {}
        for cord in tips:
            journal = newest_journals.get(cord.author_no, Journal(0))
            newest_journals[cord.author_no] = max(journal, cord.journal)
        lacking = {cord: tip for cord, tip in tips.items() if self._lacks(cord, *tip)}
        if not lacking:
            return
        for identity in [i for i, at in self.known.entry_points.items() if at.cord in lacking]:
            del self.known.entry_points[identity]  # of an older checkpoint: it has gone, too
        for cord, (seq, identity) in lacking.items():
            is_newest = newest_journals[cord.author_no] == cord.journal
            self.known.entry_points[identity] = EntryPoint(cord, seq, is_newest)
            self.intake.fetch.want(identity, peer, turn.now.monotonic_ms)
        self.pruned_to = max(self.pruned_to, epoch)
        turn.keep(DropFeed(limits.FEED_NUMBER_MAX))  # a gap for every reader

    def _tips(self, upto: EpochNo) -> dict[Cord, tuple[Seq, EventId]]:
        """Where each cord stands in the cut of that epoch: a document lists those that rose."""
        tips: dict[Cord, tuple[Seq, EventId]] = {}
        for number in range(GENESIS_EPOCH + 1, upto + 1):
            held = self.known.past.epoch_document(EpochNo(number))
            if held is None:
                continue
            for row in decode_document(held[0]).cut:
                cord = Cord(NodeNo(row.author_no), Journal(row.journal))
                tips[cord] = (Seq(row.seq), EventId(row.id))
        return tips

    def _lacks(self, cord: Cord, seq: Seq, identity: EventId) -> bool:
        branches = self.known.dag.cords.get(cord, ())
        if len(branches) > 1 or any(branch.held_seq >= seq for branch in branches):
            return False
        return identity not in self.known.entry_points
