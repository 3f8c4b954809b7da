"""Members that lie about others: what each lie is refused as, and that it moves nobody.

The liar is a member: it holds the secret of the cluster and a key, and its links are verified.
"""

from collections.abc import Callable

import msgspec
import pytest

from quipu.ledger.words import hlc_at
from quipu.p2p import effects as fx
from quipu.p2p import inputs as ins
from quipu.p2p.addresses import SignedEndpoint, sign_endpoint
from quipu.p2p.bodies import (
    Ack,
    Addresses,
    Answer,
    Body,
    Discovered,
    HealthAnswer,
    Joined,
    Lost,
    encode_body,
)
from quipu.p2p.gossip import (
    KIND_OF_BODY,
    RULES,
    Gossip,
    Kind,
    Origin,
    compose,
    encode_gossip,
    gossip_id,
    signed,
)
from quipu.p2p.words import Endpoint, PeerState, Start
from tests.simulation.clock import START_WALL_MS
from tests.simulation.peers_world import CLUSTER_ID, PeersWorld, SimPeer

NOWHERE = Endpoint("10.6.6.6", 666)
LATER = Start((START_WALL_MS + 3_600_000) << 20)


def world_of(members: int, seed: int = 1) -> PeersWorld:
    world = PeersWorld(seed, members)
    for node in world.nodes:
        node.start(world["n1"])
    world.run_until(lambda: all(len(node.up) == members - 1 for node in world.nodes), 3_000)
    world.run_ms(1_000)
    return world


def said(
    liar: SimPeer, body: Body | None, claimed: SimPeer, target: SimPeer | None = None
) -> Gossip:
    """In the name of `claimed`, under the liar's signature where there is one. None: LEAVING."""
    world = liar.world
    start, number = LATER, world.scheduler.now_us % 2**32 + liar.rng.randrange(2**40)
    origin = Origin(claimed.node_id, gossip_id(start, number), hlc_at(START_WALL_MS))
    kind = Kind.LEAVING if body is None else KIND_OF_BODY[type(body)]
    data = b"" if body is None else encode_body(body)
    message = compose(origin, kind, data, None if target is None else target.node_id, 8)
    return signed(message, CLUSTER_ID, liar.key) if RULES[kind].is_signed else message


Lie = Callable[[SimPeer, SimPeer, SimPeer], Gossip]  # liar, its victim, the one that it lies to


def endpoint(owner: SimPeer, signer: SimPeer, where: Endpoint = NOWHERE) -> SignedEndpoint:
    made = sign_endpoint(signer.key, CLUSTER_ID, where, LATER)
    return msgspec.structs.replace(made, node_id=owner.node_id)


