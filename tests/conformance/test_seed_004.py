"""Seed 004, clause by clause, on one real machine and hands, or on a small world of machines.

docs/protocols.md says how each clause is read.
"""

import msgspec
import pytest

from quipu.ledger.signing import verify
from quipu.p2p import effects as fx
from quipu.p2p import inputs as ins
from quipu.p2p.addresses import sign_endpoint
from quipu.p2p.bodies import (
    Ack,
    Addresses,
    Answer,
    Body,
    Discovered,
    HealthAnswer,
    HealthQuery,
    Joined,
    Lost,
    Query,
    Unsupported,
)
from quipu.p2p.decen import Ping
from quipu.p2p.gossip import (
    GOSSIP_VERSION,
    Action,
    Gossip,
    Kind,
    body_of,
    decode_content,
    encode_gossip,
    has_valid_signature,
    number_of,
    start_of,
)
from quipu.p2p.leaving import decode_leaving
from quipu.p2p.words import Endpoint, PeerState
from tests.conformance.clauses import clause
from tests.peer_bench import (
    CLUSTER_ID,
    SECRET,
    Bench,
    Hand,
    causes,
    endpoint_of,
    key_of,
    node_id,
    of,
)
from tests.simulation.peers_world import PeersWorld
from tests.unit.p2p.test_guests import GENESIS, Asking

S = PeerState


def table(members: int) -> tuple[Bench, list[Hand]]:
    """n1, and hands for all the others, linked."""
    bench = Bench(members)
    hands = [bench.linked(name) for name in bench.names[1:]]
    bench.run(1_500)
    bench.step(*(hand.alive() for hand in hands))
    return bench, hands


