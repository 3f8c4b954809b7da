"""Multicast between real peer machines: what is sent once, who falls back to its link, and what
nobody can put into another one's mouth."""

from dataclasses import replace

import pytest
from nacl.secret import SecretBox

from quipu.p2p import effects as fx
from quipu.p2p import inputs as ins
from quipu.p2p import limits
from quipu.p2p.bodies import CastKey, CastReport
from quipu.p2p.cast import seal_frame, stream_of
from quipu.p2p.decen import Alive, Ping, encode_command
from quipu.p2p.frame import encode_head
from quipu.p2p.gossip import Kind, encode_gossip, join_content
from quipu.p2p.peers import Peers
from quipu.p2p.words import PoolName
from tests.peer_bench import Bench, Hand, causes, of
from tests.simulation.peers_world import PeersWorld, SimPeer

ORDERS = PoolName("orders")
EVENT = b"\x92\x01"  # how an event begins
SYNC = b"\x9d\x04"


@pytest.fixture
def world() -> PeersWorld:
    return linked(4)


def linked(members: int, *without: str, seed: int = 7) -> PeersWorld:
    """All up, and hearing each other's multicast but for those without it."""
    world = PeersWorld(seed, members)
    for node in world.nodes:
        node.has_multicast = node.name not in without
        node.start(*[other for other in world.nodes if other is not node])
    world.run_until(lambda: all(len(n.up) == members - 1 for n in world.nodes), 5_000)
    for node in world.nodes:
        node.take(ins.PoolJoined(ORDERS))
    world.run_ms(2_500)
    return world


def says(sender: SimPeer, data: bytes, *to: SimPeer) -> None:
    sender.take(*(ins.LedgerSpoke(node.node_id, data) for node in to))


def ledger(node: SimPeer) -> list[bytes]:
    return [e.data for e in node.of_kind(fx.LedgerHeard) if isinstance(e, fx.LedgerHeard)]


def pooled(node: SimPeer) -> list[bytes]:
    return [e.data for e in node.of_kind(fx.PoolHeard) if isinstance(e, fx.PoolHeard)]


def others(world: PeersWorld) -> list[SimPeer]:
    return world.nodes[1:]


# --- what is sent once ----------------------------------------------------------------------------
def test_an_event_goes_out_once_and_reaches_all(world: PeersWorld) -> None:
    before, frames = world.casts.datagrams, world.frames
    says(world["n1"], EVENT + b"one", *others(world))
    world.run_ms(20)
    assert world.casts.datagrams - before == 1
    assert world.frames == frames
    assert [ledger(node) for node in others(world)] == [[EVENT + b"one"]] * 3


def test_a_large_one_goes_in_parts_and_a_larger_one_over_the_links(world: PeersWorld) -> None:
    before = world.casts.datagrams
    large, larger = EVENT + bytes(50_000), EVENT + bytes(limits.CAST_BYTES_MAX)
    says(world["n1"], large, *others(world))
    world.run_ms(20)
    assert 43 <= world.casts.datagrams - before <= 45
    says(world["n1"], larger, *others(world))
    world.run_ms(20)
    assert [ledger(node) for node in others(world)] == [[large, larger]] * 3
    assert world.casts.datagrams - before <= 46


def test_what_does_not_prove_itself_goes_over_the_links(world: PeersWorld) -> None:
    frames, before = world.frames, world.casts.datagrams
    says(world["n1"], SYNC, *others(world))
    world.run_ms(20)
    assert world.frames - frames == 3
    assert world.casts.datagrams == before


def test_one_receiver_alone_gets_it_over_its_link(world: PeersWorld) -> None:
    frames = world.frames
    says(world["n1"], EVENT, world["n2"])
    world.run_ms(20)
    assert world.frames - frames == 1
    assert ledger(world["n3"]) == []


