"""The load of one connection that takes many entries: NDJSON lines, or frames of a WebSocket.

Entries go out in chunks as long as fewer than a window of them have no answer; with a rate, each
chunk also has its moment, and latency counts from there.
"""

import select
import socket
import time
from collections import deque

import msgspec

from bench.load import DRAIN_S, READ_BYTES, Load, Result, percentiles_ms

WINDOW_ENTRIES = 4_096
RECEIPT_END = b"}\n"
RECEIPT_GOOD = b'"status":201'
HEAD_END = b"\r\n\r\n"
FRAME_STORED = 1


class Stream:
    """`load.requests` are the header of the request and one chunk as it goes over the wire."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.chunk = load.requests[1]
        self.sent = self.answered = self.good = self.good_at_start = 0
        self.waiting: deque[tuple[int, float]] = deque()  # last entry, when it was meant
        self.latency_s: list[float] = []
        self.socket = socket.create_connection((load.host, load.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def run(self) -> Result:
        self.open()
        self.socket.setblocking(False)
        cpu_s = time.process_time()
        begun_s = time.perf_counter()
        self.counts_from_s = begun_s + self.load.warm_up_s
        self._send_all(begun_s, self.counts_from_s + self.load.seconds)
        lasted_s = time.perf_counter() - self.counts_from_s
        counted = self.good - self.good_at_start
        stops_s = time.perf_counter() + DRAIN_S
        while self.answered < self.sent and time.perf_counter() < stops_s:
            self._wait(False, 0.05)
            self._receive()
        self.socket.close()
        latency_ms = percentiles_ms(self.latency_s)
        return Result(
            seconds=lasted_s,
            sent=self.sent,
            late=0,
            cut=0,
            statuses={201: counted},
            accepted_all=self.good,
            unanswered=self.sent - self.answered,
            latency_ms=latency_ms,
            service_ms=latency_ms,
            refused_ms=percentiles_ms([]),
            cpu_s=time.process_time() - cpu_s,
            bodies=[],
        )

    def open(self) -> None:
        self.socket.sendall(self.load.requests[0])

    def take(self, data: bytes) -> tuple[int, int]:
        """How many answers have come with it, and how many of them say that it is stored."""
        raise NotImplementedError

    def _send_all(self, begun_s: float, ends_s: float) -> None:
        per_chunk, rate = self.load.per_chunk, self.load.rate
        step_s = per_chunk / rate if rate else 0.0
        has_begun, unsent, due_s = False, b"", begun_s
        while (now_s := time.perf_counter()) < ends_s:
            if not has_begun and now_s >= self.counts_from_s:
                has_begun, self.good_at_start = True, self.good
            has_room = self.sent - self.answered <= WINDOW_ENTRIES - per_chunk
            if not unsent and has_room and due_s <= now_s:
                self.sent += per_chunk
                self.waiting.append((self.sent, due_s if step_s else now_s))
                unsent, due_s = self.chunk, due_s + step_s
            if unsent:
                try:
                    unsent = unsent[self.socket.send(unsent) :]
                except BlockingIOError:
                    self._wait(True, 0.05)
            elif not has_room:
                self._wait(False, 0.05)
            elif step_s:
                self._wait(False, max(due_s - now_s, 0.0))
            self._receive()
        self.socket.setblocking(True)
        self.socket.sendall(unsent)
        self.socket.setblocking(False)

    def _wait(self, for_room: bool, seconds: float) -> None:
        select.select([self.socket], [self.socket] if for_room else (), (), seconds)

    def _receive(self) -> None:
        try:
            data = self.socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        answered, good = self.take(data)
        self.answered += answered
        self.good += good
        now_s = time.perf_counter()
        while self.waiting and self.waiting[0][0] <= self.answered:
            _, meant_s = self.waiting.popleft()
            if meant_s >= self.counts_from_s:
                self.latency_s.append(now_s - meant_s)


class Lines(Stream):
    _tail = b""

    def take(self, data: bytes) -> tuple[int, int]:
        # A receipt may be cut between two reads: what is counted never lies in the tail alone.
        tail, seen = self._tail, self._tail + data
        self._tail = seen[1 - len(RECEIPT_GOOD) :]
        return (
            seen.count(RECEIPT_END) - tail.count(RECEIPT_END),
            seen.count(RECEIPT_GOOD) - tail.count(RECEIPT_GOOD),
        )


class Frames(Stream):
    """WebSocket messages of a server: never masked, and here never in fragments."""

    _unread = b""

    def open(self) -> None:
        super().open()
        head = b""
        while HEAD_END not in head:
            head += self.socket.recv(READ_BYTES)
        if b" 101 " not in head.split(b"\r\n", 1)[0]:
            raise SystemExit(f"no WebSocket: {head[:200]!r}")
        self._unread = head.partition(HEAD_END)[2]

    def take(self, data: bytes) -> tuple[int, int]:
        unread, at = self._unread + data, 0
        answered = good = 0
        while len(unread) - at >= 2:
            size, start = unread[at + 1], at + 2
            width = {126: 2, 127: 8}.get(size, 0)
            if width:
                size = int.from_bytes(unread[start : start + width], "big")
                start += width
            if len(unread) < start + size:
                break
            kind, *rest = msgspec.msgpack.decode(unread[start : start + size])
            rows = rest[0] if isinstance(rest[0], list) else []
            count = sum(row[1] for row in rows)
            answered += count
            good += count if kind == FRAME_STORED else 0
            at = start + size
        self._unread = unread[at:]
        return answered, good


KINDS: dict[str, type[Stream]] = {"lines": Lines, "frames": Frames}
