"""Sequences (seed 000): who holds the lock on the next numbers, and what was published.

A pure function of the order: no clock. That a holder is gone is only ever proposed; the order
decides who holds the lock, by tokens. Payloads are not kept, only their running digest.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

import msgspec

from quipu.ledger import limits, signing
from quipu.ledger.canonical import encode
from quipu.ledger.event import U64, Bytes32
from quipu.ledger.log.statements import U32
from quipu.ledger.log.words import Index
from quipu.ledger.order.items import Lock, LockAndPublish, Name, Publish, Release, SequenceItem
from quipu.ledger.words import NodeNo


class SequenceRefusal(StrEnum):
    """Why an item changes nothing: the same on every node."""

    LOCKED = "locked"  # another token holds it, or this very entry gave one out
    STALE = "old-token"
    NOT_NEXT = "not-next"
    NOT_HOLDER = "not-holder"
    TOO_MANY = "too-many-sequences"
    EXHAUSTED = "exhausted"


@dataclass(frozen=True, slots=True)
class Granted:
    """A lock: numbers first..last are for this token alone."""

    name: str
    token: Index
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Published:
    name: str
    number: int
    running: bytes  # digest over all up to this number


@dataclass(frozen=True, slots=True)
class Freed:
    name: str


Outcome = Granted | Published | Freed | SequenceRefusal


@dataclass(frozen=True, slots=True)
class Sequence:
    """`last` is above `number` while locked: numbers up to it are for the token."""

    number: int = 0  # the highest published
    running: bytes = bytes(signing.HASH_BYTES)
    token: Index = Index(0)  # of the newest lock, held or not
    holder: NodeNo = NodeNo(0)
    last: int = 0

    @property
    def is_locked(self) -> bool:
        return self.last > self.number


def next_running(before: bytes, number: int, digest: bytes) -> bytes:
    return signing.tagged_hash(signing.TAG_SEQUENCE, before + number.to_bytes(8, "big") + digest)


class SequenceRow(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """One sequence in the state that goes with a base."""

    name: Name
    number: U64
    running: Bytes32
    token: U64
    holder: U32
    last: U64


class Sequences:
    """All sequences of a cluster, by name."""

    def __init__(self) -> None:
        self._sequences: dict[str, Sequence] = {}

    @classmethod
    def from_rows(cls, rows: Iterable[SequenceRow]) -> "Sequences":
        found = cls()
        for row in rows:
            found._sequences[row.name] = Sequence(
                row.number, row.running, Index(row.token), NodeNo(row.holder), row.last
            )
        return found

    def rows(self) -> list[SequenceRow]:
        return [
            SequenceRow(name, s.number, s.running, s.token, s.holder, s.last)
            for name, s in sorted(self._sequences.items())
        ]

    def names(self) -> list[str]:
        return sorted(self._sequences)

    def digest(self) -> bytes:
        """Equal on all nodes that have applied the same."""
        return signing.tagged_hash(signing.TAG_SEQUENCES, encode(self.rows()))

    def known(self, name: str) -> Sequence | None:
        """None: never used."""
        return self._sequences.get(name)

    def of(self, name: str) -> Sequence:
        return self._sequences.get(name, Sequence())

    def apply(self, item: SequenceItem, index: Index) -> Outcome:
        """As it stands in the order, in the entry at this index."""
        known = item.name in self._sequences
        if not known and len(self._sequences) >= limits.SEQUENCES_MAX:
            return SequenceRefusal.TOO_MANY
        before = self.of(item.name)
        match item:
            case Lock():
                after, outcome = _lock(before, item, index)
            case Publish():
                after, outcome = _publish(before, item)
            case LockAndPublish():
                after, outcome = _lock_and_publish(before, item, index)
            case Release():
                after, outcome = _release(before, item)
            case _:
                assert_never(item)
        if after is not before:
            self._sequences[item.name] = after
        return outcome


def _lock(before: Sequence, item: Lock, index: Index) -> tuple[Sequence, Outcome]:
    if before.token == index or (before.is_locked and item.over != before.token):
        return before, SequenceRefusal.LOCKED
    last = before.number + item.count
    if last > limits.SEQUENCE_NUMBER_MAX:
        return before, SequenceRefusal.EXHAUSTED
    after = replace(before, token=index, holder=NodeNo(item.holder), last=last)
    return after, Granted(item.name, index, before.number + 1, last)


def _publish(before: Sequence, item: Publish) -> tuple[Sequence, Outcome]:
    if not before.is_locked or item.token != before.token:
        return before, SequenceRefusal.STALE
    if item.holder != before.holder:
        return before, SequenceRefusal.NOT_HOLDER
    if item.number != before.number + 1:
        return before, SequenceRefusal.NOT_NEXT
    running = next_running(before.running, item.number, item.digest)
    after = replace(before, number=item.number, running=running)
    return after, Published(item.name, item.number, running)


def _lock_and_publish(
    before: Sequence, item: LockAndPublish, index: Index
) -> tuple[Sequence, Outcome]:
    """Several in one entry follow each other: none of them leaves a lock behind."""
    free = before if before.is_locked else replace(before, token=Index(0))
    locked, outcome = _lock(free, Lock(item.name, item.holder, 1, 0), index)
    if not isinstance(outcome, Granted):
        return before, outcome
    return _publish(locked, Publish(item.name, item.holder, index, outcome.first, item.digest))


def _release(before: Sequence, item: Release) -> tuple[Sequence, Outcome]:
    """What was not published of the range is free again."""
    if not before.is_locked or item.token != before.token:
        return before, SequenceRefusal.STALE
    if item.holder != before.holder:
        return before, SequenceRefusal.NOT_HOLDER
    return replace(before, last=before.number), Freed(item.name)