LIES: dict[str, tuple[Lie, str]] = {
    "a farewell for another one": (
        lambda liar, victim, to: said(liar, None, victim),
        "bad-signature",
    ),
    "its own farewell under another name": (
        lambda liar, victim, to: msgspec.structs.replace(
            said(liar, None, liar), sender=victim.node_id
        ),
        "bad-signature",
    ),
    "an event of another one": (
        lambda liar, victim, to: said(liar, Discovered(endpoint(victim, liar), "n"), victim),
        "bad-signature",
    ),
    "discovered as another one": (
        lambda liar, victim, to: said(liar, Discovered(endpoint(victim, liar), "n"), liar),
        "bad-endpoint",
    ),
    "joined where it is not": (
        lambda liar, victim, to: said(liar, Joined(endpoint(victim, liar), LATER), liar),
        "bad-signature",
    ),
    "addresses that were not signed": (
        lambda liar, victim, to: said(liar, Addresses([endpoint(victim, liar)]), liar, to),
        "bad-signature",
    ),
    "an ack for another one": (
        lambda liar, victim, to: said(liar, Ack(bytes(16), None), victim, to),
        "not-its-own",
    ),
    "an ack for nothing": (
        lambda liar, victim, to: said(liar, Ack(bytes(16), endpoint(victim, liar)), liar, to),
        "not-asked",
    ),
    "health, unasked": (
        lambda liar, victim, to: said(
            liar, HealthAnswer(bytes(16), victim.node_id, 1, 10**6), liar, to
        ),
        "not-asked",
    ),
    "health in the name of another one": (
        lambda liar, victim, to: said(
            liar, HealthAnswer(bytes(16), victim.node_id, 1, None), victim, to
        ),
        "bad-signature",
    ),
    "an answer in the name of another one": (
        lambda liar, victim, to: said(liar, Answer(bytes(16), b"lie"), victim, to),
        "bad-signature",
    ),
    "an answer to nothing": (
        lambda liar, victim, to: said(liar, Answer(bytes(16), b"lie"), liar, to),
        "not-asked",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_moves_nobody(lie: str) -> None:
    world = world_of(5)
    liar, victim = world["n5"], world["n2"]
    honest = world.nodes[:4]
    moves = [len(node.moves) for node in honest]
    places = {node: places_of(node) for node in honest}
    make, cause = LIES[lie]
    for other in honest:
        liar.inject(other, encode_gossip(make(liar, victim, other)))
    world.run_ms(2_000)
    assert [len(node.moves) for node in honest] == moves
    assert {node: places_of(node) for node in honest} == places
    refused = [node for node in honest if node.refusals.get(cause)]
    # In its own name a node hears nothing but itself: for the victim it is a duplicate.
    assert len(refused) >= len(honest) - 1
    assert all(node.refusals.get(cause) or node.refusals.get("duplicate") for node in honest)
    assert all(len(node.up) == 4 for node in world.nodes)


def places_of(node: SimPeer) -> list[object]:
    assert node.peers is not None
    return [(view.peer, view.endpoint, view.start) for view in node.peers.views()]


def test_lost_is_contradicted_by_all_who_know_better() -> None:
    world = world_of(5)
    liar, victim = world["n5"], world["n2"]
    lost = said(liar, Lost(victim.node_id, 1, 60_000), liar)
    for other in world.nodes[:4]:
        liar.inject(other, encode_gossip(lost))
    world.run_ms(10_000)
    assert {move.after for node in world.nodes for _, move in node.moves} == {PeerState.ALIVE}


def test_two_liars_cannot_put_out_a_node_that_is_heard() -> None:
    """They answer every health query with "never heard", and lose all frames of the victim."""
    world = world_of(5)
    victim = world["n2"]
    for liar in (world["n4"], world["n5"]):
        world.network.cut(victim.index, liar.index)
        world.network.cut(liar.index, victim.index)
    world.run_ms(60_000)
    for honest in (world["n1"], world["n3"]):
        assert honest.state_of(victim) is PeerState.ALIVE
        assert honest.is_up(victim)
    left = [m for node in world.nodes for _, m in node.moves if m.after is PeerState.LEFT]
    assert left == []


def test_a_liar_that_vouches_keeps_a_silent_node_in_view_but_not_up() -> None:
    """The most that a member gains by lying, and nothing hangs on it: the silent one is not up."""
    world = world_of(4)
    liar, silent, honest = world["n4"], world["n2"], world["n1"]
    assert liar.peers is not None
    silent.crash()
    # A liar that believes to hear it all the time answers that it was heard just now.
    for _ in range(60):
        liar.peers._desk.membership.heard(silent.node_id, liar.peers._now.monotonic_ms)
        world.run_ms(500)
    assert not honest.is_up(silent)
    assert honest.state_of(silent) is not PeerState.LEFT
    world.run_ms(40_000)
    assert honest.state_of(silent) is PeerState.DEAD


@pytest.mark.parametrize("restarted", [False, True])
def test_recorded_frames_do_nothing(restarted: bool) -> None:
    """All frames of some seconds are sent again: on their link, on others, to a node that
    restarted in between."""
    world = world_of(4)
    world.is_tapped = True
    world["n1"].take(ins.QueryAsked(1, "what", b"", 1_000))
    world.run_ms(3_000)
    world.is_tapped = False
    victim = world["n2"]
    if restarted:
        victim.crash()
        world.run_ms(1_000)
        victim.start()
        world.run_until(lambda: all(len(node.up) == 3 for node in world.nodes), 5_000)
        world.run_ms(1_000)
    for node in world.nodes:
        before, moves, asked = sum(node.refusals.values()), len(node.moves), node.questions
        node.take(*world.tapped)
        world.run_ms(10)
        assert len(node.moves) == moves
        assert node.questions == asked
        assert sum(node.refusals.values()) - before >= len(world.tapped) * 9 // 10
    assert all(len(node.up) == 3 for node in world.nodes)


def test_a_query_among_liars_is_won_by_the_honest_half() -> None:
    world = world_of(7)
    for name in ("n5", "n6", "n7"):
        world[name].answer = lambda question: b"lie"
    world["n1"].take(ins.QueryAsked(1, "what", b"truth", 2_000))
    world.run_ms(2_500)
    (ended,) = world["n1"].of_kind(fx.QueryEnded)
    assert isinstance(ended, fx.QueryEnded)
    assert (ended.verdict, ended.answer) == ("agreed", b"truth")
