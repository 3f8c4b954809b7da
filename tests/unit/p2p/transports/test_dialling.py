"""What a node is told of those whom it dials, nodes or not."""

import asyncio
import os
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import pytest
import zmq

from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.inputs import LinkClosed, LinkOpened
from quipu.p2p.words import Endpoint
from tests.listening import HEAD, LOOPBACK, key_of
from tests.unit.p2p.transports.stage import (
    Stage,
    assert_left_nothing,
    descriptors_now,
    on_stage,
    until,
    why_closed,
    zmq_of,
)

NO_POINT = NodeId(b"\x02" + bytes(31))


@asynccontextmanager
async def silent_server(answer: bytes | None = None) -> AsyncIterator[Endpoint]:
    """Accepts and says nothing, or one thing and ends."""
    released = asyncio.Event()

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if answer is None:
            await released.wait()
        else:
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield Endpoint("127.0.0.1", server.sockets[0].getsockname()[1])
    released.set()
    server.close()
    await server.wait_closed()


def test_a_peer_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HANDSHAKE_TIMEOUT_MS", 200)

    async def case(stage: Stage) -> None:
        n1 = stage.node("n1")
        async with silent_server() as endpoint:
            n1.transport.open(key_of("n2").node_id, endpoint)
            assert await why_closed(n1) == "no handshake within 200 ms"

    on_stage(case)


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(2_000)])
def test_what_is_no_node_is_no_peer(said: bytes) -> None:
    async def case(stage: Stage) -> None:
        n1 = stage.node("n1")
        async with silent_server(said) as endpoint:
            n1.transport.open(key_of("n2").node_id, endpoint)
            assert (await why_closed(n1)).startswith("ended within the handshake")

    on_stage(case)


def test_an_address_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONNECT_TIMEOUT_MS", 200)

    async def case(stage: Stage) -> None:
        n1 = stage.node("n1")
        with socket.create_server(LOOPBACK, backlog=0) as full:
            address = full.getsockname()[:2]
            with socket.create_connection(address):  # all that its queue takes
                n1.transport.open(key_of("n2").node_id, Endpoint(*address))
                assert await why_closed(n1) == "no connection within 200 ms"

    on_stage(case)


def test_names_are_looked_up() -> None:
    async def case(stage: Stage) -> None:
        n1, n2 = stage.node("n1"), stage.node("n2")
        while not n1.all_of(LinkOpened):  # localhost may have two addresses
            dials = len(n1.heard)
            n1.transport.open(n2.key.node_id, Endpoint("localhost", n2.transport.bound.port))
            await n1.until(lambda: len(n1.heard) > dials)  # noqa: B023
        n1.send(n2, b"by name")
        await n2.until_heard(b"by name")
        n3 = stage.node("n3")
        n3.transport.open(n2.key.node_id, Endpoint("two..dots", 1))
        assert (await why_closed(n3)).startswith("cannot find two..dots")

    on_stage(case)


def test_a_link_closed_within_its_lookup_is_never_dialled() -> None:
    async def case(stage: Stage) -> None:
        n1, n2 = stage.node("n1"), stage.node("n2")
        n1.transport.open(n2.key.node_id, Endpoint("localhost", n2.transport.bound.port))
        n1.transport.close(n2.key.node_id)
        await n1.stop()
        assert n1.heard == []
        assert zmq_of(n2).connections == 0

    on_stage(case)


def test_a_node_id_that_is_no_key_is_not_dialled() -> None:
    async def case(stage: Stage) -> None:
        n1 = stage.node("n1")
        n1.transport.open(NO_POINT, n1.transport.bound)
        assert await why_closed(n1) == "that node id is no key"

    on_stage(case)


def test_a_port_that_cannot_be_is_not_dialled() -> None:
    async def case(stage: Stage) -> None:
        n1 = stage.node("n1")
        n1.transport.open(key_of("n2").node_id, Endpoint("127.0.0.1", 99_999))
        assert (await why_closed(n1)).startswith("cannot dial 127.0.0.1:99999")

    on_stage(case)


@pytest.mark.parametrize("free", range(3))
def test_a_link_without_descriptors_is_closed_and_leaves_none(free: int) -> None:
    async def case(stage: Stage) -> None:
        n1, n2 = stage.node("n1"), stage.node("n2")
        with descriptors_but(free):
            n1.dial(n2)
            assert "Too many open files" in await why_closed(n1)
        n1.dial(n2)
        await n1.until(lambda: n1.all_of(LinkOpened) != [])

    before = descriptors_now()
    on_stage(case)
    assert_left_nothing(before)


@contextmanager
def descriptors_but(free: int) -> Iterator[None]:
    """All that this process may open are taken but so many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 100, hard))
    taken = []
    with suppress(OSError):
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    for _ in range(free):
        os.close(taken.pop())
    try:
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_ipv6() -> None:
    async def case(stage: Stage) -> None:
        n1, n2 = stage.node("n1"), stage.node("n2", Endpoint("::1", 0))
        n1.dial(n2)
        n1.send(n2, b"six")
        await n2.until_heard(b"six")

    on_stage(case)


def test_a_silent_network_ends_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LINK_HEARTBEAT_INTERVAL_MS", 50)
    monkeypatch.setattr(limits, "LINK_HEARTBEAT_TIMEOUT_MS", 200)

    async def case(stage: Stage) -> None:
        n1, n2 = stage.node("n1"), stage.node("n2")
        proxy, endpoint = await stage.proxy(n2)
        n1.transport.open(n2.key.node_id, endpoint)
        await n1.until(lambda: n1.all_of(LinkOpened) != [])
        proxy.swallow()
        await n1.until(lambda: n1.all_of(LinkClosed) != [])
        assert n1.all_of(LinkClosed) == [LinkClosed(n2.key.node_id, "the connection ended")]
        await until(lambda: zmq_of(n2).connections == 0)

    on_stage(case)


def test_a_peer_that_sends_the_wrong_way_is_left() -> None:
    async def case(stage: Stage) -> None:
        n1 = stage.node("n1")
        liar = stage.stranger(zmq.ROUTER)
        liar.curve_server = True
        port = liar.bind_to_random_port("tcp://127.0.0.1")
        peer = key_of("liar").node_id
        n1.transport.open(peer, Endpoint("127.0.0.1", port))
        n1.transport.send(peer, HEAD, b"")
        await until(lambda: liar.poll(0) == zmq.POLLIN)
        name = liar.recv_multipart()[0]
        for _ in range(100):
            liar.send_multipart([name, bytes(500)])
        await n1.until(lambda: n1.all_of(LinkClosed) != [])
        assert "where no peer sends" in n1.all_of(LinkClosed)[0].why

    on_stage(case)
