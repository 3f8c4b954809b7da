"""Pages of entries out of the feed: what became Read here, in that order, once each."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from quipu.api import limits
from quipu.api.codes import Code
from quipu.api.cursors import Cursor
from quipu.api.models import EntryBody
from quipu.api.problems import problem
from quipu.api.shaping import Form, Shapes
from quipu.ledger.entry import Entry, decode_entry
from quipu.ledger.event import EventMeta
from quipu.ledger.holes import is_hole
from quipu.ledger.words import HLC_SHIFT, Cord, EventId, NodeNo
from quipu.node.service import EntryId, Ledger

FEED_STEP = 64  # events asked of the store at a time
ENTRIES_STEP = 64  # entries of one event


class Filter(NamedTuple):
    """Which entries are wanted. None: any."""

    streams: frozenset[str] | None = None
    author: NodeNo | None = None
    submitter: str | None = None
    client_id: int | None = None
    since_ms: int = 0
    until_ms: int | None = None

    def wants_event(self, meta: EventMeta) -> bool:
        return self.author is None or meta.slot.author_no == self.author

    def wants(self, entry: Entry, meta: EventMeta) -> bool:
        if self.streams is not None and entry.stream not in self.streams:
            return False
        if self.submitter is not None and entry.submitter != self.submitter:
            return False
        if self.client_id is not None and entry.client_id != self.client_id:
            return False
        time_ms = meta.hlc >> HLC_SHIFT if entry.time is None else entry.time
        return time_ms >= self.since_ms and (self.until_ms is None or time_ms < self.until_ms)


@dataclass(slots=True)
class Page:
    items: list[EntryBody] = field(default_factory=list)
    cursors: list[Cursor] = field(default_factory=list)  # after each item, where they are wanted
    more: bool = False  # it ended by its size and not by the end of the feed


async def seek(ledger: Ledger, cursor: Cursor) -> None:
    """Puts a cursor of another node to where this feed first holds something that is new to it.

    From the end backwards, until all that is new has been passed: the way is as long as what is
    still to be given, whatever the length of the feed. Where that is too far, pages skip what is
    covered from the start on.
    """
    if not cursor.by_vector or cursor.number:
        return
    covered = cursor.vector
    new = sum(
        max(0, row.read_seq - covered.get(Cord(row.author_no, row.journal), 0))
        for row in ledger.frontier()
    )
    number = ledger.feed_number
    lowest = max(ledger.feed_first - 1, number - limits.SEEK_EVENTS_MAX)
    while new > 0 and number > lowest:
        first = max(ledger.feed_first - 1, number - FEED_STEP)
        for place, identity in reversed(ledger.feed(first, number - first)):
            meta = ledger.meta(identity)
            new -= meta is not None and not cursor.covers(meta)  # None: pruned a moment ago
            number = place - 1
            if new <= 0:
                break
        await asyncio.sleep(0)  # a long way takes many turns of the loop
    cursor.number = 0 if new > 0 else number


class Room:
    """What a page may still take."""

    def __init__(self, limit: int) -> None:
        self.items = limit
        self.bytes = limits.PAGE_BYTES_MAX
        self.scanned = limits.PAGE_SCANNED_MAX

    def is_used_up(self) -> bool:
        return self.items <= 0 or self.bytes <= 0 or self.scanned <= 0


@dataclass(slots=True)
class Pages:
    """Reads a ledger from a cursor on; the cursor moves along."""

    ledger: Ledger
    shapes: Shapes
    form: Form
    filter: Filter
    with_cursors: bool = False

    def read(self, cursor: Cursor, limit: int) -> Page:
        page, room = Page(), Room(limit)
        for number, identity in self._events(cursor):
            meta = self.ledger.meta(identity)
            if meta is None:  # pruned a moment ago
                continue
            if cursor.covers(meta) or not self.filter.wants_event(meta):
                room.scanned -= 1
            elif not self._take(cursor, number, meta, page, room):
                page.more = True
                return page
            cursor.pass_over(number, meta)
            if room.is_used_up():
                page.more = not self._is_at_end(cursor)
                return page
        if not cursor.downwards:
            cursor.by_vector = False  # all that is here has been looked at
        return page

    def one(self, cursor: Cursor, number: int, identity: EventId) -> Page:
        """The entries of one event that became Read just now, all of them."""
        page, room = Page(), Room(limits.PAGE_SCANNED_MAX)
        meta = self.ledger.meta(identity)
        assert meta is not None
        if not cursor.covers(meta) and self.filter.wants_event(meta):
            room.bytes = room.scanned = 1 << 62
            self._take(cursor, number, meta, page, room)
        cursor.pass_over(number, meta)
        return page

    def _events(self, cursor: Cursor) -> Iterator[tuple[int, EventId]]:
        while True:
            if cursor.downwards:
                first = max(self.ledger.feed_first - 1, cursor.number - 1 - FEED_STEP)
                found = self.ledger.feed(first, max(cursor.number - 1 - first, 0))
                found.reverse()
            else:
                found = self.ledger.feed(cursor.number, FEED_STEP)
            if not found:
                return
            yield from found

    def _is_at_end(self, cursor: Cursor) -> bool:
        if cursor.downwards:
            return cursor.number <= self.ledger.feed_first
        return cursor.number >= self.ledger.feed_number

    def _take(self, cursor: Cursor, number: int, meta: EventMeta, page: Page, room: Room) -> bool:
        """False: the page ends inside this event."""
        done = cursor.given if cursor.event == meta.id else 0
        order = range(meta.entry_count)
        if cursor.downwards:
            order = order[::-1]
        entries = Reader(self.ledger, meta)
        before = cursor.number
        for given, index in enumerate(order[done:], done):
            if room.is_used_up():
                cursor.stop_inside(before, meta.id, given)
                return False
            room.scanned -= 1
            canonical = entries(index)
            if is_hole(canonical):
                continue
            entry = decode_entry(canonical)
            if not self.filter.wants(entry, meta):
                continue
            room.items -= 1
            room.bytes -= len(canonical)
            identity = EntryId(meta.id, index)
            page.items.append(self.shapes.opened(identity, meta, entry, self.form))
            if self.with_cursors:
                at = cursor.copy()
                if given + 1 == meta.entry_count:
                    at.pass_over(number, meta)
                else:
                    at.stop_inside(before, meta.id, given + 1)
                page.cursors.append(at)
        return True


class Reader:
    """Entries of one event, read some at a time: a page seldom wants all of a large one."""

    def __init__(self, ledger: Ledger, meta: EventMeta) -> None:
        self._ledger = ledger
        self._meta = meta
        self._first = 0
        self._entries: list[bytes] = []

    def __call__(self, index: int) -> bytes:
        place = index - self._first
        if not 0 <= place < len(self._entries):
            is_downwards = place == -1
            self._first = max(0, index - ENTRIES_STEP + 1) if is_downwards else index
            found = self._ledger.entries(self._meta.id, self._first, ENTRIES_STEP)
            if found is None:
                problem(Code.PRUNED, "while it was read")
            self._entries = found[1]
            place = index - self._first
        return self._entries[place]
