"""Worlds made by hand: who hears what, and when, for troubles that chance seldom makes.

Each runs to its end where all safeguards are on, and shows a violation where its own is out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from quipu.ledger.log.effects import (
    EntryChosen,
    LogInputRefused,
    MasterChanged,
    ReadReady,
    SendLogMessage,
)
from quipu.ledger.log.inputs import (
    ItemsProposed,
    LogInput,
    LogMessageReceived,
    ReadAsked,
    SerializersProposed,
)
from quipu.ledger.log.machine import LogMachine
from quipu.ledger.log.messages import (
    Accept,
    AcceptedMessage,
    LogMessage,
    Prepare,
    PreVote,
    PreVoteAnswer,
    PromiseMessage,
    RecoveryAnswer,
    RecoveryAsk,
    decode_log_message,
)
from quipu.ledger.log.roles import Role
from quipu.ledger.log.safeguards import ALL, LogSafeguards
from quipu.ledger.log.state import LogSettings
from quipu.ledger.log.words import Index, Life, LogTicket
from quipu.ledger.words import NodeNo, Now
from tests.simulation.keys import SharedVerifier, key_pair
from tests.simulation.log.disk import LogDisk
from tests.simulation.log.judge import LogProperty, LogViolation

CLUSTER_ID = bytes(range(32))


class OpenGate:
    applied = Index(2**63)  # nothing that it says rests on the log

    def after(self, before: object) -> OpenGate:
        return self

    def passes(self, items: object) -> None:
        pass

    def admits(self, items: object) -> bool:
        return True


class Hand:
    """Nodes that hear what the hand gives them; what was sent waits until it does."""

    def __init__(self, n: int, serializers: int, guards: LogSafeguards = ALL) -> None:
        self.guards = guards
        self.verify = SharedVerifier()
        self.founders = tuple(NodeNo(i) for i in range(1, serializers + 1))
        self.keys = {NodeNo(i): key_pair(f"n{i}").node_id for i in range(1, n + 1)}
        self.clocks = dict.fromkeys(self.keys, 0)
        self.disks = {number: LogDisk(Life(1), recovering=False) for number in self.keys}
        self.machines = {number: self._machine(number) for number in self.keys}
        self.waiting: list[tuple[NodeNo, NodeNo, LogMessage, bytes]] = []
        self.chosen: dict[int, bytes] = {}
        self.masters: dict[int, NodeNo] = {}
        self.refused: list[LogInputRefused] = []
        self.effects: dict[NodeNo, list[object]] = {number: [] for number in self.keys}
        self._ticket = 0

    def _machine(self, number: NodeNo) -> LogMachine:
        settings = LogSettings(
            CLUSTER_ID,
            number,
            key_pair(f"n{number}"),
            self.founders,
            OpenGate(),
            b"hand %d" % number,
            self.verify,
            self.guards,
        )
        now = Now(0, self.clocks[number])
        return LogMachine(settings, self.disks[number].saved(), self.keys, now)

    # --- turns ----------------------------------------------------------------------------------
    def step(self, number: int, *inputs: LogInput) -> None:
        node = NodeNo(number)
        effects = self.machines[node].step(inputs, Now(0, self.clocks[node]))
        self.disks[node].write(effects.durable)
        self.disks[node].sync()
        for effect in effects.spoken:
            self.effects[node].append(effect)
            match effect:
                case SendLogMessage(peer, data):
                    self.waiting.append((node, peer, decode_log_message(data), data))
                case EntryChosen(entry, digest):
                    seen = self.chosen.setdefault(entry.index, digest)
                    if seen != digest:
                        raise LogViolation(LogProperty.ONE_VALUE, f"index {entry.index}")
                case MasterChanged(regime, master) if master == node:
                    other = self.masters.setdefault(regime, node)
                    if other != node:
                        raise LogViolation(LogProperty.ONE_MASTER, f"regime {regime}")
                case LogInputRefused():
                    self.refused.append(effect)

    def wait(self, number: int, span_ms: int) -> None:
        """Time goes by for one node."""
        self.clocks[NodeNo(number)] += span_ms
        self.step(number)

    def age(self, *numbers: int) -> None:
        """Long enough that these miss their master; they do not step."""
        for number in numbers:
            self.clocks[NodeNo(number)] += 5_000

    def give(
        self, kind: type[LogMessage] | None = None, *, by: object = None, to: object = None
    ) -> int:
        """Delivers what waits of this kind, by these, to these; how many."""
        taken = [
            item
            for item in self.waiting
            if (kind is None or isinstance(item[2], kind))
            and _among(item[0], by)
            and _among(item[1], to)
        ]
        self.waiting = [item for item in self.waiting if item not in taken]
        for sender, receiver, _, data in taken:
            self.step(receiver, LogMessageReceived(sender, data))
        return len(taken)

    def settle(self, *numbers: int) -> None:
        """Among these everything is heard until nobody says anything new."""
        while self.give(by=numbers, to=numbers):
            pass

    def forget(self) -> None:
        self.waiting.clear()

    def ask(self, number: int, *others: int) -> None:
        """PreVote among these; then the node's PREPAREs wait to be given."""
        self.age(number, *others)
        self.step(number)
        while self.give(PreVote, by=number, to=others):
            self.give(PreVoteAnswer, to=number)
        self.waiting = [item for item in self.waiting if not isinstance(item[2], PreVote)]

    def elect(self, number: int, *others: int) -> None:
        self.ask(number, *others)
        self.give(Prepare, by=number, to=others)
        self.give(PromiseMessage, to=number)

    def propose(self, number: int, *items: bytes) -> LogTicket:
        self._ticket += 1
        ticket = LogTicket(self._ticket)
        self.step(number, ItemsProposed(ticket, items))
        return ticket

    def change(self, number: int, *nodes: int) -> LogTicket:
        self._ticket += 1
        ticket = LogTicket(self._ticket)
        self.step(number, SerializersProposed(ticket, tuple(NodeNo(n) for n in nodes)))
        return ticket

    def wipe(self, number: int) -> None:
        node = NodeNo(number)
        self.disks[node] = LogDisk(Life(2), recovering=True)
        self.machines[node] = self._machine(node)

    def restart(self, number: int) -> None:
        node = NodeNo(number)
        self.machines[node] = self._machine(node)

    def role(self, number: int) -> Role:
        return self.machines[NodeNo(number)].state.role

    def masters_now(self) -> list[NodeNo]:
        return [n for n, machine in self.machines.items() if machine.state.role is Role.MASTER]