def silent_for(bench: Bench, span_ms: int, speakers: list[Hand]) -> list[fx.Effect]:
    """Time passes in which these alone are heard."""
    before = len(bench.effects)
    for _ in range(span_ms // 500):
        bench.step(*(hand.alive() for hand in speakers), after_ms=500)
    return bench.effects[before:]


def only(messages: list[Gossip]) -> Gossip:
    assert messages
    assert len({message.id for message in messages}) == 1
    return messages[0]


def asked(bench: Bench, hand: Hand, about: Hand, effects: list[fx.Effect]) -> Gossip:
    """The newest health query that this hand got."""
    queries = hand.told(effects, Kind.HEALTH_QUERY)
    body = body_of(queries[-1])
    assert isinstance(body, HealthQuery)
    assert body.node_id == about.id
    return queries[-1]


def world_of(members: int) -> PeersWorld:
    world = PeersWorld(1, members)
    for node in world.nodes:
        node.start(world["n1"])
    world.run_until(lambda: all(len(node.up) == members - 1 for node in world.nodes), 3_000)
    return world


# --- events -------------------------------------------------------------------------------------
@clause("004-01", "004-04")
def test_what_a_node_learns_it_tells_as_an_event_that_names_its_type() -> None:
    bench, (n2, n3, n4) = table(4)
    joined = n3.told(bench.effects, Kind.JOINED)
    bodies = [body_of(message) for message in joined]
    assert {body.endpoint.node_id for body in bodies if isinstance(body, Joined)} >= {n2.id}
    effects = silent_for(bench, 6_000, [n3, n4])
    query = asked(bench, n3, n2, effects)
    for hand in (n3, n4):
        report = HealthAnswer(query.id, n2.id, n2.start, 6_000)
        effects = bench.step(hand.alive(hand.message(report, bench.me)))
    effects = silent_for(bench, 5_000, [n3, n4])
    lost = body_of(only(n3.told(effects, Kind.LOST)))
    assert isinstance(lost, Lost)
    assert lost.node_id == n2.id


@clause("004-02", "004-05", "004-07")
def test_each_message_has_its_own_id_and_names_who_set_it_off() -> None:
    bench, hands = table(5)
    silent_for(bench, 12_000, hands[1:])
    made: dict[bytes, bytes] = {}
    for hand in hands:
        for said in hand.said(bench.effects):
            for message in said.messages:
                assert isinstance(message, Gossip)
                assert message.sender == bench.me
                if message.signature is not None:
                    assert has_valid_signature(message, CLUSTER_ID, verify)
                    assert made.setdefault(message.id, encode_gossip(message)[18:]) is not None
                    assert start_of(message.id) == bench.peers.start
                    assert number_of(message.id) > 0
    assert len(made) > 5
    assert len(set(made.values())) == len(made)  # no two messages under one id


@clause("004-03", "004-08")
def test_a_duplicate_is_discarded_without_any_action() -> None:
    bench, (n2, n3) = table(3)
    query = n2.message(Query("what", b"this"))
    assert len(of(bench.step(n2.alive(query)), fx.Question)) == 1
    for hand in (n2, n3):
        effects = bench.step(hand.alive(query))
        assert causes(effects) == ["duplicate"]
        assert not of(effects, fx.Question)
        assert not n2.told(effects, Kind.QUERY)
        assert not n3.told(effects, Kind.QUERY)


@clause("004-08")
def test_of_a_duplicate_neither_body_nor_action_is_looked_at() -> None:
    bench, (n2, n3) = table(3)
    query = n2.message(Query("what", b"this"))
    bench.step(n2.alive(query))
    broken = msgspec.structs.replace(query, body=b"garbage", action=99)
    assert causes(bench.step(n3.alive(broken))) == ["duplicate"]
    new = msgspec.structs.replace(broken, id=query.id[:-1] + b"\xff")
    assert causes(bench.step(n3.alive(new))) == ["wrong-action"]


@clause("004-03")
def test_a_duplicate_stays_one_after_a_restart() -> None:
    bench, (n2, _) = table(3)
    query = n2.message(Query("what", b"this"))
    bench.step(n2.alive(query))
    bench.run(61_000)
    kept = of(bench.effects, fx.KeepPeers)[-1].data
    again = Bench(3, kept)
    n2_again = again.hand("n2")
    again.step(n2_again.hello())
    assert causes(again.step(n2_again.alive(query))) == ["duplicate"]


@clause("004-06")
def test_the_expected_action_stands_in_the_message_and_is_checked() -> None:
    bench, (n2, n3) = table(3)
    discovered = n2.message(Discovered(n2.endpoint, "n2"))
    assert discovered.action == Action.ACK
    assert n2.message(HealthQuery(n3.id)).action == Action.TELL_HEALTH
    assert n2.message(Query("what", b"")).action == Action.ANSWER
    assert n2.farewell().action == Action.REMOVE
    other = msgspec.structs.replace(discovered, action=Action.REMOVE)
    assert causes(bench.step(n2.alive(other))) == ["wrong-action"]


# --- spreading ----------------------------------------------------------------------------------
@clause("004-09", "004-10")
def test_for_one_node_that_is_known_it_goes_straight_there() -> None:
    bench, (n2, n3, n4) = table(4)
    question = n2.message(Query("what", b""), target=n3.id)
    effects = bench.step(n2.alive(question))
    (passed,) = n3.told(effects, Kind.QUERY)
    assert passed.hop_limit == question.hop_limit - 1
    assert not n4.told(effects, Kind.QUERY)
    assert not of(effects, fx.Question)  # it is not for this node
    assert len(of(bench.step(n2.alive(n2.message(Query("what", b""), bench.me))), fx.Question)) == 1


@clause("004-11")
def test_for_one_node_that_is_not_known_it_goes_to_the_others_once() -> None:
    bench, (n2, n3, n4) = table(4)
    question = n2.message(Query("what", b""), target=node_id("n77"))
    effects = bench.step(n2.alive(question))
    assert not n2.told(effects, Kind.QUERY)  # never back
    assert len(n3.told(effects, Kind.QUERY)) == len(n4.told(effects, Kind.QUERY)) == 1
    assert causes(bench.step(n3.alive(question))) == ["duplicate"]
    last = n2.message(Query("what", b""), target=node_id("n77"), hop_limit=0)
    assert not n3.told(bench.step(n2.alive(last)), Kind.QUERY)


@clause("004-12")
@pytest.mark.parametrize("members", [4, 8, 9, 20])
def test_for_all_it_goes_to_all_or_to_three_above_eight(members: int) -> None:
    bench, hands = table(members)
    effects = bench.step(hands[0].alive(hands[0].message(Query("what", b""))))
    assert len(of(effects, fx.Question)) == 1
    told = [hand for hand in hands[1:] if hand.told(effects, Kind.QUERY)]
    assert len(told) == (members - 2 if members <= 8 else 3)
    assert not hands[0].told(effects, Kind.QUERY)


@clause("004-12")
@pytest.mark.parametrize("members", [9, 32])
def test_three_each_are_enough_to_reach_all(members: int) -> None:
    world = world_of(members)
    world["n1"].take(ins.QueryAsked(1, "what", b"this", 5_000))
    world.run_ms(300)
    (ended,) = world["n1"].of_kind(fx.QueryEnded)
    assert isinstance(ended, fx.QueryEnded)
    assert ended.verdict == "agreed"
    assert all(node.questions for node in world.nodes)


# --- queries ------------------------------------------------------------------------------------
@clause("004-13", "004-14")
def test_a_request_holds_the_question_and_names_who_asks() -> None:
    bench, hands = table(3)
    effects = bench.step(ins.QueryAsked(1, "members.epoch", b"argument", 5_000))
    for hand in hands:
        request = only(hand.told(effects, Kind.QUERY))
        body = body_of(request)
        assert isinstance(body, Query)
        assert (body.question, body.argument) == ("members.epoch", b"argument")
        assert request.sender == bench.me
    (own,) = of(effects, fx.Question)
    assert (own.peer, own.question, own.argument) == (bench.me, "members.epoch", b"argument")


@clause("004-15", "004-16")
def test_a_response_holds_the_answer_and_is_signed_by_who_answers() -> None:
    bench, (n2, n3) = table(3)
    query = n2.message(Query("what", b""))
    (question,) = of(bench.step(n2.alive(query)), fx.Question)
    effects = bench.step(ins.QuestionAnswered(question.ticket, b"that"))
    response = only(n2.told(effects, Kind.ANSWER))
    assert body_of(response) == Answer(query.id, b"that")
    assert response.sender == bench.me
    assert has_valid_signature(response, CLUSTER_ID, verify)
    assert not n3.told(effects, Kind.ANSWER)


@clause("004-16")
def test_an_answer_in_the_name_of_another_node_does_not_count() -> None:
    bench, (n2, n3) = table(3)
    effects = bench.step(ins.QueryAsked(1, "what", b"", 1_000))
    request = only(n2.told(effects, Kind.QUERY))
    forged = msgspec.structs.replace(n2.message(Answer(request.id, b"lie"), bench.me), sender=n3.id)
    assert causes(bench.step(n2.alive(forged))) == ["bad-signature"]
    (ended,) = of(bench.run(2_000), fx.QueryEnded)
    assert (ended.verdict, ended.answers) == ("timeout", ())


def answer_to(request: Gossip, hand: Hand, bench: Bench, answer: bytes) -> ins.Input:
    return hand.alive(hand.message(Answer(request.id, answer), bench.me))


@clause("004-17")
def test_of_several_responses_of_a_node_the_newest_counts() -> None:
    bench, (n2, n3, n4, n5) = table(5)
    effects = bench.step(ins.QueryAsked(1, "what", b"", 5_000))
    request = only(n2.told(effects, Kind.QUERY))
    older = n2.message(Answer(request.id, b"old"), bench.me)
    bench.step(answer_to(request, n2, bench, b"new"))
    assert causes(bench.step(n2.alive(older))) == ["not-asked"]  # overtaken: changes nothing
    bench.step(answer_to(request, n3, bench, b"other"))
    bench.step(answer_to(request, n4, bench, b"new"))
    effects = bench.step(answer_to(request, n3, bench, b"new"))
    (ended,) = of(effects, fx.QueryEnded)
    assert (ended.verdict, ended.answer) == ("agreed", b"new")
    assert [node for node, _ in ended.answers] == [n2.id, n3.id, n4.id]
    for _, data in ended.answers:  # as signed: anybody can check them
        (message,) = decode_content(b"\x91" + data)
        assert isinstance(message, Gossip)
        assert has_valid_signature(message, CLUSTER_ID, verify)
    assert n5.id not in dict(ended.answers)


@clause("004-18")
@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ([b"a", b"a", None], "timeout-or-agreed"),
        ([b"a", b"a", b"b"], "agreed"),
        ([b"b", b"b", b"a"], "contested"),
        ([b"b", b"c", b"d"], "timeout"),
        ([None, None, None], "timeout"),
    ],
)
def test_at_least_half_have_to_agree(answers: list[bytes | None], verdict: str) -> None:
    """Four members, n1 among them says a."""
    bench, hands = table(4)
    effects = bench.step(ins.QueryAsked(1, "what", b"", 2_000))
    request = only(hands[0].told(effects, Kind.QUERY))
    (own,) = of(effects, fx.Question)
    ended = of(bench.step(ins.QuestionAnswered(own.ticket, b"a")), fx.QueryEnded)
    for hand, answer in zip(hands, answers, strict=True):
        if answer is not None:
            ended += of(bench.step(answer_to(request, hand, bench, answer)), fx.QueryEnded)
    is_early = bool(ended)
    ended += of(bench.run(3_000), fx.QueryEnded)
    assert len(ended) == 1
    if verdict == "timeout-or-agreed":  # three of four say a: nobody can come to half any more
        assert (ended[0].verdict, is_early) == ("agreed", True)
    else:
        assert ended[0].verdict == verdict
        assert is_early == (verdict != "timeout")


