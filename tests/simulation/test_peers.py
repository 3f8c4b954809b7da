"""Worlds of peer machines: they find each other, notice silence, heal, ask, and are lied to."""

from dataclasses import replace

import pytest

from quipu.node.limits import NOMINEE_DIAL_MS
from quipu.p2p import effects as fx
from quipu.p2p import inputs as ins
from quipu.p2p.words import PeerState
from tests.simulation.network import FAIR
from tests.simulation.peers_figures import converge, false_suspicions
from tests.simulation.peers_world import PeersWorld, SimPeer

SEEDS = (1, 2, 3)
LOSSY = replace(FAIR, loss=0.05)


def started(seed: int, members: int, observers: int = 0) -> PeersWorld:
    """All members up with each other; every node began with the URI of n1 alone."""
    world = PeersWorld(seed, members, observers)
    world["n1"].start()
    for node in world.nodes[1:]:
        node.start(world["n1"])
    world.run_until(lambda: all_up(members_of(world)), 3_000)
    return world


def members_of(world: PeersWorld) -> list[SimPeer]:
    return [node for node in world.nodes if node.node_id in world.members]


def all_up(nodes: list[SimPeer]) -> bool:
    return all(one.is_up(other) for one in nodes for other in nodes if one is not other)


def all_see(world: PeersWorld, node: SimPeer, state: PeerState) -> bool:
    return all(other.state_of(node) is state for other in members_of(world) if other is not node)


def seen_states(world: PeersWorld) -> set[PeerState]:
    return {move.after for node in world.nodes for _, move in node.moves}


# --- finding each other -------------------------------------------------------------------------
@pytest.mark.parametrize("members", [2, 3, 7, 10, 32])
def test_all_find_each_other_from_one_uri(members: int) -> None:
    world = started(1, members)
    world.run_ms(3_000)
    assert all_up(members_of(world))
    assert seen_states(world) == {PeerState.ALIVE}


def test_a_newcomer_is_met_even_if_the_node_it_knew_vanishes_at_once() -> None:
    world = PeersWorld(1, 5)
    for node in world.nodes[:4]:
        node.start(world["n1"])
    world.run_until(lambda: all_up(world.nodes[:4]), 3_000)
    newcomer = world["n5"]
    newcomer.start(world["n1"])
    world.run_until(lambda: any(n.is_up(newcomer) for n in world.nodes[1:4]), 3_000, 1)
    world["n1"].crash()
    world.run_until(lambda: all_up([*world.nodes[1:4], newcomer]), 3_000)


@pytest.mark.parametrize("seed", SEEDS)
def test_members_find_each_other_under_loss(seed: int) -> None:
    world = PeersWorld(seed, 7, weather=replace(FAIR, loss=0.3))
    world["n1"].start()
    for node in world.nodes[1:]:
        node.start(world["n1"])
    world.run_until(lambda: all_up(world.nodes), 20_000)


def test_observers_attach_to_three_members_that_a_hash_chooses() -> None:
    world = started(1, 10, observers=20)
    observers = world.nodes[10:]
    world.run_until(lambda: all(len(node.up) == 3 for node in observers), 5_000)
    world.run_ms(40_000)
    assert all(len(node.up) == 3 for node in observers)
    assert all_up(members_of(world))
    attached = [sum(o.node_id in m.up for o in observers) for m in members_of(world)]
    assert sum(attached) == 60
    assert max(attached) < 20  # spread, not all at the seed


@pytest.mark.parametrize("seed", SEEDS)
def test_a_member_that_needs_an_observer_is_linked_with_it(seed: int) -> None:
    """A nominee that had let go of the master, or never had a link to it. Who was let go of finds
    out after some seconds, so the nominee is dialled again and again."""
    world = started(seed, 6, observers=1)
    (observer,) = world.nodes[6:]
    world.run_until(lambda: len(observer.up) == 3, 5_000)
    for _ in range(4):
        for master in members_of(world):
            master.take(ins.SeedGiven(observer.node_id, observer.endpoint))
        world.run_ms(NOMINEE_DIAL_MS)
    assert len(observer.up) == 6
    world.run_ms(60_000)
    assert len(observer.up) == 6
    assert all(observer.node_id in member.up for member in members_of(world))


def test_32_members_and_100_observers_converge() -> None:
    found = converge(32, 100, FAIR)
    assert found.most_ms < 500
    assert found.all_ms < 3_000
    assert found.frames < 20_000


def test_under_five_percent_loss_nobody_is_suspected() -> None:
    assert false_suspicions(10, 0.05) == (0, 0)


