"""The peer machine as a whole, on the bench: who is up, what is kept, what is refused."""

import msgspec
import pytest

from quipu.ledger.words import Now
from quipu.p2p import effects as fx
from quipu.p2p import inputs as ins
from quipu.p2p import limits
from quipu.p2p.bodies import Addresses, Query
from quipu.p2p.decen import Alive, Hello
from quipu.p2p.gossip import Kind
from quipu.p2p.kept import decode_kept
from quipu.p2p.peers import Peers
from quipu.p2p.words import Endpoint, LinkId, PeerState, PeerView, PoolName, Start
from tests.peer_bench import START_MS, Bench, Hand, causes, endpoint_of, of

UpDown = fx.PeerUp | fx.PeerDown


def ups(effects: list[fx.Effect]) -> list[UpDown]:
    return [effect for effect in effects if isinstance(effect, UpDown)]


# --- up and down --------------------------------------------------------------------------------
def test_up_once_both_ways_are_verified_and_not_before() -> None:
    bench = Bench(2)
    n2 = bench.hand("n2")
    assert ups(bench.step(n2.hello())) == []
    assert ups(bench.step(ins.LinkOpened(n2.id))) == [fx.PeerUp(n2.id)]
    assert ups(bench.step(n2.alive())) == []


def test_up_in_whatever_order_the_ways_open() -> None:
    bench = Bench(2)
    n2 = bench.hand("n2")
    bench.step(ins.SeedGiven(n2.id, endpoint_of("n2")))
    assert ups(bench.step(ins.LinkOpened(n2.id))) == []
    assert ups(bench.step(n2.hello(), n2.alive())) == [fx.PeerUp(n2.id)]


def test_what_comes_with_hello_in_one_turn_is_heard_after_up() -> None:
    bench = Bench(2)
    n2 = bench.hand("n2")
    bench.step(ins.SeedGiven(n2.id, endpoint_of("n2")))
    bench.step(ins.LinkOpened(n2.id))
    effects = bench.step(n2.hello(), n2.alive(n2.plain(Kind.LEDGER, b"first")))
    told = [e for e in effects if isinstance(e, fx.PeerUp | fx.LedgerHeard)]
    assert told == [fx.PeerUp(n2.id), fx.LedgerHeard(n2.id, b"first")]


def test_down_when_the_own_link_ends_and_up_again_when_it_is_back() -> None:
    bench = Bench(2)
    n2 = bench.linked("n2")
    assert ups(bench.step(ins.LinkClosed(n2.id, "reset"))) == [fx.PeerDown(n2.id)]
    assert bench.state("n2") is PeerState.ALIVE  # its frames still come
    effects = bench.step(after_ms=130)
    assert of(effects, fx.OpenLink) == [fx.OpenLink(n2.id, endpoint_of("n2"))]
    assert ups(bench.step(ins.LinkOpened(n2.id))) == [fx.PeerUp(n2.id)]


def test_down_and_up_when_the_peer_dials_anew() -> None:
    """What was under way on its link before is lost."""
    bench = Bench(2)
    n2 = bench.linked("n2")
    old = n2.link
    assert ups(bench.step(n2.hello())) == [fx.PeerDown(n2.id), fx.PeerUp(n2.id)]
    stale = n2.frame(Alive(77), n2.plain(Kind.LEDGER, b"late"), link=old)
    assert causes(bench.step(stale)) == ["not-hello"]


def test_down_and_up_when_its_start_changes() -> None:
    bench = Bench(2)
    n2 = bench.linked("n2")
    bench.step(n2.alive())
    again = Hand(bench, "n2", Start(n2.start + 1))
    effects = bench.step(again.hello())
    assert ups(effects) == [fx.PeerDown(n2.id)]
    assert of(effects, fx.CloseLink) == [fx.CloseLink(n2.id)]  # it led to the old process
    assert of(effects, fx.OpenLink) == [fx.OpenLink(n2.id, endpoint_of("n2"))]
    assert ups(bench.step(ins.LinkOpened(n2.id))) == [fx.PeerUp(n2.id)]
    assert bench.view("n2").start == again.start