@clause("004-18")
def test_half_is_enough_at_the_timeout_but_not_before() -> None:
    bench, (n2, n3, n4) = table(4)
    effects = bench.step(ins.QueryAsked(1, "what", b"", 2_000))
    request = only(n2.told(effects, Kind.QUERY))
    ended = of(bench.step(answer_to(request, n2, bench, b"a")), fx.QueryEnded)
    ended += of(bench.step(answer_to(request, n3, bench, b"a")), fx.QueryEnded)
    assert not ended  # n1 and n4 could still say b
    (end,) = of(bench.run(3_000), fx.QueryEnded)
    assert (end.verdict, end.answer) == ("agreed", b"a")
    assert causes(bench.step(answer_to(request, n4, bench, b"b"))) == ["not-asked"]


@clause("004-19")
def test_the_members_that_count_are_those_of_the_moment_of_asking() -> None:
    bench, (n2, n3, n4) = table(4)
    effects = bench.step(ins.QueryAsked(1, "what", b"", 2_000))
    request = only(n2.told(effects, Kind.QUERY))
    bench.step(ins.RosterChanged((bench.me, n2.id)))
    bench.step(answer_to(request, n3, bench, b"a"))
    bench.step(answer_to(request, n4, bench, b"a"))
    (ended,) = of(bench.run(3_000), fx.QueryEnded)
    assert (ended.verdict, ended.asked, len(ended.answers)) == ("agreed", 4, 2)


