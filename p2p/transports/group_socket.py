"""Datagrams of a multicast group on the local network: sent to all, read from anybody.

Whoever is on that network can send any number of them, so only so many are read in a second; the
others are dropped where they wait.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from quipu.p2p import limits
from quipu.p2p.words import Endpoint


class Reading(NamedTuple):
    """How much is read, and how much the system keeps until then."""

    second_max: int  # datagrams
    turn_max: int
    buffer_bytes: int


BEACONS = Reading(limits.BEACONS_SECOND_MAX, limits.BEACONS_SECOND_MAX, limits.BEACON_BUFFER_BYTES)
CASTS = Reading(limits.CASTS_SECOND_MAX, limits.CASTS_TURN_MAX, limits.CAST_BUFFER_BYTES)


class CannotMulticast(Exception):
    """No such group, or the system does not let this node into it."""


class GroupSocket:
    """On the event loop that it is made on. Raises `CannotMulticast`."""

    def __init__(
        self, group: Endpoint, interface: str, hear: Callable[[bytes], None], reading: Reading
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._group = group
        self._hear = hear
        self._reading = reading
        self._paused = False
        self.unsent = 0
        self._read = 0  # since the last pause
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            _enter(self._socket, group, interface, reading.buffer_bytes)
        except (OSError, ValueError) as error:
            self._socket.close()
            raise CannotMulticast(f"{group} by {interface}: {error}") from error
        self._timer = self._loop.call_later(1, self._on_second)
        self._loop.add_reader(self._socket, self._on_readable)

    def send(self, datagram: bytes) -> None:
        """Or not, where the network is not there now: the next one follows."""
        try:
            self._socket.sendto(datagram, self._group)
        except OSError:
            self.unsent += 1

    def pause(self) -> None:
        """What comes waits in the buffer of the system, and what finds no room there is lost."""
        self._paused = True
        self._listen(False)

    def resume(self) -> None:
        self._paused = False
        self._listen(True)

    def close(self) -> None:
        self._timer.cancel()
        self._listen(False)
        self._socket.close()

    # ---------------------------------------------------------------------------------------------
    def _listen(self, is_on: bool) -> None:
        """A closed one stays closed: what was held back may be taken after the end."""
        if self._socket.fileno() < 0:
            return
        if is_on:
            self._loop.add_reader(self._socket, self._on_readable)
        else:
            self._loop.remove_reader(self._socket)

    def _on_readable(self) -> None:
        left = min(self._reading.second_max - self._read, self._reading.turn_max)
        with suppress(OSError):  # nothing left, or an error of an earlier send
            for _ in range(left):
                self._read += 1
                self._hear(self._socket.recv(limits.DATAGRAM_BYTES_MAX + 1))
                if self._paused:
                    return
        if self._read >= self._reading.second_max:
            self._listen(False)

    def _on_second(self) -> None:
        self._timer = self._loop.call_later(1, self._on_second)
        if self._read >= self._reading.second_max and not self._paused:
            self._listen(True)
        self._read = 0


def _enter(made: socket.socket, group: Endpoint, interface: str, buffer_bytes: int) -> None:
    if not ipaddress.IPv4Address(group.host).is_multicast:
        raise ValueError("no IPv4 multicast group")
    own = socket.inet_aton(interface)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # several nodes of one machine
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)  # never past a router
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, own)
    made.bind((group.host, group.port))
    member = socket.inet_aton(group.host) + own
    made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