def test_an_older_start_is_refused_also_after_a_restart() -> None:
    bench = Bench(2)
    n2 = bench.linked("n2")
    older = Hand(bench, "n2", Start(n2.start - 1))
    assert causes(bench.step(older.hello())) == ["older-start"]
    bench.run(6_000)
    again = Bench(2, of(bench.effects, fx.KeepPeers)[-1].data)
    older.bench = again
    assert causes(again.step(older.hello())) == ["older-start"]
    assert again.state("n2") is PeerState.UNKNOWN


SPOKE: dict[Kind, type[ins.LedgerSpoke | ins.LogSpoke]] = {
    Kind.LEDGER: ins.LedgerSpoke,
    Kind.LOG: ins.LogSpoke,
}
HEARD: dict[Kind, type[fx.LedgerHeard | fx.LogHeard]] = {
    Kind.LEDGER: fx.LedgerHeard,
    Kind.LOG: fx.LogHeard,
}
plain_kinds = pytest.mark.parametrize("kind", [Kind.LEDGER, Kind.LOG])


@plain_kinds
def test_messages_of_core_and_log_go_only_to_who_is_up(kind: Kind) -> None:
    bench = Bench(2)
    n2 = bench.hand("n2")
    bench.step(n2.hello())
    assert not n2.said(bench.step(SPOKE[kind](n2.id, b"early")))
    effects = bench.step(ins.LinkOpened(n2.id))
    assert not n2.told(effects, kind)
    effects = bench.step(SPOKE[kind](n2.id, b"one"), SPOKE[kind](n2.id, b"two"))
    assert [message.body for message in n2.told(effects, kind)] == [b"one", b"two"]
    assert n2.commands(effects) == [Alive]


@plain_kinds
def test_messages_of_core_and_log_count_only_from_who_is_up(kind: Kind) -> None:
    bench = Bench(2)
    n2 = bench.hand("n2")
    bench.step(n2.hello())
    effects = bench.step(n2.alive(n2.plain(kind, b"early")))
    assert causes(effects) == ["not-up"]
    assert not of(effects, HEARD[kind])


@plain_kinds
@pytest.mark.parametrize("lie", ["sender", "action", "signature"])
def test_a_message_of_core_or_log_is_the_peers_own_and_bare(lie: str, kind: Kind) -> None:
    bench = Bench(3)
    n2, n3 = bench.linked("n2"), bench.linked("n3")
    made = n2.plain(kind, b"data")
    match lie:
        case "sender":
            made = msgspec.structs.replace(made, sender=n3.id)
        case "action":
            made = msgspec.structs.replace(made, action=1)
        case _:
            made = msgspec.structs.replace(made, signature=bytes(64))
    effects = bench.step(n2.alive(made))
    assert not of(effects, HEARD[kind])
    assert causes(effects)


# --- dialling -----------------------------------------------------------------------------------
def test_a_seed_is_dialled_for_ever() -> None:
    bench = Bench(2)
    n2 = bench.hand("n2")
    bench.step(ins.SeedGiven(n2.id, endpoint_of("n2")))
    dials = 0
    for _ in range(600):
        effects = bench.step(ins.LinkClosed(n2.id, "refused"), after_ms=100)
        dials += len(of(effects, fx.OpenLink))
    assert 45 <= dials <= 80


def test_who_moved_is_dialled_where_it_says_it_is() -> None:
    bench = Bench(2)
    n2 = bench.hand("n2")
    bench.step(ins.SeedGiven(n2.id, Endpoint("old.example", 1)))
    effects = bench.step(n2.hello())
    assert of(effects, fx.OpenLink) == [fx.OpenLink(n2.id, endpoint_of("n2"))]


def test_a_peer_that_does_not_greet_back_is_greeted_again() -> None:
    bench = Bench(2)
    n2 = bench.hand("n2")
    bench.step(ins.SeedGiven(n2.id, endpoint_of("n2")))
    bench.step(ins.LinkOpened(n2.id))
    effects = bench.run(3_000)
    assert n2.commands(effects).count(Hello) >= 2


def test_two_hellos_never_answer_each_other_for_ever() -> None:
    bench = Bench(2)
    n2 = bench.linked("n2")
    answers = 0
    for _ in range(100):
        answers += n2.commands(bench.step(n2.hello(again=True), after_ms=20)).count(Hello)
    assert 1 <= answers <= 3