@clause("004-19")
def test_who_is_no_member_does_not_count() -> None:
    bench, (n2, _) = table(3)
    observer = bench.linked("n9")
    effects = bench.step(ins.QueryAsked(1, "what", b"", 1_000))
    request = only(n2.told(effects, Kind.QUERY))
    assert causes(bench.step(answer_to(request, observer, bench, b"a"))) == ["not-asked"]


# --- discovery ----------------------------------------------------------------------------------
@clause("004-20", "004-21", "004-22")
def test_a_newcomer_tells_the_one_node_it_knows_and_asks_for_an_ack() -> None:
    bench = Bench(4)
    n2 = bench.hand("n2")
    effects = bench.step(ins.SeedGiven(n2.id, endpoint_of("n2")))
    assert of(effects, fx.OpenLink) == [fx.OpenLink(n2.id, endpoint_of("n2"))]
    effects = bench.step(ins.LinkOpened(n2.id))
    event = only(n2.told(effects, Kind.DISCOVERED))
    body = body_of(event)
    assert isinstance(body, Discovered)
    assert body.endpoint.node_id == event.sender == bench.me
    assert (body.endpoint.endpoint, event.action) == (endpoint_of("n1"), Action.ACK)


@clause("004-20", "004-41")
def test_the_uri_of_one_node_and_the_secret_key_are_all_that_a_newcomer_is_given() -> None:
    asking = Asking()
    asking.to_guest(asking.answer())
    assert asking.guest.outcome == GENESIS
    stranger = Asking(secrets=(bytes(32),))
    refused = stranger.to_host(stranger.open())
    assert causes(refused) == ["wrong-secret"]
    assert of(refused, fx.OpenLink) == []


