"""One id a slot, for ever: what each honest key has signed, over crashes, wipes and copies.

A signer that lost its disk can know only what its witnesses could tell it: a receipt binds when so
many members hold it that any sufficient set of witnesses contains one of them. A silent roll-back
that nobody contradicts in time is a lost disk (DESIGN section 7); of a running process and its
living clone no rule can make one signer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quipu.ledger.inv import Inv
from quipu.ledger.words import EventId, NodeId
from tests.simulation.record import KnownEvent, Record, SlotKey
from tests.simulation.violation import Property, Violation

if TYPE_CHECKING:
    from tests.simulation.node import SimNode


@dataclass(slots=True)
class Signer:
    """One honest key of the world, in however many places it runs."""

    node: SimNode
    acknowledged: dict[SlotKey, EventId] = field(default_factory=dict)
    wrote: dict[SlotKey, EventId] = field(default_factory=dict)
    number: int = 0
    disk_lost: bool = False
    twins: bool = False  # two processes had the key at one time
    watching: bool = False  # rolled back in silence, and nothing signed since
    contradicted: bool = False
    forgiven: bool = False  # an uncontradicted roll-back: a receipt may be held against it
    # what each other member held of it when it came back after the loss
    witnesses: dict[int, dict[bytes, None]] = field(default_factory=dict)


class Signers:
    def __init__(self, record: Record) -> None:
        self._record = record
        self.by_key: dict[NodeId, Signer] = {}

    def add(self, node: SimNode) -> Signer:
        found = self.by_key.get(node.key.node_id)
        if found is None:
            found = self.by_key[node.key.node_id] = Signer(node)
        else:
            found.twins = True
        return found

    def lost_disk(self, node: SimNode, silent: bool) -> None:
        signer = self.by_key[node.key.node_id]
        signer.disk_lost = True
        signer.watching, signer.contradicted = silent, not silent

    def came_back(self, node: SimNode, others: list[SimNode]) -> None:
        signer = self.by_key[node.key.node_id]
        if not signer.disk_lost:
            return
        number = self._record.numbers.get(node.key.node_id, 0)
        signer.witnesses = {
            other.index: {
                inv_id: None for key, inv_id in other.shadow.invs.items() if key[0] == number
            }
            for other in others
            if other.key != node.key and other.honest and not other.disk_lost
        }

    def contradict(self, node: SimNode) -> None:
        """A peer showed a receipt of this key that the key's own disk does not have."""
        signer = self.by_key[node.key.node_id]
        if signer.watching:
            signer.contradicted = True

    # --- checks ---------------------------------------------------------------------------------
    def signs(self, node: SimNode, inv: Inv, now_us: int) -> None:
        """Before the receipt is counted: numbers rise over the whole life of the key."""
        signer = self.by_key[node.key.node_id]
        if signer.watching:
            signer.watching = False
            if not signer.contradicted:
                signer.acknowledged, signer.number, signer.forgiven = {}, 0, True
        if inv.number <= signer.number and not signer.twins:
            floor = self._binding_number(signer) if signer.disk_lost else signer.number
            if inv.number <= floor:
                detail = f"{node} signs number {inv.number} after {floor}"
                raise Violation(Property.NUMBERS_RISE, detail, now_us)
        signer.number = max(signer.number, inv.number)

    def acknowledges(self, signer: Signer, known: KnownEvent, now_us: int) -> bool:
        """Answers whether this is new for the signer."""
        before = signer.acknowledged.get(known.slot)
        if before is None or before == known.id:
            signer.acknowledged[known.slot] = known.id
            return before is None
        if signer.twins or (signer.disk_lost and not self._binds(signer, before)):
            signer.forgiven = True
            signer.acknowledged[known.slot] = known.id
            return True
        detail = f"{signer.node} acknowledges {known.id.hex()[:8]} and {before.hex()[:8]}"
        raise Violation(Property.SIGNER_ONE_ID, f"{detail} for {known.slot}", now_us)

    def writes(self, node: SimNode, known_slot: SlotKey, identity: EventId, now_us: int) -> None:
        signer = self.by_key[node.key.node_id]
        before = signer.wrote.setdefault(known_slot, identity)
        if before != identity:
            detail = f"{node} wrote {before.hex()[:8]} and {identity.hex()[:8]} for {known_slot}"
            raise Violation(Property.AUTHOR_ONE_ID, detail, now_us)

    def _holders_that_bind(self) -> int:
        roster = self._record.newest
        return max(1, len(roster.members) - roster.witnesses)

    def _holders(self, signer: Signer) -> list[dict[bytes, None]]:
        return list(signer.witnesses.values())

    def _binding_number(self, signer: Signer) -> int:
        newest = [
            max((self._record.invs[i].number for i in held if i in self._record.invs), default=0)
            for held in self._holders(signer)
        ]
        newest.sort(reverse=True)
        needed = self._holders_that_bind()
        return newest[needed - 1] if len(newest) >= needed else 0

    def _binds(self, signer: Signer, identity: EventId) -> bool:
        holders = 0
        for held in self._holders(signer):
            holders += any(self._leads_to(inv_id, identity) for inv_id in held)
        return holders >= self._holders_that_bind()

    def _leads_to(self, inv_id: bytes, identity: EventId) -> bool:
        inv, known = self._record.invs.get(inv_id), self._record.events.get(identity)
        if inv is None or known is None:
            return False
        return any(
            any(below.id == identity for below in self._record.chain(EventId(row.id)))
            for row in inv.rows
            if (row.author_no, row.journal) == known.cord
        )
