"""A table with a few nodes on it: real cores over the in-memory store, a clock that the test
moves, links that deliver in a millisecond or not at all. No faults of its own: the simulator has
those. Every message is noted, so that a test can say what crossed the wire.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from quipu.ledger.canonical import encode
from quipu.ledger.core import Core, CoreConfig
from quipu.ledger.effects import (
    AskEarly,
    Durable,
    Effects,
    EntriesRefused,
    EntriesStored,
    EventsRead,
    InputRefused,
    NodeConvicted,
    SendEarly,
    SendMessage,
    Spoken,
)
from quipu.ledger.entry import data_entry, encode_entry
from quipu.ledger.epochs import Founder, Genesis, cluster_id_of
from quipu.ledger.event import EventMeta, Header, SignedEvent
from quipu.ledger.history import BranchRecord
from quipu.ledger.inputs import (
    EntriesSubmitted,
    Input,
    MessageReceived,
    PeerConnected,
    PeerLost,
)
from quipu.ledger.messages import Message, decode_message
from quipu.ledger.refusals import Reason
from quipu.ledger.safeguards import ALL, Safeguards
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import (
    Cord,
    EventId,
    Hlc,
    Journal,
    NodeId,
    NodeNo,
    Now,
    Ticket,
    hlc_at,
)
from quipu.storage.memory_store import Image, MemoryStore
from quipu.storage.store import Owner

START_MS = 1_750_000_000_000
LINK_MS = 1

M = TypeVar("M")


@dataclass
class Sent:
    at_ms: int
    sender: str
    receiver: str
    message: Message
    size: int


@dataclass
class Seat:
    """One node at the table."""

    name: str
    key: KeyPair
    genesis: bytes
    guards: Safeguards = ALL
    clock_offset_ms: int = 0
    entropy: int = 1
    store: MemoryStore = field(init=False)
    core: Core = field(init=False)
    inbox: list[Input] = field(default_factory=list)
    turns: list[Effects] = field(default_factory=list)
    stored: list[EntriesStored] = field(default_factory=list)
    not_stored: list[EntriesRefused] = field(default_factory=list)
    read: list[EventId] = field(default_factory=list)
    refused: list[InputRefused] = field(default_factory=list)
    convicted: list[NodeConvicted] = field(default_factory=list)
    is_up: bool = True

    def note(self, effect: Spoken) -> None:
        match effect:
            case EntriesStored():
                self.stored.append(effect)
            case EntriesRefused():
                self.not_stored.append(effect)
            case EventsRead(ids):
                self.read.extend(ids)
            case InputRefused():
                self.refused.append(effect)
            case NodeConvicted():
                self.convicted.append(effect)

    @property
    def number(self) -> NodeNo:
        return self.core.me

    def meta(self, identity: EventId) -> EventMeta:
        meta = self.store.meta(identity)
        assert meta is not None, f"{self.name} does not hold {identity.hex()[:8]}"
        return meta

    def event(self, identity: EventId) -> SignedEvent:
        event = self.store.event(identity)
        assert event is not None, f"{self.name} does not hold {identity.hex()[:8]}"
        return event

    def branch(self, identity: EventId) -> BranchRecord:
        return self.core.dag.branches[self.meta(identity).branch]

    def holds(self, identity: EventId) -> bool:
        return self.store.meta(identity) is not None

    def is_read(self, identity: EventId) -> bool:
        meta = self.store.meta(identity)
        return meta is not None and self.core.dag.is_read(meta)

    def read_confirms(self, identity: EventId) -> int:
        return self.core.dag.read_confirms(self.meta(identity))

    def feed(self) -> list[EventId]:
        return [identity for _, identity in self.store.feed(0, 1 << 30)]

    def refusals(self) -> list[Reason]:
        return [notice.reason for notice in self.refused]

    def durable(self, kind: type[M]) -> list[M]:
        """What was made durable, of one kind, since the start of the table."""
        return [e for turn in self.turns for e in turn.durable if isinstance(e, kind)]

    def digest(self) -> bytes:
        return self.core.sync.digest(self.core.epochs.newest_hash)


class Table:
    """`played`: members after the cores whose messages the test makes itself (see `hand.py`)."""

    def __init__(
        self,
        count: int,
        policy: str = "majority",
        *,
        outsiders: int = 0,
        played: Sequence[str] = (),
        guards: Safeguards = ALL,
    ) -> None:
        self.now_ms = 0
        self.sent: list[Sent] = []
        self.may_pass: Callable[[Sent], bool] = lambda sent: True
        self._in_flight: list[tuple[int, int, str, str, bytes]] = []
        self._cut: set[tuple[str, str]] = set()
        self._tickets = 0
        founding = [*(f"n{number}" for number in range(1, count + 1)), *played]
        later = [f"n{number}" for number in range(len(founding) + 1, len(founding) + 1 + outsiders)]
        self.keys = {name: key_of(name) for name in [*founding, *later]}
        founders = [Founder(self.keys[name].node_id, name, []) for name in founding]
        self.genesis = encode(Genesis(1, "table", START_MS, policy, founders, bytes(16), []))
        self.cluster_id = cluster_id_of(self.genesis)
        self.seats = {
            name: Seat(name, key, self.genesis, guards)
            for name, key in self.keys.items()
            if name not in played
        }
        self.names = {key.node_id: name for name, key in self.keys.items()}
        for seat in self.seats.values():
            seat.store = MemoryStore(self.owner(seat))
            self._boot(seat)
        for name, seat in self.seats.items():
            seat.inbox += [PeerConnected(k.node_id) for n, k in self.keys.items() if n != name]

    def owner(self, seat: Seat) -> Owner:
        return Owner(self.cluster_id, seat.key.node_id)

    def _boot(self, seat: Seat, key_existed: bool = False) -> None:
        seat.entropy += 1
        config = CoreConfig(
            seat.key, self.genesis, seat.entropy, seat.guards, key_existed=key_existed
        )
        seat.core = Core(config, seat.store.saved(), seat.store, self.now(seat))

    def now(self, seat: Seat) -> Now:
        return Now(START_MS + self.now_ms + seat.clock_offset_ms, self.now_ms)

    @property
    def wall_ms(self) -> int:
        return START_MS + self.now_ms

    @property
    def hlc(self) -> Hlc:
        return hlc_at(self.wall_ms)

    def __getitem__(self, name: str) -> Seat:
        return self.seats[name]

    # --- what a test does -----------------------------------------------------------------------
    def submit(self, name: str, *texts: str) -> Ticket:
        self._tickets += 1
        entries = tuple(encode_entry(data_entry(text.encode())) for text in texts or ("x",))
        self.seats[name].inbox.append(EntriesSubmitted(Ticket(self._tickets), entries))
        return Ticket(self._tickets)

    def write(self, name: str, *texts: str) -> EventId:
        """Submits, and takes the turn in which the event is made."""
        ticket = self.submit(name, *texts)
        self.run(0)
        return self.event_of(ticket)

    def tell(self, sender: str, receiver: str, data: bytes) -> None:
        """A message out of nowhere, as a liar would send it."""
        peer = self.keys[sender].node_id
        self.seats[receiver].inbox.append(MessageReceived(peer, data))

    def cut(self, one: str, other: str, both_ways: bool = True) -> None:
        """What is sent is lost; the link itself does not notice."""
        self._cut.add((one, other))
        if both_ways:
            self._cut.add((other, one))

    def isolate(self, name: str) -> None:
        for other in self.keys:
            if other != name:
                self.cut(name, other)

    def heal(self) -> None:
        self._cut.clear()
        self.may_pass = lambda sent: True

    def part(self, one: str, other: str) -> None:
        """The link between two nodes breaks and both notice."""
        self._link(one, other, PeerLost)

    def join(self, one: str, other: str) -> None:
        self._link(one, other, PeerConnected)

    def _link(self, one: str, other: str, kind: type[PeerConnected] | type[PeerLost]) -> None:
        for name, peer in ((one, other), (other, one)):
            if name in self.seats and self.seats[name].is_up:
                self.seats[name].inbox.append(kind(self.keys[peer].node_id))

    def kill(self, name: str) -> None:
        seat = self.seats[name]
        seat.is_up = False
        seat.inbox.clear()
        seat.store = seat.store.crash()
        for other in self.seats:
            if other != name:
                self.part(other, name)

    def start(self, name: str, *, wiped: bool = False, image: Image | None = None) -> None:
        """After `kill`: with what the disk holds, with nothing, or rolled back to an image."""
        seat = self.seats[name]
        if wiped:
            seat.store = MemoryStore(self.owner(seat), recovering=True)
        elif image is not None:
            seat.store = MemoryStore.from_image(image)
        seat.is_up = True
        self._boot(seat, key_existed=wiped)
        for other in self.keys:
            if other != name and (other not in self.seats or self.seats[other].is_up):
                self.join(name, other)

    def run(self, ms: int) -> None:
        until_ms = self.now_ms + ms
        while True:
            for seat in self.seats.values():
                self._turn(seat)
            next_ms = self._next_ms()
            if next_ms > until_ms:
                self.now_ms = until_ms
                return
            self.now_ms = next_ms
            self._deliver()

    def run_until(self, condition: Callable[[], bool], within_ms: int) -> int:
        """How long it took; fails where it takes longer."""
        start_ms = self.now_ms
        while not condition():
            assert self.now_ms - start_ms < within_ms, f"not within {within_ms} ms"
            self.run(1)
        return self.now_ms - start_ms

    # --- what a test looks at -------------------------------------------------------------------
    def messages(
        self,
        kind: type[M],
        sender: str | None = None,
        receiver: str | None = None,
        since_ms: int = 0,
    ) -> list[M]:
        return [
            s.message
            for s in self.sent
            if isinstance(s.message, kind)
            and s.at_ms >= since_ms
            and sender in (None, s.sender)
            and receiver in (None, s.receiver)
        ]

    def event_of(self, ticket: Ticket) -> EventId:
        for seat in self.seats.values():
            for notice in seat.stored:
                if notice.ticket == ticket:
                    return notice.event
        raise AssertionError(f"ticket {ticket} was not stored")

    def name_of(self, node_id: NodeId) -> str:
        return self.names[node_id]

    def number_of(self, name: str) -> NodeNo:
        """As the genesis numbers its members, and the tests those that come later."""
        return NodeNo(list(self.keys).index(name) + 1)

    def cord_of(self, header: Header) -> Cord:
        return Cord(self.number_of(self.names[NodeId(header.author)]), Journal(header.journal))

    def are_equal(self, *names: str) -> bool:
        """Whether these nodes (or all) hold and have Read the same."""
        seats = [self.seats[name] for name in names or self.seats]
        return len({seat.digest() for seat in seats}) == 1

    # --- the clockwork --------------------------------------------------------------------------
    def _turn(self, seat: Seat) -> None:
        deadline_ms = seat.core.next_deadline()
        is_due = deadline_ms is not None and deadline_ms <= self.now_ms
        if not seat.is_up or not (seat.inbox or is_due):
            return
        inputs, seat.inbox = seat.inbox, []
        effects = seat.core.step(inputs, self.now(seat))
        seat.turns.append(effects)
        durable: list[Durable] = effects.durable
        seat.store.commit(durable)
        for effect in effects.spoken:
            seat.note(effect)
            if isinstance(effect, SendMessage | SendEarly | AskEarly):
                self._send(seat.name, self.names[effect.peer], effect.data)

    def _send(self, sender: str, receiver: str, data: bytes) -> None:
        sent = Sent(self.now_ms, sender, receiver, decode_message(data), len(data))
        self.sent.append(sent)
        if receiver not in self.seats or (sender, receiver) in self._cut:
            return
        if self.may_pass(sent):
            at_ms = self.now_ms + LINK_MS
            self._in_flight.append((at_ms, len(self.sent), sender, receiver, data))

    def _deliver(self) -> None:
        due = sorted(item for item in self._in_flight if item[0] <= self.now_ms)
        self._in_flight = [item for item in self._in_flight if item[0] > self.now_ms]
        for _, _, sender, receiver, data in due:
            if self.seats[receiver].is_up:
                self.tell(sender, receiver, data)

    def _next_ms(self) -> int:
        waits = [item[0] for item in self._in_flight]
        for seat in self.seats.values():
            if seat.is_up:
                deadline_ms = seat.core.next_deadline()
                if deadline_ms is not None:
                    waits.append(max(deadline_ms, self.now_ms + 1))
                if seat.inbox:
                    waits.append(self.now_ms)
        return min(waits, default=1 << 62)


def key_of(name: str) -> KeyPair:
    return KeyPair.from_seed(name.encode().ljust(32, b"\0"))
