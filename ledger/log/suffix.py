"""What one node holds of the log above its base: entries, running digests, and who votes where.

Below the base everything was chosen and is gone. What is decided here is only what an entry may
follow; who may write or drop one is decided by those who call.
"""

from typing import Annotated, NamedTuple

import msgspec

from quipu.ledger import limits
from quipu.ledger.canonical import Canonical
from quipu.ledger.event import U64, Bytes32
from quipu.ledger.log.entry import LogEntry, decode_log_entry, first_digest, next_digest
from quipu.ledger.log.quorum import Voters
from quipu.ledger.log.serializers import Change, Stage, change_in, voters_after
from quipu.ledger.log.statements import U32
from quipu.ledger.log.words import NO_INDEX, NO_REGIME, Index, Place, Regime
from quipu.ledger.messages import Number32
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.words import NodeNo

Nodes = Annotated[list[Number32], msgspec.Meta(max_length=limits.SERIALIZERS_MAX)]


class Base(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Where a log begins: the newest entry that is no longer held, and who votes after it."""

    index: U64
    digest: Bytes32
    regime: U32
    old: Nodes
    new: Nodes | None
    stage: Stage | None  # of the newest change at or below
    nodes: Nodes

    @property
    def voters(self) -> Voters:
        new = None if self.new is None else tuple(NodeNo(n) for n in self.new)
        return Voters(tuple(NodeNo(n) for n in self.old), new)

    @property
    def change(self) -> Change | None:
        if self.stage is None:
            return None
        return Change(Index(self.index), self.stage, tuple(NodeNo(n) for n in self.nodes))


_base: Canonical[Base] = Canonical(Base, limits.LOG_STATEMENT_BYTES_MAX)


def decode_base(data: bytes) -> Base:
    base = _base.decode(data)
    for nodes in (base.old, base.new or []):
        if nodes != sorted(set(nodes)):
            refuse(Reason.MALFORMED, "serializers are sorted")
    if not base.old or base.new == []:
        refuse(Reason.MALFORMED, "a log without serializers")
    return base


def genesis_base(cluster_id: bytes, serializers: tuple[NodeNo, ...]) -> Base:
    assert serializers == tuple(sorted(set(serializers)))
    digest = first_digest(cluster_id)
    return Base(NO_INDEX, digest, NO_REGIME, list(serializers), None, None, [])


class Held(NamedTuple):
    entry: LogEntry
    data: bytes
    digest: bytes  # running, this entry included


class Segment(NamedTuple):
    """From this index on, up to the next segment, these vote."""

    start: Index
    voters: Voters


class Suffix:
    """Indexes have no holes; regimes never fall; each digest covers all before it."""

    def __init__(self, base: Base, entries: list[bytes]) -> None:
        self.base = base
        self._held: list[Held] = []
        self._segments = [Segment(Index(base.index + 1), base.voters)]
        self._changes: list[Change] = [] if base.change is None else [base.change]
        for data in entries:
            self.append(data)

    # --- reading --------------------------------------------------------------------------------
    @property
    def last_index(self) -> Index:
        return Index(self.base.index + len(self._held))

    @property
    def last_place(self) -> Place:
        """Own regime and index of the last entry: the log with the greatest is adopted."""
        return Place(self.regime_at(self.last_index), self.last_index)

    @property
    def voters(self) -> Voters:
        return self._segments[-1].voters

    @property
    def newest_change(self) -> Change | None:
        return self._changes[-1] if self._changes else None

    @property
    def segments(self) -> list[Segment]:
        return self._segments

    def holds(self, index: int) -> bool:
        return self.base.index < index <= self.last_index

    def at(self, index: int) -> Held:
        assert self.holds(index), f"{index} is not in the log"
        return self._held[index - self.base.index - 1]

    def digest_at(self, index: int) -> bytes | None:
        """None where the log does not reach, at either end."""
        if index == self.base.index:
            return self.base.digest
        return self.at(index).digest if self.holds(index) else None

    def regime_at(self, index: int) -> Regime:
        if index == self.base.index:
            return Regime(self.base.regime)
        return Regime(self.at(index).entry.regime)

    def above(self, index: int) -> list[Held]:
        assert index >= self.base.index
        return self._held[index - self.base.index :]

    def voters_above(self, index: int) -> Voters:
        """All who vote on anything above this index, as if one set."""
        starts = self._segments[1:]
        kept = [
            segment
            for segment, following in zip(self._segments, [*starts, None], strict=True)
            if following is None or following.start > index + 1
        ]
        return Voters(tuple(sorted({n for segment in kept for n in segment.voters.all})))

    # --- writing --------------------------------------------------------------------------------
    def read(self, data: bytes) -> LogEntry:
        """The entry, if it may stand at the end."""
        entry = decode_log_entry(data)
        self.check_follows(entry, self.last_index)
        return entry

    def check_follows(self, entry: LogEntry, index: int) -> None:
        if entry.index != index + 1:
            refuse(Reason.BAD_INDEX, f"{entry.index} after {index}")
        if entry.regime < self.regime_at(index):
            refuse(Reason.BAD_REGIME, "regimes never fall along the log")

    def append(self, data: bytes) -> Held:
        entry = self.read(data)
        digest = self.digest_at(self.last_index)
        assert digest is not None
        held = Held(entry, data, next_digest(digest, data))
        self._hold(held)
        return held

    def _hold(self, held: Held) -> None:
        self._held.append(held)
        change = change_in(held.entry)
        if change is not None and change.stage is Stage.FORCED:
            self._changes.append(change)
            self._segments = [Segment(Index(self.base.index + 1), Voters(change.nodes))]
        elif change is not None:
            self._changes.append(change)
            voters = voters_after(self.voters, change)
            if voters != self.voters:  # Confirm itself still needs both
                after = change.stage is Stage.CONFIRM
                self._segments.append(Segment(Index(change.index + after), voters))

    def drop_from(self, index: int) -> None:
        assert index > self.base.index
        del self._held[index - self.base.index - 1 :]
        self._changes = [c for c in self._changes if c.index < index or c.index <= self.base.index]
        first, *others = self._segments
        self._segments = [first, *(s for s in others if s.start < index or self._stands(s, index))]

    def _stands(self, segment: Segment, index: int) -> bool:
        """The segment after a Confirm begins one above it and stands with it."""
        return segment.voters.new is None and segment.start == index

    def base_at(self, index: int) -> Base:
        """The base that a log has which forgets what lies at and below this index."""
        voters = self._segments[0].voters
        for segment in self._segments[1:]:
            if segment.start <= index + 1 and self._begun(segment, index):
                voters = segment.voters
        change = None
        for found in self._changes:
            if found.index <= index:
                change = found
        digest = self.digest_at(index)
        assert digest is not None
        return Base(
            index,
            digest,
            self.regime_at(index),
            list(voters.old),
            None if voters.new is None else list(voters.new),
            None if change is None else change.stage,
            [] if change is None else list(change.nodes),
        )

    def _begun(self, segment: Segment, index: int) -> bool:
        """An Implement at index + 1 has not been forgotten; a Confirm at index has."""
        return segment.start <= index or segment.voters.new is None

    def trimmed(self, index: int) -> "Suffix":
        """The same log without what lies at and below: that is chosen and kept elsewhere."""
        suffix = Suffix(self.base_at(index), [])
        for held in self.above(index):
            suffix._hold(held)
        return suffix
