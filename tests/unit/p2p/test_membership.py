"""The ladder, on a clock that a test moves."""

import pytest

from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.membership import TRANSITIONS, Membership, Sign, witnesses_needed
from quipu.p2p.words import PeerState

ME, N2, N3, N4, N5 = (NodeId(bytes([n]) * 32) for n in range(1, 6))
FIVE = (ME, N2, N3, N4, N5)
SUSPECT, UNREACHABLE, DEAD = 5_000, 10_000, 30_000
S = PeerState


def heard_at(now_ms: int, members: tuple[NodeId, ...] = FIVE) -> Membership:
    membership = Membership(members)
    membership.heard(N2, now_ms)
    return membership


def passed(membership: Membership, begin_ms: int, end_ms: int) -> list[tuple[int, PeerState]]:
    """How N2 moves while nothing is heard, and when."""
    moves = []
    for now_ms in range(begin_ms, end_ms + 1, 100):
        moves += [(now_ms, move.after) for move in membership.check(now_ms).moves]
    return moves


def test_alive_by_the_first_frame() -> None:
    membership = Membership(FIVE)
    assert membership.state(N2) is S.UNKNOWN
    move = membership.heard(N2, 100)
    assert move == (N2, S.UNKNOWN, S.ALIVE, Sign.HEARD)
    assert membership.heard(N2, 200) is None


def test_silence_alone_makes_suspect_and_dead() -> None:
    assert passed(heard_at(0), 0, 60_000) == [(SUSPECT, S.SUSPECT), (DEAD, S.DEAD)]


def test_the_unknown_are_not_timed() -> None:
    membership = Membership(FIVE)
    membership.know(N2)
    assert passed(membership, 0, 60_000) == []
    assert membership.next_deadline() is None


@pytest.mark.parametrize(("members", "needed"), [(1, 0), (2, 0), (3, 1), (4, 2), (5, 2), (32, 2)])
def test_how_many_witnesses(members: int, needed: int) -> None:
    assert witnesses_needed(members) == needed


def test_unreachable_by_two_distinct_witnesses() -> None:
    membership = heard_at(0)
    passed(membership, 0, 9_900)
    membership.told(N2, N3, 8_000, 9_900)
    membership.told(N2, N3, 8_000, 9_900)
    assert membership.check(10_000).moves == []
    membership.told(N2, N4, None, 10_100)
    assert [move.after for move in membership.check(10_200).moves] == [S.UNREACHABLE]


def test_witnesses_alone_do_nothing_before_their_time() -> None:
    membership = heard_at(0)
    passed(membership, 0, 6_000)
    for witness in (N3, N4, N5):
        membership.told(N2, witness, None, 6_000)
    assert passed(membership, 6_000, 12_000) == [(UNREACHABLE, S.UNREACHABLE)]


def test_only_members_are_witnesses() -> None:
    membership = heard_at(0)
    passed(membership, 0, 9_000)
    for number in range(10, 20):
        membership.told(N2, NodeId(bytes([number]) * 32), None, 9_000)
    assert membership.check(11_000).moves == []


def test_one_that_leaves_the_roster_is_a_witness_no_more() -> None:
    membership = heard_at(0)
    passed(membership, 0, 9_000)
    membership.told(N2, N3, None, 9_000)
    membership.told(N2, N4, None, 9_000)
    membership.set_members((ME, N2, N4, N5))
    assert membership.check(11_000).moves == []


def test_of_two_nodes_silence_is_all_there_is() -> None:
    moves = passed(heard_at(0, (ME, N2)), 0, 31_000)
    assert moves == [(SUSPECT, S.SUSPECT), (UNREACHABLE, S.UNREACHABLE), (DEAD, S.DEAD)]


