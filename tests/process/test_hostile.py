"""Strangers, liars and thieves at a real cluster: nothing changes, nobody waits, all is counted."""

import asyncio
import shutil
import socket
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq

from quipu.ledger.words import Hlc, NodeId
from quipu.p2p import limits
from quipu.p2p.addresses import sign_endpoint
from quipu.p2p.bodies import Addresses, Discovered, HealthAnswer, Joined, Lost
from quipu.p2p.decen import Alive, encode_command
from quipu.p2p.frame import encode_head
from quipu.p2p.gossip import Gossip, Kind, Origin, compose, decode_content, gossip_id
from quipu.p2p.gossip import signed as signed_gossip
from quipu.p2p.link_keys import link_key_of
from quipu.p2p.transports.options import Curve, set_dealer
from quipu.p2p.words import PeerState
from tests.process.badnode import (
    NOTHING,
    OUTSIDER,
    BadNode,
    content_of,
    header_changed,
    refusals,
    rss_bytes,
    where,
)
from tests.process.cluster import wait_until
from tests.process.command import RunningCommand
from tests.process.shaken import Apps, Shaken, shaken

HALF_OPEN = 1_000
REPLAYS = 100_000
REPLAYS_A_FRAME = 1_000
ROUNDS = 5
ROUND_WRITES = 60
SLOWER_MAX = 1.3
NOISE_S = 0.003  # two medians on a machine with other work differ by that
RSS_GROWTH_BYTES_MAX = 64 << 20


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shaken]:
    with shaken(tmp_path_factory.mktemp("hostile") / "net", 3, 1) as found:
        apps = Apps(found.net, found.numbers)
        wait_until(lambda: len(apps.written) > 30, "something to attack")
        apps.end()
        found.await_equal(time.monotonic())
        yield found


@pytest.fixture
def untouched(world: Shaken) -> Iterator[Shaken]:
    """The same before and after: what is held, where members are, who lives."""
    wait_until(lambda: _is_whole(world), "the cluster is whole")
    before = _state(world)
    yield world
    assert _state(world) == before
    assert _is_whole(world), world.described()


def _state(world: Shaken) -> Any:
    ids = {node.node_id for node in world.net.nodes}
    members = [
        {m["node_id"]: m["endpoint"] for m in world.ask(n, "/v1/cluster/members")["items"]
         if m["node_id"] in ids}
        for n in world.numbers
    ]  # fmt: skip
    evidence = [world.ask(n, "/v1/evidence") for n in world.numbers]
    frontiers = [world.ask(n, "/v1/dag/frontier") for n in world.numbers]
    return frontiers, members, evidence, world.farewells()


def _is_whole(world: Shaken) -> bool:
    return all(
        world.state_of(seen, by=number) == PeerState.ALIVE
        for number in world.numbers
        for seen in world.numbers
    )


def attack(world: Shaken, deed: Callable[[BadNode], Awaitable[None]], **given: Any) -> None:
    async def done() -> None:
        bad = BadNode(world.net, **given)
        try:
            await deed(bad)
        finally:
            await bad.stop()

    asyncio.run(done())


class Counts:
    """How often each reason was counted since."""

    def __init__(self, world: Shaken, number: int = 1) -> None:
        self._world, self._number = world, number
        self._before = refusals(world.net, number)

    def now(self) -> Counter[str]:
        return refusals(self._world.net, self._number) - self._before

    async def until(self, reason: str, count: int = 1) -> None:
        def is_so() -> bool:
            return self.now()[reason] >= count

        await asyncio.to_thread(wait_until, is_so, f"{count} {reason}: {self.now()}", 20.0)


