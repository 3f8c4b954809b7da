"""Frames of a blocked peer vanish both ways, and come again when the file says so."""

import asyncio
from pathlib import Path

import uvloop

from quipu.devnet.processes import until
from quipu.ledger.signing import KeyPair
from quipu.p2p.inputs import LinkClosed, LinkOpened
from quipu.p2p.transport import Hear, Transport
from quipu.p2p.transports.screen import Screen
from quipu.p2p.transports.zmq_transport import ZmqTransport
from quipu.p2p.words import Endpoint
from tests.listening import WAIT_S, Listener


def write(file: Path, *blocked: Listener) -> None:
    beside = file.with_name("new")
    beside.write_text("\n".join(one.key.node_id.hex() for one in blocked))
    beside.replace(file)


def screened(file: Path, made: list[Screen]) -> Listener:
    def make(key: KeyPair, listen: Endpoint, hear: Hear) -> Transport:
        screen = Screen(file, hear)
        screen.over(ZmqTransport(key, listen, screen.hear))
        made.append(screen)
        return screen

    return Listener("n1", make=make)


async def until_blocked(screen: Screen, count: int) -> None:
    assert await asyncio.to_thread(until, lambda: len(screen.blocked) == count, WAIT_S)


def test_a_blocked_peer_is_neither_heard_nor_reached(tmp_path: Path) -> None:
    async def run() -> None:
        file, made = tmp_path / "blocked", list[Screen]()
        n1, n2, n3 = screened(file, made), Listener("n2"), Listener("n3")
        try:
            for here, there in ((n1, n2), (n2, n1), (n3, n1)):
                here.dial(there)
                await here.until(lambda h=here: h.all_of(LinkOpened))  # type: ignore[misc]
            write(file, n2)
            await until_blocked(made[0], 1)
            n1.send(n2, b"lost")
            n2.send(n1, b"lost too")
            n3.send(n1, b"of another")
            await n1.until_heard(b"of another")
            n1.dial(n2)
            await n1.until(lambda: bool(n1.all_of(LinkClosed)))
            assert n1.all_of(LinkClosed)[0].why == "blocked on purpose"

            write(file)
            await until_blocked(made[0], 0)
            n1.send(n2, b"here again")
            n2.send(n1, b"heard again")
            await n1.until_heard(b"heard again")
            await n2.until_heard(b"here again")
            assert b"lost too" not in n1.contents
            assert n2.contents == [b"here again"]
        finally:
            for one in (n1, n2, n3):
                await one.stop()

    uvloop.run(run())


def test_what_cannot_be_read_changes_nothing_and_no_file_blocks_nobody(tmp_path: Path) -> None:
    async def run() -> None:
        file, made = tmp_path / "blocked", list[Screen]()
        n1, n2 = screened(file, made), Listener("n2")
        try:
            assert made[0].blocked == frozenset()
            write(file, n2)
            await until_blocked(made[0], 1)
            beside = tmp_path / "new"
            beside.write_text("no node id")
            beside.replace(file)
            assert await asyncio.to_thread(until, lambda: made[0].unread > 0, WAIT_S)
            assert made[0].blocked == {n2.key.node_id}
            file.unlink()
            await until_blocked(made[0], 0)
        finally:
            await n1.stop()
            await n2.stop()

    uvloop.run(run())
