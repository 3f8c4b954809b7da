"""The judge: what must hold at every step, checked from effects as they happen.

It shares formats and hashes with the core and none of its decisions.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from quipu.ledger import effects as fx
from quipu.ledger.effects import Effects
from quipu.ledger.inputs import Input
from quipu.ledger.inv import Inv
from quipu.ledger.messages import SyncEvent
from quipu.ledger.refusals import Reason
from quipu.ledger.words import HLC_SHIFT, EventId, NodeId, Now
from tests.simulation.bounds import check_bounds, check_waiting
from tests.simulation.record import KnownEvent, Record
from tests.simulation.signers import Signers
from tests.simulation.speech import Speech
from tests.simulation.violation import Property, Violation

if TYPE_CHECKING:
    from tests.simulation.node import SimNode
    from tests.simulation.world import World

EMPTY_TURNS_MAX = 300  # a second of one node
DUE_SLACK_MS = 2_000
# What an honest node must never be refused for.
HARD_REASONS = (
    Reason.MALFORMED, Reason.NOT_CANONICAL, Reason.TOO_LARGE, Reason.UNKNOWN_VERSION,
    Reason.UNKNOWN_KIND, Reason.WRONG_CLUSTER, Reason.BAD_SIGNATURE, Reason.BAD_SEQ,
    Reason.BAD_PREV, Reason.BAD_PARENTS, Reason.BAD_HLC, Reason.BAD_DEPTH, Reason.BAD_BODY,
    Reason.BAD_ROOT, Reason.BAD_ENTRY, Reason.BAD_ROWS, Reason.NO_PROOF,
)  # fmt: skip


class Judge:
    def __init__(self, world: World, record: Record) -> None:
        self._world = world
        self.record = record
        self.signers = Signers(record)
        self.speech = Speech(record)
        self.refusals: dict[Reason, int] = {}
        self.digest = blake2b(digest_size=16)
        self.steps = 0
        self._read_slots: dict[tuple[int, int, int], EventId] = {}
        self._committing: SimNode | None = None
        self._latest_ms: dict[int, int] = {}  # at a node's last step, the latest honest clock
        self._empty: dict[int, tuple[int, int]] = {}
        record.on_acknowledged = self._on_acknowledged

    @property
    def _now_us(self) -> int:
        return self._world.scheduler.now_us

    def _broken(self, broken: Property, detail: str) -> Violation:
        return Violation(broken, detail, self._now_us)

    # --- life of a node -------------------------------------------------------------------------
    def on_start(self, node: SimNode) -> None:
        if node.honest:
            self.signers.came_back(node, self._world.nodes)

    def on_crash(self, node: SimNode) -> None:
        self.digest.update(b"crash %d" % node.index)

    def on_disk_lost(self, node: SimNode, silent: bool) -> None:
        if node.honest:
            self.signers.lost_disk(node, silent)

    # --- a step ---------------------------------------------------------------------------------
    def step(self, node: SimNode, inputs: list[Input], now: Now) -> Effects:
        assert node.core is not None
        self.steps += 1
        try:
            effects = node.core.step(inputs, now)
        except Violation:
            raise
        except Exception as error:
            if node.honest:
                raise self._broken(Property.CORE_ERROR, f"{node}: {error!r}") from error
            self._world.trace(node, f"liar's core raises {error!r}")
            return Effects([], [])
        self._world.trace_step(node, inputs, effects)
        if node.honest:
            self._latest_ms[node.index] = self._world.latest_honest_wall_ms()
            self._note_written(node, effects)
        if not inputs and not effects.durable and not effects.spoken:
            self._count_empty(node)
        if node.honest:
            check_bounds(node, self._now_us)
        return effects

    def _count_empty(self, node: SimNode) -> None:
        second, count = self._now_us // 1_000_000, 1
        if node.index in self._empty and self._empty[node.index][0] == second:
            count += self._empty[node.index][1]
        self._empty[node.index] = (second, count)
        if node.honest and count > EMPTY_TURNS_MAX:
            raise self._broken(Property.NO_SPINNING, f"{node} took {count} empty turns in a second")

    # --- what became durable --------------------------------------------------------------------
    def on_commit(self, node: SimNode, durable: list[fx.Durable]) -> None:
        self.digest.update(b"%d/%d" % (self._now_us, node.index))
        if not node.honest:
            self._commit_of_liar(durable)
            return
        self._committing = node
        for effect in durable:
            match effect:
                case fx.StoreEvent():
                    self._stored(node, effect)
                case fx.StoreEpoch(number, _, _):
                    node.shadow.epoch = number
        for effect in durable:
            match effect:
                case fx.StoreInv(_, inv, newest):
                    self._kept_inv(node, inv, newest)
        for effect in durable:
            match effect:
                case fx.AppendFeed(ids):
                    for identity in ids:
                        self._became_read(node, identity)
                case fx.PutBranch():
                    self._put_branch(node, effect)
        for effect in durable:
            if isinstance(effect, fx.StoreProof) and not effect.conviction.as_signer:
                node.shadow.convicted.setdefault(effect.conviction.culprit, self._now_us)
        self._committing = None
        check_waiting(node, self._now_us)

    def _commit_of_liar(self, durable: list[fx.Durable]) -> None:
        for effect in durable:
            match effect:
                case fx.StoreEvent(event, _):
                    self.record.add_event(event, self._now_us)
                case fx.StoreInv(_, inv, _):
                    self.record.add_inv(inv.data)

    def _stored(self, node: SimNode, effect: fx.StoreEvent) -> None:
        event, shadow = effect.event, node.shadow
        self.digest.update(event.id)
        wrong = self.record.add_event(event, self._now_us)
        if wrong:
            raise self._broken(Property.EVENT_VALID, f"{node} stores {event.id.hex()[:8]}: {wrong}")
        known = self.record.events[event.id]
        for ancestor in known.ancestors:
            if ancestor not in shadow.held:
                detail = f"{node} holds {event.id.hex()[:8]} {known.slot} without an ancestor"
                raise self._broken(Property.ANCESTORS_HELD, detail)
        self._check_edges(node, known)
        shadow.held[event.id] = None

    def _note_written(self, node: SimNode, effects: Effects) -> None:
        """An event of one's own that no disk has had yet is written in this step."""
        for effect in effects.durable:
            if not isinstance(effect, fx.StoreEvent) or effect.event.id in self.record.events:
                continue
            header = effect.event.header
            if header.author == node.key.node_id:
                slot = (self.record.numbers.get(node.key.node_id, 0), header.journal, header.seq)
                self.signers.writes(node, slot, effect.event.id, self._now_us)

    def _check_edges(self, node: SimNode, known: KnownEvent) -> None:
        header = known.event.header
        above = [self.record.events[ancestor].event.header for ancestor in known.ancestors]
        wrong = ""
        if header.seq > 1 and (above[0].author, above[0].journal, above[0].seq + 1) != (
            header.author,
            header.journal,
            header.seq,
        ):
            wrong = "prev is not the event before it in the cord"
        elif any((a.author, a.journal) == (header.author, header.journal) for a in above[1:]) or (
            header.seq == 1
            and above
            and (above[0].author, above[0].journal) == (header.author, header.journal)
        ):
            wrong = "a parent of its own cord"
        elif any(a.hlc >= header.hlc for a in above):
            wrong = "hlc does not rise"
        elif header.depth != 1 + max((a.depth for a in above), default=0):
            wrong = "depth is not that of its ancestors"
        elif any(a.epoch > header.epoch for a in above):
            wrong = "the epoch falls"
        elif header.epoch > node.shadow.epoch:
            wrong = "of an epoch that is not opened here"
        elif known.author_no not in self.record.rosters[header.epoch].members:
            wrong = "its author is not a member of its epoch"
        if wrong:
            detail = f"{node} stores {known.id.hex()[:8]} {known.slot}: {wrong}"
            raise self._broken(Property.EVENT_VALID, detail)

    def _kept_inv(self, node: SimNode, inv: Inv, newest: bool) -> None:
        self.digest.update(inv.id)
        signer_no = self.record.numbers.get(inv.signer)
        if self.record.read_inv(inv.data) is None or signer_no is None:
            raise self._broken(Property.EVENT_VALID, f"{node} keeps a receipt that is not valid")
        if inv.signer == node.key.node_id:
            if inv.id not in self.record.invs:  # not one of its own that peers gave back
                self._signs(node, inv)
            if newest:
                node.shadow.own_number = max(inv.number, node.shadow.own_number)
        node.shadow.invs[(signer_no, inv.number)] = inv.id
        if inv.signer == node.key.node_id:
            self.record.add_inv(inv.data)

    def _signs(self, node: SimNode, inv: Inv) -> None:
        self.signers.signs(node, inv, self._now_us)
        for row in inv.rows:
            known = self.record.events.get(EventId(row.id))
            if known is None or known.id not in node.shadow.held:
                detail = f"{node} signs for {row.id.hex()[:8]}, which it does not hold"
                raise self._broken(Property.RECEIPT_TRUE, detail)

    def _on_acknowledged(self, signer_no: int, known: KnownEvent, inv: Inv) -> None:
        signer = self.signers.by_key.get(inv.signer)
        if signer is None:
            return
        is_new = self.signers.acknowledges(signer, known, self._now_us)
        node = self._committing
        if not is_new or node is None or node.key.node_id != inv.signer:
            return
        if known.id not in node.shadow.held:
            detail = f"{node} signs for {known.slot}, which it does not hold"
            raise self._broken(Property.RECEIPT_TRUE, detail)
        self._check_due(node, known)
        author = known.event.header.author
        fork = self.record.forked.get(known.cord)
        if author in node.shadow.convicted and (fork is None or known.slot[2] >= fork):
            detail = f"{node} signs anew for {known.slot} of a convicted author"
            raise self._broken(Property.CONVICTED_UNSIGNED, detail)

    def _check_due(self, node: SimNode, known: KnownEvent) -> None:
        cut_ms = self.record.rosters[node.shadow.epoch].cut_hlc >> HLC_SHIFT
        due_ms = max(self._latest_ms.get(node.index, 0), cut_ms) + DUE_SLACK_MS
        if self._world.clocks_judged and known.event.header.hlc >> HLC_SHIFT > due_ms:
            detail = f"{node} signs for {known.slot} before it is due"
            raise self._broken(Property.RECEIPT_TRUE, detail)

    def _became_read(self, node: SimNode, identity: EventId) -> None:
        shadow = node.shadow
        known = self.record.events.get(identity)
        if known is None or identity not in shadow.held:
            raise self._broken(Property.ANCESTORS_HELD, f"{node} calls Read what it does not hold")
        if identity in shadow.read:
            raise self._broken(Property.READ_STAYS, f"{node}: {known.slot} becomes Read twice")
        if any(ancestor not in shadow.read for ancestor in known.ancestors):
            detail = f"{node}: {known.slot} is Read before its ancestors"
            raise self._broken(Property.ANCESTORS_READ, detail)
        in_cut = identity in self.record.rosters[shadow.epoch].cut
        if not in_cut and self.record.certificate(known, shadow.epoch) is None:
            signers = {epoch: list(who) for epoch, who in known.covers.items()}
            detail = f"{node}: {known.slot} is Read with receipts of {signers} alone"
            raise self._broken(Property.READ_CERTIFIED, detail)
        shadow.read[identity] = None
        self._one_branch(known)
        self._world.history.on_read(known.id, self._now_us)

    def _one_branch(self, known: KnownEvent) -> None:
        before = self._read_slots.setdefault(known.slot, known.id)
        if before == known.id or not self._world.one_branch_judged:
            return
        detail = f"{known.slot}: both {before.hex()[:8]} and {known.id.hex()[:8]} are Read"
        raise self._broken(Property.ONE_BRANCH_READ, detail)

    def _put_branch(self, node: SimNode, effect: fx.PutBranch) -> None:
        record, shadow = effect.record, node.shadow
        before = shadow.branches.get(record.key)
        if before is not None and (
            record.read_seq < before.read_seq or record.cut_seq < before.cut_seq
        ):
            raise self._broken(Property.READ_STAYS, f"{node}: {record.key} falls back")
        if record.read_seq > record.base_seq and record.read_id not in shadow.read:
            raise self._broken(
                Property.READ_STAYS, f"{node}: {record.key} Read but not in the feed"
            )
        shadow.branches[record.key] = record.copy()

    # --- what is said ---------------------------------------------------------------------------
    def on_message(self, node: SimNode, data: bytes, early: bool) -> None:
        self.digest.update(data)
        if node.honest:
            self.speech.check(node, data, early)

    def on_delivery(self, node: SimNode, data: bytes) -> None:
        """Only for a node that was rolled back in silence: does a peer contradict it?"""
        message = self.speech.decoded(data)
        own = self.record.numbers.get(node.key.node_id, 0)
        if isinstance(message, SyncEvent) and any(
            row.signer_no == own and row.number > node.shadow.own_number for row in message.receipts
        ):
            self.signers.contradict(node)

    def on_notice(self, node: SimNode, notice: fx.Spoken) -> None:
        if not node.honest:
            return
        match notice:
            case fx.EntriesStored(ticket, event, index):
                if event not in node.shadow.held:
                    raise self._broken(Property.DURABLE_FIRST, f"{node} acknowledges too early")
                self._world.history.on_stored(node, ticket, (event, index))
            case fx.EntriesRefused(ticket, reason, _):
                self._world.history.on_refused(ticket, reason)
            case fx.EventsRead(ids):
                if any(identity not in node.shadow.read for identity in ids):
                    raise self._broken(Property.DURABLE_FIRST, f"{node} calls Read too early")
            case fx.NodeConvicted(conviction):
                self._convicted(node, conviction.culprit, conviction.as_signer)
            case fx.InputRefused(peer, reason, detail):
                self._refused(node, peer, (reason, detail))

    def _convicted(self, node: SimNode, culprit: NodeId, as_signer: bool) -> None:
        signer = self.signers.by_key.get(culprit)
        if signer is None or (as_signer and (signer.twins or signer.forgiven)):
            return
        role = "signer" if as_signer else "author"
        raise self._broken(Property.HONEST_UNPROVEN, f"{node} convicts {signer.node} as {role}")

    def _refused(self, node: SimNode, peer: NodeId, why: tuple[Reason, str]) -> None:
        reason, detail = why
        self.refusals[reason] = self.refusals.get(reason, 0) + 1
        if reason in HARD_REASONS and peer in self.signers.by_key:
            sender = self.signers.by_key[peer].node
            raise self._broken(
                Property.HONEST_TAKEN, f"{node} refuses {sender}: {reason}: {detail}"
            )
