from dataclasses import replace

from quipu.ledger import limits
from quipu.ledger.fetch import Fetch, Request, Wants
from quipu.ledger.messages import CoverWant, InvWant, RangeWant
from quipu.ledger.safeguards import ALL
from quipu.ledger.words import EventId, NodeId, Now

N2, N3, N4 = (NodeId(bytes([n]) * 32) for n in (2, 3, 4))
PEERS = [N2, N3, N4]
E1, E2 = EventId(b"1" * 32), EventId(b"2" * 32)
NO_WANTS = Wants()


def at(ms: int) -> Now:
    return Now(0, ms)


def ask(fetch: Fetch, peer: NodeId, ms: int, wants: Wants = NO_WANTS) -> int:
    """The number of the request that this peer gets now."""
    fetch.tire(at(ms))
    return fetch.ask(peer, fetch.ids_for(peer, PEERS, at(ms)), wants, at(ms)).request_id


def test_an_id_is_asked_of_who_named_it_first_and_not_before_its_time() -> None:
    fetch = Fetch(ALL)
    fetch.want(E1, N3, 100)
    fetch.want(E1, N4, 300)  # named by another one, later
    assert fetch.ids_for(N3, PEERS, at(99)) == []
    assert fetch.next_deadline(at(99)) == 100
    assert fetch.ids_for(N2, PEERS, at(100)) == []
    assert fetch.ids_for(N3, PEERS, at(100)) == [E1]


def test_a_want_may_come_to_be_due_earlier() -> None:
    fetch = Fetch(ALL)
    fetch.want(E1, N3, 100)
    fetch.want(E1, N2, 50)
    assert fetch.ids_for(N3, PEERS, at(50)) == [E1]


def test_an_id_is_in_one_request_at_a_time() -> None:
    fetch = Fetch(ALL)
    fetch.want(E1, N2, 0)
    ask(fetch, N2, 0)
    assert fetch.is_waiting_for(N2)
    assert [fetch.ids_for(peer, PEERS, at(10)) for peer in PEERS] == [[], [], []]
    assert fetch.next_deadline(at(10)) == limits.REQUEST_RETRY_MS


def test_another_peer_is_asked_after_a_second_and_a_late_answer_is_still_taken() -> None:
    fetch = Fetch(ALL)
    fetch.want(E1, N2, 0)
    first = ask(fetch, N2, 0)
    fetch.tire(at(limits.REQUEST_RETRY_MS - 1))
    assert fetch.ids_for(N3, PEERS, at(999)) == []
    second = ask(fetch, N3, limits.REQUEST_RETRY_MS)
    assert not fetch.is_waiting_for(N2)
    assert fetch.is_waiting_for(N3)
    late = fetch.answered(N2, first)
    assert late is not None
    assert late.ids == [E1]
    assert fetch.is_waiting_for(N3)
    assert fetch.ids_for(N4, PEERS, at(1_001)) == []  # the second one is in flight still
    assert fetch.answered(N3, second) is not None


def test_an_answer_is_taken_for_five_seconds() -> None:
    fetch = Fetch(ALL)
    fetch.want(E1, N2, 0)
    number = ask(fetch, N2, 0)
    fetch.got(E1)
    fetch.tire(at(limits.REQUEST_RETRY_MS))
    assert fetch.next_deadline(at(limits.REQUEST_RETRY_MS)) == limits.REQUEST_TIMEOUT_MS
    fetch.tire(at(limits.REQUEST_TIMEOUT_MS))
    assert fetch.answered(N2, number) is None
    assert fetch.next_deadline(at(limits.REQUEST_TIMEOUT_MS)) is None


def test_only_who_was_asked_answers_and_only_once() -> None:
    fetch = Fetch(ALL)
    fetch.want(E1, N2, 0)
    number = ask(fetch, N2, 0)
    assert fetch.answered(N3, number) is None
    assert fetch.answered(N2, number + 1) is None
    assert fetch.answered(N2, number) is not None
    assert fetch.answered(N2, number) is None


def test_what_nobody_has_is_given_up() -> None:
    fetch = Fetch(ALL)
    fetch.want(E1, N3, 0)
    asked = []
    for turn in range(3):
        (peer,) = [peer for peer in PEERS if fetch.ids_for(peer, PEERS, at(turn))]
        asked.append(peer)
        fetch.answered(peer, ask(fetch, peer, turn))
    assert asked == [N3, N2, N4]  # the one that named it first
    assert fetch.ids_for(N2, PEERS, at(9)) == []
    assert fetch.wanted == {}
    fetch.want(E1, N3, 9)  # SyncEvent names what is real again
    assert fetch.ids_for(N3, PEERS, at(9)) == [E1]


def test_what_did_not_fit_into_an_answer_is_asked_of_the_same_peer_again() -> None:
    fetch = Fetch(ALL)
    fetch.want(E1, N2, 0)
    fetch.want(E2, N2, 0)
    request = fetch.answered(N2, ask(fetch, N2, 0))
    assert request is not None
    fetch.got(E1)
    assert fetch.ids_for(N2, [N2], at(1)) == []  # it has not got it, as far as is known
    fetch.want(E2, N2, 1)
    request = fetch.answered(N2, ask(fetch, N2, 1))
    assert request is not None
    fetch.has_more(N2, request, at(1))
    assert fetch.ids_for(N2, [N2], at(2)) == [E2]


def far_behind() -> Fetch:
    """A range of n2 goes on; something else is wanted."""
    fetch = Fetch(ALL)
    fetch.want(E1, N3, 0)
    ranges = Wants([RangeWant(2, 1, [], 9, bytes(16))])
    request = fetch.answered(N2, fetch.ask(N2, [], ranges, at(0)).request_id)
    assert request is not None
    fetch.has_more(N2, request, at(0))
    return fetch


