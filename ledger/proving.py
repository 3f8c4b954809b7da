"""Signatures that ranges were spared, verified later: a few at a time, lowest first. Nothing
waits for it: it gives way to entries of clients, and rests while the node is far behind.

One that is wrong came from a peer that has lied about it: the event is what its author wrote all
the same, and a good signature for it is asked of the others. Until there is one, a range that
ends with it is served longer, and no answer gives it alone.
"""

from dataclasses import dataclass, field
from itertools import islice

from quipu.ledger import limits
from quipu.ledger.effects import StoreEvent
from quipu.ledger.event import EventMeta, SignedEvent, has_valid_signature, signed_part
from quipu.ledger.fetch import Fetch
from quipu.ledger.history import BranchRecord
from quipu.ledger.known import Known
from quipu.ledger.pressure import Pressure
from quipu.ledger.turn import Turn
from quipu.ledger.words import BranchKey, EventId, Now, Seq


@dataclass(slots=True)
class Work:
    """What is left to do about the spared seqs of one branch."""

    next_seq: Seq  # the first that has not been looked at
    wrong: dict[EventId, Seq] = field(default_factory=dict)
    ask_ms: int = 0  # when a good signature is asked for again
    interval_ms: int = limits.RESIGN_INTERVAL_MS


class Proving:
    """Invariant: outside of a branch's spared seqs every signature held has been verified."""

    def __init__(self, known: Known, fetch: Fetch, pressure: Pressure) -> None:
        self._known = known
        self._fetch = fetch
        self._pressure = pressure
        self._next_ms = 0
        self._works: dict[BranchKey, Work] = {
            key: Work(record.spared_from)
            for key, record in known.dag.branches.items()
            if record.spared_from
        }

    def spared(self, record: BranchRecord, meta: EventMeta) -> None:
        """It is held now, and its signature has not been looked at."""
        record.spared_from = record.spared_from or meta.seq
        record.spared_upto = meta.seq
        if record.key not in self._works:
            self._works[record.key] = Work(meta.seq)

    def forget(self, key: BranchKey) -> None:
        """What was spared there is held no more."""
        self._works.pop(key, None)

    def is_good(self, record: BranchRecord, seq: Seq, identity: EventId, signature: bytes) -> bool:
        """Whether the signature of this event of that line is known to be good, or is now."""
        if record.spared_from <= seq <= record.spared_upto:
            author = self._known.epochs.node_ids[record.key.author_no]
            return self._known.verify(author, signed_part(identity), signature)
        return True

    def replace(self, event: SignedEvent, turn: Turn) -> None:
        """An event that is held came again, perhaps with the signature that is missing."""
        meta = self._known.past.held(event.id)
        work = self._works.get(meta.branch)
        if work is None or event.id not in work.wrong:
            return
        if has_valid_signature(event, self._known.verify):
            del work.wrong[event.id]
            self._fetch.got(event.id)
            turn.keep(StoreEvent(event, meta))
            self._tighten(self._known.dag.branches[meta.branch], work)

    def prove(self, turn: Turn) -> None:
        now_ms = turn.now.monotonic_ms
        if now_ms < self._next_ms or self._rests(turn.now):
            return
        is_pressed = self._pressure.is_on(turn.now)
        room = limits.PROVED_PRESSED_MAX if is_pressed else limits.PROVED_MAX
        self._next_ms = now_ms + (
            limits.PROVE_PACE_PRESSED_MS if is_pressed else limits.PROVE_PACE_MS
        )
        for key, work in list(self._works.items()):
            record = self._known.dag.branches[key]
            first = work.next_seq
            last = min(Seq(first + room - 1), record.spared_upto)
            if first <= last:
                room -= last - first + 1
                self._look(record, work, last)
            if work.wrong and now_ms >= work.ask_ms:
                self._ask(work, turn.now)

    def _look(self, record: BranchRecord, work: Work, last: Seq) -> None:
        for seq in range(work.next_seq, last + 1):
            event = self._known.past.event(self._known.dag.id_on(record, Seq(seq)))
            if event is not None and not has_valid_signature(event, self._known.verify):
                work.wrong[event.id] = Seq(seq)
                work.ask_ms, work.interval_ms = 0, limits.RESIGN_INTERVAL_MS
        work.next_seq = Seq(last + 1)
        self._tighten(record, work)

    def _tighten(self, record: BranchRecord, work: Work) -> None:
        """The record is written where nothing is left, and else with its next change."""
        record.spared_from = min(work.wrong.values(), default=work.next_seq)
        if record.spared_from > record.spared_upto:
            record.spared_from = record.spared_upto = Seq(0)
            self._known.dag.changed[record.key] = record
            del self._works[record.key]

    def _ask(self, work: Work, now: Now) -> None:
        work.ask_ms = now.monotonic_ms + work.interval_ms
        work.interval_ms = min(2 * work.interval_ms, limits.RESIGN_INTERVAL_MAX_MS)
        for identity in islice(work.wrong, limits.GET_IDS_MAX):
            self._fetch.want(identity, self._known.node_id, now.monotonic_ms)

    def next_deadline(self, now: Now) -> int | None:
        if self._rests(now):
            return None  # until the turn that ends it
        branches = self._known.dag.branches
        waits = [
            self._next_ms
            if work.next_seq <= branches[key].spared_upto
            else max(work.ask_ms, self._next_ms)
            for key, work in self._works.items()
        ]
        return min(waits, default=None)

    def _rests(self, now: Now) -> bool:
        return not self._known.guards.spared_proven or self._fetch.is_far_behind(now)
