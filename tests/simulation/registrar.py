"""Opens epochs, as the log will do later: CLOSE, seals, the cut, OPEN.

The cut is computed from the sentence in DESIGN section 5, on the judge's own record.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quipu.ledger import epochs as formats
from quipu.ledger.canonical import encode
from quipu.ledger.inputs import EpochClosed, EpochOpened
from quipu.ledger.inv import Inv
from quipu.ledger.words import HLC_SHIFT, EventId, NodeId
from tests.simulation.clock import START_WALL_MS, US_PER_MS
from tests.simulation.record import KnownEvent, Record, Roster, confirms_needed

if TYPE_CHECKING:
    from tests.simulation.node import SimNode
    from tests.simulation.world import World

TICK_MS = 250
RETRY_MS = 1_000
OPEN_SPREAD_MS = 3_000  # nodes hear of an OPEN at random times
DUE_MS = 4_000


class Cut:
    """In each cord the highest event that can have a certificate of the closing epoch."""

    def __init__(self, record: Record, roster: Roster, seals: Sequence[Inv], due_ms: int) -> None:
        self._record = record
        self._roster = roster
        self._below = roster.cut
        self._latest_ms = max(due_ms, (roster.cut_hlc >> HLC_SHIFT) + 2_000)
        self.kept: dict[EventId, KnownEvent] = {}
        covers = self._covers(seals)
        unsealed = len(roster.members) - len(seals)
        for identity, sealed in covers.items():
            if sealed + unsealed + roster.borne >= roster.confirms + 1:
                known = record.events[identity]
                if self._may_stand(known):
                    self.kept[identity] = known
        self._lower()

    def _covers(self, seals: Sequence[Inv]) -> dict[EventId, int]:
        found: dict[EventId, int] = {}
        for seal in seals:
            for row in seal.rows:
                tip = self._record.events.get(EventId(row.id))
                if tip is None or tip.slot != (row.author_no, row.journal, row.seq):
                    continue
                for known in self._record.chain(tip.id):
                    if known.id in self._below:
                        break
                    found[known.id] = found.get(known.id, 0) + 1
        return found

    def _may_stand(self, known: KnownEvent) -> bool:
        fork = self._record.forked.get(known.cord)
        header = known.event.header
        plain = (fork is None or header.seq < fork) and header.hlc >> HLC_SHIFT <= self._latest_ms
        if plain:
            return True
        signers = self._record.signers_of(known, self._roster.number)
        return known.author_no in signers and len(signers) > self._roster.confirms

    def _lower(self) -> None:
        """Until prev and parents of all in it are in it."""
        lowered = True
        while lowered:
            lost = [
                identity
                for identity, known in self.kept.items()
                if any(a not in self.kept and a not in self._below for a in known.ancestors)
            ]
            for identity in lost:
                del self.kept[identity]
            lowered = bool(lost)

    def rows(self) -> list[formats.CutRow]:
        inner = {
            EventId(known.event.header.prev): None
            for known in self.kept.values()
            if known.event.header.seq > 1
        }
        tips = [known for identity, known in self.kept.items() if identity not in inner]
        places = sorted((*known.slot, known.id) for known in tips)
        return [formats.CutRow(*place) for place in places]

    @property
    def hlc(self) -> int:
        newest = max((known.event.header.hlc for known in self.kept.values()), default=0)
        return max(newest, self._roster.cut_hlc)


@dataclass(slots=True)
class Change:
    document: formats.EpochDocument  # without its cut
    close: bytes
    told_us: dict[int, int] = field(default_factory=dict)


class Registrar:
    """One change at a time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._record = world.record
        self._rng = random.Random(f"{world.seed}/registrar")
        self._waiting: list[tuple[SimNode, ...]] = []
        self._change: Change | None = None
        self._opened: dict[int, tuple[bytes, tuple[bytes, ...]]] = {}
        self._due_us: dict[tuple[int, int], int] = {}  # (node, epoch) -> when it hears of it
        self._asked_us: dict[int, int] = {}
        self._numbers: dict[NodeId, int] = dict(self._record.numbers)
        self.hurry = False
        self._lacking = "no cut yet"
        world.scheduler.after(TICK_MS * US_PER_MS, self._tick)

    @property
    def busy(self) -> bool:
        return self._change is not None or bool(self._waiting)

    def change(self, members: Sequence[SimNode]) -> None:
        self._waiting.append(tuple(members))

    def _tick(self) -> None:
        self._world.scheduler.after(TICK_MS * US_PER_MS, self._tick)
        if self._change is None and self._waiting:
            self._close(self._waiting.pop(0))
        if self._change is not None:
            self._ask_for_seals(self._change)
            self._try_open(self._change)
        self._tell_opened()

    # --- CLOSE ----------------------------------------------------------------------------------
    def _close(self, nodes: tuple[SimNode, ...]) -> None:
        roster = self._record.newest
        members = []
        for node in nodes:
            number = self._numbers.setdefault(node.key.node_id, len(self._numbers) + 1)
            name = node.name.split(":")[0]
            members.append(formats.Member(number, node.key.node_id, name, ["serializer"]))
        members.sort(key=lambda member: member.node_no)
        previous = formats.document_hash(roster.document) if roster.document else None
        document = formats.EpochDocument(
            version=formats.EPOCH_VERSION,
            cluster_id=self._record.cluster_id,
            number=roster.number + 1,
            previous=previous or self._record.cluster_id,
            attempt=1,
            policy=roster.policy,
            members=members,
            streams_erasable=[],
            cut=[],
            cut_hlc=0,
        )
        self._change = Change(document, formats.close_hash(document))
        self._world.trace(None, f"CLOSE {document.number}: {[m.name for m in members]}")

    def _ask_for_seals(self, change: Change) -> None:
        now_us = self._world.scheduler.now_us
        sealed = {inv.signer: None for inv in self._seals(change)}
        for node in self._world.members_up():
            number = self._record.numbers.get(node.key.node_id)
            if number not in self._record.newest.members or node.key.node_id in sealed:
                continue
            if node.disk.newest_epoch < change.document.number - 1:
                continue
            if (
                now_us - change.told_us.get(node.index, -US_PER_MS * RETRY_MS)
                < RETRY_MS * US_PER_MS
            ):
                continue
            change.told_us[node.index] = now_us
            node.push(EpochClosed(change.close))

    def _seals(self, change: Change) -> list[Inv]:
        """The newest seal of each member, in the order of their numbers."""
        found: dict[int, Inv] = {}
        for inv in self._record.invs.values():
            if inv.array.close == change.close and inv.epoch == change.document.number - 1:
                number = self._record.numbers[inv.signer]
                if number in self._record.newest.members:
                    found[number] = inv
        return [found[number] for number in sorted(found)]

    # --- OPEN -----------------------------------------------------------------------------------
    def _try_open(self, change: Change) -> None:
        roster = self._record.newest
        seals = self._seals(change)
        if len(seals) < roster.seals:
            return
        count = self._rng.randint(roster.seals, len(seals))
        chosen = sorted(self._rng.sample(range(len(seals)), count))
        now_ms = START_WALL_MS + self._world.scheduler.now_ms
        cut = Cut(self._record, roster, [seals[i] for i in chosen], now_ms + DUE_MS)
        if not self._is_held(change, cut):
            return
        document = formats.EpochDocument(
            **{
                **{
                    name: getattr(change.document, name)
                    for name in change.document.__struct_fields__
                },
                "cut": cut.rows(),
                "cut_hlc": cut.hlc,
            }
        )
        data = encode(document)
        self._record.add_epoch(data)
        self._opened[document.number] = (data, tuple(seals[i].data for i in chosen))
        self._change = None
        self._world.trace(None, f"OPEN {document.number} with {len(cut.kept)} events in its cut")

    def explain(self) -> str:
        if self._change is None:
            return "not begun"
        seals = self._seals(self._change)
        members = len(self._record.newest.members)
        return f"{len(seals)} seals of {members}, {self._lacking}"

    def _is_held(self, change: Change, cut: Cut) -> bool:
        """MAX_CONFIRMS + 1 members of the next epoch hold the cut."""
        numbers = [member.node_id for member in change.document.members]
        needed = confirms_needed(change.document.policy, len(numbers)) + 1
        holders = 0
        for node in self._world.members_up():
            if node.key.node_id in numbers:
                held = node.shadow.held
                holders += not node.honest or all(identity in held for identity in cut.kept)
        self._lacking = f"the cut of {len(cut.kept)} is held by {holders}, {needed} needed"
        return holders >= needed

    def _tell_opened(self) -> None:
        now_us = self._world.scheduler.now_us
        for node in self._world.nodes:
            newest = node.disk.newest_epoch
            if not node.up or newest + 1 not in self._opened:
                continue
            key = (node.index, newest + 1)
            spread_ms = 0 if self.hurry else self._rng.randrange(OPEN_SPREAD_MS)
            due_us = self._due_us.setdefault(key, now_us + spread_ms * US_PER_MS)
            if self.hurry or now_us >= due_us:
                self._due_us[key] = now_us + RETRY_MS * US_PER_MS
                node.push(EpochOpened(*self._opened[newest + 1]))
