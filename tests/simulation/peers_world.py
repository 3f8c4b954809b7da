"""A world of peer machines: real frames over a lossy network, connections that break, one clock.

The network of the other simulations carries the frames; this adds connections as the transport
makes them: dialled, opened or refused after a while, and gone for good once they break.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from quipu.ledger.words import NodeId, NodeNo
from quipu.p2p import effects as fx
from quipu.p2p import inputs as ins
from quipu.p2p.desk import PeersConfig
from quipu.p2p.link_keys import link_key_of
from quipu.p2p.peers import Peers
from quipu.p2p.words import Endpoint, LinkId, LinkKey, PeerState
from tests.simulation.clock import US_PER_MS, US_PER_S, NodeClock, Scheduler
from tests.simulation.keys import SharedVerifier, key_pair
from tests.simulation.network import FAIR, Network, Weather

TURN_US = 200  # from the first input of a turn to its step
CONNECT_TIMEOUT_US = 1_500_000  # of the transport
BROKEN_AFTER_US = 5 * US_PER_S  # the transport's own heartbeat gives a connection up
CHECK_US = 500_000
CLUSTER_ID = sha256(b"a simulated cluster of peers").digest()
SECRET = sha256(b"the secret of a simulated cluster").digest()
HEAD_SIZE_BYTES = 2
PORT = 8471


@dataclass(slots=True)
class Connection:
    """One DEALER: from the node that dialled to the ROUTER of the other."""

    number: int
    dialler: SimPeer
    acceptor: SimPeer
    opened: bool = False
    cut_since_us: int | None = None

    @property
    def link(self) -> LinkId:
        return LinkId(self.number.to_bytes(8, "big"))


class SimPeer:
    def __init__(self, world: PeersWorld, index: int, name: str) -> None:
        self.world = world
        self.index = index
        self.name = name
        self.key = key_pair(name)
        key = link_key_of(self.key.node_id)
        assert key is not None
        self.link_key: LinkKey = key
        self.endpoint = Endpoint(f"10.1.{index // 250}.{index % 250 + 1}", PORT)
        self.rng = random.Random(f"{world.seed}/peer/{index}")
        self.clock = NodeClock()
        self.peers: Peers | None = None
        self.has_multicast = False
        self.kept: bytes | None = None
        self.boot = 0
        self.paused = False
        self.heard: list[fx.Effect] = []  # what the node would be told, with its time
        self.moves: list[tuple[int, fx.StateChanged]] = []
        self.up: dict[NodeId, None] = {}
        self.refusals: dict[str, int] = {}
        self.questions = 0
        self.answer: Callable[[fx.Question], bytes | None] = lambda question: question.argument
        self._inbox: list[ins.Input] = []
        self._turn_asked = False
        self._wake_us: int | None = None

    def __repr__(self) -> str:
        return self.name

    @property
    def node_id(self) -> NodeId:
        return self.key.node_id

    # --- life -----------------------------------------------------------------------------------
    def start(self, *seeds: SimPeer) -> None:
        world = self.world
        self.boot += 1
        self.clock.boot_us = world.scheduler.now_us
        self.clock.monotonic_base_ms = self.rng.randrange(1, 10_000_000)
        config = PeersConfig(
            key=self.key,
            cluster_id=CLUSTER_ID,
            secrets=(SECRET,),
            name=self.name,
            version="test",
            endpoint=self.endpoint,
            node_no=NodeNo(self.index + 1 if self.node_id in world.members else 0),
            members=world.members,
            entropy=self.rng.getrandbits(64),
            has_multicast=self.has_multicast,
            verify=world.verify,
        )
        self.peers = Peers(config, self.kept, self.clock.now(world.scheduler.now_us))
        self._inbox, self._turn_asked, self._wake_us, self.paused = [], False, None, False
        self.up.clear()
        self.take(*(ins.SeedGiven(seed.node_id, seed.endpoint) for seed in seeds))
        self._ask_turn()

    def crash(self) -> None:
        self.peers = None
        self.boot += 1
        self.up.clear()
        self.world.break_all(self)

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        self._ask_turn()

    def inject(self, peer: SimPeer, *messages: bytes) -> None:
        """A liar's own words, on its own link and in its own frames."""
        assert self.peers is not None
        for message in messages:
            self.peers._desk.outbox.add(peer.node_id, message)
        self._ask_turn()

    def leave(self) -> None:
        self.take(ins.LeaveAsked())

    # --- turns ----------------------------------------------------------------------------------
    def take(self, *inputs: ins.Input) -> None:
        if self.peers is None:
            return
        self._inbox.extend(inputs)
        self._ask_turn()

    def _ask_turn(self) -> None:
        if not self._turn_asked and not self.paused:
            self._turn_asked = True
            self.world.scheduler.after(TURN_US, self._turn, self.boot)

    def _turn(self, boot: int) -> None:
        if boot != self.boot or self.peers is None:
            return
        self._turn_asked = False
        if self.paused:
            return
        world = self.world
        inputs, self._inbox = self._inbox, []
        for effect in self.peers.step(inputs, self.clock.now(world.scheduler.now_us)):
            self._carry_out(effect)
        self._plan_wake()

    def _plan_wake(self) -> None:
        if self.peers is None:
            return
        deadline_ms = self.peers.next_deadline()
        if deadline_ms is None:
            return
        now_us = self.world.scheduler.now_us
        wake_us = max(self.clock.when_us(deadline_ms), now_us + US_PER_MS)
        if self._wake_us is None or wake_us < self._wake_us or self._wake_us <= now_us:
            self._wake_us = wake_us
            self.world.scheduler.at(wake_us, self._wake, self.boot, wake_us)

    def _wake(self, boot: int, wake_us: int) -> None:
        if boot == self.boot and wake_us == self._wake_us:
            self._wake_us = None
            self._turn(boot)

    def _carry_out(self, effect: fx.Effect) -> None:
        world = self.world
        world.record(self, effect)
        match effect:
            case fx.OpenLink(peer, endpoint):
                world.dial(self, peer, endpoint)
            case fx.CloseLink(peer):
                world.close(self, peer)
            case fx.SendFrame(peer, head, content):
                world.send(self, peer, head, content)
            case fx.SendCast(datagram):
                world.casts.send(self, datagram)
            case fx.PeerUp(peer):
                assert peer not in self.up
                self.up[peer] = None
            case fx.PeerDown(peer):
                del self.up[peer]
            case fx.StateChanged():
                self.moves.append((world.scheduler.now_us, effect))
            case fx.KeepPeers(data):
                self.kept = data
            case fx.Refusal(cause=cause):
                self.refusals[cause] = self.refusals.get(cause, 0) + 1
            case fx.Question() as question:
                self.questions += 1
                answer = self.answer(question)
                if answer is not None:
                    self.take(ins.QuestionAnswered(question.ticket, answer))
            case fx.LedgerHeard(peer):
                assert peer in self.up
                self.heard.append(effect)
            case _:
                self.heard.append(effect)

    # --- what a test asks -----------------------------------------------------------------------
    def state_of(self, other: SimPeer) -> PeerState:
        assert self.peers is not None
        views = {view.peer: view.state for view in self.peers.views()}
        return views.get(other.node_id, PeerState.UNKNOWN)

    def is_up(self, other: SimPeer) -> bool:
        return other.node_id in self.up

    def of_kind(self, kind: type[fx.Effect]) -> list[fx.Effect]:
        return [effect for effect in self.heard if isinstance(effect, kind)]


