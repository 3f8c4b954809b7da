"""Who proposes what of a change of roster, and what each node tells its core of it.

Level-triggered: every step compares what the log says with what the core has done, so nothing is
lost by a restart or a change of master. Only the master proposes; an operator's wish is told to it.
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
from quipu.ledger.ready import check_ready
from quipu.ledger.refusals import Refused
from quipu.ledger.words import EpochNo, NodeId, NodeNo

IN_FLIGHT = "change-in-flight"
NOT_READY = "not-ready"
BAD_ROSTER = "bad-roster"


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


@dataclass(frozen=True, slots=True)
class WishRefused:
    reason: str


RosterOrder = TellCore | ProposeItem | ProposeSerializers | EnrolMembers | WishRefused


class Candidate(NamedTuple):
    """Who shall be a member. Numbers are given by the registrar."""

    node_id: NodeId
    name: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wish:
    """An operator's word, or a checkpoint that is due."""

    candidates: tuple[Candidate, ...]
    policy: str
    due_ms: int  # monotonic: without READYs by then it is refused
    is_checkpoint: bool = False


class Circumstances(NamedTuple):
    now_ms: int  # monotonic
    cluster_now_ms: int
    is_master: bool
    live: frozenset[NodeNo]  # members that answer, this node among them
    voters: Voters
    is_seating: bool  # a New Serializer Set is under way


class Registrar:
    def __init__(self, core: Core, book: RosterBook, guards: RosterSafeguards = ALL) -> None:
        self.core, self._book = core, book
        self._opening = Opening(core, guards)
        self._wish: Wish | None = None
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
        return self._wish is not None or self.state.pending is not None

    # --- wishes ---------------------------------------------------------------------------------
    def wish(self, candidates: Sequence[Candidate], policy: str, now: Circumstances) -> str | None:
        """Told to the master. Answers why it cannot even be tried."""
        pending = self.state.pending
        stale = pending is not None and self._is_stale(now)
        if self._wish is not None and not self._wish.is_checkpoint:
            return IN_FLIGHT
        if pending is not None and not stale:
            return IN_FLIGHT
        if not 1 <= len({c.node_id for c in candidates}) == len(candidates) <= limits.MEMBERS_MAX:
            return BAD_ROSTER
        try:
            quorum.max_confirms(policy, len(candidates))
        except Refused:
            return BAD_ROSTER
        self._wish = Wish(tuple(candidates), policy, now.now_ms + limits.READY_WAIT_MS)
        return None

    def _is_stale(self, now: Circumstances) -> bool:
        pending = self.state.pending
        return pending is not None and (now.cluster_now_ms >= pending.at_ms + limits.CLOSE_STALE_MS)

    # --- a step ---------------------------------------------------------------------------------
    def step(self, now: Circumstances) -> list[RosterOrder]:
        orders: list[RosterOrder] = [*self._tell_core(now), *self._enrol(now)]
        if now.is_master:
            orders += self._lead(now)
        else:
            self._wish = None
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
        listeners = {*members, *(number for number in now.voters.all if number in keys)}
        epoch = EpochNo(max(newest.number, state.standing.number))
        wanted = EnrolMembers(epoch, tuple(sorted(keys.items())), tuple(sorted(listeners)))
        if wanted == self._enrolled:
            return []
        self._enrolled = wanted
        return [wanted]

    # --- the master -----------------------------------------------------------------------------
    def _lead(self, now: Circumstances) -> list[RosterOrder]:
        pending = self.state.pending
        if pending is None:
            if self._wish is None and self._is_checkpoint_due(now):
                self._wish = self._checkpoint(now)
            return [*self._lead_close(now), *self._lead_seats(now)]
        if self._wish is not None and self._is_stale(now):
            return self._lead_close(now)
        return self._lead_open(now)

    def _lead_close(self, now: Circumstances) -> list[RosterOrder]:
        wish = self._wish
        if wish is None:
            return []
        document = self.state.next_document(self._members(wish.candidates), wish.policy)
        readies = self._readies(document, now)
        needed = quorum.max_confirms(wish.policy, len(wish.candidates)) + 1
        if len(readies) >= needed:
            self._wish = None
            item = Close(now.cluster_now_ms, encode(document), readies[:needed])
            return [ProposeItem(encode_change(item))]
        if now.now_ms >= wish.due_ms:
            self._wish = None
            return [] if wish.is_checkpoint else [WishRefused(NOT_READY)]
        if self._may("readies", now, limits.ROSTER_PACE_MS):
            return [TellCore(ReadyAsked(tuple(c.node_id for c in wish.candidates)))]
        return []

    def _members(self, candidates: Sequence[Candidate]) -> list[Member]:
        members: list[Member] = []
        newcomers = 0
        for one in candidates:
            number = self.state.numbers.get(one.node_id)
            if number is None:
                number = self.state.number_for(newcomers)
                newcomers += 1
            members.append(Member(number, one.node_id, one.name, list(one.roles)))
        return members

    def _readies(self, document: EpochDocument, now: Circumstances) -> list[bytes]:
        known, found = self.core.known, list[bytes]()
        for member in document.members:
            data = self.core.coming.readies.get(NodeId(member.node_id))
            if data is None:
                continue
            ready = check_ready(data, known.cluster_id, known.verify)
            if ready.epoch == document.number and is_fresh(ready.at_ms, now.cluster_now_ms):
                found.append(data)
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
    def _checkpoint(self, now: Circumstances) -> Wish:
        candidates = tuple(
            Candidate(NodeId(m.node_id), m.name, tuple(m.roles))
            for m in self.state.standing.members
        )
        policy = self.state.standing.policy
        return Wish(candidates, policy, now.now_ms + limits.READY_WAIT_MS, is_checkpoint=True)

    def _is_checkpoint_due(self, now: Circumstances) -> bool:
        """Not where it could not end: who has sealed signs nothing until OPEN."""
        epoch = self.core.epochs.newest
        if self._opened[0] != epoch.number:
            self._opened = (epoch.number, now.now_ms)
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