def test_a_frame_brings_back_from_anywhere_but_from_a_farewell() -> None:
    for state in (S.UNKNOWN, S.SUSPECT, S.UNREACHABLE, S.DEAD):
        assert TRANSITIONS[state, Sign.HEARD] is S.ALIVE
    membership = heard_at(0)
    assert membership.farewell(N2) == (N2, S.ALIVE, S.LEFT, Sign.FAREWELL)
    assert membership.heard(N2, 10) is None  # it was sent before the farewell
    assert membership.state(N2) is S.LEFT
    assert membership.started(N2, 20) == (N2, S.LEFT, S.ALIVE, Sign.STARTED)


def test_left_only_by_farewell() -> None:
    assert {sign for (_, sign), after in TRANSITIONS.items() if after is S.LEFT} == {Sign.FAREWELL}


def test_a_third_node_renews_when_it_was_heard() -> None:
    membership = heard_at(0)
    passed(membership, 0, 5_000)
    move = membership.told(N2, N3, 1_000, 5_500)
    assert move == (N2, S.SUSPECT, S.ALIVE, Sign.VOUCHED)
    assert not membership.is_direct(N2, 5_500)  # in the live view, but nothing comes from it
    assert passed(membership, 5_500, 12_000) == [(9_500, S.SUSPECT)]


def test_an_older_word_takes_nothing_back() -> None:
    membership = heard_at(1_000)
    membership.told(N2, N3, 4_000, 1_500)
    assert passed(membership, 1_500, 7_000) == [(6_000, S.SUSPECT)]


def test_nobody_vouches_for_the_dead_but_themselves() -> None:
    membership = heard_at(0)
    passed(membership, 0, 31_000)
    assert membership.told(N2, N3, 0, 31_000) is None
    assert membership.told(N2, N2, 0, 31_000) == (N2, S.DEAD, S.ALIVE, Sign.ANSWERED)


def test_its_own_answer_beats_all_others() -> None:
    membership = heard_at(0)
    passed(membership, 0, 9_900)
    for witness in (N3, N4, N5):
        membership.told(N2, witness, None, 9_900)
    assert membership.told(N2, N2, 0, 9_950) == (N2, S.SUSPECT, S.ALIVE, Sign.ANSWERED)
    membership.told(N2, N3, None, 9_960)  # comes after it
    assert passed(membership, 9_960, 14_900) == []


def test_suspects_are_asked_about_now_and_then() -> None:
    membership = heard_at(0)
    asked = [now for now in range(0, 32_000, 100) if membership.check(now).suspects == [N2]]
    assert asked == list(range(SUSPECT, DEAD, limits.HEALTH_INTERVAL_MS))


def test_who_slept_starts_all_timers_anew() -> None:
    membership = heard_at(0)
    membership.heard(N3, 0)
    membership.woke(100_000)
    assert passed(membership, 100_000, 104_900) == []
    assert [state for _, state in passed(membership, 105_000, 105_000)] == [S.SUSPECT] * 2


def test_the_dead_stay_dead_while_this_node_sleeps() -> None:
    membership = heard_at(0)
    passed(membership, 0, 31_000)
    membership.woke(100_000)
    assert membership.state(N2) is S.DEAD


def test_an_observer_is_judged_by_its_silence_alone() -> None:
    membership = Membership((ME, N3, N4, N5))
    membership.heard(N2, 0)
    assert passed(membership, 0, 31_000) == [
        (SUSPECT, S.SUSPECT),
        (UNREACHABLE, S.UNREACHABLE),
        (DEAD, S.DEAD),
    ]


def test_the_deadline_is_never_late() -> None:
    """Called at its deadlines alone, it moves at the same times as when called all the time."""
    membership = heard_at(0)
    moves = []
    for _ in range(100):
        due_ms = membership.next_deadline()
        if due_ms is None:
            break
        moves += [(due_ms, move.after) for move in membership.check(due_ms).moves]
    assert moves == [(SUSPECT, S.SUSPECT), (DEAD, S.DEAD)]


def test_every_state_but_left_leads_to_left_and_back() -> None:
    for state in PeerState:
        if state is not S.LEFT:
            assert TRANSITIONS[state, Sign.FAREWELL] is S.LEFT
    assert [key for key in TRANSITIONS if key[0] is S.LEFT] == [(S.LEFT, Sign.STARTED)]