def _among(number: NodeNo, numbers: object) -> bool:
    if numbers is None:
        return True
    return number in numbers if isinstance(numbers, tuple) else number == numbers


def promise_of_a_lost_disk(guards: LogSafeguards = ALL) -> Hand:
    """n1 promises regime 2 to n4 and loses its disk. It comes back by the words of n2, n3 and n5,
    who know nothing of that regime, and helps n2 to choose an entry. Only then does n4's PREPARE
    reach n3. The old PROMISE of n1 knows nothing of the entry."""
    hand = Hand(5, 5, guards)
    hand.elect(2, 1, 3, 4, 5)
    hand.settle(1, 2, 3, 4, 5)
    hand.ask(4, 1, 3, 5)
    hand.give(Prepare, by=4, to=1)
    late = [item for item in hand.waiting if isinstance(item[2], Prepare) and item[1] == 3]
    hand.give(PromiseMessage, by=1, to=4)
    hand.forget()
    hand.wipe(1)
    hand.step(1)
    hand.give(RecoveryAsk, by=1, to=(2, 3, 5))
    hand.give(RecoveryAnswer, to=1)
    hand.wait(2, 300)
    hand.settle(1, 2)
    hand.forget()
    assert hand.role(1) is Role.FOLLOWER or not guards.recovery_waits
    hand.propose(2, b"chosen with the help of n1")
    hand.give(Accept, by=2, to=(1, 5))
    hand.give(AcceptedMessage, by=(1, 5), to=2)
    hand.forget()
    hand.waiting += late
    hand.give(Prepare, by=4, to=3)
    hand.give(PromiseMessage, by=3, to=4)
    for _ in range(3):  # without a majority n4 says nothing that binds
        hand.give(by=4, to=(1, 3))
        hand.give(by=(1, 3), to=4)
    return hand


