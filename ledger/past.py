"""The past as a turn sees it: History, and above it what was decided and is not in it yet."""

from collections import deque
from collections.abc import Iterable, Iterator

from quipu.ledger import limits
from quipu.ledger.event import EventMeta, SignedEvent
from quipu.ledger.history import Held, History
from quipu.ledger.inv import Inv
from quipu.ledger.messages import PREFIX_BYTES, bytes_of
from quipu.ledger.words import BranchKey, EpochNo, EventId, Hlc, InvNumber, NodeNo, Seq, Slot


class Past:
    """`_metas` also spares History most look-ups of events that are still on their way."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._metas: dict[EventId, EventMeta] = {}
        self._order: deque[EventId] = deque()  # first in, first out
        self._prefixes: dict[bytes, EventMeta] = {}
        self._slots: dict[Slot, EventId] = {}
        self._events: dict[EventId, SignedEvent] = {}
        self._invs: dict[tuple[NodeNo, InvNumber], bytes] = {}
        self._recalled: dict[EventId, EventMeta] = {}  # in this turn
        self._recalled_at: dict[tuple[int, ...], EventMeta] = {}

    def turn_begins(self) -> None:
        """Everything of the turn before is committed now."""
        self._events.clear()
        self._invs.clear()
        self._recalled.clear()
        self._recalled_at.clear()
        while len(self._order) > limits.METAS_RECENT_MAX:
            self._drop(self._order.popleft())

    def forget(self, key: BranchKey, first: Seq, last: Seq) -> None:
        """These are held no more."""
        for slot in [slot for slot in self._slots if slot.branch == key]:
            if first <= slot.seq <= last:
                self._drop(self._slots[slot])

    def _drop(self, identity: EventId) -> None:
        meta = self._metas.pop(identity, None)
        if meta is not None:  # else it was forgotten before
            del self._slots[meta.slot]
            del self._prefixes[identity[:PREFIX_BYTES]]

    def remember(self, event: SignedEvent, meta: EventMeta) -> None:
        self._events[event.id] = event
        self._metas[event.id] = meta
        self._order.append(event.id)
        self._slots[meta.slot] = event.id
        self._prefixes[event.id[:PREFIX_BYTES]] = meta

    def remember_inv(self, signer_no: NodeNo, inv: Inv) -> None:
        self._invs[signer_no, inv.number] = inv.data

    def meta(self, identity: EventId) -> EventMeta | None:
        return (
            self._metas.get(identity)
            or self._recalled.get(identity)
            or self._history.meta(identity)
        )

    def meta_by_prefix(self, prefix: bytes) -> EventMeta | None:
        return self._prefixes.get(prefix) or self._history.meta_by_prefix(prefix)

    def held(self, identity: EventId) -> EventMeta:
        """The meta of an event that is known to be held."""
        meta = self.meta(identity)
        assert meta is not None, identity.hex()
        return meta

    def id_at(self, slot: Slot) -> EventId | None:
        return self._slots.get(slot) or self._history.id_at(slot)

    def event(self, identity: EventId) -> SignedEvent | None:
        return self._events.get(identity) or self._history.event(identity)

    def run(self, first: Slot, last: Seq, bytes_max: int) -> list[Held]:
        """Events of one branch from `first` up to `last`; none where there are no more."""
        found = self._history.run(first, last, bytes_max)
        if not found and first.seq <= last:  # decided in this turn
            event = self._events.get(self._slots.get(first, EventId(b"")))
            if event is not None:
                hlc = Hlc(event.header.hlc)
                data = bytes_of(event)
                found = [Held(first.branch, first.seq, event.id, hlc, event.size, data)]
        return found

    def metas_from(self, first: Slot, last: Seq) -> Iterator[EventMeta]:
        """Of one branch from `first` up to `last`. What is read stays at hand until the turn ends:
        what names these as parents comes next."""
        author_no, journal, seq, number = first
        while seq <= last:
            slot = (author_no, journal, seq, number)
            identity = self._slots.get(slot)  # type: ignore[call-overload]
            meta = self._recalled_at.get(slot) if identity is None else self._metas[identity]
            if meta is None:
                first = first._replace(seq=seq)
                found = self._history.metas_from(first, last, limits.METAS_PER_READ)
                assert found, first
                self._recalled.update((one.id, one) for one in found)
                self._recalled_at.update((one.slot, one) for one in found)
                meta = found[0]
            yield meta
            seq = Seq(seq + 1)

    def epoch_document(self, number: EpochNo) -> tuple[bytes, tuple[bytes, ...]] | None:
        return self._history.epoch_document(number)

    def inv(self, signer_no: NodeNo, number: InvNumber) -> bytes | None:
        return self._invs.get((signer_no, number)) or self._history.inv(signer_no, number)

    def invs_from(self, signer_no: NodeNo, number: InvNumber) -> Iterable[bytes]:
        return self._history.invs_from(signer_no, number)
