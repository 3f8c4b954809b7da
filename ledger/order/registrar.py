"""Who proposes what of a change of roster, and what each node tells its core of it.

Level-triggered: every step compares what the log says with what the core has done, so nothing is
lost by a restart or a change of master. Only the master proposes; an operator's wish is in the log.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from quipu.ledger import limits, quorum
from quipu.ledger.canonical import encode
from quipu.ledger.core import Core
from quipu.ledger.epochs import EpochDocument, Member
from quipu.ledger.inputs import EpochClosed, EpochOffered, EpochOpened, Input, ReadyAsked
from quipu.ledger.log.quorum import Voters
from quipu.ledger.order.changes import Close, encode_change, is_fresh
from quipu.ledger.order.opening import Opening
from quipu.ledger.order.roster import RosterBook, RosterState
from quipu.ledger.order.safeguards import ALL, RosterSafeguards
from quipu.ledger.order.wishes import Candidate, Ending, WishEnded
from quipu.ledger.ready import check_ready
from quipu.ledger.words import EpochNo, NodeId, NodeNo


# --- orders -------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class TellCore:
    given: Input


@dataclass(frozen=True, slots=True)
class ProposeItem:
    item: bytes


@dataclass(frozen=True, slots=True)
class ProposeSerializers:
    nodes: tuple[NodeNo, ...]


@dataclass(frozen=True, slots=True)
class EnrolMembers:
    """For the log: who ever was a member, and who is told of it: members, and who still votes."""

    epoch: EpochNo
    keys: tuple[tuple[NodeNo, NodeId], ...]
    listeners: tuple[NodeNo, ...]
    barred: tuple[NodeNo, ...] = ()


RosterOrder = TellCore | ProposeItem | ProposeSerializers | EnrolMembers


@dataclass(frozen=True, slots=True)
class Plan:
    """What a CLOSE shall say, from an operator's wish or for a checkpoint that is due."""

    candidates: Sequence[Candidate]
    policy: str
    due_ms: int  # monotonic: without READYs by then nothing comes of it
    wish: bytes = b""  # its id


class Circumstances(NamedTuple):
    now_ms: int  # monotonic
    cluster_now_ms: int
    is_master: bool
    live: frozenset[NodeNo]  # members that answer, this node among them
    voters: Voters
    is_seating: bool  # a New Serializer Set is under way
    deciding: Voters  # whose word the log still needs: who leaves, until that is chosen