# --- silence ------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("members", [3, 5, 10])
def test_a_silent_node_is_out_of_the_live_view_in_time_and_back(seed: int, members: int) -> None:
    world = started(seed, members)
    silent = world["n2"]
    others = [node for node in world.nodes if node is not silent]
    world.run_ms(1_500)
    silent.pause()
    took_ms = world.run_until(lambda: not any(n.is_up(silent) for n in others), 7_000)
    assert took_ms >= 4_000  # its last frame was heard up to a second before
    world.run_until(lambda: all_see(world, silent, PeerState.UNREACHABLE), 7_000)
    world.run_ms(3_000)
    silent.resume()
    world.run_until(lambda: all(n.is_up(silent) and silent.is_up(n) for n in others), 3_000)
    # It slept itself: it has held nobody else for silent.
    assert {move.after for _, move in silent.moves} == {PeerState.ALIVE}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_dead_node_comes_back(seed: int) -> None:
    world = started(seed, 5)
    dead = world["n3"]
    others = [node for node in world.nodes if node is not dead]
    dead.crash()
    world.run_until(lambda: all_see(world, dead, PeerState.DEAD), 32_000)
    world.run_ms(60_000)
    dead.start()  # with what it kept, without any seed
    world.run_until(lambda: all_up(world.nodes), 3_000)
    assert all(n.is_up(dead) for n in others)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_partition_of_a_minute_heals_by_itself(seed: int) -> None:
    world = started(seed, 5)
    world.partition(world["n1"], world["n2"])
    world.run_ms(60_000)
    assert all(
        world[one].state_of(world[other]) is PeerState.DEAD
        for one in ("n1", "n2")
        for other in ("n3", "n4", "n5")
    )
    assert all_up([world["n1"], world["n2"]])
    assert all_up([world["n3"], world["n4"], world["n5"]])
    world.heal()
    world.run_until(lambda: all_up(world.nodes), 6_000)


def test_one_broken_link_makes_nobody_unreachable() -> None:
    """The others have heard it: it stays in the live view, but is not up."""
    world = started(1, 4)
    world.network.cut(0, 1)
    world.network.cut(1, 0)
    world.run_ms(60_000)
    n1, n2 = world["n1"], world["n2"]
    assert not n1.is_up(n2)
    assert not n2.is_up(n1)
    assert PeerState.UNREACHABLE not in seen_states(world)
    assert PeerState.DEAD not in seen_states(world)
    world.heal()
    world.run_until(lambda: all_up(world.nodes), 6_000)


# --- leaving ------------------------------------------------------------------------------------
def test_a_leaver_is_taken_off_at_once_and_may_come_back() -> None:
    world = started(1, 10)
    leaver = world["n4"]
    leaver.leave()
    world.run_until(lambda: all_see(world, leaver, PeerState.LEFT), 1_000, 10)
    leaver.crash()
    world.run_ms(40_000)
    assert all_see(world, leaver, PeerState.LEFT)
    leaver.start()
    world.run_until(lambda: all_up(world.nodes), 3_000)


# --- queries ------------------------------------------------------------------------------------
def ask(node: SimPeer, ticket: int = 1, timeout_ms: int = 5_000) -> None:
    node.take(ins.QueryAsked(ticket, "what", b"this", timeout_ms))


def outcome(node: SimPeer) -> fx.QueryEnded:
    (ended,) = node.of_kind(fx.QueryEnded)
    assert isinstance(ended, fx.QueryEnded)
    return ended


@pytest.mark.parametrize("members", [1, 2, 5, 10])
def test_a_query_is_agreed(members: int) -> None:
    world = started(1, members)
    ask(world["n1"])
    world.run_until(lambda: bool(world["n1"].of_kind(fx.QueryEnded)), 1_000, 10)
    ended = outcome(world["n1"])
    assert (ended.verdict, ended.answer, ended.asked) == ("agreed", b"this", members)
    assert 2 * len(ended.answers) >= members


@pytest.mark.parametrize("seed", SEEDS)
def test_a_query_is_agreed_under_loss(seed: int) -> None:
    world = started(seed, 7)
    world.network.weather = replace(world.weather, loss=0.4)
    ask(world["n1"], timeout_ms=10_000)
    world.run_until(lambda: bool(world["n1"].of_kind(fx.QueryEnded)), 11_000, 10)
    assert outcome(world["n1"]).verdict == "agreed"


def test_an_observer_asks_all_members() -> None:
    world = started(1, 10, observers=1)
    observer = world["n11"]
    world.run_until(lambda: len(observer.up) == 3, 5_000)
    ask(observer)
    world.run_until(lambda: bool(observer.of_kind(fx.QueryEnded)), 500, 10)
    ended = outcome(observer)
    assert (ended.verdict, ended.asked) == ("agreed", 10)


def test_a_minority_gets_no_answer() -> None:
    world = started(1, 5)
    world.partition(world["n1"], world["n2"])
    ask(world["n1"])
    world.run_ms(6_000)
    ended = outcome(world["n1"])
    assert (ended.verdict, ended.answer, ended.asked) == ("timeout", None, 5)
    assert len(ended.answers) == 2


def test_two_halves_contest() -> None:
    world = started(1, 4)
    for name in ("n3", "n4"):
        world[name].answer = lambda question: b"that"
    ask(world["n1"])
    world.run_ms(1_000)
    assert outcome(world["n1"]).verdict == "contested"


# --- the same seed, the same world --------------------------------------------------------------
def test_the_same_seed_gives_the_same_digest() -> None:
    def digest(seed: int) -> str:
        world = PeersWorld(seed, 5, 2, LOSSY)
        world["n1"].start()
        for node in world.nodes[1:]:
            node.start(world["n1"])
        world.run_ms(5_000)
        world["n2"].pause()
        world.run_ms(12_000)
        world["n2"].resume()
        world.run_ms(3_000)
        return world.digest

    assert digest(7) == digest(7)
    assert digest(7) != digest(8)
