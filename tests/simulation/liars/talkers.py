"""Liars as talkers: replays, ghosts in SyncEvents, floods of requests, and plain noise."""

from __future__ import annotations

import msgspec

from quipu.ledger import limits
from quipu.ledger.event import decode_header
from quipu.ledger.messages import (
    Answer,
    CoverWant,
    EventMessage,
    GetData,
    InvWant,
    Message,
    RangeWant,
    SyncEvent,
    SyncRow,
)
from quipu.ledger.words import NodeId
from tests.simulation.liars.base import Liar

FLOOD = 25


class Replayer(Liar):
    """Says again what anybody ever said to it, to anybody."""

    def act(self) -> None:
        for _ in range(min(10, len(self.frames))):
            self.say_bytes(self.dice.choice(self.peers()), self.dice.choice(self.frames))


class GhostAnnouncer(Liar):
    """Rows and leaves of events and journals that nobody has."""

    def bend(self, peer: NodeId, message: Message) -> list[tuple[NodeId, Message]]:
        if not isinstance(message, SyncEvent):
            return [(peer, message)]
        rows = list(message.rows)
        numbers = sorted(self.world.record.newest.members)
        for _ in range(self.dice.randint(1, 8)):
            journal = (self.wall_ms << 20) | self.dice.getrandbits(20)
            seq = self.dice.randint(1, 10_000)
            ghost = SyncRow(
                self.dice.choice(numbers), journal, seq, self.dice.randbytes(16), seq // 2
            )
            rows.append(ghost)
        if rows and self.dice.random() < 0.5:
            row = self.dice.choice(rows)
            rows.append(msgspec.structs.replace(row, seq=row.seq + 7, id=self.dice.randbytes(16)))
        rows.sort(key=lambda row: (row.author_no, row.journal))
        leaves = [self.dice.randbytes(16) for _ in range(self.dice.randint(1, 10))]
        bent = msgspec.structs.replace(
            message, rows=rows, leaves=leaves, digest=self.dice.randbytes(32)
        )
        return [(peer, bent)]


class SignatureJunker(Liar):
    """Keeps its events for ranges, and answers with signatures that are noise wherever it may."""

    def bend(self, peer: NodeId, message: Message) -> list[tuple[NodeId, Message]]:
        if isinstance(message, EventMessage) and self.dice.random() < 0.7:
            return []
        if not isinstance(message, Answer):
            return [(peer, message)]
        newest: dict[tuple[bytes, int], int] = {}
        headers = [decode_header(event.header) for event in message.events]
        for header in headers:
            newest[header.author, header.journal] = header.seq
        events = [
            event
            if newest[header.author, header.journal] == header.seq and self.dice.random() < 0.9
            else msgspec.structs.replace(event, signature=self.dice.randbytes(64))
            for event, header in zip(message.events, headers, strict=True)
        ]
        return [(peer, msgspec.structs.replace(message, events=events))]


class SyncLiar(Liar):
    """Its SyncEvents are never equal to anything, and their numbers make no sense."""

    def bend(self, peer: NodeId, message: Message) -> list[tuple[NodeId, Message]]:
        if not isinstance(message, SyncEvent):
            return [(peer, message)]
        dice = self.dice
        rows = [
            msgspec.structs.replace(
                row, seq=max(1, row.seq + dice.randint(-2, 2)), read_seq=dice.randint(0, row.seq)
            )
            for row in message.rows
        ]
        bent = msgspec.structs.replace(
            message,
            number=dice.choice((message.number, 0, 1, 2**60, message.number + 5)),
            heard=dice.choice((message.heard, 0, 2**50)),
            base=dice.choice((message.base, 0, 2**50)),
            rows=rows,
            digest=dice.randbytes(32),
            proofs=dice.randbytes(16),
            epoch=dice.choice((message.epoch, 0, 99)),
            recovering=dice.random() < 0.2,
        )
        return [(peer, bent)]


class RequestFlooder(Liar):
    """Asks for everything, for nothing, and for what cannot be."""

    def act(self) -> None:
        record, dice = self.world.record, self.dice
        known = sorted(record.events)
        for number in range(FLOOD):
            ids = [dice.choice(known) if known else bytes(32), dice.randbytes(32)]
            tip = record.events[dice.choice(known)] if known else None
            author, journal, seq = tip.slot if tip else (1, 1, 1)
            last = tip.id[:16] if tip else bytes(16)
            request = GetData(
                request_id=dice.getrandbits(40) if number % 2 else 1,
                ids=ids,
                ranges=[
                    RangeWant(author, journal, [], seq, last),
                    RangeWant(author, journal, [(seq + 5, dice.randbytes(16))], seq + 9, last),
                ],
                invs=[InvWant(author, 0), InvWant(99, 2**60)],
                covers=[CoverWant(author, journal, seq, last), CoverWant(99, 1, 1, bytes(16))],
                bytes_max=dice.choice((0, 1, limits.ANSWER_BYTES_MAX, 2**40)),
            )
            self.say(dice.choice(self.peers()), request)

    def bend(self, peer: NodeId, message: Message) -> list[tuple[NodeId, Message]]:
        """Answers that nobody asked for."""
        if isinstance(message, Answer) and self.dice.random() < 0.3:
            stray = msgspec.structs.replace(message, request_id=self.dice.getrandbits(30))
            return [(self.dice.choice(self.peers()), stray), (peer, message)]
        return [(peer, message)]


class Babbler(Liar):
    """Noise: random bytes, cut frames, flipped bits, deep nesting."""

    def act(self) -> None:
        dice = self.dice
        noise = [dice.randbytes(dice.randint(0, 200)), b"\x91" * 3_000, b"\xdd\xff\xff\xff\xff"]
        if self.frames:
            frame = bytearray(dice.choice(self.frames))
            noise.append(bytes(frame[: dice.randint(0, len(frame))]))
            if frame:
                frame[dice.randrange(len(frame))] ^= 1 << dice.randrange(8)
            noise.append(bytes(frame))
            noise.append(bytes(frame) + b"\0")
        for data in noise:
            self.say_bytes(dice.choice(self.peers()), data)
