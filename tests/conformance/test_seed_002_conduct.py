"""Seed 002, the clauses of conduct: what a node does with the commands, on one real machine.

The grammar is held by test_seed_002.py. Peers that only a test moves are hands.
"""

import pytest

from quipu.p2p import effects as fx
from quipu.p2p import inputs as ins
from quipu.p2p.addresses import sign_endpoint
from quipu.p2p.beacon import Beacon, seal_beacon
from quipu.p2p.decen import Alive, Broadcast, DecenAck, Hello, Join, Leave, Ping
from quipu.p2p.gossip import Kind
from quipu.p2p.hello import Pools
from quipu.p2p.words import PeerState, PoolName
from tests.conformance.clauses import clause
from tests.peer_bench import CLUSTER_ID, SECRET, Bench, causes, endpoint_of, of
from tests.simulation.peers_world import PeersWorld, SimPeer

ORDERS, OTHERS = PoolName("orders"), PoolName("Orders")
SUSPECT_MS, DEAD_MS = 5_000, 30_000


@clause("002-01", "002-02", "002-31")
def test_hello_is_the_first_command_of_a_link_and_nothing_else_is_read_before() -> None:
    bench = Bench()
    n2 = bench.hand("n2")
    bench.step(ins.SeedGiven(n2.id, endpoint_of("n2")))
    effects = bench.step(ins.LinkOpened(n2.id))
    assert n2.commands(effects)[0] is Hello  # of this node's own link
    n2.hello()
    early = n2.alive(n2.plain(Kind.LEDGER, b"early"))
    effects = bench.step(early)
    assert causes(effects) == ["not-hello"]
    assert not of(effects, fx.LedgerHeard)
    assert bench.state("n2") is PeerState.UNKNOWN
    effects = bench.step(n2.hello())
    assert of(effects, fx.PeerUp) == [fx.PeerUp(n2.id)]
    for number in range(20):
        effects = bench.step(n2.alive(n2.plain(Kind.LEDGER, b"%d" % number)))
        assert of(effects, fx.LedgerHeard) == [fx.LedgerHeard(n2.id, b"%d" % number)]


