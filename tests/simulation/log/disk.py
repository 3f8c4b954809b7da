"""A disk for one log: what was written counts once it is synced, and power can be lost before."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

from quipu.ledger.canonical import Canonical
from quipu.ledger.log.effects import (
    DropLogFrom,
    ForgetLog,
    LogDurable,
    PutBase,
    PutChosen,
    PutConfirmed,
    PutLie,
    PutVote,
    StoreLogEntry,
)
from quipu.ledger.log.state import SavedLog, VoteRecord
from quipu.ledger.log.suffix import decode_base
from quipu.ledger.log.words import NO_INDEX, Index, Life
from quipu.ledger.words import NodeNo

_vote = Canonical(VoteRecord, 4096)


@dataclass(slots=True)
class Tables:
    vote: bytes | None = None
    base: bytes | None = None
    state: bytes = b""
    entries: dict[int, bytes] = field(default_factory=dict)
    chosen: Index = NO_INDEX
    certificate: tuple[bytes, ...] = ()
    confirmed: dict[Index, tuple[bytes, ...]] = field(default_factory=dict)
    lies: dict[NodeNo, bytes] = field(default_factory=dict)

    def write(self, effect: LogDurable) -> None:
        match effect:
            case StoreLogEntry(index, data):
                self.entries[index] = data
            case DropLogFrom(index):
                self.entries = {at: data for at, data in self.entries.items() if at < index}
            case PutVote(record):
                self.vote = record
            case PutChosen(index, certificate):
                self.chosen, self.certificate = index, certificate
            case PutConfirmed(index, certificate):
                self.confirmed[index] = certificate
            case PutBase(record, state):
                self.base, self.state = record, state
                base = decode_base(record).index
                self.confirmed = {at: p for at, p in self.confirmed.items() if at > base}
                self.entries = {at: data for at, data in self.entries.items() if at > base}
            case PutLie(culprit, proof):
                self.lies[culprit] = proof
            case ForgetLog():
                self.vote, self.base, self.state, self.entries = None, None, b"", {}
                self.chosen, self.certificate, self.confirmed = NO_INDEX, (), {}


class LogDisk:
    def __init__(self, life: Life, recovering: bool) -> None:
        self.life = life
        self.recovering = recovering  # made for a node that had another disk before
        self._synced = Tables()
        self._written: list[LogDurable] = []

    def write(self, effects: list[LogDurable]) -> None:
        self._written.extend(effects)

    def sync(self) -> None:
        for effect in self._written:
            self._synced.write(effect)
            if isinstance(effect, PutVote):
                self.recovering = False
            elif isinstance(effect, ForgetLog):
                self.life, self.recovering = Life(self.life + 1), True
        self._written.clear()

    def lose_power(self) -> None:
        self._written.clear()

    def image(self) -> Tables:
        return deepcopy(self._synced)

    def restore(self, image: Tables) -> None:
        """An older image, put back by tools: the node knows that it may have forgotten."""
        self._synced = deepcopy(image)
        self._written.clear()
        self.recovering = True

    def saved(self) -> SavedLog:
        tables = self._synced
        first = decode_base(tables.base).index if tables.base else 0
        entries = [tables.entries[at] for at in sorted(tables.entries)]
        assert sorted(tables.entries) == list(range(first + 1, first + 1 + len(entries)))
        return SavedLog(
            self.life,
            self.recovering,
            tables.vote,
            tables.base,
            tables.state,
            entries,
            tables.chosen,
            tables.certificate,
            tables.confirmed,
            tables.lies,
        )

    def vote(self) -> VoteRecord | None:
        found = self._synced.vote
        return None if found is None else _vote.decode(found)

    def entry(self, index: int) -> bytes | None:
        return self._synced.entries.get(index)

    @property
    def base_index(self) -> int:
        return decode_base(self._synced.base).index if self._synced.base else 0
