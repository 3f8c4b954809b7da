"""One simulated machine: the shell around a core, its disk, its clock and its links.

A turn takes all inputs that wait, steps the core once, writes the batch, and while the virtual
fsync runs only collects; then it syncs, and only then it speaks.
"""

from __future__ import annotations

import random
from enum import StrEnum
from typing import TYPE_CHECKING

from quipu.ledger import effects as fx
from quipu.ledger.core import Core, CoreConfig
from quipu.ledger.inputs import Input, MessageReceived, PeerConnected, PeerLost
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import NodeId
from quipu.storage.memory_store import Image
from quipu.storage.store import Owner
from tests.simulation.clock import US_PER_MS, US_PER_S, NodeClock
from tests.simulation.disk import SimDisk
from tests.simulation.shadow import Shadow

if TYPE_CHECKING:
    from tests.simulation.world import World

HEARTBEAT_US = US_PER_S  # any frame is a heartbeat; ALIVE after 1 s without one
SILENCE_US = 5 * US_PER_S
TURN_US = 200  # from the first input of a turn to its step
FSYNC_MIN_US = 1_000
FSYNC_MAX_US = 5_000


class CrashPoint(StrEnum):
    NOW = "now"
    BEFORE_SYNC = "before-sync"
    BEFORE_SPEAKING = "before-speaking"
    WHILE_SPEAKING = "while-speaking"