def test_faster_than_the_rate_it_goes_over_the_links(world: PeersWorld) -> None:
    for number in range(10):
        says(world["n1"], EVENT + bytes([number]) + bytes(50_000), *others(world))
    before, datagrams = world.frames, world.casts.datagrams
    world.run_ms(100)
    assert world.frames - before >= 3
    assert 43 <= world.casts.datagrams - datagrams <= 3 * 45
    assert all(len(ledger(node)) == 10 for node in others(world))


# --- pools ----------------------------------------------------------------------------------------
def test_a_broadcast_goes_out_once(world: PeersWorld) -> None:
    world["n4"].take(ins.PoolLeft(ORDERS))
    world.run_ms(100)
    frames, before = world.frames, world.casts.datagrams
    world["n1"].take(ins.PoolSpoke(ORDERS, b"hello, all"))
    world.run_ms(20)
    assert world.casts.datagrams - before == 1
    assert world.frames == frames
    assert [pooled(world[n]) for n in ("n2", "n3", "n4")] == [[b"hello, all"]] * 2 + [[]]


# --- who does not hear it -------------------------------------------------------------------------
def test_who_has_no_multicast_gets_its_copy() -> None:
    world = linked(4, "n4")
    before = world.casts.datagrams
    says(world["n1"], EVENT, *others(world))
    world["n1"].take(ins.PoolSpoke(ORDERS, b"hello"))
    world.run_ms(20)
    assert [ledger(node) for node in others(world)] == [[EVENT]] * 3
    assert [pooled(node) for node in others(world)] == [[b"hello"]] * 3
    assert world.casts.datagrams - before == 2


def test_who_stops_to_hear_gets_what_it_missed_and_then_its_copies(world: PeersWorld) -> None:
    world.casts.deaf[2] = None
    says(world["n1"], EVENT + b"missed", *others(world))
    world.run_ms(20)
    assert ledger(world["n3"]) == []
    world.run_ms(3_500)
    assert ledger(world["n3"]) == [EVENT + b"missed"]
    frames = world.frames
    says(world["n1"], EVENT + b"copy", *others(world))
    world.run_ms(20)
    assert world.frames - frames == 1
    assert ledger(world["n3"])[-1] == EVENT + b"copy"
    del world.casts.deaf[2]
    world.run_ms(2_500)
    frames = world.frames
    says(world["n1"], EVENT + b"again", *others(world))
    world.run_ms(20)
    assert world.frames == frames
    assert ledger(world["n3"])[-1] == EVENT + b"again"


def test_a_lost_one_is_asked_for_and_comes_over_the_link(world: PeersWorld) -> None:
    world.casts.loss = 1.0
    says(world["n1"], EVENT + b"lost", *others(world))
    world.run_ms(20)
    world.casts.loss = 0.0
    world.run_ms(200)  # the empty frame after it shows the gap
    assert [ledger(node) for node in others(world)] == [[EVENT + b"lost"]] * 3
    assert world["n1"].peers is not None
    assert world["n1"].peers.casts_repaired == 3


def test_who_loses_too_many_gets_copies_for_a_while(world: PeersWorld) -> None:
    world.casts.loss = 0.4
    for number in range(40):
        says(world["n1"], EVENT + bytes([number]), *others(world))
        world.run_ms(30)
    world.casts.loss = 0.0
    world.run_ms(1_000)
    assert all(len(set(ledger(node))) == 40 for node in others(world))
    before = world.casts.datagrams
    says(world["n1"], EVENT + b"copies", *others(world))
    world.run_ms(20)
    assert world.casts.datagrams == before
    assert all(ledger(node)[-1] == EVENT + b"copies" for node in others(world))
    world.run_ms(limits.CAST_REST_MS)
    before = world.casts.datagrams
    says(world["n1"], EVENT + b"rested", *others(world))
    world.run_ms(20)
    assert world.casts.datagrams - before == 1


def test_a_restart_begins_a_stream_of_its_own(world: PeersWorld) -> None:
    world["n1"].crash()
    world.run_ms(500)
    world["n1"].start(*others(world))
    world.run_until(lambda: len(world["n1"].up) == 3, 10_000)
    world.run_ms(2_500)
    before = world.casts.datagrams
    says(world["n1"], EVENT + b"after", *others(world))
    world.run_ms(20)
    assert world.casts.datagrams - before == 1
    assert [ledger(node)[-1] for node in others(world)] == [EVENT + b"after"] * 3