class Casts:
    """The multicast of one local network: everybody hears it, the sender too; or somebody does not,
    or later, or twice."""

    def __init__(self, world: PeersWorld) -> None:
        self._world = world
        self._rng = random.Random(f"{world.seed}/casts")
        self.loss = self.duplicate = 0.0
        self.jitter_us = 0
        self.deaf: dict[int, None] = {}
        self.datagrams = 0

    def send(self, sender: SimPeer, datagram: bytes) -> None:
        self.datagrams += 1
        for node in self._world.nodes:
            copies = 1 + (self._rng.random() < self.duplicate)
            is_open = self._world.network.is_open(sender.index, node.index)
            if not node.has_multicast or node.index in self.deaf or not is_open:
                continue
            if self._rng.random() < self.loss:
                continue
            for _ in range(copies):
                delay_us = US_PER_MS + int(self._rng.random() * self.jitter_us)
                self._world.scheduler.after(delay_us, node.take, ins.CastHeard(datagram))


class PeersWorld:
    """The first `member_count` nodes are the roster, the others observers."""

    def __init__(
        self,
        seed: int,
        member_count: int,
        observer_count: int = 0,
        weather: Weather = FAIR,
        *,
        kind: type[SimPeer] = SimPeer,
        scheduler: Scheduler | None = None,
    ) -> None:
        self.seed = seed
        self.weather = weather
        self.scheduler = scheduler or Scheduler()
        self.verify = SharedVerifier()
        names = [f"n{number}" for number in range(1, member_count + observer_count + 1)]
        self.members = tuple(key_pair(name).node_id for name in names[:member_count])
        self.nodes = [kind(self, index, name) for index, name in enumerate(names)]
        self.network = Network(self.scheduler, random.Random(f"{seed}/network"), self._deliver)
        self.network.weather = self.weather
        self.network.ordered = True  # as TCP is
        self.casts = Casts(self)
        self.frames = 0
        self.tapped: list[ins.FrameReceived] = []  # what somebody on the wire has recorded
        self.is_tapped = False
        self._by_endpoint = {node.endpoint: node for node in self.nodes}
        self._by_id = {node.node_id: node for node in self.nodes}
        self._made = 0
        self._current: dict[tuple[int, int], Connection] = {}  # dialler, acceptor
        self._open: dict[int, Connection] = {}
        self._digest = sha256()
        self.scheduler.after(CHECK_US, self._check_connections)

    def __getitem__(self, name: str) -> SimPeer:
        return self.nodes[int(name.removeprefix("n")) - 1]

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    @property
    def now_ms(self) -> int:
        return self.scheduler.now_ms

    def run_ms(self, span_ms: int) -> None:
        self.scheduler.run_until(self.scheduler.now_us + span_ms * US_PER_MS)

    def run_until(self, is_reached: Callable[[], bool], most_ms: int, step_ms: int = 50) -> int:
        """How many ms it took; fails with the seed when it takes longer."""
        begun_ms = self.now_ms
        while not is_reached():
            took_ms = self.now_ms - begun_ms
            assert took_ms <= most_ms, f"seed {self.seed}: not within {most_ms} ms"
            self.run_ms(step_ms)
        return self.now_ms - begun_ms

    def record(self, node: SimPeer, effect: fx.Effect) -> None:
        self._digest.update(f"{self.scheduler.now_us} {node} {effect!r}\n".encode())

    # --- connections ----------------------------------------------------------------------------
    def dial(self, dialler: SimPeer, peer: NodeId, endpoint: Endpoint) -> None:
        self._made += 1
        acceptor = self._by_endpoint.get(endpoint)
        if acceptor is None:
            self.scheduler.after(US_PER_MS, self._fail, dialler, dialler.boot, peer, "refused")
            return
        self._drop(dialler, acceptor)
        made = Connection(self._made, dialler, acceptor)
        self._current[dialler.index, acceptor.index] = made
        self._open[made.number] = made
        delay_us = 3 * self.weather.base_us
        self.scheduler.after(delay_us, self._shake_hands, made, dialler.boot, peer)

    def _shake_hands(self, made: Connection, boot: int, peer: NodeId) -> None:
        if made.number not in self._open or made.dialler.boot != boot:
            return
        if made.acceptor.peers is None:
            self._fail_connection(made, boot, peer, "refused")
        elif made.acceptor.node_id != peer:
            self._fail_connection(made, boot, peer, "wrong key")
        elif not self._is_whole(made) or made.acceptor.paused:
            wait_us = CONNECT_TIMEOUT_US
            self.scheduler.after(wait_us, self._fail_connection, made, boot, peer, "timeout")
        else:
            made.opened = True
            made.dialler.take(ins.LinkOpened(peer))

    def _fail_connection(self, made: Connection, boot: int, peer: NodeId, why: str) -> None:
        if self._open.pop(made.number, None) is not None:
            self._current.pop((made.dialler.index, made.acceptor.index), None)
            self._fail(made.dialler, boot, peer, why)

    def _fail(self, dialler: SimPeer, boot: int, peer: NodeId, why: str) -> None:
        if dialler.boot == boot:
            dialler.take(ins.LinkClosed(peer, why))

    def close(self, dialler: SimPeer, peer: NodeId) -> None:
        """What was sent before is still delivered."""
        self._current.pop((dialler.index, self._by_id[peer].index), None)

    def _drop(self, dialler: SimPeer, acceptor: SimPeer) -> None:
        made = self._current.pop((dialler.index, acceptor.index), None)
        if made is not None:
            self._open.pop(made.number, None)

    def break_all(self, node: SimPeer) -> None:
        """Its process is gone: the others' connections to it end at once."""
        for made in list(self._open.values()):
            if made.acceptor is node:
                self._fail_connection(made, made.dialler.boot, node.node_id, "reset")
            elif made.dialler is node:
                self._drop(made.dialler, made.acceptor)

    def _is_whole(self, made: Connection) -> bool:
        one, other = made.dialler.index, made.acceptor.index
        return self.network.is_open(one, other) and self.network.is_open(other, one)

    def _check_connections(self) -> None:
        now_us = self.scheduler.now_us
        for made in list(self._open.values()):
            if not made.opened:
                continue
            if self._is_whole(made) and not made.acceptor.paused:
                made.cut_since_us = None
            elif made.cut_since_us is None:
                made.cut_since_us = now_us
            elif now_us - made.cut_since_us >= BROKEN_AFTER_US:
                self._fail_connection(made, made.dialler.boot, made.acceptor.node_id, "silent")
        self.scheduler.after(CHECK_US, self._check_connections)

    # --- frames ---------------------------------------------------------------------------------
    def send(self, sender: SimPeer, peer: NodeId, head: bytes, content: bytes) -> None:
        acceptor = self._by_id[peer]
        made = self._current.get((sender.index, acceptor.index))
        if made is None:
            return
        self.frames += 1
        size = len(head).to_bytes(HEAD_SIZE_BYTES, "big")
        self.network.send(sender.index, acceptor.index, made.link + size + head + content)

    def _deliver(self, receiver: int, sender: int, data: bytes) -> None:
        made = self._open.get(int.from_bytes(data[:8], "big"))
        if made is None:
            return
        begin = 8 + HEAD_SIZE_BYTES
        end = begin + int.from_bytes(data[8:begin], "big")
        key = self.nodes[sender].link_key
        frame = ins.FrameReceived(made.link, key, data[begin:end], data[end:])
        if self.is_tapped:
            self.tapped.append(frame)
        self.nodes[receiver].take(frame)

    # --- faults ---------------------------------------------------------------------------------
    def partition(self, *side: SimPeer) -> None:
        for one in self.nodes:
            for other in self.nodes:
                if (one in side) != (other in side):
                    self.network.cut(one.index, other.index)

    def heal(self) -> None:
        self.network.heal()
        self.network.weather = self.weather