# --- HELLO ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("reason", "header", "value"),
    [
        ("peer-wrong-cluster", "cluster", "ab" * 32),
        ("peer-wrong-key", "node", "the node id of n2"),
        ("peer-no-common-version", "protocol-min", "200"),
        ("peer-malformed", "start", "yesterday"),
        ("peer-bad-signature", "signature", "cd" * 64),
    ],
)
def test_a_hello_that_lies(untouched: Shaken, reason: str, header: str, value: str) -> None:
    if value == "the node id of n2":  # whose cluster key was stolen, and not the key of any node
        value = untouched.net.node(2).node_id

    async def deed(bad: BadNode) -> None:
        counts = Counts(untouched)
        changes = header_changed(header, value)
        if header == "protocol-min":
            both = header_changed("protocol-max", value)
            await bad.greet(1, lambda hello: both(changes(hello)))
        else:
            await bad.greet(1, changes)
        await counts.until(reason)

    attack(untouched, deed)


def test_another_clusters_secret(untouched: Shaken) -> None:
    async def deed(bad: BadNode) -> None:
        counts = Counts(untouched)
        await bad.greet(1)
        await counts.until("peer-wrong-secret")
        assert world_knows(untouched, bad) is False

    attack(untouched, deed, secret=bytes(32))


def world_knows(world: Shaken, bad: BadNode) -> bool:
    rows = world.ask(1, "/v1/cluster/members")["items"]
    return bad.key.node_id.hex() in {row["node_id"] for row in rows}


# --- frames ---------------------------------------------------------------------------------------
def test_garbage_in_frames(untouched: Shaken) -> None:
    async def deed(bad: BadNode) -> None:
        counts = Counts(untouched)
        peer = await bad.dial(1)
        bad.raw(peer, b"", b"")
        bad.raw(peer, bytes(range(64)), NOTHING)
        bad.raw(peer, encode_head(OUTSIDER, b"\0" * 6), NOTHING)
        bad.raw(peer, encode_head(OUTSIDER, encode_command(Alive(1))), NOTHING)
        await counts.until("peer-truncated", 2)
        await counts.until("peer-bad-marker")
        await counts.until("peer-not-hello")
        await bad.greet(1)
        bad.alive(peer, b"\xc1" * 100)
        await counts.until("peer-malformed")

    attack(untouched, deed)