@pytest.mark.parametrize("seed", range(4))
def test_bad_weather_loses_nothing(seed: int) -> None:
    world = linked(4, seed=seed)
    world.casts.loss, world.casts.duplicate, world.casts.jitter_us = 0.1, 0.2, 30_000
    said = [EVENT + number.to_bytes(2, "big") + bytes(40 * number) for number in range(100)]
    for number, data in enumerate(said):
        says(world["n1"], data, *others(world))
        world["n1"].take(ins.PoolSpoke(ORDERS, b"%d" % number))
        world.run_ms(10)
    world.run_ms(2_000)
    for node in others(world):
        assert sorted(set(ledger(node))) == sorted(said)
        assert sorted(pooled(node)) == sorted(b"%d" % number for number in range(100))


def test_idle_it_costs_one_datagram_a_second(world: PeersWorld) -> None:
    before, frames = world.casts.datagrams, world.frames
    world.run_ms(10_000)
    assert world.casts.datagrams - before <= 4 * 11
    assert world.frames - frames <= 4 * 3 * 14  # most reports stand where ALIVE would


def test_the_sequence_of_the_frame_begins_anew(world: PeersWorld) -> None:
    """That of the multicast never does: it has 64 bits."""
    for node in world.nodes:
        assert node.peers is not None
        for ear in node.peers._desk.ears.values():
            ear.settled = ear.top = limits.SEQUENCES - 3
        assert node.peers._desk.casting is not None
        node.peers._desk.casting.number = limits.SEQUENCES - 3
    for number in range(6):
        says(world["n1"], EVENT + bytes([number]), *others(world))
        world.run_ms(10)
    assert all(len(ledger(node)) == 6 for node in others(world))


# --- what nobody is taken in by -------------------------------------------------------------------
class Stage:
    """The machine of n1 with multicast, and hands that told it their keys."""

    def __init__(self) -> None:
        self.bench = bench = Bench()
        bench.config = replace(bench.config, has_multicast=True)
        bench.peers = Peers(bench.config, None, bench.now)
        self.n2, self.n3 = bench.linked("n2"), bench.linked("n3")
        for hand in (self.n2, self.n3):
            bench.step(hand.alive(hand.message(CastKey(self.key_of(hand), 0), hop_limit=0)))

    @staticmethod
    def key_of(hand: Hand) -> bytes:
        return hand.id[:16] * 2

    def cast(self, hand: Hand, number: int, frame: bytes, as_: Hand | None = None) -> ins.Input:
        stream = stream_of((as_ or hand).id, self.key_of(as_ or hand))
        (datagram,) = seal_frame(stream, number, frame)
        return ins.CastHeard(datagram)


def alive(hand: Hand, kind: Kind, body: bytes) -> bytes:
    content = join_content([encode_gossip(hand.plain(kind, body))])
    return encode_head(hand.bench.config.node_no, encode_command(Alive(1))) + content


def test_what_is_refused() -> None:
    stage = Stage()
    bench, n2, n3 = stage.bench, stage.n2, stage.n3
    good = stage.cast(n2, 1, alive(n2, Kind.LEDGER, EVENT))
    effects = bench.step(good)
    assert of(effects, fx.LedgerHeard) == [fx.LedgerHeard(n2.id, EVENT)]
    assert causes(bench.step(good)) == ["repeated-cast"]
    for number, (frame, cause) in enumerate(
        [
            (alive(n2, Kind.LEDGER, SYNC), "not-its-own"),
            (alive(n2, Kind.POOL, b"news"), "not-its-own"),
            (alive(n3, Kind.LEDGER, EVENT), "not-its-own"),
            (encode_head(bench.config.node_no, encode_command(Ping(1))), "malformed"),
            (b"\0" * 7, "truncated"),
            (encode_head(bench.config.node_no, encode_command(Alive(1))) + b"\xc1", "malformed"),
        ],
        2,
    ):
        effects = bench.step(stage.cast(n2, number, frame))
        assert causes(effects) == [cause]
        assert not of(effects, fx.LedgerHeard)


