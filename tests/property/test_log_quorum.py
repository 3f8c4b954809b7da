"""Quorum arithmetic of the log against a twin that tries every subset."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from quipu.ledger.log.quorum import Voters, have_majority, majority, reached, witnesses_suffice
from quipu.ledger.words import NodeNo

numbers = st.integers(1, 9).map(NodeNo)
members = st.sets(numbers, min_size=1, max_size=7).map(lambda found: tuple(sorted(found)))
voters = st.builds(Voters, members, st.none() | members)


def every_quorum(members_: tuple[NodeNo, ...]) -> list[frozenset[NodeNo]]:
    """Each subset that outnumbers the rest."""
    return [
        frozenset(chosen)
        for size in range(len(members_) + 1)
        for chosen in combinations(members_, size)
        if len(chosen) > len(members_) - len(chosen)
    ]


@given(voters, st.sets(numbers))
def test_a_majority_is_some_subset_that_outnumbers_the_rest(
    of: Voters, saying: set[NodeNo]
) -> None:
    twin = all(any(quorum <= saying for quorum in every_quorum(s)) for s in of.sets)
    assert have_majority(of, saying) == twin


@given(voters, st.dictionaries(numbers, st.integers(0, 30)))
def test_reached_is_the_highest_level_that_a_majority_has(
    of: Voters, levels: dict[NodeNo, int]
) -> None:
    def holds(level: int) -> bool:
        return have_majority(of, {n for n in of.all if levels.get(n, 0) >= level})

    assert reached(of, levels) == max(level for level in range(31) if holds(level))


@given(members)
def test_any_two_majorities_share_a_voter(of: tuple[NodeNo, ...]) -> None:
    quorums = every_quorum(of)
    assert all(one & other for one in quorums for other in quorums)
    assert min(map(len, quorums)) == majority(len(of))


@given(members, st.sets(numbers), st.data())
def test_witnesses_meet_every_majority_that_the_lost_voter_was_in(
    of: tuple[NodeNo, ...], saying: set[NodeNo], data: st.DataObject
) -> None:
    """So one of them knows of any regime that was won with the lost voter's PROMISE."""
    lost = data.draw(st.sampled_from(of))
    if witnesses_suffice(Voters(of), lost, saying):
        others = {n for n in saying if n in of and n != lost}
        assert all(quorum - {lost} & others for quorum in every_quorum(of) if lost in quorum)
    elif len(of) > 1:
        assert not witnesses_suffice(Voters(of), lost, saying - {lost})