@clause("004-22", "004-24")
def test_who_hears_of_a_newcomer_acks_straight_to_it_and_tells_the_others() -> None:
    bench, hands = table(3)
    newcomer = bench.hand("n4")
    bench.step(ins.RosterChanged((*bench.config.members, newcomer.id)))
    event = newcomer.message(Discovered(newcomer.endpoint, "n4"))
    effects = bench.step(hands[0].alive(event))  # it has never met n4 itself
    assert of(effects, fx.OpenLink) == [fx.OpenLink(newcomer.id, endpoint_of("n4"))]
    assert len(hands[1].told(effects, Kind.DISCOVERED)) == 1
    effects = bench.step(ins.LinkOpened(newcomer.id))
    assert body_of(only(newcomer.told(effects, Kind.ACK))) == Ack(
        event.id, bench.peers._desk.voice.card.endpoint
    )


@clause("004-24")
def test_no_single_node_can_fail_a_join() -> None:
    world = PeersWorld(1, 5)
    for node in world.nodes[:4]:
        node.start(world["n1"])
    world.run_until(lambda: all(len(node.up) == 3 for node in world.nodes[:4]), 3_000)
    newcomer = world["n5"]
    newcomer.start(world["n1"])
    world.run_until(lambda: any(n.is_up(newcomer) for n in world.nodes[1:4]), 3_000, 1)
    world["n1"].crash()
    world.run_until(lambda: len(newcomer.up) == 3, 3_000)


@clause("004-23", "004-36", "004-37")
def test_the_list_of_uris_grows_by_what_its_own_node_has_signed_alone() -> None:
    bench = Bench(5)
    n2 = bench.linked("n2")
    assert bench.view("n3").endpoint is None
    n3, n4 = bench.hand("n3"), bench.hand("n4")
    bench.step(n2.alive(n2.message(Addresses([n3.endpoint]), bench.me)))
    assert bench.view("n3").endpoint == endpoint_of("n3")
    hijacked = sign_endpoint(n2.key, CLUSTER_ID, Endpoint("10.6.6.6", 1), n4.start)
    forged = msgspec.structs.replace(hijacked, node_id=n4.id)
    effects = bench.step(n2.alive(n2.message(Addresses([forged]), bench.me)))
    assert causes(effects) == ["bad-signature"]
    assert bench.view("n4").endpoint is None
    bench.step(n2.alive(n2.message(Joined(n4.endpoint, n4.start))))
    assert bench.view("n4").endpoint == endpoint_of("n4")


@clause("004-36")
def test_of_two_endpoints_of_a_node_the_newer_counts() -> None:
    bench = Bench(3)
    n2, n3 = bench.linked("n2"), bench.hand("n3")
    moved = sign_endpoint(n3.key, CLUSTER_ID, Endpoint("10.0.0.33", 8471), n3.start + 1)
    bench.step(n2.alive(n2.message(Addresses([moved]), bench.me)))
    bench.step(n2.alive(n2.message(Addresses([n3.endpoint]), bench.me)))
    assert bench.view("n3").endpoint == Endpoint("10.0.0.33", 8471)


# --- leaving ------------------------------------------------------------------------------------
@clause("004-25", "004-26")
def test_a_farewell_takes_its_sender_off_the_list_of_the_living() -> None:
    bench, (n2, n3) = table(3)
    effects = bench.step(n3.alive(n2.farewell()))  # whoever passes it on
    assert bench.state("n2") is S.LEFT
    assert of(effects, fx.PeerDown) == [fx.PeerDown(n2.id)]
    assert bench.config.members[1] == n2.id  # the roster is the epoch documents' alone


@clause("004-25")
def test_who_leaves_says_so_to_all_and_then_nothing_more() -> None:
    bench, hands = table(12)
    effects = bench.step(ins.LeaveAsked())
    for hand in hands:
        farewell = only(hand.told(effects, Kind.LEAVING))
        assert has_valid_signature(farewell, CLUSTER_ID, verify)
    assert {effect.peer for effect in of(effects, fx.CloseLink)} == {hand.id for hand in hands}
    assert bench.step(hands[0].alive()) == []
    assert bench.peers.next_deadline() is None


