"""What of the history may go, and in which steps: retention, and who still needs what.

Events go in the order in which they became Read here, so that what is left begins at one place for
every reader. They go below the cut of an epoch alone, and never what is not ordered yet, what a
named consumer has not read, or, where that is asked for, what no dump of this node holds.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from quipu.ledger.epochs import decode_document
from quipu.ledger.event import EventMeta
from quipu.ledger.history import BranchRecord, Saved, SignerRecord
from quipu.ledger.inputs import HistoryPruned
from quipu.ledger.inv import decode_inv
from quipu.ledger.log.entry import LogEntry, decode_log_entry
from quipu.ledger.log.suffix import decode_base
from quipu.ledger.order.client_items import read_client_item
from quipu.ledger.order.extension import references_of
from quipu.ledger.order.journal import CLIENTS_PART, decode_record
from quipu.ledger.pruning import prunable_seq
from quipu.ledger.words import (
    HLC_SHIFT,
    BranchKey,
    Cord,
    EpochNo,
    InvNumber,
    Journal,
    NodeNo,
    Seq,
)
from quipu.node import limits
from quipu.node.service import Consumer
from quipu.node.settings import StoreSettings
from quipu.node.whole_file import replace_file
from quipu.storage.store import Store

ARCHIVE_FILE = "archived"
MIB = 1024 * 1024
DAY_MS = 24 * 3_600 * 1_000


class Archived(msgspec.Struct, frozen=True):
    """Up to this feed number a dump of this node holds everything."""

    feed_upto: int
    target: str


_archived = msgspec.json.Decoder(Archived)


def note_archived(folder: Path, feed_upto: int, target: Path) -> None:
    """Once a dump is whole and signed. The mark never goes back."""
    if feed_upto > archived_upto(folder):
        replace_file(folder / ARCHIVE_FILE, msgspec.json.encode(Archived(feed_upto, str(target))))


def archived_upto(folder: Path) -> int:
    try:
        return _archived.decode((folder / ARCHIVE_FILE).read_bytes()).feed_upto
    except (FileNotFoundError, msgspec.DecodeError):
        return 0


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept. None: no bound of that kind; both None: everything is kept."""

    keep_ms: int | None = None
    keep_bytes: int | None = None

    @property
    def prunes(self) -> bool:
        return self.keep_ms is not None or self.keep_bytes is not None


_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": DAY_MS}
_KEEP = re.compile(r"([0-9]{1,9})(ms|s|m|h|d)\Z")


def retention_of(
    settings: StoreSettings, keep: str | None = None, keep_mib: int | None = None
) -> Retention:
    """As somebody asks for it, or as the settings say. Raises ValueError."""
    if keep is None and keep_mib is None:
        keep_ms = settings.keep_days * DAY_MS if settings.keep_days else None
        return Retention(keep_ms, settings.keep_mib * MIB if settings.keep_mib else None)
    found = None if keep is None else _KEEP.match(keep)
    if keep is not None and found is None:
        raise ValueError(f"{keep} is no time to keep things for: 30d, 12h, 90m, 0s")
    return Retention(
        None if found is None else int(found[1]) * _UNITS_MS[found[2]],
        None if keep_mib is None else keep_mib * MIB,
    )


class Hold(NamedTuple):
    """Who still needs what lies above that feed number."""

    name: str
    feed_upto: int


def holds_of(consumers: Sequence[Consumer]) -> list[Hold]:
    return [Hold(f"consumer {one.name}", one.wish.feed_number) for one in consumers]


