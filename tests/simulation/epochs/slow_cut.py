"""The cut, event by event, from the sentences of DESIGN section 5 and the judge's own record.

The slow twin of `quipu.ledger.order.cut`: sets of events in place of lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quipu.ledger.inv import Inv
from quipu.ledger.words import HLC_SHIFT, EventId
from tests.simulation.record import CordKey, KnownEvent, Record, Roster

AHEAD_MS = 2_000
Row = tuple[int, int, int, bytes]


class SlowCut:
    def __init__(
        self,
        record: Record,
        roster: Roster,
        seals: Sequence[Inv],
        receipts: Sequence[Inv],
        due_ms: int,
        proven: Mapping[CordKey, int],
    ) -> None:
        self._record, self._roster = record, roster
        self._below = roster.cut
        latest_ms = max(due_ms, (roster.cut_hlc >> HLC_SHIFT) + AHEAD_MS)
        sealed = self._coverage(seals)
        signed = self._coverage([*seals, *receipts])
        forks = self._forks(sealed, proven)
        silent = len(roster.members) - len(seals)
        self.kept: dict[EventId, KnownEvent] = {}
        for identity, signers in sealed.items():
            known = record.events[identity]
            if len(signers) + silent + roster.borne < roster.confirms + 1:
                continue
            header = known.event.header
            below = known.cord not in forks or header.seq < forks[known.cord]
            plain = below and header.hlc >> HLC_SHIFT <= latest_ms
            if plain or self._is_certified(known, signed[identity]):
                self.kept[identity] = known
        self._lower()

    def _coverage(self, invs: Sequence[Inv]) -> dict[EventId, set[int]]:
        found: dict[EventId, set[int]] = {}
        for inv in invs:
            signer = self._record.numbers[inv.signer]
            for row in inv.rows:
                tip = self._record.events.get(EventId(row.id))
                if tip is None or tip.slot != (row.author_no, row.journal, row.seq):
                    continue
                if row.author_no not in self._roster.members:
                    continue
                for known in self._record.chain(tip.id):
                    if known.id in self._below:
                        break
                    found.setdefault(known.id, set()).add(signer)
        return found

    def _forks(
        self, sealed: Mapping[EventId, set[int]], proven: Mapping[CordKey, int]
    ) -> dict[CordKey, int]:
        forks = dict(proven)
        slots: dict[tuple[int, int, int], EventId] = {}
        for identity in sealed:
            known = self._record.events[identity]
            other = slots.setdefault(known.slot, identity)
            if other != identity:
                seq = known.slot[2]
                forks[known.cord] = min(seq, forks.get(known.cord, seq))
        return forks

    def _is_certified(self, known: KnownEvent, signers: set[int]) -> bool:
        return known.author_no in signers and len(signers) > self._roster.confirms

    def _lower(self) -> None:
        """Until prev and parents of all in it are in it."""
        while lost := [
            identity
            for identity, known in self.kept.items()
            if any(a not in self.kept and a not in self._below for a in known.ancestors)
        ]:
            for identity in lost:
                del self.kept[identity]

    def rows(self) -> list[Row]:
        inner = {known.event.header.prev for known in self.kept.values() if known.slot[2] > 1}
        tips = [known for identity, known in self.kept.items() if identity not in inner]
        return sorted((*known.slot, known.id) for known in tips)

    @property
    def hlc(self) -> int:
        newest = max((known.event.header.hlc for known in self.kept.values()), default=0)
        return max(newest, self._roster.cut_hlc)
