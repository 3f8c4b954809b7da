"""What every liar has: a real key of the roster, a real core if it likes, and no scruples."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from quipu.ledger.canonical import encode
from quipu.ledger.entry import data_entry, encode_entry
from quipu.ledger.event import (
    Header,
    Place,
    SignedEvent,
    build_event,
    decode_event,
    event_id,
    signed_part,
)
from quipu.ledger.inv import Inv, build_inv
from quipu.ledger.messages import (
    Answer,
    EventBytes,
    EventMessage,
    InvMessage,
    Message,
    bytes_of,
    decode_message,
    encode_message,
)
from quipu.ledger.refusals import Refused
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import (
    HLC_SHIFT,
    Cord,
    EpochNo,
    EventId,
    Hlc,
    InvNumber,
    Journal,
    NodeId,
    NodeNo,
    Seq,
)
from tests.simulation.clock import START_WALL_MS, US_PER_MS
from tests.simulation.node import SimNode

if TYPE_CHECKING:
    from tests.simulation.world import World

ACT_MIN_MS, ACT_MAX_MS = 100, 500
FRAMES_KEPT = 200
Rows = list[tuple[Cord, Seq, EventId]]


@dataclass(frozen=True, slots=True)
class Tip:
    """The end of a line that a liar writes outside of its core."""

    journal: int
    seq: int
    id: EventId
    hlc: int
    depth: int


class Liar(SimNode):
    """Runs a real core; a subclass bends what it says, or says more."""

    honest = False

    def __init__(self, world: World, index: int, key: KeyPair, name: str) -> None:
        super().__init__(world, index, key, name)
        self.dice = random.Random(f"{world.seed}/liar/{index}")
        self.frames: deque[bytes] = deque(maxlen=FRAMES_KEPT)
        self._numbers = 0

    def act(self) -> None:
        """Called every now and then."""

    def bend(self, peer: NodeId, message: Message) -> list[tuple[NodeId, Message]]:
        """What goes out in place of a message of the core."""
        return [(peer, message)]

    # --- machinery ------------------------------------------------------------------------------
    def start(self) -> None:
        super().start()
        self._plan_act()

    def _plan_act(self) -> None:
        delay_ms = self.dice.randint(ACT_MIN_MS, ACT_MAX_MS)
        self.world.scheduler.after(delay_ms * US_PER_MS, self._act, self.boot)

    def _act(self, boot: int) -> None:
        if boot == self.boot and self.world.faults.active:  # liars rest while the others heal
            if self.peers():
                self.act()
            self._plan_act()

    def receive(self, other: SimNode, data: bytes) -> None:
        self.frames.append(data)
        super().receive(other, data)

    def _transmit(self, peer: NodeId, data: bytes, early: bool) -> None:
        del early
        if not self.world.faults.active:
            self.say_bytes(peer, data)
            return
        for bent_peer, message in self.bend(peer, decode_message(data)):
            self.say(bent_peer, message)

    def say(self, peer: NodeId, message: Message) -> None:
        self._note(message)
        self.say_bytes(peer, encode_message(message))

    def say_bytes(self, peer: NodeId, data: bytes) -> None:
        self.world.judge.on_message(self, data, early=False)
        self.world.send(self, peer, data)

    def tell_all(self, message: Message) -> None:
        for peer in self.peers():
            self.say(peer, message)

    def _note(self, message: Message) -> None:
        """The record knows what liars really signed."""
        match message:
            case EventMessage(event):
                self._note_event(event)
            case InvMessage(inv):
                self.world.record.add_inv(inv)
            case Answer():
                for item in message.events:
                    self._note_event(item)
                for inv in message.invs:
                    self.world.record.add_inv(inv)
            case _:
                pass

    def _note_event(self, event: EventBytes) -> None:
        try:
            decoded = decode_event(event.header, event.signature, event.body)
        except Refused:
            return
        self.world.record.add_event(decoded, self.world.scheduler.now_us)

    # --- the pen --------------------------------------------------------------------------------
    def peers(self) -> list[NodeId]:
        return [peer for peer, _ in self.world.neighbours(self)]

    def some_peers(self) -> tuple[list[NodeId], list[NodeId]]:
        peers = self.peers()
        self.dice.shuffle(peers)
        middle = self.dice.randint(0, len(peers))
        return peers[:middle], peers[middle:]

    @property
    def number(self) -> NodeNo:
        return NodeNo(self.world.record.numbers.get(self.key.node_id, 0))

    @property
    def epoch(self) -> EpochNo:
        return EpochNo(self.disk.newest_epoch)

    @property
    def wall_ms(self) -> int:
        return START_WALL_MS + self.world.scheduler.now_ms

    def entries(self, count: int = 1, size: int = 40) -> list[bytes]:
        return [encode_entry(data_entry(self.dice.randbytes(size))) for _ in range(count)]

    def new_line(self) -> Tip:
        journal = (self.wall_ms << 20) | self.dice.getrandbits(20)
        return Tip(journal, 0, EventId(self.world.record.cluster_id), 0, 0)

    def extend(
        self, tip: Tip, wall_ms: int | None = None, entries: list[bytes] | None = None
    ) -> tuple[SignedEvent, Tip]:
        """The next event of a line, well-formed."""
        stamp_ms = self.wall_ms if wall_ms is None else wall_ms
        hlc = max(tip.hlc + 1, stamp_ms << HLC_SHIFT)
        place = Place(
            cluster_id=self.world.record.cluster_id,
            epoch=self.epoch,
            cord=Cord(self.number, Journal(tip.journal)),
            seq=Seq(tip.seq + 1),
            prev=tip.id,
            parents=(),
            hlc=Hlc(hlc),
            depth=tip.depth + 1,
        )
        event = build_event(self.key, place, entries or self.entries())
        return event, Tip(tip.journal, tip.seq + 1, event.id, hlc, tip.depth + 1)

    def altered(self, event: SignedEvent, **fields: object) -> SignedEvent:
        """The same event with other header fields, signed again."""
        header: Header = msgspec.structs.replace(event.header, **fields)
        data = encode(header)
        identity = event_id(data)
        signature = self.key.sign(signed_part(identity))
        return SignedEvent(identity, header, data, signature, event.body)

    def receipt(self, rows: Rows, epoch: int | None = None) -> Inv:
        self._numbers += 1
        number = (self.wall_ms << 16) + 0x8000 + self._numbers % 0x7000
        return build_inv(
            self.key,
            self.world.record.cluster_id,
            EpochNo(epoch or self.epoch),
            InvNumber(number),
            sorted(rows),
        )

    def row(self, tip: Tip) -> tuple[Cord, Seq, EventId]:
        return (Cord(self.number, Journal(tip.journal)), Seq(tip.seq), tip.id)


def event_message(event: SignedEvent) -> EventMessage:
    return EventMessage(bytes_of(event))


def newest_rows(liar: Liar) -> Rows:
    """True rows of all that the liar's core holds."""
    return [
        (key.cord, record.held_seq, record.held_id)
        for key, record in sorted(liar.disk.branches.items())
        if key.number == 0
    ]