def test_a_known_peer_whose_hello_was_lost_is_asked_for_it() -> None:
    bench = Bench(2)
    n2 = bench.linked("n2")
    n2.link, n2.sequence = LinkId(b"another"), 0
    effects = bench.step(n2.alive())
    assert causes(effects) == ["not-hello"]
    assert n2.commands(effects) == [Hello]


def test_an_observer_that_died_is_forgotten() -> None:
    bench = Bench(2)
    observer = bench.linked("n9")
    bench.run(31_000)
    assert observer.id not in {view.peer for view in bench.peers.views()}
    desk = bench.peers._desk
    assert observer.id not in desk.book.signed
    assert observer.link_key not in desk.links.by_key
    assert observer.link not in desk.links.by_inbound
    bench.step(observer.hello())  # it dials by itself
    assert bench.state("n9") is PeerState.ALIVE


def test_an_observer_answers_a_member_that_dials_it_by_itself() -> None:
    """A master has to ask a nominee whether it is ready, whichever members that one ranks first."""
    bench = Bench(6, name="n9")
    hands = {hand.id: hand for hand in map(bench.hand, bench.names)}
    *attached, left = (hands[peer] for peer in bench.peers._desk.book.ranking()[:4])
    for member in attached:
        bench.linked(member.name)
    assert left.id not in [one.peer for one in of(bench.run(1_000), fx.OpenLink)]
    assert [one.peer for one in of(bench.step(left.hello()), fx.OpenLink)] == [left.id]
    assert ups(bench.step(ins.LinkOpened(left.id))) == [fx.PeerUp(left.id)]


def test_a_nominee_that_let_go_of_its_link_is_dialled_anew() -> None:
    """It takes a link up again for one that is new, not for a greeting on the old one."""
    bench = Bench(2)
    nominee = bench.linked("n9")
    bench.run(limits.SUSPECT_AFTER_MS + 1_000)  # it is silent, and the own link still open
    effects = bench.step(ins.SeedGiven(nominee.id, endpoint_of("n9")))
    assert of(effects, fx.CloseLink) == [fx.CloseLink(nominee.id)]
    assert of(bench.run(1_000), fx.OpenLink) == [fx.OpenLink(nominee.id, endpoint_of("n9"))]


def test_a_nominee_that_is_linked_is_not_dialled_again() -> None:
    bench = Bench(2)
    nominee = bench.linked("n9")
    effects = bench.step(ins.SeedGiven(nominee.id, endpoint_of("n9")), after_ms=4_000)
    assert not of(effects, fx.CloseLink)
    assert not of(effects, fx.OpenLink)


def test_peers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PEERS_MAX", 2)
    bench = Bench(2)
    assert causes(bench.step(bench.hand("n8").hello())) == []
    assert causes(bench.step(bench.hand("n9").hello())) == ["too-many-peers"]
    assert causes(bench.step(bench.hand("n2").hello())) == []


def test_pools_are_bounded_and_that_is_told() -> None:
    bench = Bench(2)
    names = [PoolName(f"pool {number}") for number in range(limits.POOLS_MAX + 1)]
    assert causes(bench.step(*(ins.PoolJoined(name) for name in names))) == ["too-large"]
    assert causes(bench.step(ins.PoolJoined(names[0]), ins.PoolLeft(names[-1]))) == []


def test_to_a_silent_target_it_goes_straight_and_over_the_others() -> None:
    bench = Bench(4)
    n2, n3, n4 = (bench.linked(name) for name in ("n2", "n3", "n4"))
    for _ in range(12):
        bench.step(n3.alive(), n4.alive(), after_ms=500)
    assert bench.state("n2") is PeerState.SUSPECT
    effects = bench.step(n4.alive(n4.message(Query("what", b""), n2.id)))
    assert len(n2.told(effects, Kind.QUERY)) == len(n3.told(effects, Kind.QUERY)) == 1
    assert not n4.told(effects, Kind.QUERY)


def test_of_others_than_members_nobody_is_told_where_they_are() -> None:
    """Who is no member says it itself: else one peer could fill the list of all others."""
    bench = Bench(3)
    n2 = bench.linked("n2")
    told = [bench.hand(name).endpoint for name in ("n3", "n8", "n9")]
    bench.step(n2.alive(n2.message(Addresses(told), bench.me)))
    signed = bench.peers._desk.book.signed
    assert bench.hand("n3").id in signed
    assert {bench.hand(name).id for name in ("n8", "n9")} & set(signed) == set()


