"""The running ledger: what `Ledger` promises, on one machine, one inbox and one loop."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from quipu.ledger import bundle_build
from quipu.ledger.entry import decode_entry
from quipu.ledger.epochs import Epoch
from quipu.ledger.event import EventMeta, SignedEvent
from quipu.ledger.evidence import Conviction
from quipu.ledger.inv import InvArray
from quipu.ledger.log.effects import LogSpoken
from quipu.ledger.order.journal import Applied
from quipu.ledger.words import BranchKey, EventId, Journal, NodeId, NodeNo
from quipu.node import limits
from quipu.node.catching_up import CatchingUp
from quipu.node.comparing import Comparing
from quipu.node.consumers import KeptConsumers
from quipu.node.execution import Execution
from quipu.node.explain import Witness
from quipu.node.inbox import Inbox
from quipu.node.machine import Machine
from quipu.node.measures import Measures, cumulative
from quipu.node.network import Network
from quipu.node.news import Newsroom
from quipu.node.order_service import OrderUnknown
from quipu.node.running_clients import RunningClients
from quipu.node.running_order import RunningOrder
from quipu.node.running_roster import RunningRoster
from quipu.node.service import (
    Check,
    Draining,
    EntryId,
    EventRead,
    EventState,
    EventStatus,
    Explanation,
    FrontierRow,
    Health,
    KeyedEntry,
    Mark,
    MemberRow,
    Metrics,
    News,
    NotTaken,
    ReceiptRow,
    Stored,
    Subscription,
)
from quipu.node.soundness import Soundness
from quipu.node.turns import Turns
from quipu.node.waiters import Waiters, answered
from quipu.node.writer import Writer
from quipu.p2p.effects import QueryEnded
from quipu.p2p.words import Endpoint, PeerState, PeerView
from quipu.storage.store import StoreStats


@dataclass(slots=True)
class RunningLedger:
    """Invariant: it reads from the store and the view alone, never from the core, which is ahead
    of the disk."""

    name: str
    machine: Machine
    inbox: Inbox
    turns: Turns
    writer: Writer
    newsroom: Newsroom
    measures: Measures
    soundness: Soundness
    monotonic_s: Callable[[], float]
    network: Network
    consumers: KeptConsumers
    execution: Execution
    endpoint: Endpoint | None = None  # where peers reach this node
    _for_read: Waiters = field(default_factory=lambda: Waiters("events to become Read"))
    _for_others: int = 0  # of these, events that another node wrote
    order: RunningOrder = field(init=False)
    roster: RunningRoster = field(init=False)

    clients: RunningClients = field(init=False)
    comparing: Comparing = field(init=False)
    catching_up: CatchingUp = field(init=False)

    def __post_init__(self) -> None:
        self.order = RunningOrder(self.machine, self.inbox, self.status, self.turns.wake)
        self.roster = RunningRoster(self.machine, self.inbox, self.network.dial)
        self.clients = RunningClients(self.order, self.execution)
        self.comparing = Comparing(self.order, self.execution)
        self.catching_up = CatchingUp(self.order, self.execution, self.network)
        self.execution.catch_up = self.catching_up.catch_up

    # --- who ------------------------------------------------------------------------------------
    @property
    def node_id(self) -> NodeId:
        return self.machine.surroundings.key.node_id

    @property
    def cluster_id(self) -> bytes:
        return self.machine.view.epochs.cluster_id

    @property
    def genesis(self) -> bytes:
        return self.machine.surroundings.genesis

    @property
    def cluster_name(self) -> str:
        return self.machine.cluster_name

    @property
    def epoch(self) -> Epoch:
        return self.machine.view.epoch

    @property
    def journal(self) -> Journal | None:
        return self.machine.core.author.journal

    def members(self) -> tuple[MemberRow, ...]:
        rows = self.machine.view.standing.members
        return tuple(
            MemberRow(NodeNo(m.node_no), NodeId(m.node_id), m.name, tuple(m.roles)) for m in rows
        )

    # --- writing --------------------------------------------------------------------------------
    def admit(self, body_bytes: int, is_again: bool = False) -> AbstractContextManager[None]:
        return self.inbox.admit(body_bytes, is_again)

    def submit(self, entries: Sequence[bytes]) -> asyncio.Future[Stored]:
        try:
            return self.inbox.submit(entries)
        except NotTaken as refused:
            answer: asyncio.Future[Stored] = asyncio.get_running_loop().create_future()
            answer.set_exception(refused)
            return answer

    def check(self, entries: Sequence[bytes]) -> None:
        self.inbox.check()
        for entry in entries:
            decode_entry(entry)
        self.machine.core.author.check_size(entries)

    def find_key(self, submitter: str | None, stream: str, key: str) -> KeyedEntry | None:
        metas = [
            (self._meta(identity), index)
            for identity, index in self.machine.store.find_key(submitter, stream, key)
        ]
        ranked = sorted((meta.hlc, meta.id, index) for meta, index in metas)
        if not ranked:
            return None
        first, *others = (EntryId(identity, index) for _, identity, index in ranked)
        return KeyedEntry(first, tuple(others))

    # --- reading --------------------------------------------------------------------------------
    def status(self, event_id: EventId) -> EventStatus | None:
        meta = self.meta(event_id)
        if meta is None:
            return None
        ordered = self.machine.ordering.journal.is_ordered(meta)
        return replace(self._witness().status(meta), ordered=ordered)

    async def wait_read(self, event_id: EventId, timeout_s: float) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                return await self.when_read(event_id)
        except TimeoutError:
            return False

    def when_read(self, event_id: EventId) -> asyncio.Future[bool]:
        known = self._is_read(event_id)
        if known is not None or self.inbox.is_draining:
            return answered(known is True)
        answer = self._for_read.wait(event_id)
        times = self.machine.view.times.get(event_id)
        if times is None or times.author_no != self.machine.ordering.own_no:
            self._for_others += 1
            answer.add_done_callback(self._waits_for_other_no_more)
        self.inbox.look()
        return answer

    def _waits_for_other_no_more(self, answer: asyncio.Future[bool]) -> None:
        self._for_others -= 1

    def _is_read(self, event_id: EventId) -> bool | None:
        """None: it may become so. Of most that are waited for the view knows it by itself."""
        view = self.machine.view
        times = view.times.get(event_id)
        if times is not None and times.read_ms is not None:
            return True
        if times is not None and not view.has_anybody_left:
            return None
        status = self.status(event_id)
        if status is None or status.state is EventState.STORED:
            return None
        return status.state is EventState.READ

    def event(self, event_id: EventId) -> SignedEvent | None:
        return self.machine.store.event(event_id)

    def entry(self, event_id: EventId, index: int) -> bytes | None:
        return self.machine.store.entry(event_id, index)

    def entries(
        self, event_id: EventId, first: int, count: int
    ) -> tuple[EventMeta, list[bytes]] | None:
        return self.machine.store.entries(event_id, first, count)

    def meta(self, event_id: EventId) -> EventMeta | None:
        return self.machine.store.meta(event_id)

    def _meta(self, event_id: EventId) -> EventMeta:
        meta = self.meta(event_id)
        assert meta is not None  # an index named it
        return meta

    def find_event(self, prefix: bytes) -> EventMeta | None:
        return self.machine.store.meta_by_prefix(prefix)

    def ids_between(self, first: bytes, last: bytes, limit: int) -> list[EventId]:
        return self.machine.store.ids_between(first, last, limit)

    def children(self, event_id: EventId) -> list[EventId]:
        return self.machine.store.children(event_id)

    def ancestors(self, event_id: EventId, depth: int, limit: int) -> list[EventMeta]:
        start = self.meta(event_id)
        found: dict[EventId, EventMeta] = {}
        edge = [] if start is None else [start]
        for _ in range(depth):
            named = dict.fromkeys(i for meta in edge for i in (meta.prev, *meta.parents))
            edge = []
            for identity in named:
                meta = None if identity in found else self.meta(identity)
                if meta is not None:
                    found[identity] = meta
                    edge.append(meta)
                    if len(found) >= min(limit, limits.ANCESTORS_MAX):
                        return list(found.values())
            if not edge:
                break
        return list(found.values())

    def feed(self, after: int, limit: int) -> list[tuple[int, EventId]]:
        return self.machine.store.feed(after, limit)

    @property
    def feed_first(self) -> int:
        return self.machine.view.feed_first

    @property
    def history_from(self) -> int:
        return self.machine.view.pruned_to

    def was_pruned(self, event_id: EventId) -> bool:
        return self.machine.store.was_pruned(event_id)

    @property
    def feed_number(self) -> int:
        return self.machine.view.feed_number

    def unread(self, limit: int, after: Mark | None = None) -> list[EventId]:
        return self.machine.unread(limit, after)

    def leaves(self) -> list[EventId]:
        return self.machine.leaves()

    def frontier(self) -> list[FrontierRow]:
        return self.machine.view.frontier()

    @property
    def receipts_moved(self) -> int:
        return self.machine.view.receipts_moved

    def receipts(self, limit: int) -> list[ReceiptRow]:
        return self.machine.view.receipts(limit)

    def finality_ms(self, limit: int) -> list[int]:
        return self.machine.view.finality_ms(limit)

    def explain(self, event_id: EventId) -> Explanation | None:
        meta = self.meta(event_id)
        if meta is None:
            return None
        now = self.machine.surroundings.clock()
        return self._witness().explain(meta, now, self._live_members())

    def proof(self, event_id: EventId, index: int) -> bytes:
        view = self.machine.view
        return bundle_build.build_bundle(self.machine.store, view.lineage, event_id, index)

    def convictions(self) -> tuple[Conviction, ...]:
        return tuple(self.machine.view.convictions.values())

    def _witness(self) -> Witness:
        return Witness(self.machine.view, self.machine.store, self.node_id)

    # --- peers ----------------------------------------------------------------------------------
    def peers(self) -> tuple[PeerView, ...]:
        return self.network.views()

    async def meet(self, peer: NodeId, where: Endpoint) -> bool:
        return await self.network.meet(peer, where)

    async def query(
        self, question: str, argument: bytes, timeout_s: float, of: NodeId | None = None
    ) -> QueryEnded:
        return await self.network.query(question, argument, timeout_s, of)

    def is_live(self, number: NodeNo) -> bool:
        """Whether a member is in the live view: heard within 5 s, whatever became of a link."""
        node_id = self.machine.view.epochs.node_ids.get(number)
        return node_id == self.node_id or any(
            view.peer == node_id and view.state is PeerState.ALIVE for view in self.network.views()
        )

    def _live_members(self) -> list[NodeId]:
        """This node among them where it is one."""
        members = self.epoch.numbers
        return [peer for peer in (self.node_id, *self.network.up) if peer in members]

    # --- news -----------------------------------------------------------------------------------
    def may_wait(self, inv: InvArray) -> bool:
        """A receipt of the usual kind: the next one of its signer says all that it says. Nothing
        of it is checked yet."""
        epoch = self.machine.view.epoch
        is_usual = inv.close is None and inv.epoch == epoch.number
        return is_usual and inv.signer in epoch.numbers and inv.signer != self.node_id

    def is_awaited(self, inv: InvArray) -> bool:
        """Somebody here waits for what it may make Read."""
        if self._for_others or self.newsroom.listeners or self.order.is_awaited():
            return True
        if self.machine.ordering.hastens:
            return True
        return bool(self._for_read) and self._confirms_own(inv)

    def _confirms_own(self, inv: InvArray) -> bool:
        """It covers an event of this node's own that is not Read yet."""
        own_no, branches = self.machine.ordering.own_no, self.machine.view.branches
        for row in inv.rows:
            if row.author_no == own_no:
                key = BranchKey(own_no, Journal(row.journal), 0)
                record = branches.get(key)
                if record is None or row.seq > record.read_seq:
                    return True
        return False

    def subscribe(self, queue_max: int = 1_024, hears_order: bool = False) -> Subscription:
        self.inbox.press()
        return self.newsroom.subscribe(self.feed_number, queue_max, hears_order)

    def tell(self, news: list[News]) -> None:
        """From the loop, after each turn."""
        if self._for_read:
            for item in news:
                if isinstance(item, EventRead):
                    self._for_read.answer(item.event_id, True)
        self.newsroom.tell(news)

    def hear_order(self, spoken: Sequence[LogSpoken], applied: Sequence[Applied]) -> None:
        """From the loop, after each turn in which the log said anything."""
        self.newsroom.tell_order(self.order.hear(spoken, applied))
        self.roster.hear(spoken)
        self.execution.pump()

    def end_waiting(self, reason: str) -> None:
        self.newsroom.end(reason)
        self._for_read.end()
        self.order.end_waiting()
        self.roster.fail_all(OrderUnknown("the node is stopping"))
        self.execution.end_waiting(Draining("the node is stopping"))

    # --- health ---------------------------------------------------------------------------------
    def health(self) -> Health:
        since = self.turns.committing_since
        waited_s = 0.0 if since is None else self.monotonic_s() - since
        core = self.machine.core
        return Health(
            live=(
                Check(
                    "loop",
                    not self.turns.is_stopped,
                    "" if not self.turns.is_stopped else "stopped",
                ),
                Check(
                    "writer",
                    self.writer.is_alive() and waited_s < limits.TURN_LATE_S,
                    f"{waited_s:.1f} s",
                ),
            ),
            ready=(
                Check("draining", not self.inbox.is_draining),
                Check("disk", not self.inbox.is_full),
                Check("backlog", not self.inbox.is_backlogged()),
            ),
            read=(
                Check("signing", core.recovery.may_sign),
                self._quorum(),
            ),
            store=(*self.soundness.checks(), self._executor_check()),
        )

    def _executor_check(self) -> Check:
        status = self.execution.status()
        return Check("executor", status.state != "failed", status.detail)

    def _quorum(self) -> Check:
        """Whether enough members answer for anything to become Read."""
        live, needed = len(self._live_members()), self.epoch.max_confirms + 1
        members = len(self.epoch.members)
        return Check("quorum", live >= needed, f"{live} of {members} members live, {needed} needed")

    def metrics(self) -> Metrics:
        stats, measures = self.machine.store.stats(), self.measures
        return Metrics(
            counters={
                **measures.counters(),
                **self.network.counters(),
                "requests_executed_total": self.execution.commands,
                "scrubs_total": self.soundness.scrubs,
                "scrub_failures_total": self.soundness.failures,
            },
            gauges={
                "feed_number": self.feed_number,
                "epoch": self.epoch.number,
                "members": len(self.epoch.members),
                "members_live": len(self._live_members()),
                "peers_up": len(self.network.up),
                "peers_blocked": self.network.blocked,
                "peer_connections": self.network.connections,
                **self.order.gauges(),
                "journals_above_cut": self.machine.view.journals_above_cut(),
                **self.execution.gauges(),
                "events_unread": self.machine.view.unread_count(),
                "submissions_waiting": self.inbox.submissions_held,
                "bytes_waiting": self.inbox.bytes_held,
                "subscriptions": len(self.newsroom.listeners),
                "consumers": len(self.consumers.all()),
                **_of_store(stats),
                "history_from": self.history_from,
                "store_full": int(self.inbox.is_full),
                "draining": int(self.inbox.is_draining),
                "scrub_findings": self.soundness.found,
                "scrub_ended_seconds": (self.soundness.ended_ms or 0) / 1_000,
            },
            histograms={
                "commit_seconds": cumulative(measures.commit_seconds),
                "step_seconds": cumulative(measures.step_seconds),
            },
            refused=self._refused(),
        )

    def _refused(self) -> dict[str, int]:
        measures, network = self.measures, self.network
        return {
            **{str(reason): count for reason, count in measures.inputs_refused.items()},
            **{f"peer-{cause}": count for cause, count in network.refused.items()},
            **{f"link-{fault}": count for fault, count in network.faults.items()},
        }


def _of_store(stats: StoreStats) -> dict[str, float]:
    return {
        "store_events": stats.events,
        "store_used_bytes": stats.used_bytes,
        "store_live_bytes": stats.live_bytes,
        "store_file_bytes": stats.file_bytes,
        "events_pruned": stats.pruned,
    }
