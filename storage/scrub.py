"""Checking everything a store holds, a slice at a time, so that a loop can run it beside its work.

LMDB has no page checksums and a disk forgets silently: what nobody reads for a year must be
looked at all the same. Findings name the exact record; peers hold what is broken here. Memory
grows with the number of branches, never with that of events.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from quipu.ledger import signing
from quipu.ledger.epochs import decode_document
from quipu.ledger.event import decode_event, has_valid_signature
from quipu.ledger.history import BranchRecord
from quipu.ledger.inv import decode_inv
from quipu.ledger.inv import has_valid_signature as has_valid_inv_signature
from quipu.ledger.refusals import Refused
from quipu.ledger.signing import HASH_BYTES
from quipu.ledger.words import BranchKey, EventId, NodeNo, Seq, Slot
from quipu.storage import keyed, keys, letting_go, limits, log_tables, records
from quipu.storage.environment import (
    ReadTxn,
    Snapshot,
    StoreDamaged,
    Table,
    Tables,
    records_from,
)
from quipu.storage.event_blob import StoredEvent, entries_of, open_blob
from quipu.storage.store import StoreCorrupt


class Finding(NamedTuple):
    """One thing that is wrong, and where."""

    table: str
    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.table}: {self.place}: {self.what}"


@dataclass(slots=True)
class ScrubProgress:
    """`findings` holds the first ones; `found` counts them all."""

    phase: str = ""
    done: int = 0  # records of this phase
    total: int = 0  # as counted when the phase began
    events: int = 0  # checked in all
    found: int = 0
    findings: dict[Finding, None] = field(default_factory=dict)  # in the order in which they showed
    complete: bool = False

    def facts(self) -> dict[str, Any]:
        return {
            "phase": self.phase,
            "done": self.done,
            "total": self.total,
            "found": self.found,
        }

    def add(self, table: str, place: str, what: str) -> None:
        """One broken record shows from several sides, in the same words."""
        finding = Finding(table, place, what)
        if finding in self.findings:
            return
        self.found += 1
        if len(self.findings) < limits.SCRUB_FINDINGS_MAX:
            self.findings[finding] = None


Check = Callable[[ReadTxn, bytes, memoryview], None]


class Scrub:
    """Invariant: a phase has checked every record below its cursor, each in some snapshot; what
    has been written since begins above it or is seen by a later phase."""

    def __init__(
        self,
        snapshot: Snapshot,
        tables: Tables,
        cluster_id: bytes,
        verify: signing.Verifier | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._tables = tables
        self._cluster_id = cluster_id
        self._verify = verify
        self._authors: dict[NodeNo, bytes] = {}
        self._fed: dict[BranchKey, Seq] = {}  # last seq of each branch in the feed so far
        self._feed_last = 0
        self._feed_begins = 1
        self._begins: dict[BranchKey, Seq] = {}  # the first seq that is kept of each branch
        self._epoch_last = 1
        self._slice_bytes = 0
        self.progress = ScrubProgress()

    def slices(self) -> Iterator[ScrubProgress]:
        """One bounded piece of work a step; the same progress object each time."""
        tables = self._tables
        phases: tuple[tuple[str, Table | None, Check], ...] = (
            ("events", tables.events, self._check_event),
            ("ids", tables.ids, self._check_index),
            ("edges", tables.edges, self._check_edge),
            ("keyed", tables.keyed, self._check_keyed),
            ("invs", tables.invs, self._check_inv),
            ("signers", tables.signers, self._check_signer),
            ("proofs", tables.proofs, self._check_proof),
            ("epochs", tables.epochs, self._check_epoch),
            ("log", tables.log, self._check_log_entry),
            ("votes", tables.votes, self._check_log_kept),
            ("feed", tables.feed, self._check_fed),
        )
        for name, table, check in phases:
            if table is None:  # of the first format
                continue
            self.progress.phase, self.progress.done = name, 0
            start = b""
            while True:
                try:
                    with self._snapshot as txn:
                        self.progress.total = txn.stat(table)["entries"]
                        start = self._slice(txn, table, check, start)
                        if name == "feed" and not start:
                            self._check_branches(txn)  # in the snapshot in which the feed ended
                        if name == "votes" and not start:
                            self._check_log_whole(txn)
                except StoreDamaged as damage:
                    self.progress.add(name, f"from key {start.hex() or 'first'} on", str(damage))
                    start = b""
                yield self.progress
                if not start:
                    break
        self.progress.complete = True
        yield self.progress

    def _slice(self, txn: ReadTxn, table: Table, check: Check, start: bytes) -> bytes:
        """The key to go on from, empty at the end."""
        self._slice_bytes = 0
        for count, (view, value) in enumerate(records_from(txn, table, start)):
            key = bytes(view)
            if count == limits.SCRUB_SLICE_RECORDS or self._slice_bytes > limits.SCRUB_SLICE_BYTES:
                return key
            self._slice_bytes += len(value)
            try:
                check(txn, key, value)
            except StoreCorrupt as corrupt:
                self.progress.add(corrupt.table, corrupt.place, corrupt.what)
            self.progress.done += 1
        return b""

    # --- events ---------------------------------------------------------------------------------
    def _check_event(self, txn: ReadTxn, key: bytes, value: memoryview) -> None:
        slot = keys.slot_of(key)
        place = keys.describe(slot)
        self.progress.events += 1
        stored = open_blob(slot, value)
        self._check_body(txn, stored, place)
        if self._place_of(txn, stored.id) != slot:
            self.progress.add("ids", place, f"{stored.id.hex()} is not indexed there")
        header = stored.header
        if header.cluster_id != self._cluster_id:
            self.progress.add("events", place, "is of another cluster")
        if self._authors.setdefault(slot.author_no, header.author) != header.author:
            self.progress.add("events", place, "has another author than the cord's first event")
        self._check_below(txn, stored, place)

    def _check_body(self, txn: ReadTxn, stored: StoredEvent, place: str) -> None:
        event = stored.unchecked()
        try:
            event = decode_event(event.header_bytes, event.signature, event.body)
        except Refused as refused:
            self.progress.add("events", place, f"is not well-formed: {refused}")
            return
        stored.check_table(event)
        for index, scope in keyed.scopes_of(entries_of(event)):
            row = keyed.row_key(scope, keys.slot_key(stored.slot), index)
            if txn.get(row, db=self._tables.keyed) is None:
                self.progress.add("keyed", place, f"the key of entry {index} is not indexed")
        if self._verify is not None and not has_valid_signature(event, self._verify):
            self.progress.add("events", place, "its signature is not valid")

    def _check_below(self, txn: ReadTxn, stored: StoredEvent, place: str) -> None:
        """Prev and parents are held, earlier, and lead back here."""
        header, below = stored.header, list[StoredEvent]()
        is_first = self._is_first_kept(txn, stored.slot)
        wanted = [EventId(header.prev)] if header.seq > 1 else []
        wanted += [EventId(identity) for identity in header.parents]
        gone = {one for one in wanted if self._may_be_gone(txn, one, is_first)}
        if header.seq > 1 and EventId(header.prev) not in gone:
            prev = self._held(txn, EventId(header.prev), place, "prev")
            if prev is not None:
                below.append(prev)
                if prev.slot[:2] != stored.slot[:2] or prev.slot.seq != stored.slot.seq - 1:
                    self.progress.add("events", place, "prev is not the event before it")
        child = keys.slot_key(stored.slot)
        for identity in wanted[header.seq > 1 :]:
            parent = None if identity in gone else self._held(txn, identity, place, "parent")
            if parent is not None:
                below.append(parent)
                if txn.get(keys.slot_key(parent.slot) + child, db=self._tables.edges) is None:
                    self.progress.add("edges", place, f"no edge from {identity.hex()}")
        depth = 1 + max([one.header.depth for one in below], default=0)
        if header.depth < depth or (header.depth > depth and not gone):
            self.progress.add("events", place, "its depth is not 1 + the greatest below")
        if any(one.header.hlc >= header.hlc for one in below):
            self.progress.add("events", place, "its hlc is not above those below")

    def _gone_upto(self, txn: ReadTxn, branch: BranchKey) -> Seq:
        """Asked where something is missing, and for the first event of each branch."""
        key = keys.branch_key(branch)
        value = txn.get(key, db=self._tables.branches)
        try:
            return Seq(0) if value is None else records.decode_branch(key, value).gone_upto
        except StoreCorrupt:
            return Seq(0)  # found where it lies

    def _is_first_kept(self, txn: ReadTxn, slot: Slot) -> bool:
        """The tip of a cut, which stands there without what it rests on."""
        if self._begins.get(slot.branch) is None:
            self._begins[slot.branch] = Seq(self._gone_upto(txn, slot.branch) + 1)
        return 1 < slot.seq <= self._begins[slot.branch]

    def _may_be_gone(self, txn: ReadTxn, identity: EventId, is_first: bool) -> bool:
        if self._place_of(txn, identity) is not None:
            return False
        return is_first or letting_go.was_pruned(txn, self._tables, identity)

    def _held(self, txn: ReadTxn, identity: EventId, place: str, role: str) -> StoredEvent | None:
        slot = self._place_of(txn, identity)
        blob = None if slot is None else txn.get(keys.slot_key(slot), db=self._tables.events)
        if slot is None or blob is None:
            self.progress.add("events", place, f"{role} {identity.hex()} is not held")
            return None
        try:
            return open_blob(slot, blob)
        except StoreCorrupt:
            return None  # found, or to be found, where it lies

    def _place_of(self, txn: ReadTxn, identity: EventId) -> Slot | None:
        value = txn.get(keys.prefix_of(identity), db=self._tables.ids)
        if value is not None:
            for other, slot in records.index_rows(keys.prefix_of(identity), value):
                if other == identity:
                    return slot
        return None

    # --- what leads to events -------------------------------------------------------------------
    def _check_index(self, txn: ReadTxn, key: bytes, value: memoryview) -> None:
        for identity, slot in records.index_rows(key, value):
            blob = txn.get(keys.slot_key(slot), db=self._tables.events)
            if blob is None and slot.seq <= self._gone_upto(txn, slot.branch):
                continue  # it was damaged when it was let go
            if blob is None:
                what = f"names {identity.hex()}, which is not there"
                self.progress.add("ids", keys.describe(slot), what)
            elif open_blob(slot, blob).id != identity:
                self.progress.add("ids", keys.describe(slot), f"holds not {identity.hex()}")

    def _check_edge(self, txn: ReadTxn, key: bytes, value: memoryview) -> None:
        parent, child = keys.slot_of(key[: keys.SLOT_BYTES]), keys.slot_of(key[keys.SLOT_BYTES :])
        blobs = [txn.get(keys.slot_key(slot), db=self._tables.events) for slot in (parent, child)]
        if blobs[0] is None or blobs[1] is None:
            self.progress.add("edges", keys.describe(parent), "an end of its edge is not held")
        elif open_blob(parent, blobs[0]).id not in open_blob(child, blobs[1]).header.parents:
            what = f"is no parent of {keys.describe(child)}"
            self.progress.add("edges", keys.describe(parent), what)

    def _check_keyed(self, txn: ReadTxn, key: bytes, value: memoryview) -> None:
        slot, index = keyed.place_of(key)
        place = keys.describe(slot)
        blob = txn.get(keys.slot_key(slot), db=self._tables.events)
        entry = None if blob is None else open_blob(slot, blob).entry(index)
        scopes = [] if entry is None else [scope for _, scope in keyed.scopes_of([entry])]
        if key[:HASH_BYTES] not in scopes:
            self.progress.add("keyed", place, f"entry {index} has no such key")

    # --- receipts, proofs, epochs ---------------------------------------------------------------
    def _check_inv(self, txn: ReadTxn, key: bytes, value: memoryview) -> None:
        signer_no, number = keys.inv_of(key)
        place = f"signer {signer_no} number {number}"
        try:
            inv = decode_inv(records.unguarded("invs", key, value))
        except Refused as refused:
            self.progress.add("invs", place, f"is not well-formed: {refused}")
            return
        if inv.number != number or inv.array.cluster_id != self._cluster_id:
            self.progress.add("invs", place, "is another number or of another cluster")
        if self._verify is not None and not has_valid_inv_signature(inv, self._verify):
            self.progress.add("invs", place, "its signature is not valid")

    def _check_signer(self, txn: ReadTxn, key: bytes, value: memoryview) -> None:
        newest = records.decode_signer(key, value)
        place = f"signer {newest.signer_no}"
        inv_key = keys.inv_key(newest.signer_no, newest.number)
        held = txn.get(inv_key, db=self._tables.invs)
        if held is None:
            self.progress.add("signers", place, f"its newest Inv, {newest.number}, is not held")
            return
        try:
            inv = decode_inv(records.unguarded("invs", inv_key, held))
        except Refused:
            return  # found where it lies
        if inv.id != newest.inv_id:
            self.progress.add("signers", place, f"its newest Inv, {newest.number}, is another")

    def _check_proof(self, txn: ReadTxn, key: bytes, value: memoryview) -> None:
        records.unguarded("proofs", key, value)

    def _check_epoch(self, txn: ReadTxn, key: bytes, value: memoryview) -> None:
        document, _ = records.decode_epoch(key, value)
        number = keys.feed_of(key)
        place = f"epoch {number}"
        if number != self._epoch_last + 1:
            self.progress.add("epochs", place, f"follows epoch {self._epoch_last}")
        self._epoch_last = number
        try:
            decoded = decode_document(document)
        except Refused as refused:
            self.progress.add("epochs", place, f"is not well-formed: {refused}")
            return
        if decoded.number != number or decoded.cluster_id != self._cluster_id:
            self.progress.add("epochs", place, "its document is another")

    # --- the log --------------------------------------------------------------------------------
    def _check_log_entry(self, txn: ReadTxn, key: bytes, value: memoryview) -> None:
        log_tables.check_entry(key, value)

    def _check_log_kept(self, txn: ReadTxn, key: bytes, value: memoryview) -> None:
        log_tables.check_kept(key, value)

    def _check_log_whole(self, txn: ReadTxn) -> None:
        try:
            log_tables.read_log(txn, self._tables)
        except StoreCorrupt as corrupt:
            self.progress.add(corrupt.table, corrupt.place, corrupt.what)

    # --- the feed and the branches --------------------------------------------------------------
    def _check_fed(self, txn: ReadTxn, key: bytes, value: memoryview) -> None:
        number = keys.feed_of(key)
        place = f"number {number}"
        if number != self._feed_last + 1:
            if self._is_where_feed_begins(txn, key):
                self._fed.clear()  # what was let go up to here, meanwhile or before
                self._feed_begins = number
            else:
                self.progress.add("feed", place, f"follows number {self._feed_last}")
        self._feed_last = number
        identity = EventId(records.unguarded("feed", key, value))
        if identity == letting_go.NOBODY:
            return
        stored = self._held(txn, identity, f"feed {place}", "event")
        if stored is None:
            return
        is_first = self._is_first_kept(txn, stored.slot)
        for below in (stored.header.prev, *stored.header.parents):
            if below == self._cluster_id or is_first:
                continue
            slot = self._place_of(txn, EventId(below))
            if slot is not None and not self._is_fed(slot):
                what = f"{keys.describe(stored.slot)} comes before {keys.describe(slot)}"
                self.progress.add("feed", place, what)
        if self._fed.get(stored.slot.branch, 0) >= stored.slot.seq:
            self.progress.add("feed", place, f"{keys.describe(stored.slot)} comes a second time")
        self._fed[stored.slot.branch] = stored.slot.seq

    def _is_where_feed_begins(self, txn: ReadTxn, key: bytes) -> bool:
        return (
            letting_go.has_pruned(txn, self._tables)
            and next(records_from(txn, self._tables.feed))[0] == key
        )

    def _is_fed(self, slot: Slot) -> bool:
        """Before the event that is looked at. Where the feed does not begin with 1, what has come
        of a branch before is not known until something of it comes."""
        if self._feed_begins > 1 and slot.branch not in self._fed:
            return True
        return self._fed.get(slot.branch, 0) >= slot.seq

    def _check_branches(self, txn: ReadTxn) -> None:
        for key, value in records_from(txn, self._tables.branches):
            try:
                self._check_branch(txn, records.decode_branch(key, value))
            except StoreCorrupt as corrupt:
                self.progress.add(corrupt.table, corrupt.place, corrupt.what)

    def _check_branch(self, txn: ReadTxn, record: BranchRecord) -> None:
        author_no, journal, number = record.key
        place = f"author {author_no} journal {journal} branch {number}"
        for role, seq, identity in (
            ("held", record.held_seq, record.held_id),
            ("read", record.read_seq, record.read_id),
        ):
            own = seq > record.base_seq
            slot = Slot(author_no, journal, seq, number)
            if own and identity and self._place_of(txn, identity) != slot:
                self.progress.add("branches", place, f"{role}_seq {seq} is not its {role}_id")
        above = Slot(author_no, journal, Seq(record.held_seq + 1), number)
        if txn.get(keys.slot_key(above), db=self._tables.events) is not None:
            self.progress.add("branches", place, f"an event lies above held_seq {record.held_seq}")
        fed = self._fed.get(record.key, 0)
        if not fed and self._feed_begins > 1:
            return  # all of it became Read before that
        if fed != (record.read_seq if record.read_seq > record.base_seq else 0):
            self.progress.add("branches", place, f"read_seq {record.read_seq}, the feed has {fed}")