@clause("004-27")
def test_a_farewell_of_any_version_is_understood() -> None:
    bench, (n2, _) = table(3)
    data = n2.farewell_of_version(200)
    assert decode_leaving(data).version == 200
    bench.step(n2.raw_alive(b"\x91" + data))
    assert bench.state("n2") is S.LEFT


# --- silence ------------------------------------------------------------------------------------
@clause("004-28", "004-29")
def test_a_node_unheard_for_a_while_is_asked_about() -> None:
    bench, (n2, n3, n4) = table(4)
    effects = silent_for(bench, 4_500, [n3, n4])
    assert bench.state("n2") is S.ALIVE
    assert not n3.told(effects, Kind.HEALTH_QUERY)
    effects = silent_for(bench, 1_500, [n3, n4])
    assert bench.state("n2") is S.SUSPECT
    assert of(effects, fx.PeerDown) == [fx.PeerDown(n2.id)]
    for hand in (n3, n4):
        assert asked(bench, hand, n2, effects).action == Action.TELL_HEALTH
    assert Ping in n2.commands(effects)


@clause("004-29")
def test_a_node_that_slept_itself_suspects_nobody() -> None:
    bench, _ = table(3)
    effects = bench.sleep(20_000)
    assert not of(effects, fx.StateChanged)
    effects = silent_for(bench, 4_500, [])
    assert not of(effects, fx.StateChanged)
    assert {move.after for move in of(silent_for(bench, 1_000, []), fx.StateChanged)} == {S.SUSPECT}


@clause("004-30")
def test_everybody_tells_how_the_node_in_question_is() -> None:
    bench, (n2, n3) = table(3)
    silent_for(bench, 3_000, [n2])
    query = n2.message(HealthQuery(n3.id))
    effects = bench.step(n2.alive(query))
    answer = only(n2.told(effects, Kind.HEALTH_ANSWER))
    body = body_of(answer)
    assert isinstance(body, HealthAnswer)
    assert (body.query, body.node_id, body.start) == (query.id, n3.id, n3.start)
    assert body.heard_ms_ago is not None
    assert 3_000 <= body.heard_ms_ago <= 5_000
    assert has_valid_signature(answer, CLUSTER_ID, verify)
    never = n2.message(HealthQuery(node_id("n77")))
    body = body_of(only(n2.told(bench.step(n2.alive(never)), Kind.HEALTH_ANSWER)))
    assert isinstance(body, HealthAnswer)
    assert body.heard_ms_ago is None


@clause("004-31")
def test_a_more_recent_contact_of_another_one_renews_the_time() -> None:
    bench, (n2, n3, n4) = table(4)
    effects = silent_for(bench, 6_000, [n3, n4])
    query = asked(bench, n3, n2, effects)
    report = HealthAnswer(query.id, n2.id, n2.start, 500)
    bench.step(n3.alive(n3.message(report, bench.me)))
    assert bench.state("n2") is S.ALIVE
    heard_ms_ago = bench.view("n2").heard_ms_ago
    assert heard_ms_ago == 500
    older = HealthAnswer(query.id, n2.id, n2.start, 4_000)
    bench.step(n4.alive(n4.message(older, bench.me)))
    assert bench.view("n2").heard_ms_ago == 500


@clause("004-30", "004-31")
@pytest.mark.parametrize("lie", ["unasked", "of another", "forged"])
def test_reports_count_only_if_fresh_and_signed(lie: str) -> None:
    bench, (n2, n3, n4) = table(4)
    effects = silent_for(bench, 6_000, [n3, n4])
    query = asked(bench, n3, n2, effects)
    match lie:
        case "unasked":
            report = n3.message(HealthAnswer(bytes(16), n2.id, n2.start, 0), bench.me)
        case "of another":
            report = n3.message(HealthAnswer(query.id, n4.id, n4.start, 0), bench.me)
        case _:
            report = n3.message(HealthAnswer(query.id, n2.id, n2.start, 0), bench.me)
            report = msgspec.structs.replace(report, sender=n2.id)
    effects = bench.step(n3.alive(report))
    assert causes(effects) == ["bad-signature" if lie == "forged" else "not-asked"]
    assert bench.state("n2") is S.SUSPECT


