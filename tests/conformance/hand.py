"""A member that the test plays: it signs and says whatever it is told to, true or not."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from quipu.ledger.entry import data_entry, encode_entry
from quipu.ledger.event import Header, Place, SignedEvent, build_event, event_id, signed_part
from quipu.ledger.inv import Inv, build_inv
from quipu.ledger.messages import (
    PREFIX_BYTES,
    Answer,
    EventMessage,
    EvidenceMessage,
    GetData,
    InvMessage,
    Message,
    ReceiptRow,
    SyncEvent,
    SyncRow,
    bytes_of,
    encode_message,
)
from quipu.ledger.safeguards import ALL, Safeguards
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import (
    Cord,
    EpochNo,
    EventId,
    Hlc,
    InvNumber,
    Journal,
    NodeNo,
    Seq,
    hlc_at,
)
from tests.conformance.table import Seat, Table

FIRST = Journal(1)


@dataclass
class Hand:
    table: Table
    name: str
    key: KeyPair = field(init=False)
    number: NodeNo = field(init=False)
    invs: int = 0
    syncs: int = 0

    def __post_init__(self) -> None:
        self.key = self.table.keys[self.name]
        self.number = self.table.number_of(self.name)

    # --- what it signs --------------------------------------------------------------------------
    def event(
        self,
        text: str = "x",
        *,
        prev: SignedEvent | None = None,
        parents: Sequence[SignedEvent] = (),
        journal: int = FIRST,
        hlc: int | None = None,
        depth: int | None = None,
        epoch: int = 1,
        size: int = 0,
    ) -> SignedEvent:
        """Well-formed above its ancestors unless the test says otherwise; `size` in bytes."""
        below = [event.header for event in (prev, *parents) if event is not None]
        rising = max([self.table.hlc, *(header.hlc + 1 for header in below)])
        place = Place(
            cluster_id=self.table.cluster_id,
            epoch=EpochNo(epoch),
            cord=Cord(self.number, Journal(prev.header.journal if prev else journal)),
            seq=Seq(prev.header.seq + 1 if prev else 1),
            prev=prev.id if prev else EventId(self.table.cluster_id),
            parents=tuple(sorted(event.id for event in parents)),
            hlc=Hlc(rising if hlc is None else hlc),
            depth=1 + max([h.depth for h in below], default=0) if depth is None else depth,
        )
        data = text.encode().ljust(size, b".")
        return build_event(self.key, place, [encode_entry(data_entry(data))])

    def chain(
        self, count: int, prev: SignedEvent | None = None, *, text: str = "x", journal: int = FIRST
    ) -> list[SignedEvent]:
        """This many events, one above the other."""
        events: list[SignedEvent] = []
        for number in range(count):
            prev = self.event(f"{text}{number}", prev=prev, journal=journal)
            events.append(prev)
        return events

    def inv(
        self,
        *events: SignedEvent,
        epoch: int = 1,
        number: int | None = None,
        close: bytes | None = None,
    ) -> Inv:
        """A receipt with a row for each of these."""
        self.invs += 1
        rows = sorted((self.table.cord_of(e.header), Seq(e.header.seq), e.id) for e in events)
        value = InvNumber(hlc_at(self.table.wall_ms) + self.invs if number is None else number)
        return build_inv(self.key, self.table.cluster_id, EpochNo(epoch), value, rows, close)

    def signed_header(self, event: SignedEvent, **changes: object) -> SignedEvent:
        """The event with other fields in its header, signed again."""
        header = msgspec.structs.replace(event.header, **changes)
        return resigned(self.key, event, msgspec.msgpack.encode(header))

    # --- what it says ---------------------------------------------------------------------------
    def say(self, receiver: str, message: Message) -> None:
        self.table.tell(self.name, receiver, encode_message(message))

    def push(self, receiver: str, *events: SignedEvent) -> None:
        for event in events:
            self.say(receiver, EventMessage(bytes_of(event)))

    def confirm(self, receiver: str, *events: SignedEvent, epoch: int = 1) -> Inv:
        """Sends a receipt with a row for each of these."""
        inv = self.inv(*events, epoch=epoch)
        self.say(receiver, InvMessage(inv.data))
        return inv

    def accuse(self, receiver: str, proof: bytes) -> None:
        self.say(receiver, EvidenceMessage(proof))

    def answer(
        self, receiver: str, request: GetData, *events: SignedEvent, invs: Sequence[Inv] = ()
    ) -> None:
        told = [inv.data for inv in invs]
        held = [bytes_of(event) for event in events]
        self.say(receiver, Answer(request.request_id, told, held, [], False))

    def sync(
        self,
        receiver: str,
        *tips: SignedEvent,
        read_seq: int = 0,
        receipts: Sequence[tuple[int, int]] = (),
        leaves: Sequence[EventId] = (),
        **changes: object,
    ) -> SyncEvent:
        """A SyncEvent with these tips as rows, all anew."""
        self.syncs += 1
        message = SyncEvent(
            number=self.table.wall_ms + self.syncs,
            heard=0,
            base=0,
            leaves=list(leaves),
            leaf_count=len(leaves),
            rows=[
                SyncRow(*self.table.cord_of(e.header), e.header.seq, e.id[:PREFIX_BYTES], read_seq)
                for e in tips
            ],
            receipts=[ReceiptRow(no, number, bytes(PREFIX_BYTES)) for no, number in receipts],
            epoch=1,
            digest=bytes(32),
            proofs=bytes(PREFIX_BYTES),
            wall_ms=self.table.wall_ms,
            recovering=False,
        )
        message = msgspec.structs.replace(message, **changes)
        self.say(receiver, message)
        return message

    # --- what it hears --------------------------------------------------------------------------
    def requests(self, since_ms: int = 0) -> list[GetData]:
        return self.table.messages(GetData, receiver=self.name, since_ms=since_ms)

    def events_heard(self, since_ms: int = 0) -> list[EventMessage]:
        return self.table.messages(EventMessage, receiver=self.name, since_ms=since_ms)


def hands(table: Table) -> list[Hand]:
    """All that the test plays, in the order of their numbers."""
    return [Hand(table, name) for name in table.keys if name not in table.seats]


def greet(*players: Hand) -> None:
    """Each tells every core that it holds nothing of it: the core may sign at once."""
    for player in players:
        for name in player.table.seats:
            player.sync(name)
    players[0].table.run(0)


def alone_with(
    count: int, policy: str = "majority", guards: Safeguards = ALL
) -> tuple[Table, Seat, list[Hand]]:
    """One core, n1, that may sign; the other members are hands."""
    played = [f"n{number}" for number in range(2, count + 2)]
    table = Table(1, policy, played=played, guards=guards)
    players = hands(table)
    greet(*players)
    table.run(10)
    return table, table["n1"], players


def resigned(key: KeyPair, event: SignedEvent, header_bytes: bytes) -> SignedEvent:
    identity = event_id(header_bytes)
    header = msgspec.msgpack.decode(header_bytes, type=Header)
    signature = key.sign(signed_part(identity))
    return SignedEvent(identity, header, header_bytes, signature, event.body)
