"""Faults as data, and what each does to the world."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from quipu.storage.memory_store import Image
from tests.simulation.clock import US_PER_MS, Action
from tests.simulation.network import Weather
from tests.simulation.node import CrashPoint, SimNode
from tests.simulation.shadow import Shadow

if TYPE_CHECKING:
    from tests.simulation.world import World

NOTHING, WIPE, ROLL_BACK, CLONE_AFTER = "", "wipe", "roll-back", "clone-after-stop"


@dataclass(frozen=True, slots=True)
class OneWayCut:
    sender: int
    receiver: int
    for_ms: int


@dataclass(frozen=True, slots=True)
class SlowLink:
    sender: int
    receiver: int
    extra_ms: int
    for_ms: int


@dataclass(frozen=True, slots=True)
class Partition:
    """These nodes here, all others there."""

    side: tuple[int, ...]
    for_ms: int


@dataclass(frozen=True, slots=True)
class Flapping:
    one: int
    other: int
    times: int
    period_ms: int


@dataclass(frozen=True, slots=True)
class Storm:
    weather: Weather
    for_ms: int


@dataclass(frozen=True, slots=True)
class Crash:
    node: int
    point: CrashPoint
    down_ms: int
    loss: str = NOTHING


@dataclass(frozen=True, slots=True)
class CrashAll:
    down_ms: int


@dataclass(frozen=True, slots=True)
class Kill:
    """For good: machine and disk are gone."""

    node: int


@dataclass(frozen=True, slots=True)
class TakeImage:
    node: int


@dataclass(frozen=True, slots=True)
class Clone:
    """The directory is copied and started beside the living node, for a time."""

    node: int
    for_ms: int


@dataclass(frozen=True, slots=True)
class SetClock:
    node: int
    offset_ms: int
    drift_ppm: int = 0


Fault = (
    OneWayCut
    | SlowLink
    | Partition
    | Flapping
    | Storm
    | Crash
    | CrashAll
    | Kill
    | TakeImage
    | Clone
    | SetClock
)


class Faults:
    def __init__(self, world: World) -> None:
        self._world = world
        self._images: dict[int, tuple[Image, Shadow]] = {}
        self.active = True

    def strike(self, fault: Fault) -> None:
        if not self.active:
            return
        world, network = self._world, self._world.network
        world.trace(None, f"{fault}")
        match fault:
            case OneWayCut(sender, receiver, for_ms):
                network.cut(sender, receiver)
                self._later(for_ms, network.mend, sender, receiver)
            case SlowLink(sender, receiver, extra_ms, for_ms):
                network.link(sender, receiver).extra_us = extra_ms * US_PER_MS
                self._later(for_ms, self._quick, sender, receiver)
            case Partition(side, for_ms):
                for pair in self._across(side):
                    network.cut(*pair)
                    self._later(for_ms, network.mend, *pair)
            case Flapping():
                self._flap(fault, fault.times)
            case Storm(weather, for_ms):
                before, network.weather = network.weather, weather
                self._later(for_ms, self._calm, before)
            case Crash(index, point, down_ms, loss):
                world.nodes[index].arm(point, down_ms * US_PER_MS, loss)
            case CrashAll(down_ms):
                for node in list(world.nodes):
                    node.arm(CrashPoint.NOW, down_ms * US_PER_MS, NOTHING)
            case Kill(index):
                world.nodes[index].crash()
                world.dead[index] = None
            case TakeImage(index):
                self._images[index] = world.nodes[index].image()
            case Clone(index, for_ms):
                self._clone(world.nodes[index], for_ms)
            case SetClock(index, offset_ms, drift_ppm):
                world.set_clock(world.nodes[index], offset_ms, drift_ppm)

    def _later(self, delay_ms: int, action: Action, *args: object) -> None:
        self._world.scheduler.after(delay_ms * US_PER_MS, self._if_active, action, args)

    def _if_active(self, action: Action, args: tuple[object, ...]) -> None:
        if self.active:
            action(*args)

    def _across(self, side: tuple[int, ...]) -> list[tuple[int, int]]:
        everywhere = range(len(self._world.nodes))
        return [(a, b) for a in everywhere for b in everywhere if (a in side) != (b in side)]

    def _calm(self, before: Weather) -> None:
        self._world.network.weather = before

    def _quick(self, sender: int, receiver: int) -> None:
        self._world.network.link(sender, receiver).extra_us = 0

    def _flap(self, fault: Flapping, left: int) -> None:
        if not left or not self.active:
            return
        pairs = ((fault.one, fault.other), (fault.other, fault.one))
        for pair in pairs:
            self._world.network.cut(*pair)
            self._later(fault.period_ms // 2, self._world.network.mend, *pair)
        self._later(fault.period_ms, self._flap, fault, left - 1)

    # --- disks ----------------------------------------------------------------------------------
    def lose(self, node: SimNode, loss: str) -> None:
        """What happens to the disk of a node that is down."""
        if loss == WIPE:
            node.wipe()
        elif loss == ROLL_BACK and node.index in self._images:
            node.roll_back(self._images[node.index])
        elif loss == CLONE_AFTER:
            # The copied directory starts elsewhere after the first has stopped: it is the node.
            node.copy_of(node.image())

    def restart(self, node: SimNode) -> None:
        if not node.up and node.index not in self._world.dead:
            node.start()

    def _clone(self, node: SimNode, for_ms: int) -> None:
        if not node.up:
            return
        twin = self._world.add_node(node.key, f"{node.name}'", type(node))
        twin.copy_of(node.image())
        twin.key_existed = node.key_existed
        twin.clock = replace(node.clock)
        self._world.clones[twin.index] = node.index
        twin.start()
        self._later(for_ms, self.end_clone, twin)

    def end_clone(self, twin: SimNode) -> None:
        twin.crash()
        self._world.dead[twin.index] = None