@clause("004-32")
def test_its_own_report_beats_all_others() -> None:
    bench, (n2, n3, n4) = table(4)
    effects = silent_for(bench, 9_000, [n3, n4])
    query = asked(bench, n3, n2, effects)
    for hand in (n3, n4):
        report = HealthAnswer(query.id, n2.id, n2.start, 9_000)
        bench.step(hand.alive(hand.message(report, bench.me)))
    own = n2.message(HealthAnswer(query.id, n2.id, n2.start, 0), bench.me)
    bench.step(n3.alive(own))  # its own link is broken: it came over another one
    assert bench.state("n2") is S.ALIVE
    assert not of(bench.step(), fx.PeerUp)
    silent_for(bench, 4_000, [n3, n4])
    assert bench.state("n2") is S.ALIVE


@clause("004-32")
def test_a_node_that_is_missed_answers_for_itself() -> None:
    bench, (n2, n3) = table(3)
    effects = bench.step(n3.alive(n2.message(HealthQuery(bench.me))))
    body = body_of(only(n2.told(effects, Kind.HEALTH_ANSWER)))
    assert isinstance(body, HealthAnswer)
    assert (body.node_id, body.heard_ms_ago) == (bench.me, 0)
    lost = n2.message(Lost(bench.me, bench.peers.start, 10_000))
    effects = bench.step(n3.alive(lost))
    assert body_of(only(n2.told(effects, Kind.HEALTH_ANSWER))) == HealthAnswer(
        lost.id, bench.me, bench.peers.start, 0
    )


@clause("004-33")
def test_after_twice_the_time_it_is_unreachable_if_two_others_say_so() -> None:
    bench, (n2, n3, n4) = table(4)
    effects = silent_for(bench, 9_000, [n3, n4])
    query = asked(bench, n3, n2, effects)
    report = HealthAnswer(query.id, n2.id, n2.start, 9_000)
    bench.step(n3.alive(n3.message(report, bench.me), n3.message(report, bench.me)))
    silent_for(bench, 3_000, [n3, n4])
    assert bench.state("n2") is S.SUSPECT  # one witness, however often it speaks
    effects = bench.step(n4.alive(n4.message(report, bench.me)))
    effects += bench.step()
    assert bench.state("n2") is S.UNREACHABLE
    assert only(n3.told(effects, Kind.LOST)).sender == bench.me
    silent_for(bench, 30_000, [n3, n4])
    assert bench.state("n2") is S.DEAD  # never LEFT: it has not said so


@clause("004-33")
def test_nobody_can_say_farewell_for_another_one() -> None:
    bench, (n2, n3) = table(3)
    forged = msgspec.structs.replace(n3.farewell(), sender=n2.id)
    effects = bench.step(n3.alive(forged))
    assert causes(effects) == ["bad-signature"]
    assert bench.state("n2") is S.ALIVE


@clause("004-34", "004-35")
def test_who_was_put_out_comes_back_by_any_frame_and_that_is_told() -> None:
    bench, (n2, n3) = table(3)
    effects = silent_for(bench, 40_000, [n3])
    assert bench.state("n2") is S.DEAD
    assert len([e for e in of(effects, fx.OpenLink) if e.peer == n2.id]) >= 1
    bench.step(n2.alive())
    assert bench.state("n2") is S.ALIVE
    effects = silent_for(bench, 1_000, [n2, n3])
    body = body_of(only(n3.told(effects, Kind.JOINED)))
    assert isinstance(body, Joined)
    assert body.endpoint == n2.endpoint