@dataclass(slots=True)
class Plan:
    """One pruning, as the store stands. `steps` are read while they are carried out."""

    store: Store
    saved: Saved
    retention: Retention
    holds: list[Hold]
    now_ms: int
    has_log: bool  # observers have none: what is Read may go
    epoch: EpochNo = EpochNo(0)  # the checkpoint that history will begin with
    events: int = 0  # that go, as far as the steps have been read
    held_by: str = ""  # what ended it
    _tips: dict[Cord, Seq] = field(default_factory=dict)
    _ordered: "Ordered | None" = None
    _excess: int = 0  # bytes above what is kept
    _upto: int = 0  # the last feed number that goes

    def prepare(self) -> None:
        """Some tenths of a second where the log is long; it only reads."""
        if self._choose_epoch() and self.has_log:
            self._ordered = ordered_of(self.store)

    def steps(self) -> Iterator[HistoryPruned]:
        """After `prepare`."""
        if not self.epoch:
            self.held_by = "no checkpoint is old enough"
            return
        records = {record.key: record for record in self.saved.branches}
        rows: dict[BranchKey, Seq] = {}
        before = count = 0
        for number, meta in self._feed():
            held_by = self._hold_on(number, meta)
            if held_by is not None:
                self.held_by = held_by
                break
            before = self._upto = number
            seq = self._prunable(meta, records)
            if seq:
                rows[meta.branch] = Seq(max(rows.get(meta.branch, 0), seq))
                count += 1
                self.events += 1
            if count >= limits.PRUNE_STEP_EVENTS:
                yield HistoryPruned(self.epoch, tuple(sorted(rows.items())), before)
                rows, count = {}, 0
        if rows:
            yield HistoryPruned(self.epoch, tuple(sorted(rows.items())), before)
        if self._upto:
            yield from self._receipts()

    # --- how far --------------------------------------------------------------------------------
    def _choose_epoch(self) -> bool:
        """The newest cut that is old enough. The two newest epochs are kept whole: an event of an
        epoch rests on what its cut has, and events of the last one may still be on their way."""
        documents = [decode_document(data) for data, _ in self.saved.epochs]
        keep_ms, keep_bytes = self.retention.keep_ms, self.retention.keep_bytes
        stats = self.store.stats()
        if keep_bytes is not None:
            self._excess = max(0, stats.live_bytes - keep_bytes)
        for document in documents[:-1]:
            age_ms = self.now_ms - (document.cut_hlc >> HLC_SHIFT)
            is_old = keep_ms is not None and age_ms >= keep_ms
            if is_old or self._excess:
                self.epoch = EpochNo(document.number)
                for row in document.cut:
                    cord = Cord(NodeNo(row.author_no), Journal(row.journal))
                    self._tips[cord] = Seq(row.seq)
        return self.epoch > 0

    def _feed(self) -> Iterator[tuple[int, EventMeta]]:
        after = 0
        while found := self.store.feed(after, limits.PRUNE_STEP_EVENTS):
            for number, identity in found:
                meta = self.store.meta(identity)
                if meta is not None:
                    yield number, meta
            after = found[-1][0]

    def _hold_on(self, number: int, meta: EventMeta) -> str | None:
        """Why this event and all that became Read after it stay."""
        for hold in self.holds:
            if number > hold.feed_upto:
                return hold.name
        if meta.seq > self._tips.get(meta.branch.cord, 0):
            return "the checkpoint"
        if self._ordered is not None and not self._ordered.has(meta):
            return "the order"
        keep_ms = self.retention.keep_ms
        is_old = keep_ms is not None and self.now_ms - (meta.hlc >> HLC_SHIFT) >= keep_ms
        if not is_old and self._excess <= 0:
            return "retention"
        self._excess -= meta.size + limits.EVENT_OVERHEAD_BYTES
        return None

    def _prunable(self, meta: EventMeta, records: Mapping[BranchKey, BranchRecord]) -> Seq:
        """0: it stays, and the feed goes past it: the tip of a cord, or a cord that was forked,
        which is evidence."""
        record = records[meta.branch]
        is_forked = BranchKey(*meta.branch.cord, 1) in records
        tip = self._tips[meta.branch.cord]
        top = min(prunable_seq(record), tip - 1)
        goes = meta.seq <= top and not is_forked and not meta.branch.number
        return meta.seq if goes else Seq(0)

    # --- receipts -------------------------------------------------------------------------------
    def _receipts(self) -> Iterator[HistoryPruned]:
        """Of epochs in which nothing that is left became Read: epochs never fall along the feed. Of
        the tips that stay the cut is proof."""
        epoch: int = self.epoch
        left = self.store.feed(self._upto, 1)
        first = self.store.meta(left[0][1]) if left else None
        if first is not None:
            epoch = min(epoch, first.epoch)
        for signer in self.saved.signers:
            for below in self._strides(signer, epoch):
                yield HistoryPruned(self.epoch, (), 0, ((signer.signer_no, below),))

    def _strides(self, signer: SignerRecord, epoch: int) -> Iterator[InvNumber]:
        """Those of epochs before this one, but never the newest; so many at a time that no turn
        takes long."""
        count, last = 0, InvNumber(0)
        for data in self.store.invs_from(signer.signer_no, InvNumber(0)):
            inv = decode_inv(data)
            last = inv.number
            if inv.epoch >= epoch or inv.number >= signer.number:
                break
            count += 1
            if count % limits.PRUNE_STEP_INVS == 0:
                yield last
        if count:
            yield last

    def facts(self) -> dict[str, Any]:
        return {
            "checkpoint": int(self.epoch),
            "events": self.events,
            "feed_upto": self._upto,
            "held_by": self.held_by,
        }


# --- what the order needs -------------------------------------------------------------------------
@dataclass(slots=True)
class Ordered:
    """How far each cord is ordered, and from where on executors may still read."""

    upto: dict[Cord, int] = field(default_factory=dict)
    needed: dict[Cord, int] = field(default_factory=dict)

    def has(self, meta: EventMeta) -> bool:
        cord = meta.branch.cord
        return meta.seq <= self.upto.get(cord, 0) and meta.seq < self.needed.get(cord, 2**64)


def ordered_of(store: Store) -> Ordered:
    """As the log on disk says. Where there are clients, executors here and elsewhere read the
    events that it still names: then those stay."""
    log, found = store.saved_log(), Ordered()
    record = decode_record(log.state)
    has_clients = bool(record.part(CLIENTS_PART))
    for tip in record.tips:
        _raise(found.upto, Cord(NodeNo(tip.node_no), Journal(tip.journal)), tip.seq)
    base = 0 if log.base is None else decode_base(log.base).index
    entries: list[LogEntry] = [decode_log_entry(data) for data in log.entries]
    chosen = [entry for entry in entries if base < entry.index <= log.chosen]
    has_clients = has_clients or any(
        read_client_item(item) is not None for entry in chosen for item in entry.items
    )
    for entry in chosen:
        for reference in references_of(entry.items):
            cord = Cord(NodeNo(reference.node_no), Journal(reference.journal))
            _raise(found.upto, cord, reference.seq)
            if has_clients:
                found.needed[cord] = min(reference.seq, found.needed.get(cord, reference.seq))
    return found


def _raise(upto: dict[Cord, int], cord: Cord, seq: int) -> None:
    upto[cord] = max(seq, upto.get(cord, 0))
