"""What every transport does, held against the one over ZeroMQ and its twin in memory."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest
import uvloop

from quipu.p2p import limits
from quipu.p2p.inputs import FrameDropped, FrameReceived, LinkClosed, LinkOpened
from quipu.p2p.link_keys import link_key_of
from quipu.p2p.transports.refusals import AddressTaken
from quipu.p2p.words import Endpoint, LinkId
from tests.listening import HEAD, LOOPBACK, Listener
from tests.memory_transport import Hub, MemoryTransport


class Network:
    """Nodes of one kind of transport."""

    def __init__(self, kind: str) -> None:
        self._hub = Hub() if kind == "memory" else None
        self._listeners: list[Listener] = []

    def node(self, name: str, listen: Endpoint = LOOPBACK) -> Listener:
        hub = self._hub
        if hub is None:
            listener = Listener(name, listen)
        else:
            listener = Listener(
                name, listen, lambda key, at, hear: MemoryTransport(hub, key.node_id, at, hear)
            )
        self._listeners.append(listener)
        return listener

    async def linked(self, *names: str) -> list[Listener]:
        """Nodes, the first with an open link to each of the others."""
        first, *others = nodes = [self.node(name) for name in names]
        for other in others:
            first.dial(other)
        await first.until(lambda: len(first.all_of(LinkOpened)) == len(others))
        return nodes

    async def stop(self) -> None:
        for listener in self._listeners:
            await listener.stop()


Case = Callable[[Network], Coroutine[None, None, None]]


@pytest.fixture(params=["memory", "zmq", "zmq on the loop of the standard library"])
def run(request: pytest.FixtureRequest) -> Callable[[Case], None]:
    kind: str = request.param
    factory = asyncio.new_event_loop if "standard" in kind else uvloop.new_event_loop

    def run_case(case: Case) -> None:
        async def in_network() -> None:
            network = Network(kind)
            try:
                await case(network)
            finally:
                await network.stop()

        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(in_network())

    return run_case


def test_frames_keep_their_order_and_name_their_sender(run: Callable[[Case], None]) -> None:
    async def case(network: Network) -> None:
        n1, n2 = await network.linked("n1", "n2")
        contents = [number.to_bytes(4) for number in range(2_000)]
        for content in contents:
            n1.send(n2, content)
        await n2.until(lambda: len(n2.frames) == len(contents))
        assert [f.content for f in n2.frames] == contents
        assert {f.head for f in n2.frames} == {HEAD}
        assert {f.key for f in n2.frames} == {link_key_of(n1.key.node_id)}
        assert len({f.link for f in n2.frames}) == 1

    run(case)


def test_what_is_sent_before_the_link_is_open_waits_for_it(run: Callable[[Case], None]) -> None:
    async def case(network: Network) -> None:
        n1, n2 = network.node("n1"), network.node("n2")
        n1.dial(n2)
        for content in (b"1", b"2", b"3"):
            n1.send(n2, content)
        await n2.until(lambda: len(n2.frames) == 3)
        assert [f.content for f in n2.frames] == [b"1", b"2", b"3"]
        await n1.until(lambda: n1.heard == [LinkOpened(n2.key.node_id)])

    run(case)


def test_links_of_two_senders_have_their_own_names_and_keys(run: Callable[[Case], None]) -> None:
    async def case(network: Network) -> None:
        n1, n2, n3 = (network.node(name) for name in ("n1", "n2", "n3"))
        for sender in (n1, n2):
            sender.dial(n3)
            sender.send(n3, sender.key.node_id)
        await n3.until(lambda: len(n3.frames) == 2)
        assert {f.content: f.key for f in n3.frames} == {
            n.key.node_id: link_key_of(n.key.node_id) for n in (n1, n2)
        }
        assert len({f.link for f in n3.frames}) == 2

    run(case)


def test_the_end_of_a_peer_is_told_once(run: Callable[[Case], None]) -> None:
    async def case(network: Network) -> None:
        n1, n2 = await network.linked("n1", "n2")
        await n2.stop()
        await n1.until(lambda: len(n1.all_of(LinkClosed)) > 0)
        n1.send(n2, b"to nobody")
        await n1.until(lambda: len(n1.all_of(FrameDropped)) > 0)
        assert n1.heard == [
            LinkOpened(n2.key.node_id),
            LinkClosed(n2.key.node_id, "the connection ended"),
            FrameDropped(n2.key.node_id, len(HEAD) + len(b"to nobody")),
        ]

    run(case)


def test_nobody_at_that_port_is_told_once(run: Callable[[Case], None]) -> None:
    async def case(network: Network) -> None:
        n1, n2 = network.node("n1"), network.node("n2")
        await n2.stop()
        n1.dial(n2)
        await n1.until(lambda: len(n1.heard) > 0)
        why = "no connection: refused, or no way to that address"
        assert n1.heard == [LinkClosed(n2.key.node_id, why)]

    run(case)


def test_another_node_at_that_address_is_not_the_peer(run: Callable[[Case], None]) -> None:
    async def case(network: Network) -> None:
        n1, n2, liar = (network.node(name) for name in ("n1", "n2", "liar"))
        n1.transport.open(n2.key.node_id, liar.transport.bound)
        n1.send(n2, b"for n2 alone")
        await n1.until(lambda: len(n1.heard) > 0)
        [closed] = n1.all_of(LinkClosed)
        assert closed.why.startswith("ended within the handshake")
        assert n1.all_of(LinkOpened) == []
        assert liar.frames == []

    run(case)


def test_a_node_that_comes_back_has_a_new_link(run: Callable[[Case], None]) -> None:
    async def case(network: Network) -> None:
        n1, n2 = await network.linked("n1", "n2")
        names: list[LinkId] = []
        for content in (b"first", b"second"):
            n1.send(n2, content)
            await n2.until_heard(content)
            names.append(n2.frames[-1].link)
            n1.dial(n2)
            await n1.until(lambda: len(n1.all_of(LinkOpened)) == len(names) + 1)
        assert len(set(names)) == 2
        assert n1.all_of(LinkClosed) == []  # a link that was replaced on request has no end to tell

    run(case)


def test_close_delivers_what_was_sent_before_and_tells_nothing(
    run: Callable[[Case], None],
) -> None:
    async def case(network: Network) -> None:
        n1, n2 = await network.linked("n1", "n2")
        contents = [bytes([number]) * 20_000 for number in range(100)]
        for content in contents:
            n1.send(n2, content)
        n1.transport.close(n2.key.node_id)
        await n2.until(lambda: len(n2.frames) == len(contents))
        assert n2.contents == contents
        assert n1.all_of(LinkClosed) == []

    run(case)


def test_a_reader_that_pauses_holds_the_sender_back(run: Callable[[Case], None]) -> None:
    async def case(network: Network) -> None:
        n1, n2 = await network.linked("n1", "n2")
        n2.transport.pause()
        content = bytes(limits.MIB)
        sent = 0
        while not n1.all_of(FrameDropped):
            n1.send(n2, content)
            sent += 1
            await asyncio.sleep(0)
        # The own queue, libzmq's at both ends, and the buffers of TCP between them.
        assert limits.QUEUE_BYTES_MAX / limits.MIB - 1 <= sent < 80
        assert n2.frames == []
        n2.transport.resume()
        taken = sent - len(n1.all_of(FrameDropped))
        await n2.until(lambda: len(n2.frames) == taken)
        assert n1.all_of(LinkClosed) == []

    run(case)


def test_the_largest_frame_passes_and_a_larger_one_is_dropped(run: Callable[[Case], None]) -> None:
    async def case(network: Network) -> None:
        n1, n2 = await network.linked("n1", "n2")
        head, content = bytes(limits.HEAD_BYTES_MAX), bytes(limits.CONTENT_BYTES_MAX)
        n1.transport.send(n2.key.node_id, head, content)
        n1.transport.send(n2.key.node_id, head + b"0", b"")
        n1.transport.send(n2.key.node_id, b"", content + b"0")
        n1.send(n2, b"")
        await n2.until(lambda: len(n2.frames) == 2)
        assert [(f.head, f.content) for f in n2.frames] == [(head, content), (HEAD, b"")]
        assert [d.frame_bytes for d in n1.all_of(FrameDropped)] == [len(head) + 1, len(content) + 1]

    run(case)


def test_an_error_of_the_listener_loses_no_later_frame(run: Callable[[Case], None]) -> None:
    async def case(network: Network) -> None:
        n1, n2 = await network.linked("n1", "n2")
        errors: list[object] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, told: errors.append(told["exception"]))
        n2.fails_at = b"bad"
        for content in (b"1", b"bad", b"2"):
            n1.send(n2, content)
        await n2.until_heard(b"2")
        assert n2.contents == [b"1", b"bad", b"2"]
        assert [type(error) for error in errors] == [RuntimeError]

    run(case)


def test_a_port_has_one_listener(run: Callable[[Case], None]) -> None:
    async def case(network: Network) -> None:
        n1 = network.node("n1")
        with pytest.raises(AddressTaken, match="in use") as refused:
            network.node("n2", n1.transport.bound)
        assert "port" in refused.value.next_step

    run(case)


def test_stop_ends_all_and_tells_nothing_more(run: Callable[[Case], None]) -> None:
    async def case(network: Network) -> None:
        n1, n2, n3 = await network.linked("n1", "n2", "n3")
        heard = list(n1.heard)
        n1.send(n2, b"last")
        await n1.stop()
        await n2.until(lambda: n2.contents == [b"last"])
        assert n1.heard == heard
        n2.dial(n1)
        await n2.until(lambda: len(n2.all_of(LinkClosed)) == 1)
        assert n3.heard == []

    run(case)


def test_an_inbound_link_that_is_shut_ends_for_its_sender_alone(
    run: Callable[[Case], None],
) -> None:
    async def case(network: Network) -> None:
        n1, n2, n3 = network.node("n1"), network.node("n2"), network.node("n3")
        for sender in (n2, n3):
            sender.dial(n1)
            sender.send(n1, b"hello")
        await n1.until(lambda: len(n1.frames) == 2)
        (from_n2,) = (f.link for f in n1.frames if f.key == link_key_of(n2.key.node_id))
        n1.transport.shut(from_n2)
        n1.transport.shut(LinkId(b"of nobody"))
        await n2.until(lambda: len(n2.all_of(LinkClosed)) == 1)
        n3.send(n1, b"still here")
        await n1.until(lambda: len(n1.frames) == 3)
        assert n3.all_of(LinkClosed) == []
        assert not n1.transport.faults

    run(case)


def test_the_node_that_speaks_first_may_be_dialled_back(run: Callable[[Case], None]) -> None:
    async def case(network: Network) -> None:
        n1, n2 = await network.linked("n1", "n2")
        n2.dial(n1)
        n2.send(n1, b"back")
        n1.send(n2, b"there")
        await n1.until(lambda: n1.contents == [b"back"])
        await n2.until(lambda: n2.contents == [b"there"])
        assert isinstance(n1.frames[0], FrameReceived)

    run(case)
