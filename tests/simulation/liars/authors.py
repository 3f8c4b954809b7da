"""Liars as authors: two events for a slot, cheats in headers, things too old, too new, too big."""

from __future__ import annotations

import msgspec

from quipu.ledger import limits
from quipu.ledger.canonical import encode
from quipu.ledger.event import SignedEvent
from quipu.ledger.messages import (
    Answer,
    EventMessage,
    InvMessage,
    Message,
    SyncEvent,
    encode_message,
)
from quipu.ledger.words import HLC_SHIFT, NodeId
from tests.simulation.faults import WIPE, Crash
from tests.simulation.keys import key_pair
from tests.simulation.liars.base import Liar, Tip, event_message, newest_rows
from tests.simulation.node import CrashPoint

OLD_MS = 3_600_000
ORPHANS = limits.WAITING_PER_CORD_MAX + 200
ORPHANS_AT_ONCE = 100
BRANCHES, BRANCHES_AT_ONCE = 100, 20
BAIT_AT_MS = 5_000
BAIT_LOOK_US = 5_000
BAIT_DOWN_MS = 300
YEAR_2099_MS = 4_070_908_800_000


class Equivocator(Liar):
    """Another branch for each half of its peers, at the head."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._lines: list[Tip] = []

    def act(self) -> None:
        if not self._lines or self.dice.random() < 0.05:
            self._lines = [self.new_line()]
        if len(self._lines) == 1 and self.dice.random() < 0.5:
            self._lines = [self._lines[0], self._lines[0]]
        sides = self.some_peers()
        for number, line in enumerate(list(self._lines)):
            event, self._lines[number] = self.extend(line)
            for peer in sides[number]:
                self.say(peer, event_message(event))
            self._acknowledge(self._lines[number], sides[number])

    def _acknowledge(self, tip: Tip, peers: list[NodeId]) -> None:
        inv = self.receipt([self.row(tip)])
        for peer in peers:
            self.say(peer, InvMessage(inv.data))


class DeepEquivocator(Liar):
    """A long line for all, and later another one that leaves it far below."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._past: list[Tip] = []

    def act(self) -> None:
        if not self._past:
            self._past = [self.new_line()]
        event, tip = self.extend(self._past[-1])
        self._past.append(tip)
        self.tell_all(event_message(event))
        self.tell_all(InvMessage(self.receipt([self.row(tip)]).data))
        if len(self._past) > 12 and self.dice.random() < 0.2:
            self._fork(self._past[self.dice.randint(0, 6)])

    def _fork(self, root: Tip) -> None:
        chosen, _ = self.some_peers()
        tip = root
        for _ in range(self.dice.randint(1, 10)):
            event, tip = self.extend(tip)
            for peer in chosen:
                self.say(peer, event_message(event))
        for peer in chosen:
            self.say(peer, InvMessage(self.receipt([self.row(tip)]).data))
        self._past = []


class Withholder(Liar):
    """Shows its events to some, answers nobody, sends children without their parents."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._line: Tip | None = None

    def bend(self, peer: NodeId, message: Message) -> list[tuple[NodeId, Message]]:
        if isinstance(message, EventMessage | Answer) and self.dice.random() < 0.7:
            return []
        return [(peer, message)]

    def act(self) -> None:
        first, self._line = self.extend(self._line or self.new_line())
        second, self._line = self.extend(self._line)
        with_both, child_only = self.some_peers()
        for peer in with_both:
            self.say(peer, event_message(second))
            self.say(peer, event_message(first))
        for peer in child_only:
            self.say(peer, event_message(second))
        if self.dice.random() < 0.5:
            self.tell_all(InvMessage(self.receipt([self.row(self._line)]).data))


class AncientOrHuge(Liar):
    """Well-formed events of an hour ago; bodies as large as allowed, and larger."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._huge_left = 2

    def act(self) -> None:
        old, _ = self.extend(self.new_line(), wall_ms=self.wall_ms - OLD_MS)
        self.tell_all(event_message(old))
        if self._huge_left and self.dice.random() < 0.2:
            self._huge_left -= 1
            self._send_huge()

    def _send_huge(self) -> None:
        peer = self.dice.choice(self.peers())
        chunk = self.entries(1, limits.MIB - 100)
        within, _ = self.extend(self.new_line(), entries=chunk * 3)
        self.say(peer, event_message(within))
        above, _ = self.extend(self.new_line(), entries=chunk * 5)
        self.say_bytes(peer, encode_message(event_message(above)))
        many, _ = self.extend(
            self.new_line(), entries=self.entries(1, 1) * (limits.EVENT_ENTRIES_MAX + 1)
        )
        self.say(peer, event_message(many))


