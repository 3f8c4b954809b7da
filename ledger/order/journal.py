"""The cluster journal (seed 001) as far as it is applied here: which events are ordered, and what
the other items have led to.

A pure function of the log: every node that has applied the same entries holds the same. An entry
waits until every event that it names is in the own Model; so what is ordered is Read here as well.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple, Protocol

import msgspec

from quipu.ledger import limits
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.event import U64, Bytes32, EventMeta
from quipu.ledger.log.entry import LogEntry
from quipu.ledger.log.serializers import read_set
from quipu.ledger.log.words import NO_INDEX, Index, Regime
from quipu.ledger.messages import Number32
from quipu.ledger.order.client_items import read_client_item
from quipu.ledger.order.config import ConfigOutcome, ConfigStream
from quipu.ledger.order.config_items import read_config
from quipu.ledger.order.extension import ModelEvent, references_of
from quipu.ledger.order.items import EventReference, read_item
from quipu.ledger.order.marks import ExecutorItem, Marks, read_mark
from quipu.ledger.order.registry import ItemPlace, Registry, RegistryOutcome
from quipu.ledger.order.sequences import Outcome, SequenceRow, Sequences
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.words import BranchKey, EventId, NodeNo, Seq
from quipu.ledger.words import Journal as JournalNo

FIRST_VERSION = 1  # of a state without parts
RECORD_VERSION = 2
CLIENTS_PART = "clients"
CONFIG_PART = "config"
ROSTER_PART = "roster"
KNOWN_PARTS = frozenset({CLIENTS_PART, CONFIG_PART, ROSTER_PART})


class Tip(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The highest event of a branch that is ordered: with it are all below."""

    node_no: Number32
    journal: U64
    seq: U64
    id: Bytes32