@pytest.mark.parametrize("datagram", [b"", bytes(8), bytes(40), bytes(1_200), b"\xff" * 300])
def test_strangers(datagram: bytes) -> None:
    assert causes(Stage().bench.step(ins.CastHeard(datagram))) == ["foreign-cast"]


def test_too_long_a_datagram() -> None:
    assert causes(Stage().bench.step(ins.CastHeard(bytes(1_201)))) == ["too-large"]


def test_another_key_under_the_name_of_a_stream() -> None:
    stage = Stage()
    stream = stream_of(stage.n2.id, stage.key_of(stage.n2))
    (datagram,) = seal_frame(stream._replace(key=bytes(32)), 1, b"frame")
    assert causes(stage.bench.step(ins.CastHeard(datagram))) == ["foreign-cast"]


def test_a_broadcast_of_who_was_only_told_the_key() -> None:
    """A pool's message proves nothing by itself, so the frame has its sender's signature."""
    stage = Stage()
    bench, n2 = stage.bench, stage.n2
    bench.step(ins.PoolJoined(ORDERS))
    content = join_content([encode_gossip(n2.plain(Kind.POOL, b"news"))])
    command = b"\xaa\xa1\x03\x01\0\1\x06orders"
    frame = encode_head(bench.config.node_no, command) + content + n2.key.sign(b"something else")
    effects = bench.step(stage.cast(n2, 1, frame))
    assert causes(effects) == ["bad-signature"]
    assert not of(effects, fx.PoolHeard)


def test_reports_of_nothing_and_endless_wants() -> None:
    stage = Stage()
    bench, n2 = stage.bench, stage.n2
    report = n2.message(CastReport(bytes(8), 0, []), hop_limit=0)
    assert causes(bench.step(n2.alive(report))) == ["not-asked"]
    casting = bench.peers._desk.casting
    assert casting is not None
    for hand in (n2, stage.n3):
        fine = hand.message(CastReport(casting.stream.id, 0, []), hop_limit=0)
        bench.step(hand.alive(fine))
    said = (ins.LedgerSpoke(n2.id, data := EVENT + b"x"), ins.LedgerSpoke(stage.n3.id, data))
    assert len(of(bench.step(*said), fx.SendCast)) >= 1
    wants = list(range(limits.CAST_ASKED_MAX))
    again = n2.message(CastReport(casting.stream.id, 0, wants), hop_limit=0)
    effects = bench.step(n2.alive(again))
    assert [m.body for m in n2.told(effects, Kind.LEDGER)] == [data]
    assert n2.told(bench.step(n2.alive(again)), Kind.LEDGER) == []


def test_it_is_off_unless_asked_for() -> None:
    bench = Bench()
    n2 = bench.linked("n2")
    effects = [*bench.step(n2.alive(n2.message(CastKey(bytes(32), 0), hop_limit=0)))]
    effects += bench.step(ins.CastHeard(bytes(100)))
    assert causes(effects) == []
    assert causes(bench.step(n2.alive(n2.message(CastReport(bytes(8), 0, []), hop_limit=0))))
    assert of(bench.run(5_000), fx.SendCast) == []


def test_a_datagram_is_what_the_page_says() -> None:
    """Opened by PyNaCl alone."""
    key = bytes(range(32))
    stream = stream_of(Stage().n2.id, key)
    first, last = seal_frame(stream, 258, b"f" * 1_200)
    assert len(first) == limits.DATAGRAM_BYTES_MAX
    assert first[:18] == stream.id + (258).to_bytes(8, "big") + b"\0\2"
    opened = [SecretBox(key).decrypt(d[18:], d[:18] + bytes(6)) for d in (first, last)]
    assert b"".join(opened) == b"f" * 1_200