@clause("002-11")
def test_sequences_count_up_on_each_link_and_wrap_around() -> None:
    bench = Bench()
    n2, n3 = bench.linked("n2"), bench.linked("n3")
    bench.run(4_000)
    for hand in (n2, n3):
        sequences = [said.command.sequence for said in hand.said(bench.effects)]
        assert sequences == list(range(len(sequences)))
    for number in range(2**16 // 2**14 + 1):  # no gap is as long as half of all sequences
        n2.sequence = (number + 1) * 2**14 - 1
        assert causes(bench.step(n2.alive())) == []
    assert n2.sequence > 2**16


@clause("002-11")
def test_a_gap_is_a_notice_and_what_was_here_is_refused() -> None:
    bench = Bench()
    n2 = bench.linked("n2")
    n2.sequence += 3
    effects = bench.step(n2.alive())
    assert of(effects, fx.FramesMissed) == [fx.FramesMissed(n2.id, 3)]
    assert n2.commands(effects) == []
    n2.sequence -= 1
    effects = bench.step(n2.alive(n2.plain(Kind.LEDGER, b"again")))
    assert causes(effects) == ["repeated-sequence"]
    assert not of(effects, fx.LedgerHeard)


@clause("002-36")
def test_who_is_greeted_connects_in_return() -> None:
    bench = Bench(members=2)
    n2 = bench.hand("n2")
    effects = bench.step(n2.hello())
    assert of(effects, fx.OpenLink) == [fx.OpenLink(n2.id, endpoint_of("n2"))]
    assert not of(bench.step(n2.hello()), fx.OpenLink)  # a link is being made already


@clause("002-36")
def test_also_to_one_that_is_no_member() -> None:
    bench = Bench()
    observer = bench.hand("n9")
    effects = bench.step(observer.hello())
    assert of(effects, fx.OpenLink) == [fx.OpenLink(observer.id, endpoint_of("n9"))]


@clause("002-34", "002-35")
def test_hello_replaces_what_was_known_of_the_pools() -> None:
    bench = Bench()
    n2 = bench.linked("n2", Pools((ORDERS,), 7))
    assert bench.view("n2").pools == (ORDERS,)
    n2.sequence += 1
    effects = bench.step(n2.frame(Join(n2.sequence, OTHERS, 8)))  # the status goes on from HELLO
    assert Hello not in n2.commands(effects)
    bench.step(n2.hello(Pools((OTHERS,), 9), again=True))
    assert bench.view("n2").pools == (OTHERS,)


@clause("002-18", "002-37")
def test_each_change_of_pools_raises_the_status_by_one_mod_256() -> None:
    bench = Bench()
    n2 = bench.linked("n2")
    statuses = []
    for number in range(300):
        change = ins.PoolLeft(ORDERS) if number % 2 else ins.PoolJoined(ORDERS)
        for said in n2.said(bench.step(change)):
            assert isinstance(said.command, Join | Leave)
            statuses.append(said.command.status)
    assert statuses == [number % 256 for number in range(1, 301)]


@clause("002-38")
def test_a_jump_in_the_status_asks_for_a_new_hello() -> None:
    bench = Bench()
    n2 = bench.linked("n2", Pools((), 255))
    n2.sequence += 1
    effects = bench.step(n2.frame(Join(n2.sequence, ORDERS, 0)))
    assert Hello not in n2.commands(effects)  # 255 + 1 is 0
    n2.sequence += 1
    effects = bench.step(n2.frame(Join(n2.sequence, OTHERS, 2)))
    assert n2.commands(effects) == [Hello]  # a HELLO in the midst of a link asks for one
    effects = bench.step(n2.hello(Pools((ORDERS, OTHERS, PoolName("missed")), 2), again=True))
    assert Hello not in n2.commands(effects)  # it was the answer
    assert len(bench.view("n2").pools) == 3


@clause("002-38")
def test_a_hello_in_the_midst_of_a_link_is_answered_by_one() -> None:
    bench = Bench()
    n2 = bench.linked("n2")
    assert n2.commands(bench.step(n2.hello(again=True))) == [Hello]


@clause("002-39", "002-40")
def test_alive_after_a_second_without_another_frame() -> None:
    bench = Bench(members=2)
    n2 = bench.linked("n2")
    bench.run(2_000)  # its coming is told
    sent = [len(n2.commands(bench.step(n2.alive(), after_ms=500))) for _ in range(8)]
    assert sent in ([0, 1] * 4, [1, 0] * 4)
    effects = bench.run(3_000)
    assert n2.commands(effects) == [Alive] * 3
    assert all(said.messages == () for said in n2.said(effects))
    effects = []
    for _ in range(6):  # what is sent anyway is a sign of life
        effects += bench.step(n2.alive(), ins.LedgerSpoke(n2.id, b"data"), after_ms=500)
    assert [len(said.messages) for said in n2.said(effects)] == [1] * 6


@clause("002-41", "002-43")
def test_a_broadcast_goes_to_each_peer_of_the_pool_as_its_own_copy() -> None:
    bench = Bench(members=4)
    n2 = bench.linked("n2", Pools((ORDERS,), 1))
    n3 = bench.linked("n3", Pools((ORDERS, OTHERS), 2))
    n4 = bench.linked("n4", Pools((OTHERS,), 1))
    effects = bench.step(ins.PoolSpoke(ORDERS, b"hello, all"))
    for hand in (n2, n3):
        (said,) = [s for s in hand.said(effects) if isinstance(s.command, Broadcast)]
        assert isinstance(said.command, Broadcast)
        assert said.command.pool == ORDERS
        (message,) = said.messages
        assert message.kind == Kind.POOL
    assert Broadcast not in n4.commands(effects)


@clause("002-44")
def test_multicast_sends_once_what_several_hear_and_the_rest_over_the_links() -> None:
    world = PeersWorld(seed=44, member_count=5)
    n1, n2, n3, n4, n5 = world.nodes
    for node in world.nodes:
        node.has_multicast = node is not n5
        node.start(*[other for other in world.nodes if other is not node])
        node.take(ins.PoolJoined(ORDERS))
    world.run_until(lambda: all(len(node.up) == 4 for node in world.nodes), 5_000)
    world.run_ms(2_500)  # those that hear it have reported so

    def heard(node: SimPeer) -> list[bytes]:
        return [e.data for e in node.of_kind(fx.PoolHeard) if isinstance(e, fx.PoolHeard)]

    datagrams, frames = world.casts.datagrams, world.frames
    n1.take(ins.PoolSpoke(ORDERS, b"once"))
    world.run_ms(20)
    assert world.casts.datagrams - datagrams == 1  # for n2, n3, n4
    assert world.frames - frames == 1  # for n5, where it is off
    world.casts.deaf[n4.index] = None
    n1.take(ins.PoolSpoke(ORDERS, b"lost"))
    world.run_ms(20)
    del world.casts.deaf[n4.index]
    world.run_ms(200)  # n4 sees the gap, and asks for it over its link
    assert [heard(node) for node in (n2, n3, n4, n5)] == [[b"once", b"lost"]] * 4


@clause("002-41")
def test_what_a_broadcast_brings_is_heard_by_who_is_in_the_pool() -> None:
    bench = Bench()
    n2 = bench.linked("n2")
    bench.step(ins.PoolJoined(ORDERS))
    n2.sequence += 1
    news = n2.frame(Broadcast(n2.sequence, ORDERS), n2.plain(Kind.POOL, b"news"))
    assert of(bench.step(news), fx.PoolHeard) == [fx.PoolHeard(ORDERS, n2.id, b"news")]
    n2.sequence += 1
    other = n2.frame(Broadcast(n2.sequence, OTHERS), n2.plain(Kind.POOL, b"news"))
    effects = bench.step(other)
    assert not of(effects, fx.PoolHeard)
    assert causes(effects) == ["not-in-pool"]


@clause("002-45", "002-46", "002-48", "002-49")
def test_join_and_leave_are_told_to_all_peers_with_the_status_after_it() -> None:
    bench = Bench()
    hands = [bench.linked("n2", Pools((ORDERS,), 1)), bench.linked("n3")]
    joined = bench.step(ins.PoolJoined(ORDERS))
    left = bench.step(ins.PoolLeft(ORDERS))
    for hand in hands:
        (join,) = [s.command for s in hand.said(joined)]
        (leave,) = [s.command for s in hand.said(left)]
        assert isinstance(join, Join)
        assert isinstance(leave, Leave)
        assert (join.pool, join.status) == (ORDERS, 1)
        assert (leave.pool, leave.status) == (ORDERS, 2)
    assert not hands[0].said(bench.step(ins.PoolLeft(ORDERS)))  # it was not in it


@clause("002-47")
def test_upper_and_lower_case_make_different_pools() -> None:
    bench = Bench()
    n2 = bench.linked("n2", Pools((ORDERS,), 1))
    bench.step(ins.PoolJoined(ORDERS))
    assert Broadcast not in n2.commands(bench.step(ins.PoolSpoke(OTHERS, b"data")))
    n2.sequence += 1
    effects = bench.step(n2.frame(Broadcast(n2.sequence, OTHERS), n2.plain(Kind.POOL, b"data")))
    assert not of(effects, fx.PoolHeard)


@clause("002-50", "002-51", "002-55", "002-56")
def test_ping_goes_to_who_is_silent_for_five_seconds_and_to_nobody_else() -> None:
    bench = Bench()
    silent, other = bench.linked("n2"), bench.linked("n3")
    since_ms = bench.now.monotonic_ms
    first_ping_ms = None
    for _ in range(20):
        effects = bench.step(other.alive(), after_ms=500)
        assert Ping not in other.commands(effects)
        if Ping in silent.commands(effects) and first_ping_ms is None:
            first_ping_ms = bench.now.monotonic_ms - since_ms
    assert first_ping_ms is not None
    assert SUSPECT_MS <= first_ping_ms + 500 <= SUSPECT_MS + 1_000
    assert bench.state("n2") is not PeerState.ALIVE
    assert bench.state("n3") is PeerState.ALIVE
    pings = silent.commands(bench.effects).count(Ping)
    assert pings <= 3  # one each 2.5 s


@clause("002-50", "002-52")
def test_beacons_that_get_lost_make_nobody_suspect_and_those_that_come_make_nobody_alive() -> None:
    bench = Bench()
    n2, n3 = bench.linked("n2"), bench.linked("n3")
    for number in range(40):  # n2: frames and no beacon; n3: beacons and no frame
        endpoint = sign_endpoint(n3.key, CLUSTER_ID, endpoint_of("n3"), n3.start + number)
        datagram = seal_beacon(Beacon(1, endpoint, n3.start), SECRET, number.to_bytes(24))
        effects = bench.step(n2.alive(), ins.BeaconHeard(datagram), after_ms=1_000)
        assert Ping not in n2.commands(effects)
    assert bench.state("n2") is PeerState.ALIVE
    assert bench.state("n3") is PeerState.DEAD
    assert Ping in n3.commands(bench.effects)


@clause("002-53", "002-54")
def test_dead_after_thirty_seconds_without_any_frame_and_dialled_for_ever() -> None:
    bench = Bench()
    n2 = bench.linked("n2")
    other = bench.linked("n3")
    moves: list[tuple[int, PeerState]] = []
    since_ms = bench.now.monotonic_ms
    for _ in range(70):
        effects = bench.step(other.alive(), after_ms=500)
        moves += [
            (bench.now.monotonic_ms - since_ms, move.after)
            for move in of(effects, fx.StateChanged)
            if move.peer == n2.id
        ]
    assert [after for _, after in moves] == [PeerState.SUSPECT, PeerState.DEAD]
    assert DEAD_MS - 500 <= moves[-1][0] <= DEAD_MS + 500
    assert of(bench.effects, fx.CloseLink) == [fx.CloseLink(n2.id)]  # its queues are freed
    dials = 0
    for _ in range(120):
        effects = bench.step(other.alive(), after_ms=500)
        dials += len(of(effects, fx.OpenLink))
        bench.step(ins.LinkClosed(n2.id, "refused"))
    assert dials > 20


@clause("002-53")
def test_a_reply_to_ping_is_a_sign_of_life() -> None:
    bench = Bench(members=2)
    n2 = bench.linked("n2")
    bench.run(6_000)
    assert bench.state("n2") is PeerState.SUSPECT
    n2.sequence += 1
    effects = bench.step(n2.frame(DecenAck(n2.sequence)))
    assert bench.state("n2") is PeerState.ALIVE
    assert of(effects, fx.PeerUp) == [fx.PeerUp(n2.id)]


@clause("002-57")
def test_ping_is_answered_by_decenack_at_once() -> None:
    bench = Bench()
    n2, n3 = bench.linked("n2"), bench.linked("n3")
    n2.sequence += 1
    effects = bench.step(n2.frame(Ping(n2.sequence)))
    assert n2.commands(effects) == [DecenAck]
    assert n3.commands(effects) == []


@pytest.mark.parametrize("command", [Ping, DecenAck])
@clause("002-29", "002-30")
def test_commands_without_content_bring_none(command: type[Ping | DecenAck]) -> None:
    bench = Bench()
    n2 = bench.linked("n2")
    n2.sequence += 1
    effects = bench.step(n2.frame(command(n2.sequence), n2.plain(Kind.LEDGER, b"smuggled")))
    assert causes(effects) == ["trailing-bytes"]
    assert not of(effects, fx.LedgerHeard)
