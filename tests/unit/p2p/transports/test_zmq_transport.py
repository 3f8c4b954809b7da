"""What only the transport over ZeroMQ has to stand: dialling what is no node, and strangers."""

import asyncio
import errno
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
import uvloop
import zmq

from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.inputs import LinkClosed, LinkOpened
from quipu.p2p.link_keys import link_key_of, link_secret_of
from quipu.p2p.transports.arrivals import Fault
from quipu.p2p.transports.refusals import (
    AddressNotLocal,
    AddressUnusable,
    PortPrivileged,
    cannot_listen,
)
from quipu.p2p.transports.zap import answer
from quipu.p2p.transports.zmq_transport import ZmqTransport
from quipu.p2p.words import Endpoint
from tests.listening import HEAD, LOOPBACK, WAIT_S, Listener, key_of
from tests.tcp_proxy import TcpProxy

NO_POINT = NodeId(b"\x02" + bytes(31))


class Stage:
    """Opens nodes, proxies and hostile sockets; closes all of them in the end."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        stack.callback(self._context.term)

    def node(self, name: str, listen: Endpoint = LOOPBACK) -> Listener:
        node = Listener(name, listen)
        self._stack.push_async_callback(node.stop)
        return node

    async def proxy(self, node: Listener) -> tuple[TcpProxy, Endpoint]:
        proxy = TcpProxy(node.transport.bound)
        endpoint = await proxy.start()
        self._stack.push_async_callback(proxy.stop)
        return proxy, endpoint

    def stranger(self, kind: int = zmq.DEALER, name: str = "liar") -> zmq.Socket[bytes]:
        """A socket of plain pyzmq, with a key."""
        stranger = self._context.socket(kind)
        self._stack.callback(stranger.close, linger=0)
        key = key_of(name)
        public = link_key_of(key.node_id)
        assert public is not None
        stranger.curve_publickey, stranger.curve_secretkey = public, link_secret_of(key)
        return stranger

    def dealer(self, to: Listener, at: Endpoint | None = None) -> zmq.Socket[bytes]:
        dealer = self.stranger()
        server = link_key_of(to.key.node_id)
        assert server is not None
        dealer.curve_serverkey = server
        dealer.connect(f"tcp://{at or to.transport.bound}")
        return dealer

    def raw(self, to: Listener) -> socket.socket:
        raw = socket.create_connection(to.transport.bound)
        self._stack.callback(raw.close)
        raw.setblocking(False)
        return raw


Case = Callable[[Stage], Coroutine[None, None, None]]


def on_stage(case: Case) -> None:
    async def run() -> None:
        async with AsyncExitStack() as stack:
            await case(Stage(stack))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


def zmq_of(node: Listener) -> ZmqTransport:
    assert isinstance(node.transport, ZmqTransport)
    return node.transport


async def until(is_so: Callable[[], bool]) -> None:
    """For what nobody tells."""
    async with asyncio.timeout(WAIT_S):
        while not is_so():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.005)


async def end_of(raw: socket.socket) -> None:
    """Until the other end has closed it."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(WAIT_S):
        with suppress(ConnectionError):
            while await loop.sock_recv(raw, 4096):
                pass


async def why_closed(node: Listener) -> str:
    await node.until(lambda: node.all_of(LinkClosed) != [])
    [closed] = node.all_of(LinkClosed)
    assert node.all_of(LinkOpened) == []
    return closed.why


# --- dialling -----------------------------------------------------------------------------------
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
        n1.transport.open(n2.key.node_id, Endpoint("localhost", n2.transport.bound.port))
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


# --- strangers ----------------------------------------------------------------------------------
async def assert_serves(stage: Stage, node: Listener, name: str = "n1") -> None:
    """Somebody honest gets through."""
    honest = stage.node(name)
    honest.dial(node)
    honest.send(node, name.encode())
    await node.until_heard(name.encode())
    await honest.stop()


def test_garbage_disturbs_nobody() -> None:
    async def case(stage: Stage) -> None:
        n2 = stage.node("n2")
        for said in (
            os.urandom(10_000),
            b"GET / HTTP/1.1\r\n\r\n",
            b"\xff" + bytes(63),
            b"\xff" * 99,
        ):
            raw = stage.raw(n2)
            raw.send(said)
            await assert_serves(stage, n2)
            raw.close()
        await until(lambda: zmq_of(n2).connections == 0)
        assert {f.content for f in n2.frames} == {b"n1"}

    on_stage(case)


