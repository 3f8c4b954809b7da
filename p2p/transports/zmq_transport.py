"""The transport over ZeroMQ: one ROUTER bound, one DEALER to each peer, CURVE on every link.

All of it runs on the event loop that it was made on, without a task or a thread of its own;
libzmq has one thread for the network. Nothing is told from within `open`, `send` or `close`.
"""

import asyncio
import socket
import threading
from collections import Counter

import zmq

from quipu.ledger.signing import KeyPair
from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.inputs import FrameDropped
from quipu.p2p.link_keys import link_key_of
from quipu.p2p.transport import Hear
from quipu.p2p.transports.inbound import Inbound
from quipu.p2p.transports.options import Curve, is_address
from quipu.p2p.transports.outbound import Outbound
from quipu.p2p.transports.zap import Doorkeeper
from quipu.p2p.words import Endpoint, LinkId, LinkKey


class ZmqTransport:
    """Listens from the beginning, within a running loop. Raises `CannotListen`."""

    def __init__(self, key: KeyPair, listen: Endpoint, hear: Hear) -> None:
        self._loop = asyncio.get_running_loop()
        self._own = Curve.of(key)
        self._hear = hear
        self._links: dict[NodeId, Outbound] = {}
        self._leaving: set[Outbound] = set()  # closed, and still delivering
        self._all_left: asyncio.Future[None] | None = None
        self._lookups: set[asyncio.Task[None]] = set()
        self._lookups_of: Counter[str] = Counter()
        self._known: dict[LinkKey, None] = {}  # whom it dialled, the latest last
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context(io_threads=1)
        self._doorkeeper = Doorkeeper(self._context)
        try:
            self._inbound = Inbound(
                self._context, self._own, listen, hear, self._known.__contains__
            )
        except BaseException:
            self._doorkeeper.close()
            self._context.destroy(linger=0)
            raise
        self._watch = self._loop.call_later(limits.WATCH_INTERVAL_MS / 1000, self._on_watch)

    @property
    def bound(self) -> Endpoint:
        return self._inbound.bound

    @property
    def connections(self) -> int:
        """Inbound, with those that are still in their handshake."""
        return self._inbound.connections

    @property
    def faults(self) -> Counter[str]:
        return Counter({str(fault): count for fault, count in self._inbound.faults.items()})

    # --- outbound -------------------------------------------------------------------------------
    def open(self, peer: NodeId, endpoint: Endpoint) -> None:
        self.close(peer)
        link = Outbound(self._context, peer, self._hear, self._on_ended)
        self._links[peer] = link
        server = link_key_of(peer)
        if server is None:
            self._loop.call_soon(link.end, "that node id is no key")
            return
        self._know(server)
        if is_address(endpoint.host):
            self._dial(link, server, endpoint)
        else:
            lookup = self._loop.create_task(self._look_up(link, server, endpoint))
            self._lookups.add(lookup)
            lookup.add_done_callback(self._lookups.discard)

    def send(self, peer: NodeId, head: bytes, content: bytes) -> None:
        link = self._links.get(peer)
        is_too_large = len(head) > limits.HEAD_BYTES_MAX or len(content) > limits.CONTENT_BYTES_MAX
        if link is None or is_too_large:
            self._loop.call_soon(self._hear, FrameDropped(peer, len(head) + len(content)))
        else:
            link.send(head, content)

    def close(self, peer: NodeId) -> None:
        link = self._links.pop(peer, None)
        if link is not None:
            self._leaving.add(link)
            link.close()

    # --- inbound --------------------------------------------------------------------------------
    def shut(self, link: LinkId) -> None:
        self._inbound.shut(link)

    def pause(self) -> None:
        self._inbound.pause()

    def resume(self) -> None:
        self._inbound.resume()

    async def stop(self) -> None:
        """Within the linger. Nothing is told any more once it is called."""
        self._watch.cancel()
        self._inbound.close()
        for peer in tuple(self._links):
            self.close(peer)
        for lookup in self._lookups:
            lookup.cancel()
        if self._leaving:
            self._all_left = self._loop.create_future()
            await self._all_left
        self._doorkeeper.close()
        await self._end_context()

    # ---------------------------------------------------------------------------------------------
    def _dial(self, link: Outbound, server: LinkKey, endpoint: Endpoint) -> None:
        try:
            link.dial(self._own, server, endpoint)
        except zmq.ZMQError as error:
            self._loop.call_soon(link.end, f"cannot dial {endpoint}: {error}")

    async def _look_up(self, link: Outbound, server: LinkKey, endpoint: Endpoint) -> None:
        """libzmq would look it up in its one thread, where all links would wait for it."""
        try:
            async with asyncio.timeout(limits.RESOLVE_TIMEOUT_MS / 1000):
                found = await self._loop.getaddrinfo(
                    endpoint.host, endpoint.port, type=socket.SOCK_STREAM
                )
        except TimeoutError:
            link.end(f"no address for {endpoint.host} within {limits.RESOLVE_TIMEOUT_MS} ms")
        except (OSError, UnicodeError) as error:
            link.end(f"cannot find {endpoint.host}: {error}")
        else:
            # One address a dial: who redials comes to the others as well.
            address = found[self._lookups_of[endpoint.host] % len(found)][4]
            self._lookups_of[endpoint.host] += 1
            self._dial(link, server, Endpoint(str(address[0]), endpoint.port))

    def _know(self, key: LinkKey) -> None:
        self._known.pop(key, None)
        self._known[key] = None
        if len(self._known) > limits.KNOWN_KEYS_MAX:
            del self._known[next(iter(self._known))]

    def _on_watch(self) -> None:
        self._watch = self._loop.call_later(limits.WATCH_INTERVAL_MS / 1000, self._on_watch)
        self._inbound.watch()
        for link in tuple(self._links.values()):
            link.watch()

    def _on_ended(self, link: Outbound) -> None:
        self._leaving.discard(link)
        if self._links.get(link.peer) is link:
            del self._links[link.peer]
        if self._all_left is not None and not self._leaving and not self._all_left.done():
            self._all_left.set_result(None)

    async def _end_context(self) -> None:
        """libzmq waits here until all is delivered or lingered for long enough, so it gets a
        thread for it."""
        ended = self._loop.create_future()

        def wait() -> None:
            self._context.term()
            self._loop.call_soon_threadsafe(ended.set_result, None)

        thread = threading.Thread(target=wait, name="zmq-end")
        thread.start()
        await ended
        thread.join()
