"""What `RosterChanges` promises, on the machine and the inbox of the node."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from quipu.ledger.inputs import ForceFollowed
from quipu.ledger.log.effects import ItemsNotOrdered, ItemsOrdered, LogSpoken
from quipu.ledger.log.inputs import ItemsProposed, VotersForced
from quipu.ledger.log.words import LogTicket
from quipu.ledger.order.changes import encode_change
from quipu.ledger.order.wishes import Candidate, Ending, Wish, check_wish, wish_id
from quipu.ledger.seals import are_enough
from quipu.ledger.words import NodeId
from quipu.node import limits
from quipu.node.change_service import (
    ChangeEnded,
    ChangeInFlight,
    ChangeProgress,
    ForceRefused,
    NomineeRefused,
    Recovered,
    RosterStatus,
    Stage,
    Unforced,
)
from quipu.node.inbox import Inbox
from quipu.node.machine import Machine
from quipu.node.order_service import OrderUnknown
from quipu.node.rostering import Rostering
from quipu.node.sequencing import no_quorum
from quipu.node.service import Draining, Overloaded
from quipu.p2p.words import Endpoint

FINE = (Ending.DONE, Ending.REPLACED)
Dial = Callable[[NodeId, Endpoint], None]


@dataclass(slots=True)
class RunningRoster:
    machine: Machine
    inbox: Inbox
    dial: Dial = lambda peer, endpoint: None
    _waiting: dict[LogTicket, tuple[bytes, asyncio.Future[bytes]]] = field(default_factory=dict)
    _settling: dict[bytes, asyncio.Future[bytes]] = field(default_factory=dict)
    _dialled: tuple[bytes, int] = (b"", 0)  # the nominees of which wish, and when
    _recovering: list[tuple[int, asyncio.Future[int]]] = field(default_factory=list)

    @property
    def _rostering(self) -> Rostering:
        return self.machine.ordering.rostering

    def status(self) -> RosterStatus:
        state = self._rostering.book.state
        ended = None if state.ended is None else ChangeEnded(*state.ended)
        epochs, core = self.machine.view.epochs, self.machine.core
        epoch = self.machine.view.epoch
        by = epoch.number + 1 if core.coming.overruling is not None else None
        forced = tuple(epochs.forced)
        return RosterStatus(epoch.number, epoch.policy, self._progress(), ended, forced, by)

    def _progress(self) -> ChangeProgress | None:
        state = self._rostering.book.state
        wish, pending = state.wish, state.pending
        missing = self._rostering.missing()
        if pending is not None:
            members = pending.document.members
            candidates = tuple(Candidate(m.node_id, m.name, m.roles) for m in members)
            identity = wish.id if wish is not None and state.is_closing_for_wish else b""
            stage = Stage.OPENING if self._rostering.has_cut else Stage.SEALING
            policy = pending.document.policy
            return ChangeProgress(identity, stage, candidates, policy, pending.at_ms, missing)
        if wish is None:
            return None
        said = wish.wish
        nominees = tuple(said.candidates)
        return ChangeProgress(wish.id, Stage.READY, nominees, said.policy, said.at_ms, missing)

    # --- proposing ------------------------------------------------------------------------------
    async def propose(self, candidates: Sequence[Candidate], policy: str) -> bytes:
        if self.inbox.is_draining:
            raise Draining("the node is stopping")
        if self.machine.ordering.machine.state.master is None:
            raise no_quorum("this node knows of no master that a majority follows")
        if len(self._waiting) >= limits.CHANGES_WAITING_MAX:
            raise Overloaded(limits.RETRY_AFTER_S, "too many changes are proposed at one time")
        wish = Wish(self._rostering.cluster_now_ms, list(candidates), policy)
        check_wish(wish)
        ticket = self.machine.ordering.next_ticket()
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = (wish_id(wish), answer)
        self.inbox.push_log(ItemsProposed(ticket, (encode_change(wish),)))
        identity = await answer
        settled: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._settling[identity] = settled
        self._settle()
        try:
            async with asyncio.timeout(limits.CHANGE_SETTLED_S):
                return await settled
        except TimeoutError:
            return identity  # it goes on, under another master perhaps
        finally:
            self._settling.pop(identity, None)

    # --- by force -------------------------------------------------------------------------------
    async def recover(self) -> Recovered:
        if self.inbox.is_draining:
            raise Draining("the node is stopping")
        core, wanted = self.machine.core, self.machine.view.epoch.number + 1
        follows = core.coming.overruling is not None
        if follows:
            self.inbox.give(ForceFollowed())
        else:
            self._check_lost()
            self.inbox.push_log(VotersForced())
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._recovering.append((wanted, answer))
        try:
            async with asyncio.timeout(limits.CHANGE_SETTLED_S):
                return Recovered(await answer, follows)
        except TimeoutError:
            raise OrderUnknown("the epoch is not open yet; it goes on by itself") from None
        finally:
            self._recovering = [one for one in self._recovering if one[1] is not answer]

    def _check_lost(self) -> None:
        """What force could not mend, or has no need to."""
        core, epoch = self.machine.core, self.machine.view.epoch
        if core.me not in epoch.members:
            raise ForceRefused(Unforced.UNFIT, f"this node is no member of epoch {epoch.number}")
        answering = {core.known.node_id, *(peer for peer in core.sync.views)}
        count = sum(node in answering for node in epoch.numbers)
        if are_enough(count, epoch):
            raise ForceRefused(
                Unforced.QUORUM, f"{count} of {len(epoch.members)} members answer: that is enough"
            )
        if not core.recovery.may_sign:
            raise ForceRefused(Unforced.UNFIT, "this node may not sign: its disk was lost")
        lacking = len(core.known.cut_wanted)
        if lacking:
            raise ForceRefused(
                Unforced.UNFIT, f"this node lacks {lacking} events of the newest cut"
            )

    def epoch_opened(self) -> None:
        number = self.machine.view.epoch.number
        for wanted, answer in self._recovering:
            if number >= wanted and not answer.done():
                answer.set_result(number)

    def _settle(self) -> None:
        """Who waits is told once the epoch ends for its change, or nothing comes of it."""
        state = self._rostering.book.state
        for identity, answer in self._settling.items():
            is_wanted = state.wish is not None and state.wish.id == identity
            if answer.done() or (is_wanted and not state.is_closing_for_wish):
                continue
            ended = state.ended
            if ended is None or ended.id != identity or ended.how in FINE:
                answer.set_result(identity)
            else:
                answer.set_exception(NomineeRefused(ended.how, ended.nodes))

    def hear(self, spoken: Sequence[LogSpoken]) -> None:
        """After the book has taken what was chosen."""
        self._dial_nominees()
        self._settle()
        for notice in spoken if self._waiting else ():
            match notice:
                case ItemsOrdered(ticket) if ticket in self._waiting:
                    identity, answer = self._waiting.pop(ticket)
                    self._tell(identity, answer)
                case ItemsNotOrdered(ticket, is_known, reason) if ticket in self._waiting:
                    _, answer = self._waiting.pop(ticket)
                    if not answer.done():
                        lost = OrderUnknown("no answer came in time")
                        answer.set_exception(no_quorum(reason) if is_known else lost)

    def _tell(self, identity: bytes, answer: asyncio.Future[bytes]) -> None:
        state = self._rostering.book.state
        known = [one.id for one in (state.wish, state.ended) if one is not None]
        if answer.done():
            return
        if identity in known:
            answer.set_result(identity)
        else:
            answer.set_exception(ChangeInFlight("another change is under way"))

    def fail_all(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, {}
        answers: list[asyncio.Future[bytes]] = [answer for _, answer in waiting.values()]
        for answer in [*answers, *self._settling.values()]:
            if not answer.done():
                answer.set_exception(error)
        for _, opened in self._recovering:
            if not opened.done():
                opened.set_exception(error)

    def _dial_nominees(self) -> None:
        """A master asks them whether they are ready, whomever they are attached to themselves."""
        wish = self._rostering.book.state.wish
        if wish is None:
            return
        now_ms = self.machine.surroundings.clock().monotonic_ms
        dialled, at_ms = self._dialled
        if wish.id == dialled and now_ms - at_ms < limits.NOMINEE_DIAL_MS:
            return
        self._dialled = wish.id, now_ms
        for one in wish.wish.candidates:
            if one.where is not None and one.node_id != self._rostering.core.known.node_id:
                self.dial(NodeId(one.node_id), Endpoint(*one.where))