def test_raw_garbage_and_slow_handshakes(untouched: Shaken) -> None:
    """A thousand connections: half of them say nothing, half of them not what a node says."""
    counts = Counts(untouched)
    before_bytes = rss_bytes(untouched.net, 1)
    _, endpoint = where(untouched.net, 1)
    listening = ("127.0.0.1", untouched.net.node(1).listen_port or endpoint.port)
    with ExitStack() as stack:
        for number in range(HALF_OPEN):
            connection = stack.enter_context(socket.create_connection(listening, timeout=5))
            if number % 2:
                connection.sendall(bytes(range(256)))
        wait_until(lambda: counts.now()["link-wordless"] >= HALF_OPEN // 2, "garbage is counted")
        wait_until(
            lambda: counts.now()["link-crowd"] + counts.now()["link-wordless"] >= HALF_OPEN,
            "each is shut, by whom it is crowded out or for want of a handshake",
        )
    assert rss_bytes(untouched.net, 1) - before_bytes < RSS_GROWTH_BYTES_MAX


def test_frames_larger_than_any(untouched: Shaken) -> None:
    """libzmq ends the connection at the length that it announces: nothing is kept of it."""
    before_bytes = rss_bytes(untouched.net, 1)

    async def deed(bad: BadNode) -> None:
        counts = Counts(untouched)
        peer, endpoint = where(untouched.net, 1)
        server = link_key_of(peer)
        assert server is not None
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        dealer = context.socket(zmq.DEALER)
        try:
            set_dealer(dealer, Curve.of(bad.key), server, endpoint)
            dealer.connect(f"tcp://{endpoint}")
            dealer.send_multipart([b"head"] * 3)
            await counts.until("link-parts")
            dealer.send_multipart([bytes(limits.HEAD_BYTES_MAX + 1), NOTHING])
            await counts.until("link-head-bytes")
            for _ in range(3):
                dealer.send_multipart([b"head", bytes(limits.CONTENT_BYTES_MAX + 1)])
        finally:
            await asyncio.to_thread(context.destroy, 2_000)

    attack(untouched, deed)
    assert rss_bytes(untouched.net, 1) - before_bytes < RSS_GROWTH_BYTES_MAX


# --- words ----------------------------------------------------------------------------------------
def test_forged_words_of_members(untouched: Shaken) -> None:
    """With the cluster's secret, and without the key of any member."""
    second, third = (where(untouched.net, number)[0] for number in (2, 3))

    async def deed(bad: BadNode) -> None:
        counts = Counts(untouched)
        peer = await bad.greet(1)
        farewell = compose(
            Origin(second, gossip_id(bad.start, 1 << 40), Hlc(0)),
            Kind.LEAVING, b"", None, 4,
        )  # fmt: skip
        bad.alive(peer, content_of(signed_gossip(farewell, bad.cluster_id, bad.key)))
        bad.alive(peer, content_of(bad.says(HealthAnswer(bytes(16), third, 1, None), second)))
        bad.alive(peer, content_of(bad.says(Lost(third, 1, 60_000), second)))
        await counts.until("peer-bad-signature", 3)
        bad.alive(peer, content_of(bad.says(HealthAnswer(bytes(16), third, 1, None))))
        await counts.until("peer-not-asked")

    attack(untouched, deed)


def test_nobody_moves_a_member_to_another_address(untouched: Shaken) -> None:
    second, _ = where(untouched.net, 2)

    async def deed(bad: BadNode) -> None:
        counts = Counts(untouched)
        peer = await bad.greet(1)
        trap = bad.listener.transport.bound
        own = sign_endpoint(bad.key, bad.cluster_id, trap, (1 << 64) - 1)
        forged = msgspec.structs.replace(own, node_id=second)
        unsigned = bad.says(Addresses([forged]))
        bad.alive(peer, content_of(msgspec.structs.replace(unsigned, signature=None)))
        bad.alive(peer, content_of(bad.says(Joined(forged, 1))))
        bad.alive(peer, content_of(bad.says(Discovered(forged, "n2"), second)))
        await counts.until("peer-bad-signature", 3)
        bad.alive(peer, content_of(bad.says(Discovered(forged, "n2"))))
        await counts.until("peer-bad-endpoint")

    attack(untouched, deed)


def test_recorded_words_of_a_member_are_old_for_ever(world: Shaken) -> None:
    """n3 says goodbye to all it is linked with; an observer keeps it and says it again, to others
    and to n3, before and after n3 and the others have started again."""

    async def deed(bad: BadNode) -> None:
        peers = [await bad.greet(number) for number in world.numbers]
        dialled_by = link_key_of(peers[2])
        await bad.listener.until(lambda: dialled_by in {f.key for f in bad.listener.frames})
        bad.listener.heard.clear()
        await asyncio.to_thread(world.net.stop, 3)
        farewells = [f for f in bad.listener.contents if f != b"" and _is_farewell(f)]
        assert farewells, "n3 says goodbye to whom it is linked with"
        await asyncio.to_thread(world.net.start, 3)
        await bad.greet(3)
        counts = [Counts(world, number) for number in world.numbers]
        for peer in peers:
            for _ in range(5):
                bad.alive(peer, farewells[0])
        for count in counts[:2]:
            await count.until("peer-duplicate", 5)
        assert world.state_of(3, by=1) == world.state_of(3, by=2) == PeerState.ALIVE
        await asyncio.to_thread(world.net.kill, 1)
        await asyncio.to_thread(world.net.start, 1)
        counts_again = Counts(world, 1)
        bad.alive(await bad.greet(1), farewells[0])
        await asyncio.to_thread(
            wait_until, lambda: counts_again.now().total() > 0, "the restarted one refuses it"
        )
        assert world.state_of(3, by=1) == PeerState.ALIVE, counts_again.now()

    attack(world, deed)
    world.await_equal(time.monotonic())


def _is_farewell(content: bytes) -> bool:
    return any(isinstance(m, Gossip) and m.kind == Kind.LEAVING for m in decode_content(content))


def test_a_hundred_thousand_replays(untouched: Shaken) -> None:
    before_bytes = rss_bytes(untouched.net, 1)

    async def deed(bad: BadNode) -> None:
        counts = Counts(untouched)
        peer = await bad.greet(1)
        message = bad.says(Lost(NodeId(bytes(32)), 1, 1))
        content = content_of(*[message] * REPLAYS_A_FRAME)
        for sent in range(1, REPLAYS // REPLAYS_A_FRAME + 1):
            bad.alive(peer, content)
            await counts.until("peer-duplicate", sent * REPLAYS_A_FRAME - 1)

    attack(untouched, deed)
    assert rss_bytes(untouched.net, 1) - before_bytes < RSS_GROWTH_BYTES_MAX


def test_recorded_bytes_of_a_connection(untouched: Shaken) -> None:
    """All that n2 has said to n1 up to now, again: to n1, to n3."""
    recorded = untouched.chaos.recorded(2, 1)
    assert len(recorded) > 1_000
    for number in (1, 3):
        counts = Counts(untouched, number)
        port = untouched.net.node(number).listen_port
        with socket.create_connection(("127.0.0.1", port or 0), timeout=5) as connection:
            connection.sendall(recorded)
            wait_until(partial(_is_counted, counts, "link-wordless"), "it is refused")


def _is_counted(counts: Counts, reason: str) -> bool:
    return counts.now()[reason] > 0


# --- a thief with everything, and the honest ones meanwhile --------------------------------------
def test_a_clone_of_a_running_node(world: Shaken, tmp_path: Path) -> None:
    """Its key, its genesis and its secret, in a second process: the later start is the one that
    is heard, nothing acknowledged is lost, and the first one is whole again once it starts anew."""
    ours = world.net.data_of(world.net.node(3))
    clone = tmp_path / "clone"
    shutil.copytree(ours, clone, ignore=shutil.ignore_patterns("store", "*.lock", "admin.sock"))
    counts, before = Counts(world, 1), world.farewells()
    apps = Apps(world.net, world.numbers)
    with RunningCommand(clone, "--name", "n3"):
        reasons = {"peer-older-start", "peer-not-hello"}
        wait_until(lambda: bool(reasons & set(counts.now())), "the older start is refused")
        seen = len(apps.written)
        wait_until(lambda: _read_by(apps, {1, 2}, seen), "the others are not held up")
    written = apps.end()
    world.net.kill(3)
    world.net.start(3)
    world.await_equal(time.monotonic())
    world.check_kept(written)
    assert world.farewells() == before


def _read_by(apps: Apps, numbers: set[int], since: int) -> bool:
    later = tuple(apps.written)[since:]
    return numbers <= {one.node for one in later if one.state == "read"}


@pytest.mark.alone
def test_honest_nodes_are_not_slowed(world: Shaken) -> None:
    """Rounds without and with a thousand half-open connections, garbage and replays, in turn."""
    calm, attacked = [], []
    for _ in range(ROUNDS):
        calm.append(_median_s(world))
        with ExitStack() as stack:
            for number in range(HALF_OPEN):
                port = world.net.node(number % 3 + 1).listen_port
                connection = stack.enter_context(
                    socket.create_connection(("127.0.0.1", port or 0), timeout=5)
                )
                if number % 2:
                    connection.sendall(bytes(range(256)))
            attacked.append(_median_s(world))
    before_s, then_s = statistics.median(calm), statistics.median(attacked)
    assert then_s <= SLOWER_MAX * before_s + NOISE_S, (calm, attacked)


def _median_s(world: Shaken) -> float:
    apps = Apps(world.net, [1, 2, 3])
    wait_until(lambda: len(apps.written) >= ROUND_WRITES, "enough writes")
    return statistics.median(one.took_s for one in apps.end())
