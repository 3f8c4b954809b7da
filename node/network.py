"""The node among its peers: the peer machine, its transport and the ledger's loop, joined.

What the peer machine says goes out at once: it makes no promise that a disk would have to keep
first. What it hears for the core waits in the inbox; where that is full nothing more is read.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from quipu.ledger.inputs import Input, MessageReceived, PeerConnected, PeerLost
from quipu.ledger.inv import peek_inv
from quipu.ledger.log.inputs import LogMessageReceived
from quipu.ledger.messages import is_receipt, receipt_in
from quipu.ledger.words import NOT_A_MEMBER, NodeId, NodeNo, Now
from quipu.node import limits
from quipu.node.inbox import Inbox
from quipu.node.logs import Log
from quipu.node.service import Draining, Overloaded
from quipu.node.troubles import Troubles
from quipu.node.whole_file import replace_file
from quipu.p2p import effects as fx
from quipu.p2p import inputs as ins
from quipu.p2p.peers import Peers
from quipu.p2p.queries import Verdict
from quipu.p2p.transport import Happening, Transport
from quipu.p2p.transports.group_socket import GroupSocket
from quipu.p2p.transports.screen import Screen
from quipu.p2p.words import Endpoint, PeerState, PeerView

MS_PER_S = 1_000
Answerer = Callable[[str, bytes], bytes]  # question, argument


@dataclass(slots=True)
class Network:
    """Invariant: what waits in `_held` came before everything that is still to be read."""

    inbox: Inbox
    clock: Callable[[], Now]
    log: Log
    peers_path: Path
    answer: Answerer = lambda question, argument: b""
    tell: Callable[[fx.StateChanged], None] = lambda change: None
    number_of: Callable[[NodeId], NodeNo] = lambda peer: NOT_A_MEMBER
    up: dict[NodeId, None] = field(default_factory=dict)
    troubles: Troubles = field(init=False)
    refused: Counter[str] = field(default_factory=Counter)
    frames_dropped: int = 0
    messages_sent: int = 0
    log_messages_sent: int = 0
    frames_sent: int = 0
    frames_received: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    frames_missed: int = 0
    guests_served: int = 0
    beacons_received: int = 0
    casts_sent: int = 0
    casts_received: int = 0
    screen: Screen | None = None
    beacon: GroupSocket | None = None
    multicast: GroupSocket | None = None
    _peers: Peers | None = None
    _transport: Transport | None = None
    _inputs: list[ins.Input] = field(default_factory=list)
    _held: deque[tuple[Input | LogMessageReceived, int]] = field(default_factory=deque)
    _queries: dict[int, asyncio.Future[fx.QueryEnded]] = field(default_factory=dict)
    _last_ticket: int = 0
    _asked: asyncio.Handle | None = None  # the next step, on its way
    _dialled: dict[NodeId, Endpoint] = field(default_factory=dict)
    _timer: asyncio.TimerHandle | None = None
    _timer_ms: int = 0  # when it comes, by the clock of the steps
    _looking: asyncio.TimerHandle | None = None
    _keeping: asyncio.Task[None] | None = None
    _to_keep: bytes | None = None
    _soon: dict[NodeId, bytes] = field(default_factory=dict)  # a receipt for each that has time
    _soon_timer: asyncio.TimerHandle | None = None

    def __post_init__(self) -> None:
        self.troubles = Troubles(self.log)

    def run(self, peers: Peers, transport: Transport, first: list[ins.Input]) -> None:
        self._peers, self._transport = peers, transport
        self.inbox.taken = self._push_held
        self._inputs += first
        self._ask()
        self._look()

    # --- from below -----------------------------------------------------------------------------
    def hear(self, happening: Happening) -> None:
        match happening:
            case ins.FrameReceived(head=head, content=content):
                self.frames_received += 1
                self.bytes_received += len(head) + len(content)
            case ins.FrameDropped():
                self.frames_dropped += 1
            case ins.LinkClosed(peer, why):
                self.troubles.link_closed(peer, self._dialled.pop(peer, None), why)
        self._inputs.append(happening)
        self._ask()

    def hear_beacon(self, datagram: bytes) -> None:
        self.beacons_received += 1
        self._inputs.append(ins.BeaconHeard(datagram))
        self._ask()

    def hear_cast(self, datagram: bytes) -> None:
        self.casts_received += 1
        self._inputs.append(ins.CastHeard(datagram))
        self._ask()

    # --- from above -----------------------------------------------------------------------------
    def send(self, peer: NodeId, data: bytes) -> None:
        waiting = self._soon.pop(peer, None)
        if waiting is not None and not _says_more(data, waiting):
            self.send(peer, waiting)
        self.messages_sent += 1
        self._inputs.append(ins.LedgerSpoke(peer, data))
        self._ask()

    def send_soon(self, peer: NodeId, receipt: bytes) -> None:
        """A receipt of this node's own that the peer has time for: it goes with what the peer is
        told next, or after a while. The next one says all that it says."""
        if peer not in self.up or self.multicast is not None:
            self.send(peer, receipt)
            return
        self._soon[peer] = receipt
        if self._soon_timer is None:
            loop = asyncio.get_running_loop()
            wait_s = limits.RECEIPTS_WAIT_MS / MS_PER_S
            self._soon_timer = loop.call_later(wait_s, self._send_late)

    def _send_late(self) -> None:
        self._soon_timer = None
        waiting, self._soon = self._soon, {}
        for peer, receipt in waiting.items():
            self.send(peer, receipt)

    def send_log(self, peer: NodeId, data: bytes) -> None:
        self.log_messages_sent += 1
        self._inputs.append(ins.LogSpoke(peer, data))
        self._ask()

    def dial(self, peer: NodeId, endpoint: Endpoint) -> None:
        """Somebody says that it is there."""
        self._inputs.append(ins.SeedGiven(peer, endpoint))
        self._ask()

    async def meet(self, peer: NodeId, endpoint: Endpoint) -> bool:
        """Dials it until it has said its name, for some seconds; whether it has."""
        ends_s = time.monotonic() + limits.MEET_S
        dial_s = 0.0
        while time.monotonic() < ends_s:
            if any(view.peer == peer and view.name for view in self.views()):
                return True
            if time.monotonic() >= dial_s:
                self.dial(peer, endpoint)
                dial_s = time.monotonic() + limits.NOMINEE_DIAL_MS / MS_PER_S
            await asyncio.sleep(limits.MEET_LOOK_S)
        return False

    def roster_changed(self, members: tuple[NodeId, ...]) -> None:
        self._inputs.append(ins.RosterChanged(members))
        self._ask()

    def secrets_changed(self, secrets: tuple[bytes, ...]) -> None:
        self._inputs.append(ins.SecretsChanged(secrets))
        self._ask()

    def core_rebuilt(self) -> None:
        """The new core knows nobody yet."""
        for peer in self.up:
            self._push(PeerConnected(peer), 0)

    @property
    def blocked(self) -> int:
        """Peers that a test has parted this node from."""
        return 0 if self.screen is None else len(self.screen.blocked)

    def views(self) -> tuple[PeerView, ...]:
        found = () if self._peers is None else self._peers.views()
        return tuple(view._replace(trouble=self.troubles.of(view.peer)) for view in found)

    @property
    def connections(self) -> int:
        return 0 if self._transport is None else self._transport.connections

    @property
    def faults(self) -> dict[str, int]:
        """What the transport did not take, by cause."""
        found = {} if self._transport is None else self._transport.faults
        return {str(fault): count for fault, count in found.items()}

    async def query(
        self, question: str, argument: bytes, timeout_s: float, of: NodeId | None
    ) -> fx.QueryEnded:
        if len(self._queries) >= limits.QUERIES_MAX:
            raise Overloaded(limits.RETRY_AFTER_S, "too many queries are under way")
        if self._peers is None:
            return fx.QueryEnded(0, Verdict.TIMEOUT, None, (), 0)  # nobody can be asked
        self._last_ticket += 1
        ticket = self._last_ticket
        result: asyncio.Future[fx.QueryEnded] = asyncio.get_running_loop().create_future()
        self._queries[ticket] = result
        timeout_ms = int(timeout_s * MS_PER_S)
        self._inputs.append(ins.QueryAsked(ticket, question, argument, timeout_ms, of))
        self._ask()
        try:
            return await result
        finally:
            del self._queries[ticket]

    async def stop(self) -> None:
        """Says goodbye, signed; what was said before is still delivered within the linger."""
        if self._peers is None or self._transport is None:
            return
        if self._soon_timer is not None:
            self._soon_timer.cancel()
            self._send_late()
        self._inputs.append(ins.LeaveAsked())
        self._step()
        self._disarm()
        if self._looking is not None:
            self._looking.cancel()
        for waiting in self._queries.values():
            if not waiting.done():
                waiting.set_exception(Draining("the node is stopping"))
        for group in (self.beacon, self.multicast):
            if group is not None:
                group.close()
        self.beacon = self.multicast = None
        transport, self._transport = self._transport, None
        await transport.stop()
        if self._keeping is not None:
            await self._keeping

    def counters(self) -> dict[str, int]:
        return {
            "peer_messages_sent_total": self.messages_sent,
            "log_messages_sent_total": self.log_messages_sent,
            "peer_frames_sent_total": self.frames_sent,
            "peer_frames_received_total": self.frames_received,
            "peer_frames_dropped_total": self.frames_dropped,
            "peer_frames_missed_total": self.frames_missed,
            "peer_guests_served_total": self.guests_served,
            "peer_beacons_received_total": self.beacons_received,
            "peer_casts_sent_total": self.casts_sent,
            "peer_casts_received_total": self.casts_received,
            "peer_casts_repaired_total": 0 if self._peers is None else self._peers.casts_repaired,
            "peer_sent_bytes_total": self.bytes_sent,
            "peer_received_bytes_total": self.bytes_received,
        }

    def _look(self) -> None:
        self.troubles.look(self.views())
        loop = asyncio.get_running_loop()
        self._looking = loop.call_later(limits.TROUBLE_LOOK_S, self._look)

    # --- a step ---------------------------------------------------------------------------------
    def flush(self) -> None:
        """What was given to it goes out now."""
        if self._asked is not None:
            self._asked.cancel()
            self._step()

    def _ask(self) -> None:
        if self._asked is None:
            self._asked = asyncio.get_running_loop().call_soon(self._step)

    def _step(self) -> None:
        self._asked = None
        if self._peers is None or self._transport is None:
            return
        inputs, self._inputs = self._inputs, []
        now = self.clock()
        for effect in self._peers.step(inputs, now):
            self._carry_out(effect, self._transport)
        self._plan(self._peers.next_deadline(), now)

    def _plan(self, deadline_ms: int | None, now: Now) -> None:
        """A timer that is armed stays so where it comes early enough: deadlines mostly move on."""
        if deadline_ms is None:
            self._disarm()
        elif self._timer is None or deadline_ms < self._timer_ms:
            self._disarm()
            self._timer_ms = deadline_ms
            wait_s = max(deadline_ms - now.monotonic_ms, 1) / MS_PER_S
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._look_up)

    def _look_up(self) -> None:
        self._timer = None
        self._ask()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _carry_out(self, effect: fx.Effect, transport: Transport) -> None:
        match effect:
            case fx.SendFrame(peer, head, content):
                self.frames_sent += 1
                self.bytes_sent += len(head) + len(content)
                transport.send(peer, head, content)
            case fx.LedgerHeard(peer, data):
                self._push(MessageReceived(peer, data), len(data))
            case fx.LogHeard(peer, data):
                self._push(LogMessageReceived(self.number_of(peer), data), len(data))
            case fx.OpenLink(peer, endpoint):
                self._dialled[peer] = endpoint
                transport.open(peer, endpoint)
            case fx.CloseLink(peer):
                self._dialled.pop(peer, None)
                transport.close(peer)
            case fx.SendBeacon(datagram):
                if self.beacon is not None:
                    self.beacon.send(datagram)
            case fx.SendCast(datagram):
                if self.multicast is not None:
                    self.casts_sent += 1
                    self.bytes_sent += len(datagram)
                    self.multicast.send(datagram)
            case fx.ShutLink(link):
                transport.shut(link)
            case fx.PeerUp(peer):
                self.up[peer] = None
                self.troubles.up(peer, self.views())
                self._push(PeerConnected(peer), 0)
            case fx.PeerDown(peer):
                self.up.pop(peer, None)
                self._soon.pop(peer, None)
                self._push(PeerLost(peer), 0)
            case _:
                self._notice(effect)

    def _notice(self, effect: fx.Effect) -> None:
        match effect:
            case fx.StateChanged(peer, before, after, why):
                say = self.log.info if after is PeerState.ALIVE else self.log.warning
                say("peer", peer=peer.hex()[:16], before=before, after=after, why=why)
                self.troubles.moved(effect)
                self.tell(effect)
            case fx.Question(ticket, _, question, argument):
                answer = self.answer(question, argument)
                self._inputs.append(ins.QuestionAnswered(ticket, answer))
                self._ask()
            case fx.QueryEnded(ticket):
                waiting = self._queries.get(ticket)
                if waiting is not None and not waiting.done():
                    waiting.set_result(effect)
            case fx.FramesMissed(frames=frames):
                self.frames_missed += frames
            case fx.GuestServed(guest, endpoint):
                self.guests_served += 1
                self.log.info("guest served", peer=guest.hex()[:16], at=str(endpoint))
            case fx.KeepPeers(data):
                self._keep(data)
            case fx.Refusal(peer, cause, detail):
                self.refused[cause] += 1
                self.troubles.refused(effect)
                named = "" if peer is None else peer.hex()[:16]
                self.log.debug("frame refused", peer=named, cause=cause, detail=detail)

    # --- the inbox ------------------------------------------------------------------------------
    def _push(self, given: Input | LogMessageReceived, size: int) -> None:
        if self._held or not self.inbox.push(given, size):
            if not self._held:
                self._read(False)
            self._held.append((given, size))

    def _push_held(self) -> None:
        """The turn has taken what waited."""
        while self._held and self.inbox.push(*self._held[0]):
            self._held.popleft()
            if not self._held:
                self._read(True)

    def _read(self, is_on: bool) -> None:
        for source in (self._transport, self.multicast):
            if source is not None:
                source.resume() if is_on else source.pause()

    # --- memory ---------------------------------------------------------------------------------
    def _keep(self, data: bytes) -> None:
        self._to_keep = data
        if self._keeping is None or self._keeping.done():
            self._keeping = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        while self._to_keep is not None:
            data, self._to_keep = self._to_keep, None
            try:
                await asyncio.to_thread(replace_file, self.peers_path, data)
            except OSError as error:
                self.log.warning("cannot keep the list of peers", error=str(error))


def _says_more(message: bytes, receipt: bytes) -> bool:
    """It is a later receipt of the same signer."""
    if not is_receipt(message):
        return False
    later, earlier = peek_inv(receipt_in(message)), peek_inv(receipt_in(receipt))
    assert later is not None
    assert earlier is not None
    return later.signer == earlier.signer and later.number > earlier.number