class SimNode:
    honest = True

    def __init__(self, world: World, index: int, key: KeyPair, name: str) -> None:
        self.world = world
        self.index = index
        self.key = key
        self.name = name
        self._owner = Owner(world.record.cluster_id, key.node_id)
        self.disk = SimDisk(self._owner)
        self.shadow = Shadow()
        self.clock = NodeClock()
        self.rng = random.Random(f"{world.seed}/node/{index}")
        self.core: Core | None = None
        self.boot = 0
        self.starts = 0
        self.committing = False
        self.key_existed = False  # the store is younger than the key
        self.disk_lost = False  # ever, by wipe or roll-back
        self.lineage = 0  # rises at each loss
        self.armed: CrashPoint | None = None
        self.on_crash: tuple[int, str] | None = None  # how long it stays down; what it loses
        self.heard_us: dict[NodeId, int] = {}
        self.boots: dict[NodeId, tuple[int, int]] = {}
        self.connected: dict[NodeId, None] = {}
        self._inbox: list[Input] = []
        self._turn_asked = False
        self._wake_us: int | None = None
        self._idle_turns = 0

    def __repr__(self) -> str:
        return self.name

    @property
    def up(self) -> bool:
        return self.core is not None

    # --- life -----------------------------------------------------------------------------------
    def start(self) -> None:
        assert self.core is None
        world = self.world
        self.boot += 1
        self.starts += 1
        self.clock.boot_us = world.scheduler.now_us
        self.clock.monotonic_base_ms = self.rng.randrange(1, 10_000_000)
        saved = self.disk.saved()
        config = CoreConfig(
            key=self.key,
            genesis=world.genesis,
            entropy=self.rng.getrandbits(64),
            safeguards=world.safeguards,
            verify=world.verify,
            key_existed=self.key_existed and self.disk.own_state is None,
        )
        self.core = Core(config, saved, self.disk.history, self.clock.now(world.scheduler.now_us))
        self.committing = self._turn_asked = False
        self._inbox, self._wake_us, self._idle_turns = [], None, 0
        self.heard_us, self.boots, self.connected = {}, {}, {}
        world.judge.on_start(self)
        world.trace(self, "starts")
        world.scheduler.after(self.rng.randrange(HEARTBEAT_US), self._heartbeat, self.boot)
        self._plan_wake()

    def crash(self) -> None:
        if self.core is None:
            return
        self.world.trace(self, "crashes")
        self.core = None
        self.boot += 1
        self.armed = None
        self.disk.crash()
        self.world.judge.on_crash(self)

    def _crash_here(self) -> None:
        self.crash()
        if self.on_crash is not None:
            down_us, loss = self.on_crash
            self.on_crash = None
            self.world.faults.lose(self, loss)
            self.world.scheduler.after(down_us, self.world.faults.restart, self)

    def arm(self, point: CrashPoint, down_us: int, loss: str) -> None:
        """Crashes at the next time that a turn comes to this point."""
        if self.core is None:
            return
        self.on_crash = (down_us, loss)
        if point is CrashPoint.NOW:
            self._crash_here()
        else:
            self.armed = point

    def wipe(self) -> None:
        self.disk, self.shadow = SimDisk(self._owner), Shadow()
        self.key_existed = self.disk_lost = True
        self.lineage += 1
        self.world.judge.on_disk_lost(self, silent=False)

    def roll_back(self, image: tuple[Image, Shadow]) -> None:
        self.copy_of(image)
        self.disk_lost = True
        self.lineage += 1
        self.world.judge.on_disk_lost(self, silent=True)

    def copy_of(self, image: tuple[Image, Shadow]) -> None:
        self.disk, self.shadow = SimDisk.from_image(image[0]), image[1].image()

    def image(self) -> tuple[Image, Shadow]:
        return self.disk.image(), self.shadow.image()

    # --- links ----------------------------------------------------------------------------------
    def _heartbeat(self, boot: int) -> None:
        if boot != self.boot:
            return
        world, now_us = self.world, self.world.scheduler.now_us
        for peer, other in world.neighbours(self):
            if other.up and world.network.heartbeat_passes(other.index, self.index):
                self._heard(peer, (other.index, other.boot))
        for peer in list(self.connected):
            if now_us - self.heard_us[peer] > SILENCE_US:
                del self.connected[peer]
                self.push(PeerLost(peer))
        world.scheduler.after(HEARTBEAT_US, self._heartbeat, boot)

    def _heard(self, peer: NodeId, boot: tuple[int, int]) -> None:
        self.heard_us[peer] = self.world.scheduler.now_us
        if peer in self.connected and self.boots[peer] != boot:  # its HELLO names a new start
            del self.connected[peer]
            self.push(PeerLost(peer))
        self.boots[peer] = boot
        if peer not in self.connected:
            self.connected[peer] = None
            self.push(PeerConnected(peer))

    def receive(self, other: SimNode, data: bytes) -> None:
        if self.core is None:
            return
        peer = other.key.node_id
        self._heard(peer, (other.index, other.boot))
        self.push(MessageReceived(peer, data))

    def push(self, item: Input) -> None:
        if self.core is None:
            return
        self._inbox.append(item)
        if not self.committing and not self._turn_asked:
            self._turn_asked = True
            self.world.scheduler.after(TURN_US, self._asked_turn, self.boot)

    # --- turns ----------------------------------------------------------------------------------
    def _asked_turn(self, boot: int) -> None:
        if boot == self.boot and self._turn_asked:  # else a deadline has taken the inputs
            self._turn(boot)

    def _turn(self, boot: int) -> None:
        if boot != self.boot or self.core is None:
            return
        self._turn_asked = False
        if self.committing:
            return
        inputs, self._inbox = self._inbox, []
        self._wake_us = None
        now = self.clock.now(self.world.scheduler.now_us)
        effects = self.world.judge.step(self, inputs, now)
        if not effects.durable:
            self._speak(effects.spoken, early=True)
            self._after_turn()
            return
        self.disk.write(effects.durable)
        for effect in effects.spoken:
            if isinstance(effect, fx.SendEarly | fx.AskEarly):
                self._transmit(effect.peer, effect.data, early=True)
        first = self.world.safeguards.durable_before_spoken
        if not first:
            self._speak(effects.spoken, early=False)
        self.committing = True
        fsync_us = self.rng.randrange(FSYNC_MIN_US, FSYNC_MAX_US)
        if self.armed is CrashPoint.BEFORE_SYNC:
            self.world.scheduler.after(self.rng.randrange(fsync_us), self._crash_if, boot)
        spoken = effects.spoken if first else []
        self.world.scheduler.after(fsync_us, self._commit, boot, effects.durable, spoken)

    def _crash_if(self, boot: int) -> None:
        if boot == self.boot:
            self._crash_here()

    def _commit(self, boot: int, durable: list[fx.Durable], spoken: list[fx.Spoken]) -> None:
        if boot != self.boot:
            return
        self.disk.sync()
        self.world.judge.on_commit(self, durable)
        self.committing = False
        if self.armed is CrashPoint.BEFORE_SPEAKING:
            self._crash_here()
            return
        self._speak(spoken, early=False)
        if boot == self.boot:
            self._after_turn()

    def _speak(self, spoken: list[fx.Spoken], early: bool) -> None:
        stop_at = len(spoken) + 1
        if self.armed is CrashPoint.WHILE_SPEAKING and len(spoken) > 1:
            stop_at = self.rng.randrange(1, len(spoken))
        for position, effect in enumerate(spoken):
            if position == stop_at:
                self._crash_here()
                return
            match effect:
                case fx.SendMessage(peer, data):
                    self._transmit(peer, data, early=False)
                case fx.SendEarly(peer, data) | fx.AskEarly(peer, data):
                    if early:
                        self._transmit(peer, data, early=True)
                case _:
                    self.world.judge.on_notice(self, effect)

    def _transmit(self, peer: NodeId, data: bytes, early: bool) -> None:
        self.world.judge.on_message(self, data, early)
        self.world.send(self, peer, data)

    def _after_turn(self) -> None:
        if self._inbox and not self._turn_asked:
            self._turn_asked = True
            self.world.scheduler.after(TURN_US, self._asked_turn, self.boot)
        else:
            self._plan_wake()

    def _plan_wake(self) -> None:
        if self.core is None:
            return
        deadline = self.core.next_deadline()
        if deadline is None:
            return
        now_us = self.world.scheduler.now_us
        wake_us = max(self.clock.when_us(deadline), now_us + US_PER_MS)
        if self._wake_us is None or wake_us < self._wake_us or self._wake_us <= now_us:
            self._wake_us = wake_us
            self.world.scheduler.at(wake_us, self._wake, self.boot, wake_us)

    def _wake(self, boot: int, wake_us: int) -> None:
        if boot == self.boot and wake_us == self._wake_us and not self.committing:
            self._turn(boot)
