"""Erasing in a running node: asking for it, and doing what was asked for anywhere.

Level-triggered: each look compares the ERASE entries that are Read with what is stored. So nothing
is lost by a kill, and what is named before it is here, or before a checkpoint has it, goes later.
"""

import asyncio
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from quipu.ledger.entry import decode_entry
from quipu.ledger.erasures import (
    ERASURE_KEY,
    ERASURES_STREAM,
    Erasure,
    erasure_entry,
    is_erasable,
    read_erasure,
)
from quipu.ledger.holes import is_hole
from quipu.ledger.inputs import EntryErased
from quipu.node import limits
from quipu.node.logs import Log
from quipu.node.running import RunningLedger
from quipu.node.service import EntryId, EventState
from quipu.storage.store import StoreError


class Waits(StrEnum):
    """What an erasure that was asked for waits for."""

    FINALITY = "finality"  # the ERASE is not Read yet
    CHECKPOINT = "checkpoint"  # no cut contains the entry yet
    ENTRY = "entry"  # it is not held here
    COMMIT = "commit"  # the disk


class Asked(NamedTuple):
    """An erasure that was asked for: by which entry, and what it waits for. None: it is done."""

    by: EntryId | None
    waits: Waits | None


@dataclass(slots=True)
class Eraser:
    """Invariant: an entry goes only where an ERASE that is Read names it and it may be erased."""

    ledger: RunningLedger
    log: Log
    _waiting: dict[EntryId, tuple[Erasure, Waits]] = field(default_factory=dict)  # by its ERASE
    _done: dict[EntryId, None] = field(default_factory=dict)  # ERASEs that need nothing any more
    _looked: asyncio.Event = field(default_factory=asyncio.Event)  # set, and made anew, each time
    _seen: tuple[int, int] = (-1, -1)  # how much was Read, and the epoch, at the last look
    _task: "asyncio.Task[None] | None" = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._look_on())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def erase(self, target: EntryId, timeout_s: float) -> Asked:
        """Of an entry that may be erased. Durable on return, done where nothing is waited for."""
        wanted, ends_s = Erasure(target.event, target.index), time.monotonic() + timeout_s
        by = next((by for by, (one, _) in self._waiting.items() if one == wanted), None)
        if by is None:
            stored = await self.ledger.submit((erasure_entry(wanted),))
            by = EntryId(stored.event_id, stored.index)
            self._waiting[by] = wanted, Waits.FINALITY
        while by in self._waiting and time.monotonic() < ends_s:
            try:
                async with asyncio.timeout(ends_s - time.monotonic()):
                    await self._looked.wait()
            except TimeoutError:
                break
        found = self._waiting.get(by)
        return Asked(by, None if found is None else found[1])

    # --- looking --------------------------------------------------------------------------------
    async def _look_on(self) -> None:
        while True:
            begun_s = time.monotonic()
            seen = self.ledger.feed_number, self.ledger.epoch.number
            if seen != self._seen or self._is_committing():
                try:
                    await self._look()
                    self._seen = seen
                except StoreError as error:  # the scrub and `doctor` say more; the next look tries
                    self.log.warning("erasures cannot be looked at", error=str(error))
                self._looked.set()
                self._looked = asyncio.Event()
            took_s = time.monotonic() - begun_s
            await asyncio.sleep(max(limits.ERASE_LOOK_S, limits.ERASE_REST * took_s))

    def _is_committing(self) -> bool:
        return any(waits is Waits.COMMIT for _, waits in self._waiting.values())

    async def _look(self) -> None:
        store = self.ledger.machine.store
        found = await asyncio.to_thread(store.find_key, None, ERASURES_STREAM, ERASURE_KEY)
        for count, place in enumerate(found):
            by = EntryId(*place)
            if by not in self._done:
                self._consider(by)
            if count % limits.ERASURES_PER_TURN == 0:
                await asyncio.sleep(0)

    def _consider(self, by: EntryId) -> None:
        data, status = self.ledger.entry(by.event, by.index), self.ledger.status(by.event)
        wanted = None if data is None or is_hole(data) else read_erasure(decode_entry(data))
        is_void = status is None or status.state is EventState.VOID
        if wanted is None or status is None or is_void:
            self._end(by)
        elif status.state is not EventState.READ:
            self._waiting[by] = wanted, Waits.FINALITY
        else:
            self._carry_out(by, wanted)

    def _carry_out(self, by: EntryId, wanted: Erasure) -> None:
        meta, held = self.ledger.meta(wanted.event), self.ledger.entry(*wanted)
        if meta is None:
            if self.ledger.was_pruned(wanted.event):
                self._end(by)
            else:
                self._waiting[by] = wanted, Waits.ENTRY
        elif held is None or is_hole(held):  # there never was one, or it is gone
            if by in self._waiting and held is not None:
                self.log.info("entry erased", entry=str(EntryId(*wanted)), by=str(by))
            self._end(by)
        elif not is_erasable(decode_entry(held)):
            self._end(by)
        elif meta.seq > self.ledger.machine.view.branches[meta.branch].cut_seq:
            self._waiting[by] = wanted, Waits.CHECKPOINT
        else:
            self._waiting[by] = wanted, Waits.COMMIT
            self.ledger.inbox.push(EntryErased(*wanted), 0)  # no room: the next look does it

    def _end(self, by: EntryId) -> None:
        self._waiting.pop(by, None)
        self._done[by] = None