# --- what is kept -------------------------------------------------------------------------------
def test_a_restart_knows_all_members_without_a_seed() -> None:
    bench = Bench(3)
    for name in ("n2", "n3"):
        bench.linked(name)
    bench.run(6_000)
    again = Bench(3, of(bench.effects, fx.KeepPeers)[-1].data)
    dialled = {effect.endpoint for effect in of(again.step(), fx.OpenLink)}
    assert dialled == {endpoint_of("n2"), endpoint_of("n3")}


def test_each_start_is_greater_than_the_one_before_whatever_the_clock_says() -> None:
    bench = Bench(2)
    (kept, *_) = of(bench.step(), fx.KeepPeers)
    earlier = Peers(bench.config, kept.data, Now(START_MS - 3_600_000, 5))
    assert earlier.start == bench.peers.start + 1
    assert bench.peers.start >> limits.START_SHIFT == START_MS


@pytest.mark.parametrize("kept", [b"", b"garbage", b"\x93\x63\x00\x90"])
def test_what_cannot_be_read_is_told_and_done_without(kept: bytes) -> None:
    bench = Bench(2, kept)
    assert causes(bench.step()) == ["stale-memory"]
    bench.linked("n2")
    assert bench.state("n2") is PeerState.ALIVE


def test_a_kept_endpoint_that_was_tampered_with_is_refused() -> None:
    bench = Bench(2)
    bench.linked("n2")
    bench.run(6_000)
    data = of(bench.effects, fx.KeepPeers)[-1].data
    assert [peer.node_id for peer in decode_kept(data).peers] == [bench.hand("n2").id]
    changed = data.replace(b"10.0.0.2", b"10.6.6.6")
    assert changed != data
    again = Bench(2, changed)
    assert causes(again.step()) == ["bad-signature"]
    assert again.view("n2").endpoint is None


def test_nothing_is_kept_where_nothing_changed() -> None:
    bench = Bench(2)
    n2 = bench.linked("n2")
    bench.run(7_000)
    for _ in range(20):
        assert not of(bench.step(n2.alive(), after_ms=500), fx.KeepPeers)


# --- time ---------------------------------------------------------------------------------------
def test_an_idle_machine_wakes_a_few_times_a_second() -> None:
    bench = Bench(3)
    hands = [bench.linked("n2"), bench.linked("n3")]
    bench.run(3_000)
    turns = 0
    end_ms = bench.now.monotonic_ms + 60_000
    while bench.now.monotonic_ms < end_ms:
        due_ms = bench.peers.next_deadline()
        assert due_ms is not None
        wait_ms = max(due_ms - bench.now.monotonic_ms, 1)
        bench.now = Now(bench.now.wall_ms + wait_ms, due_ms)
        bench.step(*(hand.alive() for hand in hands))
        turns += 1
    assert turns <= 60 * 4


def test_alone_there_is_nothing_to_wait_for() -> None:
    bench = Bench(1)
    bench.step()
    assert bench.peers.next_deadline() is None


def test_too_many_queries_end_at_once() -> None:
    bench = Bench(3)
    asked = [ins.QueryAsked(n, "what", b"", 60_000) for n in range(limits.QUERIES_OPEN_MAX + 1)]
    (ended,) = of(bench.step(*asked), fx.QueryEnded)
    assert (ended.ticket, ended.verdict, ended.asked) == (limits.QUERIES_OPEN_MAX, "timeout", 0)


def test_views_tell_what_is_known() -> None:
    bench = Bench(3)
    n2 = bench.linked("n2")
    bench.step(after_ms=300)
    here = endpoint_of("n2")
    alive = PeerView(n2.id, PeerState.ALIVE, here, 300, n2.start, (), True, True, "test", "n2")
    assert bench.view("n2") == alive
    unknown = bench.view("n3")
    assert unknown.state is PeerState.UNKNOWN
    assert (unknown.heard_ms_ago, unknown.start, unknown.endpoint) == (None, None, None)
    assert (unknown.linked_in, unknown.linked_out, unknown.version) == (False, False, "")


def test_a_config_shows_no_secret() -> None:
    config = Bench().config
    assert repr(config.secrets[0]) not in repr(config)
    assert config.secrets[0].hex() not in repr(config)
