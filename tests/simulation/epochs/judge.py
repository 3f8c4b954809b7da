"""What must hold of epochs over the log, at every entry that is chosen.

Seals, cuts and receipts are read anew from the bytes of the items.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quipu.ledger.epochs import decode_document
from quipu.ledger.evidence import check_proof
from quipu.ledger.inv import Inv, decode_inv
from quipu.ledger.log.effects import LogInputRefused
from quipu.ledger.log.entry import LogEntry
from quipu.ledger.order.changes import Close, Open, RosterItem, read_change
from quipu.ledger.order.roster import RosterState
from quipu.ledger.words import EventId, NodeId
from tests.simulation.epochs.slow_cut import SlowCut
from tests.simulation.record import CordKey, confirms_needed
from tests.simulation.violation import Property, Violation

if TYPE_CHECKING:
    from tests.simulation.epochs.node import EpochNode
    from tests.simulation.epochs.world import EpochWorld


class EpochJudge:
    def __init__(self, world: EpochWorld) -> None:
        self._world = world
        self._record = world.record
        self._chosen: dict[int, bytes] = {}  # index -> running digest
        self._applied: dict[tuple[int, int], int] = {}  # (node, boot) -> index
        self._newest_close = (0, 0)
        self._documents: dict[int, bytes] = {}
        self.closes = 0
        self.refusals: dict[str, int] = {}
        self.voids = 0  # items that changed nothing

    def _fail(self, broken: Property, detail: str) -> Violation:
        return Violation(broken, detail, self._world.scheduler.now_us)

    def on_refused(self, node: EpochNode, effect: LogInputRefused) -> None:
        text = f"{node.name} of n{effect.peer}: {effect.reason} {effect.detail}"
        self.refusals[text] = self.refusals.get(text, 0) + 1

    def on_chosen(self, node: EpochNode, told: tuple[LogEntry, bytes], before: RosterState) -> None:
        entry, digest = told
        if self._chosen.setdefault(entry.index, digest) != digest:
            raise self._fail(Property.ONE_VALUE, f"{node} has another entry {entry.index}")
        state = before
        for data in entry.items:
            item = read_change(data)
            if item is None:
                continue
            after = _after(state, item, node)
            self.voids += after is None and isinstance(item, Close | Open)
            if after is not None:
                if isinstance(item, Close | Open):
                    self._on_change(node, item, after)
                state = after

    def _on_change(self, node: EpochNode, item: Close | Open, after: RosterState) -> None:
        if isinstance(item, Close):
            document = decode_document(item.document)
            for member in document.members:
                self._record.numbers.setdefault(NodeId(member.node_id), member.node_no)
            self._world.trace(node, f"CLOSE {document.number}/{document.attempt}")
            self.closes += 1
            self._newest_close = max(self._newest_close, (document.number, document.attempt))
            return
        number = after.standing.number
        known = self._documents.setdefault(number, item.document)
        if known != item.document:
            raise self._fail(Property.ONE_DOCUMENT, f"{node} has another document {number}")
        if number not in self._record.rosters:
            self._open(node, item)

    # --- an epoch opens for the first time ------------------------------------------------------
    def _open(self, node: EpochNode, item: Open) -> None:
        record = self._record
        roster, document = record.newest, decode_document(item.document)
        if (document.number, document.attempt) != self._newest_close:
            raise self._fail(Property.NEWEST_CLOSE, f"OPEN of attempt {document.attempt}")
        seals = [decode_inv(data) for data in item.seals]
        receipts = [decode_inv(data) for data in item.receipts]
        proven: dict[CordKey, int] = {}
        for data in item.proofs:
            proof = check_proof(data, record.cluster_id, self._world.verify)
            proven[record.numbers[proof.culprit], proof.journal] = proof.seq
        cut = SlowCut(record, roster, seals, receipts, item.due_ms, proven)
        record.add_epoch(item.document)
        self._check_kept(roster.number)
        rows = [(row.author_no, row.journal, row.seq, row.id) for row in document.cut]
        if rows != cut.rows() or document.cut_hlc != cut.hlc:
            detail = f"OPEN {document.number} has {_short(rows)}, not {_short(cut.rows())}"
            raise self._fail(Property.CUT_EQUAL, detail)
        self._world.trace(node, f"OPEN {document.number} with {len(cut.kept)} events in its cut")
        self._check_held([decode_inv(data) for data in item.invs])

    def _check_held(self, invs: list[Inv]) -> None:
        """By the disks of those whose receipts the OPEN carries."""
        newest, nodes = self._record.newest, {n.key.node_id: n for n in self._world.nodes}
        needed = confirms_needed(newest.policy, len(newest.members)) + 1
        holders = 0
        for signer in {inv.signer for inv in invs} & set(newest.members.values()):
            node = nodes[signer]
            held = all(identity in node.shadow.held for identity in newest.cut)
            holders += held or not node.honest or node.disk_lost
        if holders < needed:
            detail = f"the cut of {newest.number} is held by {holders}, {needed} needed"
            raise self._fail(Property.CUT_HELD, detail)

    def _check_kept(self, ended: int) -> None:
        """Whatever was Read anywhere is in the cut; of a forked cord its certificate counts on."""
        cut = self._record.newest.cut
        for identity in self._world.history.read_us:
            known = self._record.events[identity]
            fork = self._record.forked.get(known.cord)
            if identity not in cut and (fork is None or known.slot[2] < fork):
                detail = f"{known.slot} was Read, and the cut of epoch {ended + 1} leaves it out"
                raise self._fail(Property.READ_LOST, detail)


def _after(state: RosterState, item: RosterItem, node: EpochNode) -> RosterState | None:
    from quipu.ledger.refusals import Refused

    try:
        return state.after(item, node.world.verify, node.world.roster_guards)
    except Refused:
        return None


def _short(rows: list[tuple[int, int, int, bytes]]) -> list[tuple[int, int, int, str]]:
    return [(a, j & 0xFFFFF, s, EventId(i).hex()[:6]) for a, j, s, i in rows]