class Part(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The state of one more machine, by its name."""

    name: str
    state: bytes


Rows = Annotated[list[SequenceRow], msgspec.Meta(max_length=limits.SEQUENCES_MAX)]
Parts = Annotated[list[Part], msgspec.Meta(max_length=limits.JOURNAL_PARTS_MAX)]


class FirstRecord(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The state that goes with a base, where there are no parts: older programs read it."""

    version: U64
    events: U64  # ordered so far
    tips: list[Tip]
    sequences: Rows


class JournalRecord(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The state that goes with a base. Parts by name, those alone that are not empty."""

    version: U64
    events: U64
    tips: list[Tip]
    sequences: Rows
    parts: Parts

    def part(self, name: str) -> bytes:
        return next((part.state for part in self.parts if part.name == name), b"")


_first: Canonical[FirstRecord] = Canonical(FirstRecord, limits.LOG_STATE_BYTES_MAX)
_record: Canonical[JournalRecord] = Canonical(JournalRecord, limits.LOG_STATE_BYTES_MAX)
_FIRST_HEAD = b"\x94\x01"  # four fields, of which the first is 1


def decode_record(data: bytes) -> JournalRecord:
    if not data:
        return JournalRecord(RECORD_VERSION, 0, [], [], [])
    if data.startswith(_FIRST_HEAD):
        first = _first.decode(data)
        return JournalRecord(RECORD_VERSION, first.events, first.tips, first.sequences, [])
    record = _record.decode(data)
    if record.version != RECORD_VERSION:
        refuse(Reason.UNKNOWN_VERSION, f"journal record version {record.version}")
    names = [part.name for part in record.parts]
    if names != sorted(set(names)) or not set(names) <= KNOWN_PARTS:
        refuse(Reason.UNKNOWN_VERSION, f"journal record with parts {names}")
    Registry.of(record.part(CLIENTS_PART))
    ConfigStream.of(record.part(CONFIG_PART))
    return record


def encode_record(events: int, tips: list[Tip], rows: list[SequenceRow], **parts: bytes) -> bytes:
    kept = [Part(name, state) for name, state in sorted(parts.items()) if state]
    if not kept:
        return encode(FirstRecord(FIRST_VERSION, events, tips, rows))
    return encode(JournalRecord(RECORD_VERSION, events, tips, rows, kept))


class Reader(Protocol):
    def still_held(self, identities: tuple[EventId, ...]) -> tuple[EventId, ...]:
        """Of prev and parents of an event that is held, those that have not been pruned."""

    def is_gone(self, node_no: int, journal: int, seq: int) -> bool:
        """Pruned: it was Read, and lies below a checkpoint."""

    def read_meta(self, identity: EventId) -> EventMeta | None:
        """None: not in the Model."""

    def forks_of(self, branch: BranchKey) -> list[tuple[BranchKey, Seq, EventId]]:
        """The events of other branches that this one goes on from, one for each of them."""


Done = Outcome | RegistryOutcome | ExecutorItem | ConfigOutcome


class Applied(NamedTuple):
    """What one entry has led to: its events that were not ordered before, and what its other
    items came to, each with its number in the entry."""

    entry: LogEntry
    events: tuple[tuple[int, EventMeta], ...]
    outcomes: tuple[tuple[int, Done], ...]


@dataclass(slots=True)
class Journal:
    """Invariant: `ordered`, `events`, `sequences`, `registry` and `config` are what the entries up
    to `applied` have led to. What is chosen above waits in `_chosen`, and a base that came from
    elsewhere in `_base`."""

    reader: Reader
    applied: Index = NO_INDEX
    events: int = 0
    ordered: dict[BranchKey, tuple[Seq, EventId]] = field(default_factory=dict)
    sequences: Sequences = field(default_factory=Sequences)
    registry: Registry = field(default_factory=Registry)
    marks: Marks = field(default_factory=Marks)
    config: ConfigStream = field(default_factory=ConfigStream)
    _chosen: deque[LogEntry] = field(default_factory=deque)
    _base: tuple[Index, JournalRecord] | None = None

    # --- what a voter asks (Model of the gate) --------------------------------------------------
    def event(self, identity: EventId) -> ModelEvent | None:
        meta = self.reader.read_meta(identity)
        if meta is None:
            return None
        slot = meta.slot
        prev = () if meta.seq == 1 else (meta.prev,)
        below = self.reader.still_held((*prev, *meta.parents))
        return ModelEvent(slot.author_no, slot.journal, slot.seq, below)

    def is_gone(self, reference: EventReference) -> bool:
        return self.reader.is_gone(reference.node_no, reference.journal, reference.seq)

    def was_ordered(self, identity: EventId) -> bool:
        meta = self.reader.read_meta(identity)
        return meta is not None and self.is_ordered(meta)

    def is_ordered(self, meta: EventMeta) -> bool:
        return self.ordered_seq(meta.branch) >= meta.seq

    def ordered_seq(self, branch: BranchKey) -> Seq:
        held = self.ordered.get(branch)
        return Seq(0) if held is None else held[0]

    # --- what the log says ----------------------------------------------------------------------
    def choose(self, entry: LogEntry) -> None:
        self._chosen.append(entry)

    def take_base(self, index: Index, record: JournalRecord) -> None:
        """In place of all entries up to this index."""
        self._base = (index, record)
        while self._chosen and self._chosen[0].index <= index:
            self._chosen.popleft()

    @property
    def waits(self) -> bool:
        """For events that are not in the Model yet."""
        return bool(self._chosen) or self._base is not None

    def advance(self) -> Iterator[Applied]:
        """As far as the Model reaches."""
        if self._base is not None and not self._take_over(*self._base):
            return
        while self._chosen:
            found = self._found(references_of(self._chosen[0].items))
            if found is None:
                return
            yield self._apply(self._chosen.popleft(), found)

    def _take_over(self, index: Index, record: JournalRecord) -> bool:
        ordered: dict[BranchKey, tuple[Seq, EventId]] = {}
        for tip in record.tips:
            meta = self.reader.read_meta(EventId(tip.id))
            if meta is None and self.reader.is_gone(tip.node_no, tip.journal, tip.seq):
                key = BranchKey(NodeNo(tip.node_no), JournalNo(tip.journal), 0)
                ordered[key] = (Seq(tip.seq), EventId(tip.id))
                continue
            if meta is None:
                return False
            for branch, seq, identity in self.reader.forks_of(meta.branch):
                if branch not in ordered or ordered[branch][0] < seq:
                    ordered[branch] = (seq, identity)
            if meta.branch not in ordered or ordered[meta.branch][0] < meta.seq:
                ordered[meta.branch] = (meta.seq, meta.id)
        self.ordered, self.events = ordered, record.events
        self.sequences = Sequences.from_rows(record.sequences)
        self.registry = Registry.of(record.part(CLIENTS_PART))
        self.config = ConfigStream.of(record.part(CONFIG_PART))
        self.applied, self._base = index, None
        return True

    def _found(self, references: Iterable[EventReference]) -> dict[bytes, EventMeta] | None:
        found: dict[bytes, EventMeta] = {}
        for reference in references:
            meta = self.reader.read_meta(EventId(reference.id))
            if meta is not None:
                found[reference.id] = meta
            elif not self.is_gone(reference):
                return None
        return found

    def _apply(self, entry: LogEntry, found: dict[bytes, EventMeta]) -> Applied:
        events: list[tuple[int, EventMeta]] = []
        outcomes: list[tuple[int, Done]] = []
        self.applied = Index(entry.index)
        for number, data in enumerate(entry.items):
            item = read_item(data)
            if isinstance(item, EventReference):
                meta = found.get(item.id)
                if meta is None:
                    self._pass_gone(item)
                elif not self.is_ordered(meta):
                    self.ordered[meta.branch] = (meta.seq, meta.id)
                    self.events += 1
                    events.append((number, meta))
            elif item is not None:
                outcomes.append((number, self.sequences.apply(item, self.applied)))
            elif (of_client := read_client_item(data)) is not None:
                place = ItemPlace(Regime(entry.regime), self.applied, number)
                outcomes.append((number, self.registry.apply(of_client, place)))
            elif (mark := read_mark(data)) is not None:
                self.marks.take(mark)
                outcomes.append((number, mark))
            elif (change := self._reconfigured(data)) is not None:
                outcomes.append((number, change))
        return Applied(entry, tuple(events), tuple(outcomes))

    def _pass_gone(self, item: EventReference) -> None:
        """Ordered before this node began with a checkpoint: its place counts, nobody reads it."""
        key = BranchKey(NodeNo(item.node_no), JournalNo(item.journal), 0)
        if self.ordered_seq(key) < item.seq:
            self.ordered[key] = (Seq(item.seq), EventId(item.id))
            self.events += 1

    def _reconfigured(self, data: bytes) -> ConfigOutcome | None:
        change = read_config(data)
        if change is not None:
            return self.config.apply(change, self.applied)
        serializers = read_set(data)
        return None if serializers is None else self.config.set_moved(serializers, self.applied)

    # --- what goes with a base ------------------------------------------------------------------
    def record(self, roster: bytes = b"") -> bytes:
        """Of all up to `applied`. Branches have other numbers at other nodes: events name them."""
        tips = sorted(
            (key.author_no, key.journal, seq, identity)
            for key, (seq, identity) in self.ordered.items()
        )
        rows = [Tip(*tip) for tip in tips]
        clients, config = self.registry.record(), self.config.record()
        rows_of = self.sequences.rows()
        return encode_record(
            self.events, rows, rows_of, clients=clients, config=config, roster=roster
        )
