"""The network: directed links that lose, double, delay and reorder, and that can be cut.

Frames between two nodes may overtake each other as datagrams do: the core relies on no order.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.simulation.clock import US_PER_S, Scheduler

Deliver = Callable[[int, int, bytes], None]  # receiver, sender, data


@dataclass(frozen=True, slots=True)
class Weather:
    """How a link behaves. Chances are of 1."""

    base_us: int = 1_000
    jitter_us: int = 2_000
    loss: float = 0.0
    duplicate: float = 0.0
    spike: float = 0.0
    spike_us: int = 0
    ordered: bool = False
    bytes_per_s: int = 20_000_000


FAIR = Weather()
HEALED_BASE_US_MAX = 5_000


@dataclass(slots=True)
class Link:
    cuts: int = 0  # how many faults hold it cut now
    free_us: int = 0  # when what was sent before has left the wire
    last_us: int = 0  # when the newest frame arrives
    extra_us: int = 0  # on top of the weather: a slow link


@dataclass(slots=True)
class Traffic:
    """What was sent, by kind of message (the tag in its second byte)."""

    messages: dict[int, int] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)

    def count(self, data: bytes) -> None:
        kind = data[1] if len(data) > 1 else 0
        self.messages[kind] = self.messages.get(kind, 0) + 1
        self.sizes[kind] = self.sizes.get(kind, 0) + len(data)

    @property
    def total_bytes(self) -> int:
        return sum(self.sizes.values())


class Network:
    """Frames on their way. Node numbers are those of the world, not of a roster."""

    def __init__(self, scheduler: Scheduler, rng: random.Random, deliver: Deliver) -> None:
        self._scheduler = scheduler
        self._rng = rng
        self._deliver = deliver
        self._links: dict[tuple[int, int], Link] = {}
        self.weather = FAIR
        self.ordered = False  # whatever the weather
        self.traffic = Traffic()
        self.by_sender: dict[int, Traffic] = {}

    def link(self, sender: int, receiver: int) -> Link:
        found = self._links.get((sender, receiver))
        if found is None:
            found = self._links[(sender, receiver)] = Link()
        return found

    def cut(self, sender: int, receiver: int) -> None:
        self.link(sender, receiver).cuts += 1

    def mend(self, sender: int, receiver: int) -> None:
        link = self.link(sender, receiver)
        link.cuts = max(0, link.cuts - 1)

    def heal(self) -> None:
        for link in self._links.values():
            link.cuts = link.extra_us = 0
        self.weather = replace(FAIR, base_us=min(self.weather.base_us, HEALED_BASE_US_MAX))

    def is_open(self, sender: int, receiver: int) -> bool:
        found = self._links.get((sender, receiver))
        return found is None or found.cuts == 0

    def heartbeat_passes(self, sender: int, receiver: int) -> bool:
        return self.is_open(sender, receiver) and self._rng.random() >= self.weather.loss

    def send(self, sender: int, receiver: int, data: bytes) -> None:
        self.traffic.count(data)
        self.by_sender.setdefault(sender, Traffic()).count(data)
        link = self.link(sender, receiver)
        weather, rng = self.weather, self._rng
        if link.cuts or (weather.loss and rng.random() < weather.loss):
            return
        self._carry(link, sender, receiver, data)
        if weather.duplicate and rng.random() < weather.duplicate:
            self._carry(link, sender, receiver, data)

    def _carry(self, link: Link, sender: int, receiver: int, data: bytes) -> None:
        weather, rng = self.weather, self._rng
        start_us = max(self._scheduler.now_us, link.free_us)
        link.free_us = start_us + len(data) * US_PER_S // weather.bytes_per_s
        arrival_us = (
            link.free_us + link.extra_us + weather.base_us + int(rng.random() * weather.jitter_us)
        )
        if weather.spike and rng.random() < weather.spike:
            arrival_us += int(rng.random() * weather.spike_us)
        if weather.ordered or self.ordered:
            arrival_us = max(arrival_us, link.last_us)
        link.last_us = arrival_us
        self._scheduler.at(arrival_us, self._arrive, sender, receiver, data)

    def _arrive(self, sender: int, receiver: int, data: bytes) -> None:
        if self.is_open(sender, receiver):
            self._deliver(receiver, sender, data)
