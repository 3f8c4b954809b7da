"""The protocols of others for the generator: how a connection begins, and where an answer ends."""

import os
from dataclasses import dataclass

from bench.load import READ_BYTES, Line

LINE_END = b"\r\n"
CREATED, FAILED = 201, 500
COPIES = 2  # of the replicas, that WAIT has to count
NATS_INBOX = b"_INBOX.0000000000000000"  # in requests: each connection puts its own there
NATS_HELLO = b'CONNECT {"verbose":false,"pedantic":false,"headers":false}\r\nSUB %b 1\r\nPING\r\n'


class Closed(Exception):
    """Before a connection had begun."""


@dataclass(eq=False)
class CountedLine(Line):
    """So many replies are one answer."""

    at: int = 0  # in what was received: the reply that is read
    count: int = 0
    is_bad: bool = False  # one of them is a failure

    def ended(self) -> bytes:
        self.status = FAILED if self.is_bad else CREATED
        whole = bytes(self.received[: self.at])
        del self.received[: self.at]
        self.at, self.count, self.is_bad = 0, 0, False
        return whole


@dataclass(eq=False)
class RedisLine(CountedLine):
    """RESP: each request has so many replies, the last of them from WAIT."""

    last: int = 0

    def take(self, data: bytes) -> bytes | None:
        received = self.received
        received += data
        while self.count < self.replies:
            end = received.find(LINE_END, self.at)
            if end < 0:
                return None
            mark, text = received[self.at : self.at + 1], received[self.at + 1 : end]
            next_at = end + len(LINE_END)
            if mark == b"$" and int(text) >= 0:
                next_at += int(text) + len(LINE_END)
                if len(received) < next_at:
                    return None
            self.last = int(text) if mark == b":" else 0
            self.is_bad |= mark == b"-" or (mark == b"$" and int(text) < 0)
            self.at, self.count = next_at, self.count + 1
        return self._whole()

    def _whole(self) -> bytes:
        self.is_bad |= self.replies > 1 and self.last < COPIES  # as WAIT says
        return self.ended()


@dataclass(eq=False)
class NatsLine(CountedLine):
    """JetStream: each message to the inbox of this connection acknowledges a publish."""

    def begin(self) -> None:
        inbox = b"_INBOX." + os.urandom(8).hex().encode()
        self.requests = [request.replace(NATS_INBOX, inbox) for request in self.requests]
        self.socket.sendall(NATS_HELLO % inbox)
        told = b""
        while b"PONG" + LINE_END not in told:
            more = self.socket.recv(READ_BYTES)
            if not more:
                raise Closed(told.decode())
            told += more

    def take(self, data: bytes) -> bytes | None:
        received = self.received
        received += data
        while self.count < self.replies:
            end = received.find(LINE_END, self.at)
            if end < 0:
                return None
            said = received[self.at : end]
            next_at = end + len(LINE_END)
            if said.startswith(b"MSG "):
                size = int(said.rpartition(b" ")[2])
                body = received[next_at : next_at + size]
                next_at += size + len(LINE_END)
                if len(received) < next_at:
                    return None
                self.count += 1
                self.is_bad |= b'"error"' in body
            elif said == b"PING":
                self.socket.send(b"PONG\r\n")
            elif said.startswith(b"-ERR"):
                self.is_bad, self.count = True, self.replies
            self.at = next_at
        return self.ended()


WIRES: dict[str, type[Line]] = {"": Line, "redis": RedisLine, "nats": NatsLine}
