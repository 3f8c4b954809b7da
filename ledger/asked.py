"""Events that an answer brings: a range of one cord is judged as a whole where that may be.

It decides which of them are new and whose signatures are spared; what comes to be held, the intake
decides.
"""

from quipu.ledger.event import SignedEvent, Standing, decode_event, with_standing
from quipu.ledger.intake import Intake
from quipu.ledger.known import Known
from quipu.ledger.messages import EventBytes
from quipu.ledger.refusals import Reason, Refused, refuse
from quipu.ledger.runs import Runs
from quipu.ledger.turn import Turn
from quipu.ledger.words import NOT_A_MEMBER, Cord, Journal, NodeId


class Asked:
    def __init__(self, known: Known, intake: Intake) -> None:
        self._known = known
        self._intake = intake

    def take(self, events: list[EventBytes], peer: NodeId, turn: Turn) -> None:
        fresh = self._fresh(events, peer, turn)
        granted = Runs(self._known, turn.due_until).granted(fresh)
        is_flat = self._known.guards.window_only_on_admission
        for event in fresh:
            meta = granted.metas.pop(event.id, None)
            if meta is not None:
                is_spared = event.id in granted.spared
                event = with_standing(event, Standing.SPARED if is_spared else Standing.GOOD)
                if is_flat:
                    is_flat = self._intake.take_granted(event, meta, peer, turn)
                    continue
            is_flat = False  # what was granted rested on this one, perhaps
            if self._known.past.meta(event.id) is not None:  # it waited here, and was released
                continue
            try:
                self._intake.take_event(event, peer, True, turn)
            except Refused as refusal:
                turn.refuse(peer, refusal)

    def _fresh(self, events: list[EventBytes], peer: NodeId, turn: Turn) -> list[SignedEvent]:
        """Those that are well-formed and not held."""
        fresh: list[SignedEvent] = []
        tops: dict[tuple[bytes, int], int] = {}  # nobody looks for what lies above: 2 us an event
        for data in events:
            try:
                event = decode_event(data.header, data.signature, data.body)
                if event.hollow and not self._known.may_be_hollow(event):
                    refuse(Reason.HOLLOW)
            except Refused as refusal:
                turn.refuse(peer, refusal)
                continue
            header = event.header
            cord = (header.author, header.journal)
            top = tops.get(cord)
            if top is None:
                top = tops[cord] = self._held_top(*cord)
            if header.seq > top or self._known.past.meta(event.id) is None:
                fresh.append(event)
            else:
                self._intake.proving.replace(event, turn)
        return fresh

    def _held_top(self, author: bytes, journal: int) -> int:
        """The highest seq that is held of a cord, on whatever branch."""
        cord = Cord(
            self._known.epochs.node_numbers.get(NodeId(author), NOT_A_MEMBER), Journal(journal)
        )
        return max((branch.held_seq for branch in self._known.dag.cords.get(cord, ())), default=0)