def test_a_thousand_half_open_connections_disturb_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HANDSHAKE_TIMEOUT_MS", 2_000)

    async def case(stage: Stage) -> None:
        n2 = stage.node("n2")
        transport = zmq_of(n2)
        half_open = []
        for _ in range(1_000):
            half_open.append(stage.raw(n2))
            await asyncio.sleep(0)
        await assert_serves(stage, n2)
        await until(lambda: transport.faults[Fault.CROWD] >= 1_000 - limits.INBOUND_CONNECTIONS_MAX)
        assert transport.connections <= limits.INBOUND_CONNECTIONS_MAX
        for raw in half_open:
            await end_of(raw)
        await until(lambda: transport.connections == 0)

    on_stage(case)


def test_who_speaks_keeps_its_place_in_a_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "INBOUND_CONNECTIONS_MAX", 2)

    async def case(stage: Stage) -> None:
        n1, n2, n3 = stage.node("n1"), stage.node("n2"), stage.node("n3")
        for sender in (n1, n2):
            sender.dial(n3)
            sender.send(n3, b"here")
        await n3.until(lambda: len(n3.frames) == 2)
        await end_of(stage.raw(n3))
        n1.send(n3, b"still")
        await n3.until_heard(b"still")
        assert zmq_of(n3).faults == {Fault.CROWD: 1}

    on_stage(case)


@pytest.mark.parametrize("mechanism", ["NULL", "PLAIN"])
def test_nobody_comes_in_without_curve(mechanism: str) -> None:
    async def case(stage: Stage) -> None:
        n2 = stage.node("n2")
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        liar = context.socket(zmq.DEALER)
        if mechanism == "PLAIN":
            liar.plain_username, liar.plain_password = b"user", b"word"
        monitor = liar.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        liar.connect(f"tcp://{n2.transport.bound}")
        liar.send_multipart([HEAD, b"unproved"])
        await until(lambda: monitor.poll(0) != 0)
        liar.disable_monitor()
        monitor.close()
        context.destroy(linger=0)
        await assert_serves(stage, n2)
        assert n2.contents == [b"n1"]

    on_stage(case)


@pytest.mark.parametrize("parts", [1, 3, 1_000])
def test_a_message_of_other_than_two_parts_is_counted(parts: int) -> None:
    async def case(stage: Stage) -> None:
        n2 = stage.node("n2")
        dealer = stage.dealer(n2)
        for frame in ([HEAD, b"1"], [HEAD] * parts, [HEAD, b"2"]):
            dealer.send_multipart(frame)
        await n2.until_heard(b"2")
        assert n2.contents == [b"1", b"2"]
        assert len({f.link for f in n2.frames}) == 1
        assert zmq_of(n2).faults == {Fault.PARTS: 1}

    on_stage(case)


def test_a_head_larger_than_any_header_is_counted() -> None:
    async def case(stage: Stage) -> None:
        n2 = stage.node("n2")
        dealer = stage.dealer(n2)
        dealer.send_multipart([bytes(limits.HEAD_BYTES_MAX + 1), b"1"])
        dealer.send_multipart([bytes(limits.HEAD_BYTES_MAX), b"2"])
        await n2.until_heard(b"2")
        assert n2.contents == [b"2"]
        assert zmq_of(n2).faults == {Fault.HEAD_BYTES: 1}

    on_stage(case)


def test_a_part_larger_than_any_content_ends_the_connection() -> None:
    async def case(stage: Stage) -> None:
        n2 = stage.node("n2")
        dealer = stage.dealer(n2)
        dealer.reconnect_ivl = -1
        dealer.send_multipart([HEAD, b"1"])
        await n2.until_heard(b"1")
        assert zmq_of(n2).connections == 1
        dealer.send_multipart([HEAD, bytes(limits.CONTENT_BYTES_MAX + 100)])
        await until(lambda: zmq_of(n2).connections == 0)
        assert n2.contents == [b"1"]

    on_stage(case)


