"""A generator of load in a process of its own: `python -m bench.load` reads a `Load` in
msgpack from stdin and writes a `Result` to stdout.

Requests are encoded beforehand and go over plain sockets, one at a time on each connection. With a
rate the loop is open: latency counts from the moment at which a request was meant to be sent, so a
server that stalls is charged for what waits meanwhile. Without one it is closed: each answer is
followed by the next request.
"""

import select
import socket
import sys
import time
from collections import deque
from dataclasses import dataclass, field

import msgspec

READ_BYTES = 1 << 18
LATE_S = 0.001  # a request sent later than that, with a connection free, is the generator's fault
DRAIN_S = 10.0  # how long answers are waited for when nothing is sent any more
HEAD_END = b"\r\n\r\n"
CHUNKED = b"transfer-encoding: chunked"  # of etcd's answers alone; their bodies are not read
CHUNKS_END = b"\r\n0\r\n\r\n"


class Load(msgspec.Struct):
    host: str
    port: int
    requests: list[bytes]  # sent in turn
    connections: int
    seconds: float
    warm_up_s: float = 0.5
    rate: float | None = None  # requests a second; None: closed loop
    keep_bodies: int = 0  # so many bodies of answers are given back
    stream: str = ""  # of which kind of `stream_load`: the requests are a header and a chunk
    per_chunk: int = 1  # entries in that chunk
    once: bool = False  # each request is sent once, and nothing after the last
    ports: list[int] = []  # of the nodes that the connections are spread over; empty: `port`
    wire: str = ""  # which of `wires` it speaks; empty: HTTP
    replies: int = 1  # to each request, where it is not HTTP


class Result(msgspec.Struct):
    """`latency_ms` are of accepted (2xx) requests alone, the warm-up left out. `service_ms` count
    from the moment of sending instead: what the server did to those that it was sent."""

    seconds: float
    sent: int
    late: int
    cut: int  # connections that the server closed, with or without an answer under way
    statuses: dict[int, int]
    accepted_all: int  # the warm-up included: what must be found in the ledger afterwards
    unanswered: int
    latency_ms: dict[str, float]
    service_ms: dict[str, float]
    refused_ms: dict[str, float]  # of the others: how fast a refusal comes
    cpu_s: float
    bodies: list[bytes]

    @property
    def accepted(self) -> int:
        return sum(count for status, count in self.statuses.items() if status < 300)

    @property
    def rate(self) -> float:
        return self.accepted / self.seconds

    @property
    def cpu_us(self) -> float:
        """Of the generator, for a request."""
        return self.cpu_s / max(self.sent, 1) * 1e6


def percentiles_ms(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    last = len(ordered) - 1
    return {
        name: ordered[min(last, int(share * len(ordered)))] * 1e3 if ordered else 0.0
        for name, share in (("p50", 0.50), ("p95", 0.95), ("p99", 0.99))
    }


@dataclass(eq=False)
class Line:
    """One connection, with at most one request under way."""

    socket: socket.socket
    port: int
    requests: list[bytes]
    replies: int = 1
    meant_s: float = 0.0
    sent_s: float = 0.0
    unsent: bytes = b""
    received: bytearray = field(default_factory=bytearray)
    answer_bytes: int = 0  # 0: its header has not come whole
    status: int = 0

    def begin(self) -> None:
        """What a protocol asks for before the first request; the socket still blocks."""

    def take(self, data: bytes) -> bytes | None:
        """The body of the answer once it is whole."""
        received = self.received
        received += data
        if not self.answer_bytes:
            end = received.find(HEAD_END)
            if end < 0:
                return None
            self.status = int(received[9:12])
            head = bytes(received[:end]).lower()
            if CHUNKED in head:  # one answer at a time: it ends where nothing follows its end
                if not received.endswith(CHUNKS_END):
                    return None
                body = bytes(received[end + len(HEAD_END) :])
                received.clear()
                return body
            at = head.find(b"content-length:")
            size = 0 if at < 0 else int(head[at + 15 :].split(b"\r", 1)[0])
            self.answer_bytes = end + len(HEAD_END) + size
        if len(received) < self.answer_bytes:
            return None
        body = bytes(received[received.find(HEAD_END) + len(HEAD_END) : self.answer_bytes])
        del received[: self.answer_bytes]
        self.answer_bytes = 0
        return body


@dataclass
class Sample:
    accepted_s: list[float] = field(default_factory=list)
    service_s: list[float] = field(default_factory=list)
    refused_s: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)
    accepted_all: int = 0
    sent: int = 0
    late: int = 0
    cut: int = 0
    bodies: list[bytes] = field(default_factory=list)


