import pytest

from quipu.ledger import limits
from quipu.ledger.recovery import TRANSITIONS, Cause, Recovery, State
from quipu.ledger.words import NodeNo, Now

N2, N3 = NodeNo(2), NodeNo(3)
START = Now(1_000_000, 100)
TABLE = {
    (State.LISTENING, Cause.HEARD_ENOUGH): State.READY,
    (State.LISTENING, Cause.WAITED_ENOUGH): State.READY,
    (State.LISTENING, Cause.OWN_INV_AHEAD): State.RECOVERING,
    (State.RECOVERING, Cause.HEARD_ENOUGH): State.READY,
    (State.RECOVERING, Cause.OWN_INV_AHEAD): State.RECOVERING,
    (State.READY, Cause.OWN_INV_AHEAD): State.RECOVERING,
}


def after(ms: int) -> Now:
    return Now(START.wall_ms + ms, START.monotonic_ms + ms)


def in_state(state: State) -> Recovery:
    recovery = Recovery(state is State.RECOVERING, START)
    if state is State.READY:
        recovery.settle(0, START)
    assert recovery.state is state
    return recovery


def test_the_table_is_as_the_design_has_it() -> None:
    assert TRANSITIONS == TABLE


@pytest.mark.parametrize("state", list(State))
def test_what_each_state_allows(state: State) -> None:
    recovery = in_state(state)
    assert recovery.may_sign == (state is State.READY)
    assert recovery.is_recovering == (state is State.RECOVERING)
    wait_ms = START.monotonic_ms + limits.START_WAIT_MS
    assert recovery.deadline_ms == (wait_ms if state is State.LISTENING else None)


@pytest.mark.parametrize("state", list(State))
def test_an_own_inv_that_the_store_does_not_know_means_recovering(state: State) -> None:
    recovery = in_state(state)
    assert recovery.own_inv_ahead() == (state is not State.RECOVERING)
    assert recovery.state is State.RECOVERING


def test_listening_ends_when_enough_members_have_told() -> None:
    recovery = in_state(State.LISTENING)
    recovery.tell(N2)
    recovery.tell(N2)
    assert not recovery.settle(2, after(1))
    assert recovery.state is State.LISTENING
    recovery.tell(N3)
    assert not recovery.settle(2, after(2))  # it was not recovering
    assert recovery.may_sign


def test_listening_ends_after_three_seconds_whoever_is_silent() -> None:
    recovery = in_state(State.LISTENING)
    recovery.settle(2, after(limits.START_WAIT_MS - 1))
    assert recovery.state is State.LISTENING
    recovery.settle(2, after(limits.START_WAIT_MS))
    assert recovery.may_sign


def test_recovering_does_not_end_by_waiting() -> None:
    recovery = in_state(State.RECOVERING)
    recovery.tell(N2)
    assert not recovery.settle(2, after(3_600_000))
    assert recovery.is_recovering
    recovery.tell(N3)
    assert recovery.settle(2, after(3_600_001))  # just now
    assert recovery.may_sign


def test_who_told_before_the_own_inv_came_has_to_tell_again() -> None:
    recovery = in_state(State.LISTENING)
    recovery.tell(N2)
    recovery.own_inv_ahead()
    recovery.tell(N3)
    recovery.own_inv_ahead()  # another one, while recovering, takes nothing back
    recovery.settle(2, after(1))
    assert recovery.is_recovering
    assert list(recovery.told) == [N3]


def test_what_is_told_to_a_ready_node_does_not_count_later() -> None:
    recovery = in_state(State.READY)
    recovery.tell(N2)
    recovery.tell(N3)
    recovery.own_inv_ahead()
    recovery.settle(2, after(1))
    assert recovery.is_recovering


def test_a_claim_of_a_newer_receipt_is_listened_to_while_there_is_time() -> None:
    recovery = in_state(State.LISTENING)
    recovery.doubt(N2)
    recovery.tell(N3)
    recovery.settle(1, after(1))
    assert recovery.state is State.LISTENING
    recovery.tell(N2)  # it has shown what it has: nothing new
    recovery.settle(1, after(2))
    assert recovery.may_sign


def test_a_claim_that_is_never_shown_holds_up_for_three_seconds() -> None:
    recovery = in_state(State.LISTENING)
    recovery.doubt(N2)
    recovery.tell(N3)
    recovery.settle(1, after(limits.START_WAIT_MS))
    assert recovery.may_sign


def test_a_claim_does_not_hold_up_who_is_recovering_or_ready() -> None:
    for state in (State.RECOVERING, State.READY):
        recovery = in_state(state)
        recovery.doubt(N2)
        recovery.tell(N3)
        recovery.settle(1, after(1))
        assert recovery.may_sign
    recovery = in_state(State.LISTENING)
    recovery.doubt(N2)
    recovery.own_inv_ahead()
    recovery.tell(N3)
    recovery.settle(1, after(1))
    assert recovery.may_sign