@pytest.mark.parametrize("limit", ["UNFINISHED_BYTES_MAX", "UNFINISHED_ALL_BYTES_MAX"])
def test_a_message_without_end_is_cut(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(limits, limit, 2 * limits.MIB)

    async def case(stage: Stage) -> None:
        n1, n2 = stage.node("n1"), stage.node("n2")
        n1.dial(n2)
        proxy, endpoint = await stage.proxy(n2)
        proxy.bytes_max = 4 * limits.MIB
        dealer = stage.dealer(n2, endpoint)
        dealer.send_multipart([HEAD, b"1"])
        await n2.until_heard(b"1")
        dealer.send_multipart([bytes(100_000)] * 100)
        await until(lambda: zmq_of(n2).faults == {Fault.ENDLESS: 1})
        n1.send(n2, b"still")
        await n2.until_heard(b"still")
        assert n2.contents == [b"1", b"still"]

    on_stage(case)


def test_a_recorded_session_cannot_be_replayed() -> None:
    async def case(stage: Stage) -> None:
        n1, n2 = stage.node("n1"), stage.node("n2")
        proxy, endpoint = await stage.proxy(n2)
        n1.transport.open(n2.key.node_id, endpoint)
        n1.send(n2, b"pay once")
        await n2.until_heard(b"pay once")
        await n1.stop()
        raw = stage.raw(n2)
        raw.sendall(bytes(proxy.recorded))
        await end_of(raw)
        await assert_serves(stage, n2, "n3")
        assert n2.contents == [b"pay once", b"n3"]

    on_stage(case)


def test_a_name_that_a_peer_gave_itself_does_not_name_its_link() -> None:
    async def case(stage: Stage) -> None:
        n2 = stage.node("n2")
        for content in (b"1", b"2"):
            dealer = stage.stranger()
            dealer.routing_id = b"n1"
            server = link_key_of(n2.key.node_id)
            assert server is not None
            dealer.curve_serverkey = server
            dealer.connect(f"tcp://{n2.transport.bound}")
            dealer.send_multipart([HEAD, content])
            await n2.until_heard(content)
            dealer.close(linger=0)
            await until(lambda: zmq_of(n2).connections == 0)
        assert len({f.link for f in n2.frames}) == 2
        assert {f.key for f in n2.frames} == {link_key_of(key_of("liar").node_id)}

    on_stage(case)


# --- beginning and end --------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("listen", "refusal"),
    [
        (Endpoint("192.0.2.1", 0), AddressNotLocal),
        (Endpoint("no-such-interface", 0), AddressUnusable),
        (Endpoint("127.0.0.1", 99_999), AddressUnusable),
    ],
)
def test_where_nobody_can_listen(listen: Endpoint, refusal: type[Exception]) -> None:
    async def case(stage: Stage) -> None:
        with pytest.raises(refusal, match=listen.host):
            stage.node("n1", listen)

    before = traces()
    on_stage(case)
    assert traces() == before


def test_a_privileged_port_says_what_to_do() -> None:
    refusal = cannot_listen(Endpoint("127.0.0.1", 80), errno.EACCES, "Permission denied")
    assert isinstance(refusal, PortPrivileged)
    assert "1024" in refusal.next_step


def traces() -> tuple[int, int]:
    """Descriptors and threads of this process."""
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def test_stop_leaves_nothing_and_takes_no_longer_than_the_linger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "SEND_HWM_FRAMES", 2)
    monkeypatch.setattr(limits, "RECEIVE_HWM_FRAMES", 2)

    async def case(stage: Stage) -> None:
        n1, n2 = stage.node("n1"), stage.node("n2")
        n1.dial(n2)
        await n1.until(lambda: n1.heard == [LinkOpened(n2.key.node_id)])
        stage.raw(n1).send(b"\xff")
        n2.transport.pause()
        for _ in range(14):
            n1.send(n2, bytes(limits.CONTENT_BYTES_MAX))  # far more than buffers take
        start = time.monotonic()
        await n1.stop()
        took_s = time.monotonic() - start
        assert 0.5 < took_s < limits.LINGER_MS / 1000 + 0.5

    on_stage(lambda _stage: asyncio.sleep(0))  # what uvloop keeps for ever
    before = traces()
    on_stage(case)
    assert traces() == before
    assert threading.active_count() == 1


# --- who may connect ----------------------------------------------------------------------------
REQUEST = [b"1.0", b"7", b"quipu", b"127.0.0.1", b""]


def test_a_key_is_let_in_and_noted() -> None:
    key = bytes(range(32))
    assert answer([*REQUEST, b"CURVE", key]) == [
        b"1.0",
        b"7",
        b"200",
        b"OK",
        key.hex().encode(),
        b"",
    ]


@pytest.mark.parametrize(
    "asked", [[b"NULL"], [b"PLAIN", b"user", b"word"], [b"CURVE"], [b"CURVE", b"short"]]
)
def test_without_a_key_nobody_is_let_in(asked: list[bytes]) -> None:
    reply = answer([*REQUEST, *asked])
    assert reply is not None
    assert reply[1:3] == [b"7", b"400"]


@pytest.mark.parametrize("request_parts", [[], REQUEST, [b"2.0", *REQUEST]])
def test_what_is_no_request_has_no_answer(request_parts: list[bytes]) -> None:
    assert answer(request_parts) is None
