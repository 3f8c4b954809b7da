"""How far an event is, and why it is not Read: said from what is committed alone."""

from collections.abc import Collection
from dataclasses import dataclass

from quipu.ledger import limits as core_limits
from quipu.ledger.event import EventMeta
from quipu.ledger.history import BranchRecord, History
from quipu.ledger.words import HLC_SHIFT, EventId, NodeId, NodeNo, Now
from quipu.node import limits
from quipu.node.service import Cause, EventState, EventStatus, Explanation, Obstacle, ReadBy
from quipu.node.view import View


@dataclass(frozen=True, slots=True)
class Witness:
    """What is known of one event and of those around it."""

    view: View
    history: History
    me: NodeId

    def status(self, meta: EventMeta) -> EventStatus:
        view, record = self.view, self.view.branches[meta.branch]
        author_no, epoch = meta.slot.author_no, self.view.epoch
        covered = [no for no, (seq, _) in record.receipts.items() if seq >= meta.seq]
        confirmed = tuple(sorted(no for no in covered if no != author_no and no in epoch.members))
        times = view.times.get(meta.id)
        return EventStatus(
            state=self._state(meta, record),
            read_by=self._read_by(meta, record),
            read_confirms=len(confirmed),
            required=epoch.max_confirms,
            confirmed_by=confirmed,
            author_receipt=author_no in covered,
            first_seen_ms=times.first_seen_ms if times else self._written_ms(meta),
            read_ms=times.read_ms if times else None,
        )

    def explain(self, meta: EventMeta, now: Now, connected: Collection[NodeId]) -> Explanation:
        status = self.status(meta)
        if status.state is EventState.READ:
            return Explanation(status, ())
        if status.state is EventState.VOID:
            return Explanation(status, (Obstacle(Cause.LEFT, members=(meta.slot.author_no,)),))
        found = [
            *self._suspended(meta),
            *self._ahead(meta, now),
            *self._too_many_journals(meta),
            *self._receipts_missing(meta, status, connected),
            *self._parents_unread(meta),
        ]
        return Explanation(status, tuple(found))

    def _state(self, meta: EventMeta, record: BranchRecord) -> EventState:
        if record.read_seq >= meta.seq:
            return EventState.READ
        if meta.slot.author_no not in self.view.epoch.members and meta.seq > record.cut_seq:
            return EventState.VOID
        return EventState.STORED

    def _read_by(self, meta: EventMeta, record: BranchRecord) -> ReadBy | None:
        if record.read_seq < meta.seq:
            return None
        return ReadBy.CUT if record.cut_seq >= meta.seq else ReadBy.RECEIPTS

    def _written_ms(self, meta: EventMeta) -> int | None:
        """This node stamps its own events as it makes them."""
        author = self.view.epochs.node_ids.get(meta.slot.author_no)
        return meta.hlc >> HLC_SHIFT if author == self.me else None

    # --- obstacles ------------------------------------------------------------------------------
    def _suspended(self, meta: EventMeta) -> list[Obstacle]:
        author = self.view.epochs.node_ids[meta.slot.author_no]
        if (author, False) in self.view.convictions:
            return [Obstacle(Cause.SUSPENDED, members=(meta.slot.author_no,))]
        return []

    def _ahead(self, meta: EventMeta, now: Now) -> list[Obstacle]:
        due_ms = (meta.hlc >> HLC_SHIFT) - core_limits.CLOCK_AHEAD_MS
        return [Obstacle(Cause.CLOCK, until_ms=due_ms)] if due_ms > now.wall_ms else []

    def _too_many_journals(self, meta: EventMeta) -> list[Obstacle]:
        if self.view.branches[meta.branch].signed_seq:
            return []
        signed = [
            record
            for record in self.view.branches.values()
            if record.key.author_no == meta.slot.author_no and record.signed_seq > record.cut_seq
        ]
        if len(signed) < core_limits.JOURNALS_SIGNED_MAX:
            return []
        return [Obstacle(Cause.JOURNALS, members=(meta.slot.author_no,), wanted=len(signed))]

    def _receipts_missing(
        self, meta: EventMeta, status: EventStatus, connected: Collection[NodeId]
    ) -> list[Obstacle]:
        found: list[Obstacle] = []
        members = self.view.epoch.members

        def offline(numbers: tuple[NodeNo, ...]) -> tuple[NodeNo, ...]:
            return tuple(
                no for no in numbers if members.get(no) not in connected and members[no] != self.me
            )

        author = (meta.slot.author_no,)
        if not status.author_receipt:
            found.append(Obstacle(Cause.OWN_RECEIPT, author, offline(author)))
        wanted = status.required - status.read_confirms
        if wanted > 0:
            known = {*author, *status.confirmed_by}
            missing = tuple(no for no in sorted(members) if no not in known)
            found.append(Obstacle(Cause.RECEIPTS, missing, offline(missing), wanted=wanted))
        return found

    def _parents_unread(self, meta: EventMeta) -> list[Obstacle]:
        unread: list[EventId] = []
        for identity in (meta.prev, *meta.parents):
            above = self.history.meta(identity)
            if above is not None and not self.view.is_read(above):
                unread.append(identity)
        events = tuple(unread[: limits.EXPLAIN_EVENTS_MAX])
        return [Obstacle(Cause.PARENT, events=events)] if events else []