@clause("004-35", "004-38")
def test_when_a_new_node_makes_contact_that_is_told_once() -> None:
    bench = Bench(4)
    n3 = bench.linked("n3")
    bench.run(1_000)
    n2 = bench.hand("n2")
    bench.step(n2.hello())
    effects = silent_for(bench, 1_000, [n2, n3])
    body = body_of(only(n3.told(effects, Kind.JOINED)))
    assert isinstance(body, Joined)
    assert (body.endpoint, body.start) == (n2.endpoint, n2.start)
    n4 = bench.hand("n4")
    bench.step(n4.hello())
    bench.step(n3.alive(n3.message(Joined(n4.endpoint, n4.start))))  # n3 was quicker
    assert not n2.told(silent_for(bench, 1_000, [n2, n3]), Kind.JOINED)


# --- versions and keys --------------------------------------------------------------------------
@clause("004-39")
def test_each_message_states_its_version() -> None:
    bench, hands = table(3)
    messages = [m for hand in hands for said in hand.said(bench.effects) for m in said.messages]
    assert messages
    assert {message.version for message in messages} == {GOSSIP_VERSION}


@clause("004-40")
def test_an_unknown_kind_or_version_is_told_back_and_the_link_stays() -> None:
    bench, (n2, _) = table(3)
    unknown = msgspec.structs.replace(n2.message(Query("what", b"")), kind=99)
    effects = bench.step(n2.alive(unknown))
    assert causes(effects) == ["unknown-kind"]
    assert body_of(only(n2.told(effects, Kind.UNSUPPORTED))) == Unsupported(
        unknown.id, 99, GOSSIP_VERSION
    )
    foreign = msgspec.msgpack.encode([7, unknown.id, 99, b"whatever comes then"])
    effects = bench.step(n2.raw_alive(b"\x91" + foreign))
    assert body_of(only(n2.told(effects, Kind.UNSUPPORTED))) == Unsupported(unknown.id, 99, 7)
    assert not of(effects, fx.PeerDown)
    assert bench.view("n2").linked_in


@clause("004-40")
def test_without_a_version_in_common_the_link_closes() -> None:
    bench, (n2, _) = table(3)
    effects = bench.step(n2.hello_of_protocol(8, 9))
    assert causes(effects) == ["no-common-version"]
    assert len(n2.told(effects, Kind.VERSION_MISMATCH)) == 1
    assert of(effects, fx.CloseLink) == [fx.CloseLink(n2.id)]


@clause("004-43", "004-45")
def test_a_signature_proves_who_said_it_and_the_secret_does_not() -> None:
    bench, (n2, n3) = table(3)
    for body in every_signed_body(n2):
        message = n3.message(body)  # n3 holds the secret, and not the key of n2
        effects = bench.step(n3.alive(msgspec.structs.replace(message, sender=n2.id)))
        assert causes(effects) == ["bad-signature"]
    for plain in (Ack(bytes(16), None), Addresses([])):
        message = n3.message(plain)
        effects = bench.step(n3.alive(msgspec.structs.replace(message, sender=n2.id)))
        assert causes(effects) == ["not-its-own"]


def every_signed_body(hand: Hand) -> list[Body]:
    return [
        Discovered(hand.endpoint, hand.name),
        Joined(hand.endpoint, hand.start),
        Lost(hand.id, hand.start, 1),
        HealthQuery(hand.id),
        HealthAnswer(bytes(16), hand.id, hand.start, 0),
        Query("what", b""),
        Answer(bytes(16), b""),
    ]


@clause("004-44")
def test_without_the_secret_nobody_is_admitted() -> None:
    bench = Bench(3)
    n2 = bench.hand("n2")
    n2.secrets = (b"x" * 32,)
    assert causes(bench.step(n2.hello())) == ["wrong-secret"]
    assert bench.state("n2") is S.UNKNOWN
    n2.secrets = (b"x" * 32, SECRET)  # while it is changed, several are held
    assert of(bench.step(n2.hello()), fx.StateChanged)


@clause("004-45")
def test_the_key_of_the_link_must_be_that_of_the_claimed_node() -> None:
    bench = Bench(3)
    n2, liar = bench.hand("n2"), bench.hand("n3")
    claimed = n2.hello()
    assert isinstance(claimed, ins.FrameReceived)
    stolen = ins.FrameReceived(claimed.link, liar.link_key, claimed.head, claimed.content)
    assert causes(bench.step(stolen)) == ["wrong-key"]
    assert bench.state("n2") is S.UNKNOWN
    assert key_of("n2").node_id == n2.id
