"""Datagrams of a multicast group on the local network: sent to all, read from anybody.

Whoever is on that network can send any number of them, so only so many are read in a second; the
others are dropped where they wait.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from contextlib import suppress

from quipu.p2p import limits
from quipu.p2p.words import Endpoint


class CannotBeacon(Exception):
    """No such group, or the system does not let this node into it."""


class BeaconSocket:
    """On the event loop that it is made on. Raises `CannotBeacon`."""

    def __init__(self, group: Endpoint, interface: str, hear: Callable[[bytes], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._group = group
        self._hear = hear
        self.unsent = 0
        self._read = 0  # since the last pause
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            _enter(self._socket, group, interface)
        except (OSError, ValueError) as error:
            self._socket.close()
            raise CannotBeacon(f"{group} by {interface}: {error}") from error
        self._timer = self._loop.call_later(1, self._on_second)
        self._loop.add_reader(self._socket, self._on_readable)

    def send(self, datagram: bytes) -> None:
        """Or not, where the network is not there now: the next one follows."""
        try:
            self._socket.sendto(datagram, self._group)
        except OSError:
            self.unsent += 1

    def close(self) -> None:
        self._timer.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()

    # ---------------------------------------------------------------------------------------------
    def _on_readable(self) -> None:
        with suppress(OSError):  # nothing left, or an error of an earlier send
            while self._read < limits.BEACONS_SECOND_MAX:
                self._read += 1
                self._hear(self._socket.recv(limits.DATAGRAM_BYTES_MAX + 1))
        if self._read >= limits.BEACONS_SECOND_MAX:
            self._loop.remove_reader(self._socket)

    def _on_second(self) -> None:
        self._timer = self._loop.call_later(1, self._on_second)
        if self._read >= limits.BEACONS_SECOND_MAX:
            self._loop.add_reader(self._socket, self._on_readable)
        self._read = 0


def _enter(made: socket.socket, group: Endpoint, interface: str) -> None:
    if not ipaddress.IPv4Address(group.host).is_multicast:
        raise ValueError("no IPv4 multicast group")
    own = socket.inet_aton(interface)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # several nodes of one machine
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, limits.BEACON_BUFFER_BYTES)
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)  # never past a router
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, own)
    made.bind((group.host, group.port))
    member = socket.inet_aton(group.host) + own
    made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