def older_entry_by_count(guards: LogSafeguards = ALL) -> Hand:
    """An entry of regime 1 is held by three of five as of regime 3, whose own entry is not; the
    master of regime 2 has another one there and is elected again."""
    hand = Hand(5, 5, guards)
    hand.elect(1, 2, 3, 4, 5)
    hand.settle(1, 2, 3, 4, 5)
    large = bytes(1 << 20)  # so that an ACCEPT carries it alone
    hand.propose(1, large)
    hand.give(Accept, by=1, to=2)
    hand.forget()
    hand.elect(5, 3, 4)
    hand.forget()
    hand.restart(1)
    hand.elect(1, 2, 3)
    hand.give(to=(2, 3), by=1)  # n3 lacks the older entry and says so
    hand.give(by=(2, 3), to=1)
    first = [m for m in hand.waiting if m[1] == 3 and isinstance(m[2], Accept) and m[2].entries]
    hand.waiting = first[:2]  # index 1, and the large one
    hand.give(Accept, to=3)
    hand.give(AcceptedMessage, by=3, to=1)
    hand.forget()
    hand.restart(5)
    hand.elect(5, 3, 4)
    hand.settle(3, 4, 5)
    return hand


def implement_in_a_promise(guards: LogSafeguards = ALL) -> Hand:
    """n3 slept while five others took over. n2 still promises to it, with a log that names them."""
    hand = Hand(8, 3, guards)
    hand.elect(1, 2, 3)
    hand.settle(*range(1, 9))
    awake = (1, 2, 4, 5, 6, 7, 8)
    hand.change(1, 4, 5, 6, 7, 8)
    for _ in range(40):
        hand.settle(*awake)
        masters = hand.masters_now()
        if masters and masters[-1] != 1 and _confirmed(hand, masters[-1]):
            break
        for number in masters:
            hand.wait(number, 260)
    master = hand.masters_now()[-1]
    hand.settle(*awake)
    others = [n for n in (4, 5, 6, 7, 8) if n != master]
    hand.forget()
    hand.propose(master, b"chosen by three of the new five")
    hand.give(Accept, by=master, to=tuple(others[:2]))
    hand.give(AcceptedMessage, by=tuple(others[:2]), to=master)
    hand.forget()
    hand.elect(3, 1, 2)
    heard = (2, 3, *others[:3])
    for _ in range(12):
        hand.give(by=3, to=heard)
        hand.give(by=heard, to=3)
    return hand


def _confirmed(hand: Hand, master: NodeNo) -> bool:
    state = hand.machines[master].state
    return state.log.voters.new is None and len(state.log.voters.old) == 5


def read_at_an_old_master(guards: LogSafeguards = ALL) -> Hand:
    """n1 hears nobody and does not know it; n2 and n3 have gone on. Who asks n1 how far to read
    must not be told a place below what n2 has acknowledged."""
    hand = Hand(3, 3, guards)
    hand.elect(1, 2, 3)
    hand.settle(1, 2, 3)
    hand.forget()
    hand.elect(2, 3)
    hand.settle(2, 3)
    hand.propose(2, b"acknowledged before the question")
    hand.settle(2, 3)
    assert hand.role(1) is Role.MASTER
    hand.step(1, ReadAsked(LogTicket(1)))
    told = [one.index for one in hand.effects[NodeNo(1)] if isinstance(one, ReadReady)]
    if told and told[0] is not None and told[0] < max(hand.chosen):
        raise LogViolation(LogProperty.REAL_TIME, f"read to {told[0]} of {max(hand.chosen)}")
    return hand


WORLDS: dict[str, Callable[[LogSafeguards], Hand]] = {
    "promise_of_a_lost_disk": promise_of_a_lost_disk,
    "older_entry_by_count": older_entry_by_count,
    "implement_in_a_promise": implement_in_a_promise,
    "read_at_an_old_master": read_at_an_old_master,
}


def without(name: str) -> LogSafeguards:
    return replace(ALL, **{name: False})