class Registrar:
    def __init__(self, core: Core, book: RosterBook, guards: RosterSafeguards = ALL) -> None:
        self.core, self._book = core, book
        self._opening = Opening(core, guards)
        self._plan: Plan | None = None
        self._not_before_ms: dict[str, int] = {}
        self._newer_since: tuple[EpochNo, int] | None = None  # events above the cut of this epoch
        self._opened: tuple[EpochNo, int] = (core.epochs.newest.number, -limits.CHECKPOINT_GAP_MS)
        self._unseated_ms: int | None = None  # the voters are not those that should vote
        self._enrolled: EnrolMembers | None = None

    @property
    def state(self) -> RosterState:
        return self._book.state

    @property
    def is_busy(self) -> bool:
        """A change is under way, as far as this node has to do with it."""
        state = self.state
        return any((self._plan, state.wish, state.pending, state.forced))

    def missing(self) -> tuple[NodeId, ...]:
        """Whose READY, seal or receipt over the cut the change in flight waits for."""
        pending, wish, core = self.state.pending, self.state.wish, self.core
        if pending is None:
            candidates = () if wish is None else wish.wish.candidates
            asked = [NodeId(c.node_id) for c in candidates]
            return tuple(node for node in asked if node not in core.coming.readies)
        epoch = core.epochs.newest
        if core.known.coming is None:
            sealed = self._opening.sealed(pending.close, epoch)
            return tuple(node for no, node in sorted(epoch.members.items()) if no not in sealed)
        signed = {inv.signer for _, inv in core.receipts.of_coming(EpochNo(epoch.number + 1))}
        if core.coming.own is not None:
            signed.add(core.known.node_id)
        nodes = [NodeId(member.node_id) for member in pending.document.members]
        return tuple(node for node in nodes if node not in signed)

    # --- a step ---------------------------------------------------------------------------------
    def step(self, now: Circumstances) -> list[RosterOrder]:
        number = self.core.epochs.newest.number
        if self._opened[0] != number:
            self._opened = (number, now.now_ms)
            self._not_before_ms.clear()
        orders: list[RosterOrder] = [*self._tell_core(now), *self._enrol(now)]
        if now.is_master:
            orders += self._lead(now)
        else:
            self._plan = None
        return orders

    def _may(self, what: str, now: Circumstances, pace_ms: int) -> bool:
        if now.now_ms < self._not_before_ms.get(what, 0):
            return False
        self._not_before_ms[what] = now.now_ms + pace_ms
        return True

    def _tell_core(self, now: Circumstances) -> list[RosterOrder]:
        state, newest = self.state, self.core.epochs.newest.number
        pending, opened = state.pending, state.opened
        if opened is not None and newest == state.standing.number - 1:
            if self._may("opened", now, limits.ROSTER_PACE_MS):
                return [TellCore(EpochOpened(opened.document, opened.seals))]
        elif pending is not None and newest == state.standing.number:
            wanted = self.core.me in self.core.epochs.newest.members
            wanted = wanted and self.core.confirmer.sealed != pending.close
            name = f"closed {pending.document.attempt}"
            if wanted and self._may(name, now, limits.ROSTER_PACE_MS):
                return [TellCore(EpochClosed(pending.close, newest))]
        return []

    def _enrol(self, now: Circumstances) -> list[RosterOrder]:
        state, newest = self.state, self.core.epochs.newest
        keys = {**self.core.epochs.node_ids, **{no: key for key, no in state.numbers.items()}}
        members = [NodeNo(member.node_no) for member in state.standing.members]
        if newest.number > state.standing.number:  # peers told of it before the log did
            members = list(newest.members)
        listeners = {*members, *(number for number in now.deciding.all if number in keys)}
        listeners -= set(state.barred)
        epoch = EpochNo(max(newest.number, state.standing.number))
        told = tuple(sorted(listeners))
        wanted = EnrolMembers(epoch, tuple(sorted(keys.items())), told, state.barred)
        if wanted == self._enrolled:
            return []
        self._enrolled = wanted
        return [wanted]

    # --- the master -----------------------------------------------------------------------------
    def _lead(self, now: Circumstances) -> list[RosterOrder]:
        pending, wish = self.state.pending, self.state.wish
        if self.state.forced and (pending is None or not pending.document.forced):
            self._plan = None
            return self._lead_force(now)
        overtakes = wish is not None and not self.state.is_closing_for_wish
        if pending is not None and not (overtakes and pending.is_stale(now.cluster_now_ms)):
            self._plan = None
            return self._lead_open(now)
        self._plan = self._planned(now)
        close = [] if self._plan is None else self._lead_close(self._plan, now)
        return close if pending is not None else [*close, *self._lead_seats(now)]

    def _lead_force(self, now: Circumstances) -> list[RosterOrder]:
        """By an operator's word: the epoch of who is left. Nobody else is asked."""
        state = self.state
        if not self._may("force", now, limits.LOG_TICKET_MS):
            return []
        left = [member for member in state.standing.members if member.node_no in state.forced]
        policy = quorum.fitting(state.standing.policy, len(left))
        document = state.next_document(left, policy)
        item = Close(now.cluster_now_ms, encode(document), [])
        return [ProposeItem(encode_change(item))]

    def _planned(self, now: Circumstances) -> Plan | None:
        wish, plan = self.state.wish, self._plan
        due_ms = now.now_ms + limits.READY_WAIT_MS
        if wish is not None:
            if plan is not None and plan.wish == wish.id:
                return plan
            return Plan(wish.wish.candidates, wish.wish.policy, due_ms, wish.id)
        if plan is not None and not plan.wish:
            return plan
        if not self._is_checkpoint_due(now):
            return None
        standing = self.state.standing
        same = [Candidate(m.node_id, m.name, m.roles) for m in standing.members]
        return Plan(same, standing.policy, due_ms)

    def _lead_close(self, plan: Plan, now: Circumstances) -> list[RosterOrder]:
        document = self.state.next_document(self._members(plan.candidates), plan.policy)
        readies = self._readies(document, now)
        needed = quorum.max_confirms(plan.policy, len(plan.candidates)) + 1
        missing = [c for c in self._newcomers(plan) if c not in readies]
        if len(readies) >= needed and not missing:
            if not self._may(f"close {plan.wish.hex()}", now, limits.LOG_TICKET_MS):
                return []
            if not plan.wish:
                self._plan = None
            first = dict.fromkeys([*self._newcomers(plan), *readies])
            chosen = list(first)[: max(needed, len(self._newcomers(plan)))]
            item = Close(now.cluster_now_ms, encode(document), [readies[n] for n in chosen])
            return [ProposeItem(encode_change(item))]
        if now.now_ms >= plan.due_ms:
            return self._give_up(plan, [NodeId(c.node_id) for c in plan.candidates], readies, now)
        if self._may("readies", now, limits.ROSTER_PACE_MS):
            return [TellCore(ReadyAsked(tuple(NodeId(c.node_id) for c in plan.candidates)))]
        return []

    def _newcomers(self, plan: Plan) -> list[NodeId]:
        """They have to be there; of the others only as many as finality needs."""
        present = {member.node_id for member in self.state.standing.members}
        return [NodeId(c.node_id) for c in plan.candidates if c.node_id not in present]

    def _give_up(
        self,
        plan: Plan,
        nodes: list[NodeId],
        readies: dict[NodeId, bytes],
        now: Circumstances,
    ) -> list[RosterOrder]:
        """A checkpoint is due again; an operator is told who was missing."""
        if not plan.wish:
            self._plan = None
            return []
        if not self._may("ended", now, limits.LOG_TICKET_MS):
            return []
        me, views = self.core.known.node_id, self.core.sync.views
        missing = [node for node in nodes if node not in readies]
        away = [node for node in missing if node != me and node not in views]
        how = Ending.UNREACHABLE if away else Ending.BEHIND
        return [ProposeItem(encode_change(WishEnded(plan.wish, how, list(away or missing))))]

    def _members(self, candidates: Sequence[Candidate]) -> list[Member]:
        members: list[Member] = []
        newcomers = 0
        for one in candidates:
            number = self.state.numbers.get(NodeId(one.node_id))
            if number is None:
                number = self.state.number_for(newcomers)
                newcomers += 1
            members.append(Member(number, one.node_id, one.name, list(one.roles)))
        return members

    def _readies(self, document: EpochDocument, now: Circumstances) -> dict[NodeId, bytes]:
        known, found = self.core.known, dict[NodeId, bytes]()
        for member in document.members:
            data = self.core.coming.readies.get(NodeId(member.node_id))
            if data is None:
                continue
            ready = check_ready(data, known.cluster_id, known.verify)
            if ready.epoch == document.number and is_fresh(ready.at_ms, now.cluster_now_ms):
                found[NodeId(member.node_id)] = data
        return found

    def _lead_open(self, now: Circumstances) -> list[RosterOrder]:
        pending = self.state.pending
        assert pending is not None
        offer = self._opening.prepare(pending, now.live, now.now_ms, now.cluster_now_ms)
        if offer is None or offer.close != pending.close:
            return []
        holders = self._opening.holders(offer)
        if holders is not None:
            name = f"open {pending.document.attempt}"
            if self._may(name, now, limits.LOG_TICKET_MS):
                return [ProposeItem(offer.item(holders))]
            return []
        if self._may("offer", now, limits.ROSTER_PACE_MS):
            return [TellCore(EpochOffered(offer.data, offer.seals))]
        return []

    # --- checkpoints ----------------------------------------------------------------------------
    def _is_checkpoint_due(self, now: Circumstances) -> bool:
        """Not where it could not end: who has sealed signs nothing until OPEN."""
        epoch = self.core.epochs.newest
        is_early = now.now_ms < self._opened[1] + limits.CHECKPOINT_GAP_MS
        if is_early or epoch.number != self.state.standing.number:
            return False
        journals: dict[NodeNo, int] = {}
        events = 0
        for cord, branches in self.core.dag.cords.items():
            fresh = max(r.held_seq - r.cut_seq for r in branches)
            if fresh > 0 and cord.author_no in epoch.members:
                journals[cord.author_no] = journals.get(cord.author_no, 0) + 1
                events += fresh
        if not events:
            self._newer_since = None
            return False
        if self._newer_since is None or self._newer_since[0] != epoch.number:
            self._newer_since = (epoch.number, now.now_ms)
        late = now.now_ms - self._newer_since[1] >= limits.CHECKPOINT_INTERVAL_MS
        many = max(journals.values()) >= limits.CHECKPOINT_JOURNALS
        answering = sum(number in epoch.members for number in now.live)
        can_end = answering >= quorum.seals_needed(epoch.policy, len(epoch.members))
        return can_end and (late or many or events >= limits.CHECKPOINT_EVENTS)

    # --- serializers ----------------------------------------------------------------------------
    def _lead_seats(self, now: Circumstances) -> list[RosterOrder]:
        """The voters become the first 7 members that answer: when one of them is no member any
        more, or when a member that answers has no seat and there is room."""
        members = [NodeNo(member.node_no) for member in self.state.standing.members]
        answering = tuple(n for n in members if n in now.live)[: limits.SERIALIZERS_MAX]
        voters = now.voters.old
        lacking = len(voters) < limits.SERIALIZERS_MAX and any(n not in voters for n in answering)
        wanted = lacking or any(n not in members for n in voters)
        if not wanted or not answering or now.is_seating or now.voters.new is not None:
            self._unseated_ms = None
            return []
        if self._unseated_ms is None:
            self._unseated_ms = now.now_ms
        waited_ms = now.now_ms - self._unseated_ms
        if waited_ms >= limits.SEAT_WAIT_MS and self._may("seats", now, limits.ROSTER_PACE_MS):
            return [ProposeSerializers(answering)]
        return []
