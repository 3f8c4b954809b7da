"""Answering a GetData (seed 003): from the Model, Unread and fork branches alike, in causal order.

hlc grows along every edge, so events merged by hlc come parents first. At most 1 MiB or one event
an answer; the asker comes again for more.

History can wait: who asks for ranges is answered at the end of a turn, one a turn. While entries
of clients come, here or at another member, the answers are small, and there are pauses between.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

import msgspec

from quipu.ledger import limits
from quipu.ledger.history import BranchRecord, Held
from quipu.ledger.inv import decode_inv
from quipu.ledger.known import Known
from quipu.ledger.messages import (
    Answer,
    CoverWant,
    EventBytes,
    GetData,
    InvWant,
    Pruned,
    RangeWant,
    bytes_of,
)
from quipu.ledger.past import Past
from quipu.ledger.pressure import Pressure
from quipu.ledger.proving import Proving
from quipu.ledger.pruning import Pruning
from quipu.ledger.refusals import Reason
from quipu.ledger.turn import Turn
from quipu.ledger.words import Cord, EventId, InvNumber, Journal, NodeId, NodeNo, Now, Seq, Slot

_causal = itemgetter(*map(Held._fields.index, ("hlc", "id")))


class Room(NamedTuple):
    """For events. A range goes on beyond so many of them where no good signature is."""

    events: int
    bytes: int


@dataclass(slots=True)
class Stretch:
    """What one want still has to give, parents first; a little of it has been read."""

    past: Past
    parts: list[tuple[Slot, Seq]] = field(default_factory=list)  # first and last; lowest part last
    read_bytes_max: int = 0
    found: list[Held] = field(default_factory=list)

    def refill(self) -> bool:
        """False when there is no more."""
        while not self.found and self.parts:
            first, last = self.parts.pop()
            self.found = self.past.run(first, last, self.read_bytes_max)
            if self.found and self.found[-1].seq < last:
                self.parts.append((first._replace(seq=Seq(self.found[-1].seq + 1)), last))
        return bool(self.found)

    def take(self, reach: tuple[int, EventId]) -> list[Held]:
        count = bisect_right(self.found, reach, key=_causal)
        taken, self.found = self.found[:count], self.found[count:]
        return taken


class Serve:
    def __init__(
        self, known: Known, proving: Proving, pressure: Pressure, pruning: Pruning
    ) -> None:
        self._known = known
        self._dag = known.dag
        self._past = known.past
        self._receipts = known.receipts
        self._proving = proving
        self._pressure = pressure
        self._pruning = pruning
        self._asked: deque[tuple[NodeId, GetData]] = deque()
        self._next_ms = 0  # no history before, as long as entries of clients come
        self._live = Room(0, 0)  # that came since the last answer

    # --- when -----------------------------------------------------------------------------------
    def ask(self, peer: NodeId, want: GetData, turn: Turn) -> None:
        if not want.ranges:
            turn.send(peer, self._answer(want, _usual()))
            return
        if any(self._is_gone(wanted) for wanted in want.ranges):
            # Ahead of the answer, for with that the request is over.
            turn.send(peer, Pruned(want.request_id, self._pruning.pruned_to))
            if not any(wanted.anchors for wanted in want.ranges):
                # Who has nothing needs the tips of the cut first: nothing else could be placed.
                turn.send(peer, self._answer(msgspec.structs.replace(want, ranges=[]), _usual()))
                return
        if sum(asker == peer for asker, _ in self._asked) < limits.REQUESTS_PER_PEER_MAX:
            self._asked.append((peer, want))
        else:
            turn.note(peer, Reason.ROOM_FULL, "requests that wait for an answer")

    def lose(self, peer: NodeId) -> None:
        self._asked = deque(pair for pair in self._asked if pair[0] != peer)

    def speak(self, turn: Turn) -> None:
        now_ms = turn.now.monotonic_ms
        if turn.events:
            size = sum(event.size for event in turn.events)
            self._live = Room(self._live.events + len(turn.events), self._live.bytes + size)
        is_pressed = self._pressure.is_on(turn.now)
        if not self._asked or (is_pressed and now_ms < self._next_ms):
            return
        room = self._pressed_room(now_ms) if is_pressed else _usual()
        self._live = Room(0, 0)
        self._next_ms = now_ms + limits.SERVE_PACE_MS
        peer, want = self._asked.popleft()
        turn.send(peer, self._answer(want, room))

    def _pressed_room(self, now_ms: int) -> Room:
        """Twice what came alive since the last answer: else whoever is behind stays behind."""
        usual, live = _usual(), self._live
        if now_ms > self._next_ms + limits.PRESSED_MS:  # nobody has been asking
            live = Room(0, 0)
        return Room(
            min(max(limits.ANSWER_EVENTS_PRESSED, 2 * live.events), usual.events),
            min(max(limits.ANSWER_BYTES_PRESSED, 2 * live.bytes), usual.bytes),
        )

    def next_deadline(self, now: Now) -> int | None:
        if not self._asked:
            return None
        return min(max(self._next_ms, now.monotonic_ms), self._pressure.ends_ms)

    # --- what -----------------------------------------------------------------------------------
    def _answer(self, want: GetData, room: Room) -> Answer:
        budget = min(want.bytes_max, room.bytes)
        missing: list[bytes] = []
        events: list[EventBytes] = []
        invs, more = self._invs(want, budget)
        budget -= sum(map(len, invs))
        ends: dict[tuple[int, ...], Held] = {}  # the newest of each cord in this answer
        for held in self._wanted(want, missing, budget):
            size, cord = held.size, held.branch[:2]
            is_first = not events and not invs
            if not is_first and (size > budget or len(events) >= room.events):
                more = True
                if not self._is_for_good_end(ends.get(cord), len(events)):
                    break
            budget -= size
            ends[cord] = held
            events.append(held.data)
        return Answer(want.request_id, invs, events, missing[: limits.GET_IDS_MAX], more)

    def _is_for_good_end(self, end: Held | None, count: int) -> bool:
        """A range must end with a good signature: all others of its cord rest on that one."""
        return count < limits.ANSWER_EVENTS_MAX and end is not None and not self._is_good(end)

    def _is_good(self, held: Held) -> bool:
        record = self._dag.branches[held.branch]
        return self._proving.is_good(record, held.seq, held.id, held.data.signature)

    # --- events ---------------------------------------------------------------------------------
    def _wanted(self, want: GetData, missing: list[bytes], budget: int) -> Iterator[Held]:
        """All that is asked for, parents first, each once."""
        single: list[Held] = []
        for identity in want.ids:
            meta = self._past.meta(EventId(identity))
            event = meta and self._past.event(meta.id)
            if meta and event:
                held = Held(meta.branch, meta.seq, event.id, meta.hlc, event.size, bytes_of(event))
                if self._is_good(held):
                    single.append(held)
                    continue
            missing.append(identity)
        stretches = [self._range(wanted) for wanted in want.ranges]
        if single:
            stretches.append(Stretch(self._past, found=sorted(single, key=_causal)))
        sent: set[EventId] = set()
        for held in _merged(stretches, budget):
            if held.id not in sent:
                sent.add(held.id)
                yield held

    def _is_gone(self, want: RangeWant) -> bool:
        """Whether something of it has been pruned here, or it lies below altogether."""
        cord = Cord(NodeNo(want.author_no), Journal(want.journal))
        if not self._dag.is_gone(cord, 1):
            return False
        tip = self._past.meta_by_prefix(want.last)
        if tip is None:
            return self._dag.is_gone(cord, want.last_seq)
        record = self._dag.branches[tip.branch]
        return tip.branch.cord == cord and self._start(want, record) <= record.gone_upto

    def _start(self, want: RangeWant, record: BranchRecord) -> Seq:
        """Behind the newest anchor that lies on the line."""
        for seq, prefix in want.anchors:
            anchor = self._past.meta_by_prefix(prefix)
            if anchor is not None and anchor.seq == seq and self._dag.is_on_line(anchor, record):
                return Seq(seq + 1)
        return Seq(1)

    def _range(self, want: RangeWant) -> Stretch:
        tip = self._past.meta_by_prefix(want.last)
        if tip is None or tuple(tip.branch.cord) != (want.author_no, want.journal):
            return Stretch(self._past)
        record = self._dag.branches[tip.branch]
        start = self._start(want, record)
        if start <= record.gone_upto:  # what is left of it could not be placed
            return Stretch(self._past)
        return Stretch(
            self._past,
            [
                (
                    Slot(*branch.key.cord, max(start, Seq(branch.base_seq + 1)), branch.key.number),
                    min(upto, tip.seq),
                )
                for branch, upto in self._dag.line(record)
            ],
        )

    # --- receipts -------------------------------------------------------------------------------
    def _invs(self, want: GetData, budget: int) -> tuple[list[bytes], bool]:
        """As many as fit, and whether there are more."""
        numbers: dict[tuple[NodeNo, InvNumber], None] = {}
        for inv_want in want.invs:
            numbers.update(dict.fromkeys(self._of_signer(inv_want)))
        for cover in want.covers:
            numbers.update(dict.fromkeys(self._covering(cover)))
        found: list[bytes] = []
        for key in numbers:
            data = self._past.inv(*key)
            if data is None:
                continue
            if found and (len(data) > budget or len(found) == limits.GET_RECEIPTS_MAX):
                return found, True
            budget -= len(data)
            found.append(data)
        return found, False

    def _of_signer(self, want: InvWant) -> Iterator[tuple[NodeNo, InvNumber]]:
        signer = NodeNo(want.signer_no)
        record = self._receipts.newest.get(signer)
        if want.number == 0:
            covered = self._rows_of_newest(signer)
            for branch in self._dag.branches.values():
                seq, number = branch.receipts.get(signer, (Seq(0), InvNumber(0)))
                is_forked = len(self._dag.cords[branch.key.cord]) > 1
                if seq > 0 and (is_forked or covered.get(branch.key.cord, 0) < seq):
                    yield signer, number
        elif self._past.inv(signer, InvNumber(want.number)) is not None:
            yield signer, InvNumber(want.number)  # one that lies between two that were sent
        if record is not None and record.number >= want.number:
            yield signer, record.number

    def _rows_of_newest(self, signer: NodeNo) -> dict[Cord, int]:
        record = self._receipts.newest.get(signer)
        data = self._past.inv(signer, record.number) if record else None
        return {row.cord: row.seq for row in decode_inv(data).rows} if data else {}

    def _covering(self, want: CoverWant) -> Iterator[tuple[NodeNo, InvNumber]]:
        tip = self._past.meta_by_prefix(want.tip)
        if tip is None:
            return
        for record, _ in self._dag.line(self._dag.branches[tip.branch]):
            for signer, (seq, number) in sorted(record.receipts.items()):
                if seq >= min(want.seq, record.held_seq):
                    yield signer, number


def _usual() -> Room:
    return Room(limits.ANSWER_EVENTS_USUAL, limits.ANSWER_BYTES_MAX)


def _merged(stretches: list[Stretch], budget: int) -> Iterator[Held]:
    """As far as all that is read reaches, in one order; then more is read where nothing is left."""
    read_bytes_max = max(budget, 0) // (limits.ANSWER_READS * max(len(stretches), 1))
    for one in stretches:
        one.read_bytes_max = read_bytes_max
    while stretches := [one for one in stretches if one.refill()]:
        reach = min(_causal(one.found[-1]) for one in stretches)
        yield from sorted((h for one in stretches for h in one.take(reach)), key=_causal)
