"""The load of an NDJSON stream: one request whose lines go out while the receipts come in.

Lines are sent in chunks as long as fewer than a window of them have no receipt; with a rate, each
chunk also has its moment, and latency counts from there.
"""

import select
import socket
import time
from collections import deque
from dataclasses import dataclass, field

from bench.load import DRAIN_S, READ_BYTES, Load, Result, percentiles_ms

CHUNK_LINES = 64
WINDOW_LINES = 2_048
RECEIPT_END = b"}\n"
RECEIPT_GOOD = b'"status":201'
OVERLAP = len(RECEIPT_GOOD) - 1


@dataclass
class LineStream:
    """`load.requests` are the header of the request and one line."""

    load: Load
    sent: int = 0
    receipts: int = 0
    good: int = 0
    waiting: deque[tuple[int, float]] = field(default_factory=deque)  # last line, when it was meant
    latency_s: list[float] = field(default_factory=list)

    def run(self) -> Result:
        load = self.load
        head, line = load.requests
        sock = socket.create_connection((load.host, load.port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(head)
        sock.setblocking(False)
        lines = line * CHUNK_LINES
        self.chunk = f"{len(lines):x}\r\n".encode() + lines + b"\r\n"
        cpu_s = time.process_time()
        begun_s = time.perf_counter()
        counted_from, lasted_s = self._send_all(sock, begun_s)
        self._receive_until(sock, time.perf_counter() + DRAIN_S)
        sock.close()
        return Result(
            seconds=lasted_s,
            sent=self.sent,
            late=0,
            cut=0,
            statuses={201: self.counted_to - counted_from},
            accepted_all=self.good,
            unanswered=self.sent - self.receipts,
            latency_ms=percentiles_ms(self.latency_s),
            service_ms=percentiles_ms(self.latency_s),
            refused_ms=percentiles_ms([]),
            cpu_s=time.process_time() - cpu_s,
            bodies=[],
        )

    def _send_all(self, sock: socket.socket, begun_s: float) -> tuple[int, float]:
        """The receipts there were when the warm-up was over, and how long the rest took."""
        load = self.load
        self.counts_from_s = begun_s + load.warm_up_s
        ends_s = self.counts_from_s + load.seconds
        step_s = CHUNK_LINES / load.rate if load.rate else 0.0
        counted_from = -1
        unsent = b""
        due_s = begun_s
        while (now_s := time.perf_counter()) < ends_s:
            if counted_from < 0 and now_s >= self.counts_from_s:
                counted_from = self.good
            has_room = self.sent - self.receipts <= WINDOW_LINES - CHUNK_LINES
            if not unsent and has_room and due_s <= now_s:
                self.sent += CHUNK_LINES
                self.waiting.append((self.sent, due_s if step_s else now_s))
                unsent, due_s = self.chunk, due_s + step_s
            if unsent:
                try:
                    unsent = unsent[sock.send(unsent) :]
                except BlockingIOError:
                    self._wait(sock, True, 0.05)
            elif has_room and step_s:
                self._wait(sock, False, max(due_s - now_s, 0.0))
            elif not has_room:
                self._wait(sock, False, 0.05)
            self._receive(sock)
        self.counted_to = self.good
        lasted_s = time.perf_counter() - self.counts_from_s
        sock.setblocking(True)
        sock.sendall(unsent + b"0\r\n\r\n")
        sock.setblocking(False)
        return max(counted_from, 0), lasted_s

    def _wait(self, sock: socket.socket, for_room: bool, seconds: float) -> None:
        select.select([sock], [sock] if for_room else (), (), seconds)

    def _receive_until(self, sock: socket.socket, stops_s: float) -> None:
        while self.receipts < self.sent and time.perf_counter() < stops_s:
            self._wait(sock, False, 0.05)
            self._receive(sock)

    _tail = b""

    def _receive(self, sock: socket.socket) -> None:
        try:
            data = sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        # A receipt may be cut between two reads: what is counted never lies in the tail alone.
        seen = self._tail + data
        self.receipts += seen.count(RECEIPT_END) - self._tail.count(RECEIPT_END)
        self.good += seen.count(RECEIPT_GOOD) - self._tail.count(RECEIPT_GOOD)
        self._tail = seen[-OVERLAP:]
        now_s = time.perf_counter()
        while self.waiting and self.waiting[0][0] <= self.receipts:
            _, meant_s = self.waiting.popleft()
            if meant_s >= self.counts_from_s:
                self.latency_s.append(now_s - meant_s)
