"""Which CLOSE and OPEN count: a function of the items, the same on every node."""

from collections.abc import Sequence

import msgspec
import pytest

from quipu.ledger import limits
from quipu.ledger.canonical import encode
from quipu.ledger.epochs import EpochDocument, Member, close_hash
from quipu.ledger.order.changes import Close, Open, encode_change, read_change
from quipu.ledger.order.roster import RosterState
from quipu.ledger.order.wishes import Candidate, Ended, Ending, Wish, WishEnded
from quipu.ledger.ready import sign_ready
from quipu.ledger.refusals import Reason, Refused
from quipu.ledger.signing import verify
from tests.small_ledger import START_MS, SmallLedger, key_of

LEDGER = SmallLedger(3)
GENESIS = RosterState.of_genesis(LEDGER.genesis)


def member(number: int) -> Member:
    return Member(number, key_of(f"n{number}").node_id, f"n{number}", [])


def document(state: RosterState, numbers: Sequence[int]) -> EpochDocument:
    return state.next_document(map(member, numbers), "majority")


def ready(number: int, at_ms: int = START_MS, epoch: int = 2) -> bytes:
    return sign_ready(key_of(f"n{number}"), LEDGER.cluster_id, epoch, at_ms)


def close_of(following: EpochDocument, readies: Sequence[bytes], at_ms: int = START_MS) -> Close:
    return Close(at_ms, encode(following), list(readies))


def closed(numbers: Sequence[int] = (1, 2, 3), at_ms: int = START_MS) -> RosterState:
    readies = [ready(number, at_ms) for number in numbers[:2]]
    return GENESIS.after(close_of(document(GENESIS, numbers), readies, at_ms), verify)


def opening(state: RosterState, sealers: Sequence[int], holders: Sequence[int]) -> Open:
    assert state.pending is not None
    following = state.pending.document
    close = close_hash(following)
    seals = [LEDGER.sign(i, close=close).data for i in sealers]
    invs = [LEDGER.sign(i, epoch=2).data for i in holders]
    return Open(encode(following), seals, START_MS, [], [], invs)


def refused(state: RosterState, item: Close | Open) -> Reason:
    with pytest.raises(Refused) as caught:
        state.after(item, verify)
    return caught.value.reason


# --- CLOSE --------------------------------------------------------------------------------------
def test_a_close_waits_for_its_open_and_another_one_does_not_count() -> None:
    state = closed()
    assert state.pending is not None
    again = close_of(document(GENESIS, [1, 2]), [ready(1), ready(2)])
    assert refused(state, again) is Reason.CHANGE_IN_FLIGHT


def test_a_later_attempt_counts_sixty_seconds_after_by_its_own_time() -> None:
    state = closed()
    for waited_ms, counts in ((limits.CLOSE_STALE_MS - 1, False), (limits.CLOSE_STALE_MS, True)):
        at_ms = START_MS + waited_ms
        item = close_of(document(state, [1, 2]), [ready(1, at_ms), ready(2, at_ms)], at_ms)
        if counts:
            after = state.after(item, verify)
            assert after.pending is not None
            assert after.pending.document.attempt == 2
        else:
            assert refused(state, item) is Reason.CHANGE_IN_FLIGHT


@pytest.mark.parametrize(
    ("at_ms", "reason"),
    [
        (START_MS - limits.READY_AGE_MS_MAX - 1, Reason.TOO_OLD),
        (START_MS + limits.CLOCK_AHEAD_MS + 1, Reason.TOO_OLD),
    ],
)
def test_readies_are_fresh(at_ms: int, reason: Reason) -> None:
    item = close_of(document(GENESIS, [1, 2, 3]), [ready(1), ready(2, at_ms)])
    assert refused(GENESIS, item) is reason


def test_readies_are_enough_distinct_and_of_members_of_that_epoch() -> None:
    following = document(GENESIS, [1, 2, 3])
    assert refused(GENESIS, close_of(following, [ready(1)])) is Reason.NO_PROOF
    assert refused(GENESIS, close_of(following, [ready(1), ready(1)])) is Reason.NO_PROOF
    assert refused(GENESIS, close_of(following, [ready(1), ready(4)])) is Reason.NOT_A_MEMBER
    other = ready(2, epoch=3)
    assert refused(GENESIS, close_of(following, [ready(1), other])) is Reason.NOT_A_MEMBER
    forged = ready(2)[:-1] + b"\0"
    assert refused(GENESIS, close_of(following, [ready(1), forged])) is Reason.BAD_SIGNATURE


def test_numbers_go_on_and_none_is_used_again() -> None:
    fine = document(GENESIS, [1, 2, 4])
    assert GENESIS.after(close_of(fine, [ready(1), ready(2)]), verify).pending is not None
    leaps = document(GENESIS, [1, 2, 5])
    assert refused(GENESIS, close_of(leaps, [ready(1), ready(2)])) is Reason.MALFORMED
    stolen = [member(1), member(2), msgspec.structs.replace(member(4), node_no=3)]
    item = close_of(GENESIS.next_document(stolen, "majority"), [ready(1), ready(2)])
    assert refused(GENESIS, item) is Reason.MALFORMED


