"""Multicast on the desk: what goes out once for several peers, and what comes in of theirs.

A frame goes to the group where at least two peers hear it; to all others over their links. No sign
of life: whoever is silent on its links is suspect although its datagrams come.
"""

from typing import NamedTuple

from quipu.ledger.messages import proves_itself
from quipu.ledger.signing import SIGNATURE_BYTES
from quipu.ledger.words import NodeId, Now
from quipu.p2p import limits
from quipu.p2p.bodies import CastKey, CastReport
from quipu.p2p.cast import open_piece, seal_frame, signed_part, stream_named
from quipu.p2p.cast_ear import Ear
from quipu.p2p.casting import Frame
from quipu.p2p.decen import Alive, Broadcast, Command, decode_command, encode_command
from quipu.p2p.desk import Desk
from quipu.p2p.effects import FramesMissed, SendCast
from quipu.p2p.frame import decode_head, encode_head, split_frame
from quipu.p2p.outbox import contents
from quipu.p2p.refusals import Cause, FrameRefused, refuse
from quipu.p2p.words import PoolName, StreamId

_MESSAGES_BYTES_MAX = limits.CAST_BYTES_MAX - 3  # the longest beginning of their array


class Heard(NamedTuple):
    peer: NodeId
    command: Command
    content: bytes


class Casts:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._data: bytes | None = None  # of the core, which goes to `_peers`
        self._peers: list[NodeId] = []
        self._groups: dict[tuple[NodeId, ...], list[bytes]] = {}  # receivers: messages

    # --- what goes out --------------------------------------------------------------------------
    def speak(self, peer: NodeId, data: bytes, now: Now) -> None:
        """The same bytes go to several peers in a row."""
        if self._data is not data:
            self._gather(now)
            self._data = data
        self._peers.append(peer)

    def flush(self, now: Now) -> None:
        self._gather(now)
        groups, self._groups = self._groups, {}
        for receivers, messages in groups.items():
            for content in contents(messages, _MESSAGES_BYTES_MAX):
                frame = Frame(None, content)
                if not self._cast(frame, receivers, now):
                    for peer in receivers:
                        self._desk.over_link(peer, [frame], now)

    def broadcast(
        self, pool: PoolName, content: bytes, peers: list[NodeId], now: Now
    ) -> list[NodeId]:
        """Answers who is to get it over its link."""
        casting = self._desk.casting
        if casting is None:
            return peers
        hearing = tuple(peer for peer in peers if casting.hears(peer, now.monotonic_ms))
        if len(hearing) < limits.CAST_RECEIVERS_MIN:
            return peers
        is_cast = self._cast(Frame(pool, content), hearing, now)
        return [peer for peer in peers if peer not in hearing] if is_cast else peers

    def watch(self, now: Now) -> None:
        """Keys for those who are up, empty frames, reports, and who has fallen silent."""
        desk, casting, now_ms = self._desk, self._desk.casting, now.monotonic_ms
        if casting is None:
            return
        for peer in desk.up:
            if peer not in casting.hearers:
                body = CastKey(casting.stream.key, casting.number)
                desk.direct(peer, desk.voice.say(body, now))
                casting.told_key(peer)
        if casting.hearers and now_ms >= casting.tail_ms():
            self._send(casting.next_number(None, (), now_ms), b"")
        for peer, frames in casting.fallen_silent(now_ms).items():
            desk.over_link(peer, frames, now)
        for ear in desk.ears.values():
            due_ms = ear.due_ms()
            if due_ms is not None and now_ms >= due_ms:
                self._report(ear, now)

    def next_deadline(self) -> int | None:
        casting = self._desk.casting
        if casting is None:
            return None
        due = [ear.due_ms() for ear in self._desk.ears.values()]
        due += [casting.tail_ms() if casting.hearers else None, casting.silent_ms()]
        return min((ms for ms in due if ms is not None), default=None)

    # --- what comes in --------------------------------------------------------------------------
    def heard(self, datagram: bytes, now: Now) -> Heard | None:
        desk, casting = self._desk, self._desk.casting
        peer = None
        try:
            stream = stream_named(datagram)
            if casting is None or stream == casting.stream.id:
                return None  # its own, which comes back
            ear = desk.ears.get(stream)
            if ear is None:
                refuse(Cause.FOREIGN_CAST)
            piece = open_piece(datagram, ear.stream.key)
            peer = ear.peer
            frame = ear.take(piece, now.monotonic_ms)
            return self._read(ear, piece.number, frame) if frame else None
        except FrameRefused as refusal:
            desk.refuse(peer, refusal.cause, refusal.detail)
            return None

    # ---------------------------------------------------------------------------------------------
    def _gather(self, now: Now) -> None:
        data, peers = self._data, self._peers
        self._data, self._peers = None, []
        if data is None:
            return
        desk, casting = self._desk, self._desk.casting
        message = desk.voice.ledger(data, now)
        hearing: list[NodeId] = []
        if casting is not None and proves_itself(data) and len(message) <= _MESSAGES_BYTES_MAX:
            hearing = [peer for peer in peers if casting.hears(peer, now.monotonic_ms)]
        if len(hearing) >= limits.CAST_RECEIVERS_MIN:
            self._groups.setdefault(tuple(hearing), []).append(message)
            peers = [peer for peer in peers if peer not in hearing]
        for peer in peers:
            desk.outbox.add(peer, message)

    def _cast(self, frame: Frame, receivers: tuple[NodeId, ...], now: Now) -> bool:
        desk, casting = self._desk, self._desk.casting
        assert casting is not None
        is_small = len(frame.content) <= limits.CAST_BYTES_MAX
        if not is_small or not casting.has_room(len(frame.content), now.monotonic_ms):
            return False
        number = casting.next_number(frame, receivers, now.monotonic_ms)
        sequence = number % limits.SEQUENCES
        command = Alive(sequence) if frame.pool is None else Broadcast(sequence, frame.pool)
        data = encode_head(desk.config.node_no, encode_command(command)) + frame.content
        if frame.pool is not None:
            data += desk.config.key.sign(self._signed(casting.stream.id, number, data))
        self._send(number, data)
        return True

    def _send(self, number: int, frame: bytes) -> None:
        casting = self._desk.casting
        assert casting is not None
        for datagram in seal_frame(casting.stream, number, frame):
            self._desk.outbox.tell(SendCast(datagram))

    def _report(self, ear: Ear, now: Now) -> None:
        desk = self._desk
        missing = ear.report(now.monotonic_ms)
        body = CastReport(ear.stream.id, ear.settled, missing)
        desk.direct(ear.peer, desk.voice.say(body, now))
        if ear.missed:
            desk.outbox.tell(FramesMissed(ear.peer, ear.missed))
            ear.missed = 0

    def _read(self, ear: Ear, number: int, frame: bytes) -> Heard:
        """What is said to a pool proves nothing by itself, so it is signed."""
        head, content = split_frame(frame)
        command = decode_command(decode_head(head).command)
        if isinstance(command, Broadcast):
            content, signature = content[:-SIGNATURE_BYTES], content[-SIGNATURE_BYTES:]
            said = self._signed(ear.stream.id, number, head + content)
            if not self._desk.config.verify(ear.peer, said, signature):
                refuse(Cause.BAD_SIGNATURE, "of a multicast to a pool")
        elif not isinstance(command, Alive):
            refuse(Cause.MALFORMED, "a command that is not multicast")
        return Heard(ear.peer, command, content)

    def _signed(self, stream: StreamId, number: int, frame: bytes) -> bytes:
        return signed_part(self._desk.config.cluster_id, stream, number, frame)
