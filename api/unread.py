"""GET /v1/entries?state=stored: what is held and not final yet, page by page.

A page goes on behind the place in the DAG where the one before ended. Places do not move when
events become Read, so nothing comes twice, and nothing is left out that stays stored all the while.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from quipu.api.codes import Code
from quipu.api.cursors import read_opaque, write_opaque
from quipu.api.pages import FEED_STEP, Page, Pages, Reader, Room
from quipu.api.problems import at
from quipu.ledger.entry import decode_entry
from quipu.ledger.event import EventMeta
from quipu.ledger.words import Cord, EventId, Journal, NodeNo, Seq
from quipu.node.service import EntryId, EventState, Ledger, Mark

WALK_VERSION = 1


class _Walk(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    version: int
    cord: tuple[int, int] | None
    seq: int
    event: bytes
    given: int


_walks = msgspec.msgpack.Decoder(_Walk)


@dataclass(slots=True)
class Walk:
    """Everything before `mark` was given or does not fit the filter, and `given` entries of the
    event there."""

    mark: Mark | None = None
    given: int = 0

    def text(self) -> str:
        if self.mark is None:
            return write_opaque(_Walk(WALK_VERSION, None, 0, b"", 0))
        cord, seq, identity = self.mark
        place = (cord.author_no, cord.journal)
        return write_opaque(_Walk(WALK_VERSION, place, seq, identity, self.given))

    def read(self, pages: Pages, limit: int) -> Page:
        page, room = Page(), Room(limit)
        for meta in self._events(pages.ledger):
            if room.is_used_up():
                page.more = True
                return page
            first = self.given if self.mark is not None and self.mark.id == meta.id else 0
            wanted = range(first, meta.entry_count if pages.filter.wants_event(meta) else first)
            entries = Reader(pages.ledger, meta)
            for index in wanted:
                if room.is_used_up():
                    page.more = True
                    return page
                self._give(pages, page, room, (meta, index, entries(index)))
            room.scanned -= 1
            self.mark, self.given = _mark_of(meta), meta.entry_count
        return page

    def _give(
        self, pages: Pages, page: Page, room: Room, found: tuple[EventMeta, int, bytes]
    ) -> None:
        meta, index, canonical = found
        entry = decode_entry(canonical)
        room.scanned -= 1
        if pages.filter.wants(entry, meta):
            room.items -= 1
            room.bytes -= len(canonical)
            page.items.append(pages.shapes.opened(EntryId(meta.id, index), meta, entry, pages.form))
        self.mark, self.given = _mark_of(meta), index + 1

    def _events(self, ledger: Ledger) -> Iterator[EventMeta]:
        if self.mark is not None:
            meta, status = ledger.meta(self.mark.id), ledger.status(self.mark.id)
            is_stored = status is not None and status.state is not EventState.READ
            if meta is not None and is_stored and self.given < meta.entry_count:
                yield meta
        while found := ledger.unread(FEED_STEP, self.mark):
            for identity in found:
                meta = ledger.meta(identity)
                assert meta is not None  # it is held
                yield meta


def _mark_of(meta: EventMeta) -> Mark:
    return Mark(meta.branch.cord, meta.seq, meta.id)


def read_walk(text: str, where: str) -> Walk:
    found = read_opaque(text, _walks, where)
    if found.version != WALK_VERSION or min(found.seq, found.given) < 0:
        raise at(Code.INVALID_CURSOR, where, "is not a cursor that this version reads")
    if found.cord is None:
        return Walk()
    author_no, journal = found.cord
    mark = Mark(Cord(NodeNo(author_no), Journal(journal)), Seq(found.seq), EventId(found.event))
    return Walk(mark, found.given)