# --- OPEN ---------------------------------------------------------------------------------------
def test_an_open_needs_its_close_seals_and_holders() -> None:
    state = closed()
    assert refused(GENESIS, opening(state, [1, 2], [1, 2])) is Reason.NO_PROOF
    assert refused(state, opening(state, [1], [1, 2])) is Reason.NO_PROOF
    assert refused(state, opening(state, [1, 2], [1])) is Reason.NO_PROOF
    after = state.after(opening(state, [1, 2], [1, 3]), verify)
    assert (after.standing.number, after.pending) == (2, None)
    assert refused(after, opening(state, [1, 2], [1, 2])) is Reason.NO_PROOF


def test_an_open_of_a_close_that_was_replaced_is_void() -> None:
    first = closed()
    late = opening(first, [1, 2], [1, 2])
    at_ms = START_MS + limits.CLOSE_STALE_MS
    item = close_of(document(first, [1, 2, 3]), [ready(1, at_ms), ready(2, at_ms)], at_ms)
    second = first.after(item, verify)
    assert refused(second, late) is Reason.NO_PROOF
    assert second.after(opening(second, [1, 3], [2, 3]), verify).standing.number == 2


# --- the state that goes with a base ------------------------------------------------------------
@pytest.mark.parametrize("state", [GENESIS, closed()])
def test_the_state_is_the_same_after_its_bytes(state: RosterState) -> None:
    assert RosterState.decode(state.encode(), LEDGER.cluster_id) == state


def test_items_are_read_and_nothing_else_is() -> None:
    item = close_of(document(GENESIS, [1, 2, 3]), [ready(1)])
    assert read_change(encode_change(item)) == item
    assert read_change(encode_change(item)[:-1]) is None
    assert read_change(b"plain") is None


# --- wishes -------------------------------------------------------------------------------------
def wish_of(numbers: Sequence[int], at_ms: int = START_MS, policy: str = "majority") -> Wish:
    names = [f"n{number}" for number in numbers]
    return Wish(at_ms, [Candidate(key_of(name).node_id, name, []) for name in names], policy)


def test_one_wish_is_in_flight_until_its_open() -> None:
    state = GENESIS.after(wish_of([1, 2]), verify)
    assert state.wish is not None
    with pytest.raises(Refused, match="another wish"):
        state.after(wish_of([1, 3]), verify)
    assert not state.is_closing_for_wish
    close = close_of(document(state, [1, 2]), [ready(1), ready(2)])
    closing = state.after(close, verify)
    assert closing.is_closing_for_wish
    done = closing.after(opening(closing, [1, 2], [1, 2]), verify)
    assert (done.wish, done.ended) == (None, Ended(state.wish.id, Ending.DONE))


def test_a_checkpoint_leaves_a_wish_where_it_is() -> None:
    state = closed().after(wish_of([1, 2]), verify)
    after = state.after(opening(state, [1, 2], [1, 2]), verify)
    assert (after.standing.number, after.wish) == (2, state.wish)


def test_a_wish_takes_the_place_of_one_whose_close_found_no_open() -> None:
    first = GENESIS.after(wish_of([1, 2]), verify)
    assert first.wish is not None
    closing = first.after(close_of(document(first, [1, 2]), [ready(1), ready(2)]), verify)
    late_ms = START_MS + limits.CLOSE_STALE_MS
    with pytest.raises(Refused, match="another wish"):
        closing.after(wish_of([1, 2, 3], late_ms - 1), verify)
    second = closing.after(wish_of([1, 2, 3], late_ms), verify)
    assert second.ended == Ended(first.wish.id, Ending.REPLACED)
    assert not second.is_closing_for_wish


def test_a_wish_ends_by_its_own_id_and_not_once_its_epoch_closes() -> None:
    state = GENESIS.after(wish_of([1, 2]), verify)
    assert state.wish is not None
    missing = key_of("n2").node_id
    ended = WishEnded(state.wish.id, Ending.BEHIND, [missing])
    after = state.after(ended, verify)
    assert (after.wish, after.ended) == (None, Ended(state.wish.id, Ending.BEHIND, (missing,)))
    with pytest.raises(Refused):
        state.after(WishEnded(bytes(32), Ending.BEHIND, []), verify)
    closing = state.after(close_of(document(state, [1, 2]), [ready(1), ready(2)]), verify)
    with pytest.raises(Refused):
        closing.after(ended, verify)


def test_no_roster_is_no_wish() -> None:
    twice = wish_of([1, 1])
    for bad in (twice, wish_of([1, 2], policy="2"), wish_of([1, 2], policy="most")):
        with pytest.raises(Refused):
            GENESIS.after(bad, verify)


def test_wishes_and_their_ends_go_with_a_base() -> None:
    state = GENESIS.after(wish_of([1, 2]), verify)
    assert RosterState.decode(state.encode(), LEDGER.cluster_id).wish == state.wish
    assert state.wish is not None
    nodes: list[bytes] = [key_of("n2").node_id]
    after = state.after(WishEnded(state.wish.id, Ending.UNREACHABLE, nodes), verify)
    assert RosterState.decode(after.encode(), LEDGER.cluster_id) == after


def test_wishes_are_items_that_are_read_back() -> None:
    for item in (wish_of([1, 2]), WishEnded(bytes(32), Ending.BEHIND, [])):
        assert read_change(encode_change(item)) == item
