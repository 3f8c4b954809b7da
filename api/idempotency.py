"""Same bytes again give the first answer, with no time window.

A key counts within its submitter and stream. What is committed the ledger knows; what is under
way right now stands here, so that two requests with one key never store two entries.
"""

import asyncio
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from quipu.api.bodies import Shaped
from quipu.api.codes import Code
from quipu.api.problems import Problem
from quipu.ledger.entry import Entry, decode_entry
from quipu.ledger.holes import is_hole
from quipu.ledger.words import Hlc
from quipu.node.service import EntryId, Ledger, Stored

Scope = tuple[str | None, str, str]  # submitter, stream, key


class Outcome(NamedTuple):
    id: EntryId
    hlc: Hlc
    duplicate: bool


class _Flight(NamedTuple):
    entry: Entry
    landed: "asyncio.Future[Outcome]"


def scope_of(entry: Entry) -> Scope | None:
    key = entry.idempotency_key
    return None if key is None else (entry.submitter, entry.stream, key)


@dataclass(slots=True)
class Keys:
    """Invariant: a scope stands here while, and only while, one submission under it is under
    way."""

    ledger: Ledger
    _flights: dict[Scope, _Flight] = field(default_factory=dict)

    def first(self, shaped: Shaped) -> Outcome | None:
        """What the same bytes under the same key led to; other bytes are a problem."""
        scope = scope_of(shaped.entry)
        known = None if scope is None else self.ledger.find_key(*scope)
        if known is None:
            return None
        held = self.ledger.entry(known.entry.event, known.entry.index)
        meta = self.ledger.meta(known.entry.event)
        assert held is not None  # the index is written with it
        if is_hole(held):  # erased a moment ago, and its key with it
            return None
        assert meta is not None
        if _unsalted(decode_entry(held)) != shaped.entry:
            detail = "the bytes differ from those that were stored under this key"
            raise Problem(Code.KEY_REUSED, detail, entry_id=str(known.entry))
        return Outcome(known.entry, meta.hlc, True)

    def begin(self, item: Shaped) -> "asyncio.Future[Stored] | asyncio.Future[Outcome]":
        """One entry; what comes of it is read with `outcome_of`."""
        if item.entry.idempotency_key is None:  # nothing to look up: most submissions
            return asyncio.ensure_future(self.ledger.submit((item.canonical,)))
        return asyncio.ensure_future(self._submit_keyed(item))

    async def _submit_keyed(self, item: Shaped) -> Outcome:
        (outcome,) = await self.submit([item])
        if isinstance(outcome, Problem):
            raise outcome
        return outcome

    async def submit(self, items: list[Shaped]) -> list[Outcome | Problem]:
        """Stores together, in order, those that are new. One outcome for each item."""
        outcomes: dict[int, Outcome | Problem] = {}
        waits: dict[int, asyncio.Future[Outcome]] = {}
        fresh: list[int] = []
        taken: list[_Taken] = []
        for place, item in enumerate(items):
            try:
                found = self._find(item)
            except Problem as refused:
                outcomes[place] = refused
                continue
            if isinstance(found, Outcome):
                outcomes[place] = found
            elif found is not None:
                waits[place] = found
            else:
                scope = scope_of(item.entry)
                if scope is not None:
                    landed = asyncio.get_running_loop().create_future()
                    self._flights[scope] = _Flight(item.entry, landed)
                    taken.append(_Taken(scope, landed, len(fresh)))
                fresh.append(place)
        if fresh:
            placed = await self._store([items[place].canonical for place in fresh], taken)
            for offset, place in enumerate(fresh):
                outcomes[place] = _outcome(placed, offset)
        for place, landed in waits.items():
            outcomes[place] = (await asyncio.shield(landed))._replace(duplicate=True)
        return [outcomes[place] for place in range(len(items))]

    def _find(self, item: Shaped) -> "Outcome | asyncio.Future[Outcome] | None":
        scope = scope_of(item.entry)
        if scope is None:
            return None
        flight = self._flights.get(scope)
        if flight is None:
            return self.first(item)
        if flight.entry != item.entry:
            raise Problem(Code.KEY_IN_FLIGHT)
        return flight.landed

    async def _store(self, entries: list[bytes], taken: list["_Taken"]) -> Stored:
        if not taken:
            return await self.ledger.submit(entries)
        # A caller that goes away does not end what others wait for.
        task = asyncio.ensure_future(self.ledger.submit(entries))
        task.add_done_callback(lambda done: self._land(taken, done))
        return await asyncio.shield(task)

    def _land(self, taken: list["_Taken"], done: "asyncio.Future[Stored]") -> None:
        for scope, landed, offset in taken:
            del self._flights[scope]
            if done.cancelled():
                landed.cancel()
            elif (error := done.exception()) is not None:
                landed.set_exception(error)
                landed.exception()  # whoever submitted is told anyhow
            else:
                landed.set_result(_outcome(done.result(), offset))


class _Taken(NamedTuple):
    scope: Scope
    landed: "asyncio.Future[Outcome]"
    offset: int  # among the entries that are stored


def outcome_of(result: Stored | Outcome) -> Outcome:
    return result if isinstance(result, Outcome) else _outcome(result, 0)


def _outcome(placed: Stored, offset: int) -> Outcome:
    return Outcome(EntryId(placed.event_id, placed.index + offset), placed.hlc, False)


def _unsalted(entry: Entry) -> Entry:
    return entry if entry.salt is None else msgspec.structs.replace(entry, salt=None)