class FutureDater(Liar):
    """Events of the year 2099, and a clock that says so."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._line: Tip | None = None

    def act(self) -> None:
        event, self._line = self.extend(self._line or self.new_line(), wall_ms=YEAR_2099_MS)
        self.tell_all(event_message(event))
        self.tell_all(InvMessage(self.receipt([self.row(self._line)]).data))

    def bend(self, peer: NodeId, message: Message) -> list[tuple[NodeId, Message]]:
        if isinstance(message, SyncEvent):
            message = msgspec.structs.replace(message, wall_ms=YEAR_2099_MS)
        return [(peer, message)]


class EdgeCheat(Liar):
    """Depth, hlc, parents, prev, seq, epoch and counts that do not follow from the edges."""

    def act(self) -> None:
        first, tip = self.extend(self.new_line())
        second, tip = self.extend(tip)
        known = sorted(list(self.world.record.events)[-8:])
        wrong: list[SignedEvent] = [
            self.altered(second, depth=tip.depth + self.dice.randint(1, 1_000)),
            self.altered(second, hlc=first.header.hlc),
            self.altered(second, hlc=1 << HLC_SHIFT),
            self.altered(second, parents=known[:2][::-1]),
            self.altered(second, parents=[first.id]),
            self.altered(second, parents=known[:3], depth=2),
            self.altered(second, seq=0),
            self.altered(second, seq=9),
            self.altered(second, prev=self.dice.choice(known) if known else first.id),
            self.altered(second, entry_count=2),
            self.altered(second, entries_root=bytes(32)),
            self.altered(second, version=2),
            self.altered(second, body_size=len(second.body) + 1),
        ]
        if self.dice.random() < 0.5:
            self.tell_all(event_message(first))
        for event in self.dice.sample(wrong, 4):
            self.say(self.dice.choice(self.peers()), event_message(event))


class Outsider(Liar):
    """Passes on events and receipts of one who was never a member."""

    def act(self) -> None:
        stranger = key_pair("stranger")
        event, tip = self.extend(self.new_line())
        own_key, self.key = self.key, stranger
        foreign = self.altered(event, author=stranger.node_id)
        inv = self.receipt([self.row(tip)])
        rows = newest_rows(self)
        real = self.receipt(rows) if rows else inv
        self.key = own_key
        self.tell_all(event_message(foreign))
        self.tell_all(InvMessage(inv.data))
        self.tell_all(InvMessage(real.data))


class Forger(Liar):
    """Writes in the name of others, and does not sign what it writes."""

    def act(self) -> None:
        event, _ = self.extend(self.new_line())
        victim = self.dice.choice(self.peers())
        self.tell_all(event_message(self.altered(event, author=victim)))
        self.tell_all(event_message(event._replace(signature=bytes(64))))


class WrongCluster(Liar):
    """Everything valid, in another cluster."""

    def act(self) -> None:
        event, _ = self.extend(self.new_line())
        other = self.dice.randbytes(32)
        foreign = self.altered(event, cluster_id=other, prev=other)
        self.tell_all(event_message(foreign))
        forged = self.altered(event, cluster_id=other)
        self.tell_all(event_message(forged))
        inv = self.receipt([])
        array = msgspec.structs.replace(inv.array, cluster_id=other)
        self.tell_all(InvMessage(encode(array)))


class OrphanFlooder(Liar):
    """Long lines whose first event it keeps to itself, and parents that nobody has."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._line: Tip | None = None
        self._left = ORPHANS

    def act(self) -> None:
        if self._line is None:
            _, self._line = self.extend(self.new_line())
        for _ in range(min(self._left, ORPHANS_AT_ONCE)):
            self._left -= 1
            event, self._line = self.extend(self._line)
            self.tell_all(event_message(event))
        ghosts = sorted(self.dice.randbytes(32) for _ in range(limits.PARENTS_MAX))
        event, _ = self.extend(self.new_line())
        self.tell_all(event_message(self.altered(event, parents=ghosts, depth=9)))


class Brancher(Liar):
    """A hundred events for one slot, and again for the next."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._root: Tip | None = None
        self._left = BRANCHES

    def act(self) -> None:
        if self._root is None:
            self._root = self.new_line()
        for _ in range(min(self._left, BRANCHES_AT_ONCE)):
            self._left -= 1
            event, _ = self.extend(self._root)
            self.tell_all(event_message(event))


class Baiter(Liar):
    """Lets one member sign an event that nobody else gets, makes it lose its disk at once, and
    shows it another event for the same slot when it is back. Not among `LIARS`: it needs a world
    that can bear a lost disk."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._root: Tip | None = None
        self._bait: Tip | None = None
        self._wiped = False

    def bend(self, peer: NodeId, message: Message) -> list[tuple[NodeId, Message]]:
        return [] if isinstance(message, Answer) else [(peer, message)]

    def act(self) -> None:
        victim = self.world.nodes[0]
        if self._root is None and self.world.scheduler.now_ms > BAIT_AT_MS and victim.up:
            self._root = self.new_line()
            event, self._bait = self.extend(self._root)
            self.say(victim.key.node_id, event_message(event))
            self.world.scheduler.after(BAIT_LOOK_US, self._strike)
        elif self._wiped and victim.core is not None and victim.core.recovery.may_sign:
            assert self._root is not None
            event, tip = self.extend(self._root)
            self.tell_all(event_message(event))
            self.tell_all(InvMessage(self.receipt([self.row(tip)]).data))
            self._wiped = False

    def _strike(self) -> None:
        """Once the receipt is on its way, and before anybody could ask for the event."""
        assert self._bait is not None
        known = self.world.record.events.get(self._bait.id)
        victim = self.world.nodes[0]
        if known is not None and victim.key.node_id in self._signers(known.covers):
            self._wiped = True
            self.world.faults.strike(Crash(0, CrashPoint.NOW, BAIT_DOWN_MS, WIPE))
        elif victim.up:
            self.world.scheduler.after(BAIT_LOOK_US, self._strike)

    def _signers(self, covers: dict[int, dict[int, None]]) -> list[NodeId]:
        members = self.world.record.newest.members
        return [members[signer] for signers in covers.values() for signer in signers]