def test_a_node_that_is_far_behind_asks_for_no_single_events() -> None:
    fetch = far_behind()
    assert fetch.is_far_behind(at(1))
    assert fetch.ids_for(N3, PEERS, at(1)) == []
    assert fetch.next_deadline(at(1)) == limits.REQUEST_RETRY_MS
    whole = fetch.ask(N2, [], Wants([RangeWant(2, 1, [], 9, bytes(16))]), at(1))
    fetch.answered(N2, whole.request_id)  # and the range ends with it
    assert not fetch.is_far_behind(at(2))
    assert fetch.ids_for(N3, PEERS, at(2)) == [E1]


def test_a_range_that_goes_on_no_more_holds_nothing_up() -> None:
    fetch = far_behind()
    assert not fetch.is_far_behind(at(limits.REQUEST_RETRY_MS))
    assert fetch.ids_for(N3, PEERS, at(limits.REQUEST_RETRY_MS)) == [E1]
    fetch = far_behind()
    fetch.lose(N2)
    assert fetch.ids_for(N3, PEERS, at(1)) == [E1]


def test_answers_without_ranges_do_not_tell_how_far_behind_it_is() -> None:
    fetch = far_behind()
    request = fetch.answered(N2, ask(fetch, N2, 1))
    assert request is not None
    assert fetch.is_far_behind(at(1))
    fetch.has_more(N2, request, at(1))
    assert not fetch.is_far_behind(at(limits.REQUEST_RETRY_MS))


def test_a_lost_peer_frees_what_it_was_asked_for() -> None:
    fetch = Fetch(ALL)
    fetch.want(E1, N2, 0)
    number = ask(fetch, N2, 0)
    fetch.lose(N2)
    assert fetch.ids_for(N3, [N3, N4], at(1)) == [E1]
    assert fetch.answered(N2, number) is None


def test_a_lost_peer_leaves_the_requests_of_others() -> None:
    fetch = Fetch(ALL)
    fetch.want(E1, N2, 0)
    number = ask(fetch, N2, 0)
    fetch.lose(N3)
    assert fetch.answered(N2, number) is not None


def test_those_that_do_not_answer_come_last() -> None:
    fetch = Fetch(ALL)
    fetch.want(E1, N2, 0)
    number = ask(fetch, N2, 0)
    fetch.tire(at(limits.REQUEST_RETRY_MS))
    assert fetch.in_order(PEERS) == [N3, N4, N2]
    fetch.answered(N2, number)
    assert fetch.in_order(PEERS) == [N2, N3, N4]


def test_a_request_holds_at_most_256_ids() -> None:
    fetch = Fetch(ALL)
    for number in range(limits.GET_IDS_MAX + 1):
        fetch.want(EventId(number.to_bytes(32)), N2, 0)
    assert len(fetch.ids_for(N2, PEERS, at(0))) == limits.GET_IDS_MAX


def test_the_list_of_wants_is_bounded() -> None:
    fetch, boundless = Fetch(ALL), Fetch(replace(ALL, wants_bounded=False))
    for number in range(limits.WANTS_MAX + 5):
        for one in (fetch, boundless):
            one.want(EventId(number.to_bytes(32)), N2, 0)
    assert len(fetch.wanted) == limits.WANTS_MAX
    assert len(boundless.wanted) == limits.WANTS_MAX + 5


def test_what_is_due_and_cannot_be_asked_for_is_no_reason_to_wake() -> None:
    fetch = Fetch(ALL)
    fetch.want(E1, N2, 50)
    assert fetch.next_deadline(at(49)) == 50
    assert fetch.next_deadline(at(50)) is None  # a peer has to come first


def test_what_a_live_request_asks_for_is_taken() -> None:
    fetch = Fetch(ALL)
    wants = Wants(
        [RangeWant(2, 7, [], 5, b"r" * 16)],
        [InvWant(3, 9), InvWant(4, 0)],
        [CoverWant(2, 8, 1, b"c" * 16)],
    )
    assert wants
    ask(fetch, N2, 0, wants)
    tips, signers = fetch.taken()
    assert sorted(tips) == [(2, 7, b"r" * 16), (2, 8, b"c" * 16)]
    assert sorted(signers) == [3]  # of number 0 each member is asked for itself
    fetch.tire(at(limits.REQUEST_RETRY_MS))
    assert fetch.taken() == (set(), set())
    assert not Wants()


def test_without_the_safeguard_the_first_peer_is_asked_for_ever() -> None:
    fetch = Fetch(replace(ALL, asks_another_peer=False))
    fetch.want(E1, N3, 0)
    fetch.answered(N3, ask(fetch, N3, 0))
    assert fetch.ids_for(N3, PEERS, at(1)) == [E1]
    assert fetch.ids_for(N2, PEERS, at(1)) == []


def test_without_a_bound_what_nobody_has_is_asked_for_again() -> None:
    fetch = Fetch(replace(ALL, wants_bounded=False))
    fetch.want(E1, N2, 0)
    for peer in PEERS:
        fetch.answered(peer, ask(fetch, peer, 0))
    fetch.ids_for(N2, PEERS, at(1))
    assert fetch.ids_for(N2, PEERS, at(1)) == [E1]


def test_a_request_knows_what_it_was_for() -> None:
    fetch = Fetch(ALL)
    fetch.want(E1, N2, 0)
    wants = Wants(invs=[InvWant(3, 9)])
    message = fetch.ask(N2, [E1], wants, at(40))
    assert (message.ids, message.invs, message.bytes_max) == (
        [E1],
        [InvWant(3, 9)],
        limits.ANSWER_BYTES_MAX,
    )
    assert fetch.answered(N2, message.request_id) == Request(N2, [E1], wants, 1_040, 5_040)
