"""Quorum arithmetic of the log, alone in its module: majorities, and both of them at once."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from quipu.ledger.words import NodeNo


@dataclass(frozen=True, slots=True)
class Voters:
    """Who votes: one set, or while one takes over from another, both. Each is sorted."""

    old: tuple[NodeNo, ...]
    new: tuple[NodeNo, ...] | None = None

    @property
    def sets(self) -> tuple[tuple[NodeNo, ...], ...]:
        return (self.old,) if self.new is None else (self.old, self.new)

    @property
    def all(self) -> tuple[NodeNo, ...]:
        return tuple(sorted({number for voters in self.sets for number in voters}))

    def __contains__(self, number: object) -> bool:
        return any(number in voters for voters in self.sets)


def majority(n: int) -> int:
    return n // 2 + 1


def have_majority(voters: Voters, saying: AbstractSet[NodeNo]) -> bool:
    """Whether these are a majority of each set."""
    return all(
        sum(number in saying for number in members) >= majority(len(members))
        for members in voters.sets
    )


def reached(voters: Voters, levels: Mapping[NodeNo, int]) -> int:
    """The highest level that a majority of each set has; who is missing has 0."""
    return min(
        sorted((levels.get(number, 0) for number in members), reverse=True)[
            majority(len(members)) - 1
        ]
        for members in voters.sets
    )


def witnesses_suffice(voters: Voters, own: NodeNo, saying: AbstractSet[NodeNo]) -> bool:
    """Whether these others let a voter that lost its disk vote again: v - v//2 of each set."""
    return all(
        sum(number in saying for number in members if number != own)
        >= len(members) - len(members) // 2
        for members in voters.sets
    )
