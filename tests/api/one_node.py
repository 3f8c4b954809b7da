"""A ledger of one node in this process: the real core over the store in memory, its own clock.

It implements `quipu.node.service.Ledger` for the tests of the API, and lets them make it fail.
"""

import asyncio
import shutil
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from quipu.api.members import answer_in
from quipu.ledger import limits
from quipu.ledger.bundle_build import Lineage, build_bundle
from quipu.ledger.canonical import encode
from quipu.ledger.core import Core, CoreConfig
from quipu.ledger.effects import Effects, EntriesRefused, EntriesStored, EventsRead, StoreEvent
from quipu.ledger.entry import decode_entry
from quipu.ledger.epochs import Epoch, Founder, Genesis, cluster_id_of
from quipu.ledger.event import EventMeta, SignedEvent
from quipu.ledger.evidence import Conviction
from quipu.ledger.inputs import EntriesSubmitted, Input, MessageReceived, PeerConnected
from quipu.ledger.inv import build_inv
from quipu.ledger.messages import InvMessage, encode_message
from quipu.ledger.refusals import Refused
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import EventId, InvNumber, Journal, NodeId, NodeNo, Now, Seq, Ticket, hlc_at
from quipu.node.consumers import KeptConsumers
from quipu.node.questions import Answers
from quipu.node.service import (
    Cause,
    Check,
    Draining,
    EntryId,
    EventRead,
    EventState,
    EventStatus,
    EventStored,
    Explanation,
    FrontierRow,
    Gap,
    Goodbye,
    Health,
    Histogram,
    KeyedEntry,
    Mark,
    MemberRow,
    Metrics,
    News,
    Obstacle,
    ReadBy,
    ReceiptRow,
    Stored,
    Subscription,
)
from quipu.p2p.bodies import Answer as PeerAnswer
from quipu.p2p.effects import QueryEnded
from quipu.p2p.gossip import Origin, compose_body, encode_gossip, gossip_id, signed
from quipu.p2p.words import Endpoint, PeerView, Start
from quipu.storage.memory_store import MemoryStore
from quipu.storage.store import Owner
from tests.api.one_executor import OneExecutor
from tests.api.one_order import OneOrder
from tests.api.one_roster import OneRoster
from tests.small_ledger import key_of

CREATED_MS = 1_790_000_000_000


class Said:
    """A subscription: a bounded queue of news."""

    def __init__(self, feed_number: int, queue_max: int, left: Callable[["Said"], None]) -> None:
        self.feed_number = feed_number
        self._newest = feed_number
        self._max = queue_max
        self._left = left
        self._queue: deque[News] = deque()
        self._missed = 0
        self._gap_after = 0
        self._ready = asyncio.Event()
        self._closed = False

    def say(self, news: News) -> None:
        if len(self._queue) >= self._max and not isinstance(news, Goodbye):
            if not self._missed:
                self._gap_after = self._newest
            self._missed += 1
        else:
            self._end_gap()
            self._queue.append(news)
        if isinstance(news, EventRead):
            self._newest = news.number
        self._ready.set()

    def _end_gap(self) -> None:
        if self._missed:
            self._queue.append(Gap(self._missed, self._gap_after, self._newest))
            self._missed = 0

    def __aiter__(self) -> "Said":
        return self

    async def __anext__(self) -> News:
        while not self._closed:
            if self._queue:
                return self._queue.popleft()
            if self._missed:
                self._end_gap()
                continue
            self._ready.clear()
            await self._ready.wait()
        raise StopAsyncIteration

    def close(self) -> None:
        self._closed = True
        self._ready.set()
        self._left(self)


