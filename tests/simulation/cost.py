"""What agreement costs on the wire: event bytes, receipts a turn, and the price of having nothing
to do, in a full mesh without loss."""

from __future__ import annotations

from dataclasses import dataclass

from quipu.ledger import limits
from quipu.ledger.messages import Answer, EventBytes, EventMessage, decode_message
from tests.simulation.clock import US_PER_MS
from tests.simulation.keys import key_pair
from tests.simulation.network import Traffic
from tests.simulation.node import SimNode
from tests.simulation.world import World

INV = 2  # tag of the message
START_MS = 4_000
SETTLE_MS = 8_000
IDLE_PERIODS = 3
BURSTS = 20
BURST_MS = 250


@dataclass(frozen=True, slots=True)
class Cost:
    members: int
    observers: int
    events: int
    event_ratio: float  # event bytes sent, pushed or answered / (receivers x encoded bytes)
    turns: int  # in which something was submitted, over all members
    invs_a_turn: float
    idle_bytes: float  # a peer and sync period

    @property
    def invs_bound(self) -> int:
        """Each member answers each event with one Inv to every other one."""
        return self.members * (self.members + self.observers)


@dataclass(slots=True)
class EventTraffic(Traffic):
    """Counts the bytes of events wherever they travel."""

    event_bytes: int = 0

    def count(self, data: bytes) -> None:
        Traffic.count(self, data)
        match decode_message(data):
            case EventMessage(event):
                self.event_bytes += _size(event)
            case Answer(events=events):
                self.event_bytes += sum(map(_size, events))
            case _:
                pass


def _size(event: EventBytes) -> int:
    return len(event.header) + len(event.signature) + len(event.body)


def measure(members: int, observers: int = 0, bursts: int = BURSTS) -> Cost:
    world = World(f"cost/{members}/{observers}", members)
    world.add_founders([SimNode] * members)
    for number in range(observers):
        name = f"o{number + 1}"
        node = world.add_node(key_pair(name), name)
        world.observers[node.index] = None
    for node in world.nodes:
        world.scheduler.at(node.rng.randrange(500) * US_PER_MS, node.start)
    world.run_ms(START_MS)
    sent = world.network.traffic = EventTraffic()
    for number in range(bursts):
        world.workload.submit(world.nodes[number % members], 10, 200)
        world.run_ms(BURST_MS)
    world.run_ms(SETTLE_MS)
    return _figures(world, sent, (members, observers))


def _figures(world: World, sent: EventTraffic, shape: tuple[int, int]) -> Cost:
    members, observers = shape
    events = [known.event for known in world.record.events.values()]
    encoded = sum(event.size for event in events)
    world.network.traffic = Traffic()
    links = sum(1 for node in world.nodes for _ in world.neighbours(node))
    world.run_ms(IDLE_PERIODS * limits.SYNC_INTERVAL_MS)
    return Cost(
        members=members,
        observers=observers,
        events=len(events),
        event_ratio=sent.event_bytes / ((members + observers - 1) * encoded),
        turns=len(events),
        invs_a_turn=sent.messages.get(INV, 0) / max(1, len(events)),
        idle_bytes=world.network.traffic.total_bytes / (links * IDLE_PERIODS),
    )


SHAPES = ((3, 0), (10, 0), (32, 0), (32, 68))


def table(shapes: tuple[tuple[int, int], ...] = SHAPES) -> list[str]:
    heads = ["members", "observers", "events", "event bytes / (receivers x encoded)"]
    heads += ["Inv messages an event", "n x (n + observers)", "idle bytes a peer and period"]
    lines = [f"| {' | '.join(heads)} |", "|" + " ---: |" * len(heads)]
    for members, observers in shapes:
        c = measure(members, observers)
        lines.append(
            f"| {c.members} | {c.observers} | {c.events} | {c.event_ratio:.2f} |"
            f" {c.invs_a_turn:.1f} | {c.invs_bound} | {c.idle_bytes:.0f} |"
        )
    return lines
