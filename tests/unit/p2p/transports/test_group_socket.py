"""Datagrams of a group on the loopback interface: who hears them, and how many."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from quipu.p2p import limits
from quipu.p2p.transports.group_socket import BEACONS, CannotMulticast, GroupSocket
from quipu.p2p.words import Endpoint

GROUP = "239.77.13.1"
LOOPBACK = "127.0.0.1"


def free_group() -> Endpoint:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((GROUP, 0))
        return Endpoint(GROUP, int(probe.getsockname()[1]))


class Ear:
    def __init__(self, group: Endpoint) -> None:
        self.heard: list[bytes] = []
        self._news = asyncio.Event()
        self.socket = GroupSocket(group, LOOPBACK, self._hear, BEACONS)

    def _hear(self, datagram: bytes) -> None:
        self.heard.append(datagram)
        self._news.set()

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not is_so():
                await self._news.wait()
                self._news.clear()


def run(case: Callable[[Ear, Ear, Endpoint], Awaitable[None]]) -> None:
    async def all_of_it() -> None:
        group = free_group()
        ears = [Ear(group), Ear(group)]
        try:
            await case(ears[0], ears[1], group)
        finally:
            for ear in ears:
                ear.socket.close()

    asyncio.run(all_of_it())


def test_all_of_the_group_hear_it_the_sender_too() -> None:
    async def case(one: Ear, other: Ear, _: Endpoint) -> None:
        one.socket.send(b"here")
        await one.until(lambda: one.heard == [b"here"])
        await other.until(lambda: other.heard == [b"here"])

    run(case)


def test_a_flood_is_read_so_fast_and_no_faster() -> None:
    async def case(one: Ear, _: Ear, group: Endpoint) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flood:
            flood.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(LOOPBACK))
            begun = asyncio.get_running_loop().time()
            while len(one.heard) <= limits.BEACONS_SECOND_MAX:
                flood.sendto(b"flood", group)
                await asyncio.sleep(0)
            took_s = asyncio.get_running_loop().time() - begun
        assert took_s > 0.3  # it ends in the second after the one it began in
        assert len(one.heard) <= 2 * limits.BEACONS_SECOND_MAX

    run(case)


def test_a_datagram_that_is_too_long_is_seen_to_be_so() -> None:
    async def case(one: Ear, _: Ear, __: Endpoint) -> None:
        one.socket.send(bytes(5_000))
        await one.until(lambda: len(one.heard) == 1)
        assert len(one.heard[0]) == limits.DATAGRAM_BYTES_MAX + 1

    run(case)


def test_while_it_is_paused_nothing_is_read_and_nothing_is_lost() -> None:
    async def case(one: Ear, other: Ear, _: Endpoint) -> None:
        other.socket.pause()
        one.socket.send(b"while it reads nothing")
        await one.until(lambda: len(one.heard) == 1)
        assert other.heard == []
        other.socket.resume()
        await other.until(lambda: other.heard == [b"while it reads nothing"])

    run(case)


def test_what_is_closed_stays_closed() -> None:
    async def case(one: Ear, other: Ear, _: Endpoint) -> None:
        other.socket.close()
        other.socket.pause()
        other.socket.resume()
        other.socket.close()
        one.socket.send(b"after the end")
        await one.until(lambda: len(one.heard) == 1)
        assert other.heard == []
        other.socket.send(b"of nobody")
        assert other.socket.unsent == 1

    run(case)


def test_what_cannot_be_sent_is_counted() -> None:
    async def case(one: Ear, _: Ear, __: Endpoint) -> None:
        one.socket.send(bytes(70_000))
        assert one.socket.unsent == 1

    run(case)


@pytest.mark.parametrize(
    ("group", "interface"),
    [("10.0.0.1", LOOPBACK), ("ff02::1", LOOPBACK), (GROUP, "203.0.113.9"), (GROUP, "n1")],
)
def test_what_is_no_group_or_no_interface(group: str, interface: str) -> None:
    async def case() -> None:
        with pytest.raises(CannotMulticast):
            GroupSocket(Endpoint(group, 0), interface, lambda _: None, BEACONS)

    asyncio.run(case())
