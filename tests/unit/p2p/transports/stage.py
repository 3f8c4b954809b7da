"""Nodes, proxies and strangers for the tests of the transport over ZeroMQ."""

import asyncio
import os
import socket
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import uvloop
import zmq

from quipu.p2p.inputs import LinkClosed, LinkOpened
from quipu.p2p.link_keys import link_key_of, link_secret_of
from quipu.p2p.transports.zmq_transport import ZmqTransport
from quipu.p2p.words import Endpoint
from tests.listening import LOOPBACK, WAIT_S, Listener, key_of
from tests.tcp_proxy import TcpProxy


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


async def assert_serves(stage: Stage, node: Listener, name: str = "n1") -> None:
    """Somebody honest gets through."""
    honest = stage.node(name)
    honest.dial(node)
    honest.send(node, name.encode())
    await node.until_heard(name.encode())
    await honest.stop()


def descriptors_now() -> int:
    on_stage(lambda _stage: asyncio.sleep(0))  # what uvloop opens once and keeps
    return open_descriptors()


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def threads_of_libzmq() -> list[str]:
    names = []
    for comm in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # it has just ended
            names.append(comm.read_text())
    return [name for name in names if name.startswith("ZMQ")]


def assert_left_nothing(descriptors_before: int) -> None:
    """A thread that was joined may still be listed for a moment."""
    deadline = time.monotonic() + 2
    while threads_of_libzmq() and time.monotonic() < deadline:
        os.sched_yield()
    assert threads_of_libzmq() == []
    assert open_descriptors() == descriptors_before