class OneNode:
    """Member n1 of `size` members; with more than one nothing becomes Read."""

    def __init__(self, size: int = 1, erasable: Sequence[str] = ()) -> None:
        self.key: KeyPair = key_of("n1")
        founders = [
            Founder(key_of(f"n{i}").node_id, f"n{i}", ["member"]) for i in range(1, size + 1)
        ]
        self.genesis = encode(
            Genesis(1, "tests", CREATED_MS, "majority", founders, bytes(16), list(erasable))
        )
        self.cluster_id = cluster_id_of(self.genesis)
        self.store = MemoryStore(Owner(self.cluster_id, self.key.node_id))
        config = CoreConfig(self.key, self.genesis, 7)
        wall_ms, monotonic_ms = self.now()
        begun = Now(wall_ms, monotonic_ms - limits.START_WAIT_MS)  # it has listened long enough
        self.core = Core(config, self.store.saved(), self.store, begun)
        self.name = "n1"
        self.endpoint = Endpoint("127.0.0.1", 8471)
        self.views: tuple[PeerView, ...] = ()
        self.meets: tuple[PeerView, ...] = ()  # whoever answers when it is dialled
        folder = Path(mkdtemp())
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.consumers = KeptConsumers.of(folder, lambda: OneNode.now().wall_ms)
        self.cluster_name = "tests"
        self.order = OneOrder()
        self.roster = OneRoster()
        self.clients = OneExecutor()
        self.paused: asyncio.Event | None = None  # a disk that does not answer
        self.fault: Exception | None = None  # raised in place of storing
        self.full: Exception | None = None  # raised by `admit`
        self.read_fault: Exception | None = None
        self.ready = True
        self.other: OneNode | None = None  # who answers as a member that is asked alone
        self.refused: list[bool] = []  # by `full`: whether it was asked again
        self.wait_fault: Exception | None = None  # raised by `when_read`
        self.admitted: list[int] = []
        self.submissions = 0
        self._draining = False
        self._seen: dict[EventId, int] = {}
        self._read: dict[EventId, int] = {}
        self._waiting: list[tuple[Sequence[bytes], asyncio.Future[Stored]]] = []
        self._turn: asyncio.Task[None] | None = None
        self._read_waits: dict[EventId, list[asyncio.Future[bool]]] = {}
        self._said: list[Said] = []
        self._invs = 0
        self._alarm: asyncio.TimerHandle | None = None
        self._step([])

    @staticmethod
    def now() -> Now:
        return Now(time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000)

    # --- identity -------------------------------------------------------------------------------
    @property
    def node_id(self) -> NodeId:
        return self.key.node_id

    @property
    def epoch(self) -> Epoch:
        return self.core.epochs.newest

    @property
    def journal(self) -> Journal | None:
        return self.core.author.journal

    def members(self) -> tuple[MemberRow, ...]:
        rows = sorted(self.epoch.members.items())
        return tuple(MemberRow(no, node_id, f"n{no}", ("member",)) for no, node_id in rows)

    # --- writing --------------------------------------------------------------------------------
    @contextmanager
    def admit(self, body_bytes: int, is_again: bool = False) -> Iterator[None]:
        if self._draining:
            raise Draining("stopping")
        if self.full is not None:
            self.refused.append(is_again)
            raise self.full
        self.admitted.append(body_bytes)
        yield

    async def submit(self, entries: Sequence[bytes]) -> Stored:
        if self.fault is not None:
            raise self.fault
        self.submissions += 1
        stored: asyncio.Future[Stored] = asyncio.get_running_loop().create_future()
        self._waiting.append((entries, stored))
        if self._turn is None:
            self._turn = asyncio.create_task(self._take_turn())
        return await stored

    async def _take_turn(self) -> None:
        if self.paused is not None:
            await self.paused.wait()
        self._turn = None
        taken, self._waiting = self._waiting, []
        inputs: list[Input] = [
            EntriesSubmitted(Ticket(number), tuple(entries))
            for number, (entries, _) in enumerate(taken)
        ]
        effects = self._step(inputs)
        for spoken in effects.spoken:
            match spoken:
                case EntriesStored(ticket, event, index):
                    meta = self.store.meta(event)
                    assert meta is not None
                    slot = meta.slot
                    taken[ticket][1].set_result(
                        Stored(event, index, slot.journal, slot.seq, meta.hlc)
                    )
                case EntriesRefused(ticket, reason, detail):
                    taken[ticket][1].set_exception(Refused(reason, detail))

    def _step(self, inputs: list[Input]) -> Effects:
        now = self.now()
        before = self.feed_number
        effects = self.core.step(inputs, now)
        self.store.commit(effects.durable)
        for durable in effects.durable:
            if isinstance(durable, StoreEvent):
                self._seen[durable.event.id] = now.wall_ms
                self.tell(EventStored(durable.event.id))
        for spoken in effects.spoken:
            if isinstance(spoken, EventsRead):
                for identity in spoken.ids:
                    before += 1
                    self._read[identity] = now.wall_ms
                    self.tell(EventRead(before, identity))
                    for waiting in self._read_waits.pop(identity, ()):
                        if not waiting.done():
                            waiting.set_result(True)
        self._arm(now)
        return effects

    def _arm(self, now: Now) -> None:
        """The core wants a turn at its deadline, to sign what has waited."""
        deadline_ms = self.core.next_deadline()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if deadline_ms is None:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # made outside of a loop: the first submission comes later anyhow
        delay_s = max(0, deadline_ms - now.monotonic_ms) / 1_000
        self._alarm = loop.call_later(delay_s, self._rung)

    def _rung(self) -> None:
        self._alarm = None
        self._step([])

    def tell(self, news: News) -> None:
        for said in list(self._said):
            said.say(news)

    def check(self, entries: Sequence[bytes]) -> None:
        if self.fault is not None:
            raise self.fault
        for entry in entries:
            decode_entry(entry)

    def find_key(self, submitter: str | None, stream: str, key: str) -> KeyedEntry | None:
        found = self.store.find_key(submitter, stream, key)
        if not found:
            return None
        first, *later = (EntryId(event, index) for event, index in found)
        return KeyedEntry(first, tuple(later))

    # --- reading --------------------------------------------------------------------------------
    def status(self, event_id: EventId) -> EventStatus | None:
        if self.store.meta(event_id) is None:
            return None
        is_read = event_id in self._read
        return EventStatus(
            EventState.READ if is_read else EventState.STORED,
            ReadBy.RECEIPTS if is_read else None,
            0,
            self.epoch.max_confirms,
            (),
            True,
            self._seen.get(event_id),
            self._read.get(event_id),
            event_id in self.order.ordered,
        )

    async def wait_read(self, event_id: EventId, timeout_s: float) -> bool:
        try:
            return await asyncio.wait_for(self.when_read(event_id), timeout_s)
        except TimeoutError:
            return False

    def when_read(self, event_id: EventId) -> asyncio.Future[bool]:
        status = self.status(event_id)
        is_read = status is not None and status.state is EventState.READ
        if self.wait_fault is not None and not is_read:
            raise self.wait_fault
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if is_read:
            answer.set_result(True)
        else:
            self._read_waits.setdefault(event_id, []).append(answer)
        return answer

    def event(self, event_id: EventId) -> SignedEvent | None:
        return self.store.event(event_id)

    def entry(self, event_id: EventId, index: int) -> bytes | None:
        if self.read_fault is not None:
            raise self.read_fault
        return self.store.entry(event_id, index)

    def entries(
        self, event_id: EventId, first: int, count: int
    ) -> tuple[EventMeta, list[bytes]] | None:
        if self.read_fault is not None:
            raise self.read_fault
        return self.store.entries(event_id, first, count)

    def meta(self, event_id: EventId) -> EventMeta | None:
        return self.store.meta(event_id)

    def find_event(self, prefix: bytes) -> EventMeta | None:
        return self.store.meta_by_prefix(prefix)

    def ids_between(self, first: bytes, last: bytes, limit: int) -> list[EventId]:
        return self.store.ids_between(first, last, limit)

    def children(self, event_id: EventId) -> list[EventId]:
        return self.store.children(event_id)

    def ancestors(self, event_id: EventId, depth: int, limit: int) -> list[EventMeta]:
        found: dict[EventId, EventMeta] = {}
        edge = [event_id]
        for _ in range(depth):
            below: list[EventId] = []
            for identity in edge:
                meta = self.store.meta(identity)
                below += [meta.prev, *meta.parents] if meta else []
            edge = []
            for identity in below:
                meta = self.store.meta(identity)
                if meta is not None and identity not in found and len(found) < limit:
                    found[identity] = meta
                    edge.append(identity)
        return list(found.values())

    def feed(self, after: int, limit: int) -> list[tuple[int, EventId]]:
        return self.store.feed(after, limit)

    @property
    def feed_first(self) -> int:
        return self.store.stats().feed_first

    @property
    def history_from(self) -> int:
        return self.store.saved().pruned_to

    def was_pruned(self, event_id: EventId) -> bool:
        return self.store.was_pruned(event_id)

    @property
    def feed_number(self) -> int:
        return self.store.stats().feed

    def confirm(self, upto: EventId) -> None:
        """Member n2 says that it holds this event and all below it."""
        meta, key = self.store.meta(upto), key_of("n2")
        assert meta is not None
        self._invs += 1
        row = (meta.branch.cord, meta.seq, meta.id)
        number = InvNumber(self._invs)
        inv = build_inv(key, self.cluster_id, self.epoch.number, number, [row])
        said = encode_message(InvMessage(inv.data))
        self._step([PeerConnected(key.node_id), MessageReceived(key.node_id, said)])

    def unread(self, limit: int, after: Mark | None = None) -> list[EventId]:
        held = [self.store.meta(identity) for identity in self._seen if identity not in self._read]
        marks = sorted(Mark(m.branch.cord, m.seq, m.id) for m in held if m is not None)
        return [mark.id for mark in marks if after is None or mark > after][:limit]

    def leaves(self) -> list[EventId]:
        leaves = self.core.dag.leaves
        return sorted(leaves, key=lambda identity: (leaves[identity], identity))

    def frontier(self) -> list[FrontierRow]:
        return [
            FrontierRow(
                NodeNo(record.key.author_no),
                record.key.journal,
                record.key.number,
                record.held_seq,
                record.held_id,
                Seq(record.read_seq),
                record.read_id,
            )
            for record in self.store.saved().branches
        ]

    @property
    def receipts_moved(self) -> int:
        return hash(tuple(self.receipts(len(self.store.saved().branches))))

    def receipts(self, limit: int) -> list[ReceiptRow]:
        records = sorted(self.store.saved().branches, key=lambda record: -record.key.journal)
        return [
            ReceiptRow(
                record.key.author_no,
                record.key.journal,
                record.key.number,
                record.held_seq,
                Seq(record.read_seq),
                tuple((number, seq) for number, (seq, _) in sorted(record.receipts.items())),
            )
            for record in records[:limit]
        ]

    def finality_ms(self, limit: int) -> list[int]:
        took = [self._read[identity] - self._seen[identity] for identity in reversed(self._read)]
        return took[:limit]

    def explain(self, event_id: EventId) -> Explanation | None:
        status = self.status(event_id)
        if status is None:
            return None
        others = tuple(NodeNo(no) for no in self.epoch.members if no != 1)
        lacking = Obstacle(Cause.RECEIPTS, others, others, wanted=status.required)
        return Explanation(status, () if status.read_by else (lacking,))

    def proof(self, event_id: EventId, index: int) -> bytes:
        return build_bundle(self.store, Lineage.of(self.genesis, []), event_id, index)

    def convictions(self) -> tuple[Conviction, ...]:
        return ()

    # --- news and health --------------------------------------------------------------------------
    def subscribe(self, queue_max: int = 1_024, hears_order: bool = False) -> Subscription:
        said = Said(self.feed_number, queue_max, self._unsubscribe)
        self._said.append(said)
        return said

    def _unsubscribe(self, said: Said) -> None:
        if said in self._said:
            self._said.remove(said)

    @property
    def listeners(self) -> int:
        return len(self._said)

    def drain(self) -> None:
        self._draining = True
        self.tell(Goodbye("the node is stopping"))

    def peers(self) -> tuple[PeerView, ...]:
        return self.views

    async def meet(self, peer: NodeId, where: Endpoint) -> bool:
        self.views += self.meets
        return any(view.peer == peer for view in self.views)

    async def query(
        self, question: str, argument: bytes, timeout_s: float, of: NodeId | None = None
    ) -> QueryEnded:
        """Among its members it alone is there to answer, signed as in truth; and the `other`."""
        if self.fault is not None:
            raise self.fault
        if of is not None:
            if self.other is None:
                return QueryEnded(1, "timeout", None, (), 1)
            own = await self.other.query(question, argument, timeout_s)
            return QueryEnded(1, "agreed", answer_in(own.answers[0][1]), (), 1)
        answer = Answers(self, self.now).answer(question, argument)
        origin = Origin(self.node_id, gossip_id(Start(1), 1), hlc_at(self.now().wall_ms))
        message = compose_body(origin, PeerAnswer(bytes(16), answer))
        said = encode_gossip(signed(message, self.cluster_id, self.key))
        verdict = "agreed" if len(self.epoch.members) <= 2 else "timeout"
        counted = answer if verdict == "agreed" else None
        return QueryEnded(1, verdict, counted, ((self.node_id, said),), len(self.epoch.members))

    def health(self) -> Health:
        return Health(
            (Check("loop", True), Check("writer", True)),
            (Check("store", self.ready, "" if self.ready else "the disk is full"),),
            (Check("quorum", len(self.epoch.members) == 1, "members connected"),),
        )

    def metrics(self) -> Metrics:
        histogram = Histogram((0.001, 0.01), [1, 2, 2], 0.004)
        return Metrics(
            {"entries_stored_total": self.submissions},
            {"feed_number": float(self.feed_number)},
            {"commit_seconds": histogram},
            {"bad-entry": 1},
        )
