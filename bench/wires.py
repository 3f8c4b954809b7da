"""The protocols of others for the generator: how a connection begins, and where an answer ends."""

import os
from dataclasses import dataclass

from bench.load import READ_BYTES, Line

LINE_END = b"\r\n"
CREATED, FAILED = 201, 500
NATS_INBOX = b"_INBOX.0000000000000000"  # in requests: each connection puts its own there
NATS_HELLO = b'CONNECT {"verbose":false,"pedantic":false,"headers":false}\r\nSUB %b 1\r\nPING\r\n'


class Closed(Exception):
    """Before a connection had begun."""


@dataclass(eq=False)
class RedisLine(Line):
    """RESP: each request has so many replies, the last of them from WAIT."""

    at: int = 0  # in what was received: the reply that is read
    count: int = 0
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
            if mark == b"-" or (mark == b"$" and int(text) < 0):
                self.status = FAILED
            self.at, self.count = next_at, self.count + 1
        return self._whole()

    def _whole(self) -> bytes:
        self.status = self.status if self.status == FAILED else CREATED
        if self.replies > 1 and self.last < 2:
            self.status = FAILED  # too few copies, as WAIT says
        body = bytes(self.received[: self.at])
        del self.received[: self.at]
        self.at = self.count = 0
        return body

    def begin(self) -> None:
        self.status = 0


@dataclass(eq=False)
class NatsLine(Line):
    """JetStream: each message to the inbox of this connection acknowledges a publish."""

    at: int = 0
    count: int = 0

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
                if b'"error"' in body:
                    self.status = FAILED
            elif said == b"PING":
                self.socket.send(b"PONG\r\n")
            elif said.startswith(b"-ERR"):
                self.status, self.count = FAILED, self.replies
            self.at = next_at
        whole = bytes(received[: self.at])
        del received[: self.at]
        self.at = self.count = 0
        self.status = self.status or CREATED
        return whole


WIRES: dict[str, type[Line]] = {"": Line, "redis": RedisLine, "nats": NatsLine}