class Generator:
    def __init__(self, load: Load, kind: type[Line] = Line) -> None:
        self.load = load
        self.kind = kind
        self.sample = Sample()
        self.epoll = select.epoll()
        self.lines: dict[int, Line] = {}
        self.free: deque[Line] = deque()
        self.next_request = 0
        ports = load.ports or [load.port]
        for number in range(load.connections):
            self._connect(ports[number % len(ports)])

    def _connect(self, port: int) -> None:
        sock = socket.create_connection((self.load.host, port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line = self.kind(sock, port, self.load.requests, self.load.replies)
        line.begin()
        sock.setblocking(False)
        self.lines[sock.fileno()] = line
        self.epoll.register(sock, select.EPOLLIN)
        self.free.append(line)

    def run(self) -> Result:
        load, sample = self.load, self.sample
        begun_s = time.perf_counter()
        self.counts_from_s = begun_s + load.warm_up_s
        ends_s = self.counts_from_s + load.seconds
        cpu_s = time.process_time()
        if load.rate is None:
            self._closed(ends_s)
        else:
            self._open(begun_s, ends_s, load.rate)
        lasted_s = time.perf_counter() - self.counts_from_s
        stops_s = time.perf_counter() + DRAIN_S
        while len(self.free) < len(self.lines) and time.perf_counter() < stops_s:
            self._poll(0.05)
        unanswered = len(self.lines) - len(self.free)
        cpu_s = time.process_time() - cpu_s
        return Result(
            seconds=lasted_s,
            sent=sample.sent,
            late=sample.late,
            cut=sample.cut,
            statuses=sample.statuses,
            accepted_all=sample.accepted_all,
            unanswered=unanswered,
            latency_ms=percentiles_ms(sample.accepted_s),
            service_ms=percentiles_ms(sample.service_s),
            refused_ms=percentiles_ms(sample.refused_s),
            cpu_s=cpu_s,
            bodies=sample.bodies,
        )

    # --- when -----------------------------------------------------------------------------------
    def _closed(self, ends_s: float) -> None:
        while (now_s := time.perf_counter()) < ends_s:
            if self._is_used_up:
                return
            while self.free and not self._is_used_up:
                self._send(self.free.popleft(), now_s)
            self._poll(0.1)

    @property
    def _is_used_up(self) -> bool:
        return self.load.once and self.next_request >= len(self.load.requests)

    def _open(self, begun_s: float, ends_s: float, rate: float) -> None:
        step_s, number = 1.0 / rate, 0
        had_free = True
        while (now_s := time.perf_counter()) < ends_s:
            due_s = begun_s + number * step_s
            while due_s <= now_s and self.free:
                self.sample.late += had_free and now_s - due_s > LATE_S
                self._send(self.free.popleft(), due_s)
                number += 1
                due_s = begun_s + number * step_s
                now_s = time.perf_counter()
            had_free = bool(self.free)
            self._poll(max(due_s - now_s, 0.0) if had_free else 0.1)

    def _poll(self, seconds: float) -> None:
        # epoll alone waits in whole milliseconds; select on the epoll waits in microseconds.
        if seconds > 0:
            select.select([self.epoll], (), (), seconds)
        for number, events in self.epoll.poll(0):
            line = self.lines.get(number)
            if line is None:
                continue
            if events & select.EPOLLOUT:
                self._flush(line)
            if events & ~select.EPOLLOUT:
                self._receive(line)

    # --- one request ----------------------------------------------------------------------------
    def _send(self, line: Line, meant_s: float) -> None:
        request = line.requests[self.next_request % len(line.requests)]
        self.next_request += 1
        line.meant_s, line.sent_s = meant_s, time.perf_counter()
        self.sample.sent += 1
        try:
            count = line.socket.send(request)
        except BlockingIOError:
            count = 0
        except OSError:
            self._lose(line)
            return
        if count < len(request):
            line.unsent = request[count:]
            self.epoll.modify(line.socket, select.EPOLLIN | select.EPOLLOUT)

    def _flush(self, line: Line) -> None:
        try:
            line.unsent = line.unsent[line.socket.send(line.unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self._lose(line)
            return
        if not line.unsent:
            self.epoll.modify(line.socket, select.EPOLLIN)

    def _receive(self, line: Line) -> None:
        try:
            data = line.socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose(line)
            return
        body = line.take(data)
        if body is not None:
            self._answered(line, body)

    def _answered(self, line: Line, body: bytes) -> None:
        now_s, sample = time.perf_counter(), self.sample
        is_accepted = line.status < 300
        sample.accepted_all += is_accepted
        if line.sent_s >= self.counts_from_s:
            sample.statuses[line.status] = sample.statuses.get(line.status, 0) + 1
            if is_accepted:
                sample.accepted_s.append(now_s - line.meant_s)
                sample.service_s.append(now_s - line.sent_s)
            else:
                sample.refused_s.append(now_s - line.sent_s)
        if len(sample.bodies) < self.load.keep_bodies:
            sample.bodies.append(body)
        if line.unsent:  # answered before the request was out: the server will close
            return
        self.free.append(line)

    def _lose(self, line: Line) -> None:
        """The server closed it: counted, and another takes its place."""
        self.sample.cut += 1
        self.epoll.unregister(line.socket)
        del self.lines[line.socket.fileno()]
        line.socket.close()
        if line in self.free:
            self.free.remove(line)
        self._connect(line.port)


def main() -> int:
    from bench.stream_load import KINDS
    from bench.wires import WIRES

    load = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Load)
    kind = KINDS.get(load.stream)
    result = kind(load).run() if kind else Generator(load, WIRES[load.wire]).run()
    sys.stdout.buffer.write(msgspec.msgpack.encode(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
