"""The quorum log of a running node: what it is given, what it is told of, what it proposes.

Of the ledger it knows what is committed, and what is one transaction with its own word: an event
may be ordered once the own disk holds it and what made it Read. The master proposes what is Read
and not ordered, sorted by hlc: that is a linear extension, for an hlc lies above those of prev and
parents.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from quipu.ledger import limits as ledger_limits
from quipu.ledger.effects import Durable, PutBranch, PutOwnState, StoreEpoch
from quipu.ledger.epochs import decode_document
from quipu.ledger.event import EventMeta
from quipu.ledger.inputs import Input
from quipu.ledger.log.effects import (
    BaseTaken,
    EntryChosen,
    ForgetLog,
    ItemsNotOrdered,
    ItemsOrdered,
    LogEffects,
    LogInputRefused,
    LogSpoken,
    MasterChanged,
    SendLogMessage,
)
from quipu.ledger.log.entry import LogEntry
from quipu.ledger.log.inputs import (
    DiskSetBack,
    ItemsProposed,
    LogCompacted,
    LogInput,
    LogMessageReceived,
    ModelGrew,
)
from quipu.ledger.log.machine import LogMachine
from quipu.ledger.log.roles import Role
from quipu.ledger.log.state import LogSettings, SavedLog
from quipu.ledger.log.words import Index, Life, LogTicket
from quipu.ledger.order.discovering import Discovering, is_discovery
from quipu.ledger.order.extension import JournalGate, references_of
from quipu.ledger.order.items import EventReference, encode_item
from quipu.ledger.order.journal import ROSTER_PART, Applied, Journal, decode_record
from quipu.ledger.refusals import Reason, Refused, refuse
from quipu.ledger.signing import KeyPair, Verifier
from quipu.ledger.words import NOT_A_MEMBER, BranchKey, EventId, NodeNo, Now, Seq
from quipu.node import limits
from quipu.node.committed_model import CommittedModel
from quipu.node.configuring import Configuring
from quipu.node.numbers import Numbers
from quipu.node.rostering import BothGates, Rostering

ENTROPY_BYTES = 8
LIFE_RANDOM_BITS = 20


@dataclass(frozen=True, slots=True)
class OrderingSettings:
    cluster_id: bytes
    key: KeyPair
    serializers: tuple[NodeNo, ...]
    verify: Verifier
    entropy: Callable[[], int]


@dataclass(slots=True)
class Ordering:
    """Invariant: between two turns machine, journal and view rest on the same commit."""

    settings: OrderingSettings
    model: CommittedModel
    machine: LogMachine
    journal: Journal
    gate: JournalGate
    rostering: Rostering
    own_no: NodeNo
    configuring: Configuring = field(init=False)
    discovering: Discovering = field(init=False)
    numbers: Numbers = field(default_factory=Numbers)
    _met: int = 0  # the epoch whose members are known as neighbours
    is_forgotten: bool = False  # with the turn under way: the cluster went on without this node
    core_recovers: bool = False  # the core knows that its disk was lost or set back
    is_awaited: Callable[[], bool] = lambda: False  # somebody here waits for what becomes ordered
    kept_to: Callable[[], int | None] = lambda: None  # what is above it somebody here still reads
    _behind: dict[BranchKey, None] = field(default_factory=dict)  # Read, and not all ordered
    _proposed: dict[BranchKey, Seq] = field(default_factory=dict)
    _tickets: dict[LogTicket, None] = field(default_factory=dict)  # of references, on their way
    _chosen: Index = Index(0)
    _last_ticket: int = 0
    _inputs: list[LogInput] = field(default_factory=list)
    _since_ms: int | None = None  # something can be proposed
    _proposed_ms: int = 0
    _pace_ms: int = 0  # from then on
    _mark: tuple[Index, bytes] = (Index(0), b"")  # what the next compaction will leave as its base
    _bytes_since: int = 0  # of items that were applied above the newest mark

    def __post_init__(self) -> None:
        self.configuring = Configuring(self.is_behind)
        self.discovering = Discovering(self.settings.key.node_id, self.machine.state)

    @classmethod
    def of(
        cls, settings: OrderingSettings, model: CommittedModel, rostering: Rostering, now: Now
    ) -> "Ordering":
        """With a rostering that has been told nothing yet."""
        store, view = model.store, model.view
        journal = Journal(model)
        gate = JournalGate(journal)
        own_no = view.epochs.node_numbers.get(settings.key.node_id, NOT_A_MEMBER)

        def is_awaited() -> bool:
            return ordering.is_awaited()  # who asks may be another by then

        log_settings = LogSettings(
            settings.cluster_id,
            own_no,
            settings.key,
            settings.serializers,
            BothGates(gate, rostering.gate),
            settings.entropy().to_bytes(ENTROPY_BYTES, "big"),
            settings.verify,
            is_awaited=is_awaited,
            is_overruled=lambda: rostering.core.is_overruled,
            check_state=decode_record,
        )
        saved = _with_life(store.saved_log(), settings.entropy(), now)
        machine = LogMachine(log_settings, saved, {}, now)
        ordering = cls(settings, model, machine, journal, gate, rostering, own_no)
        ordering._last_ticket = settings.entropy() >> 1  # no answer to the start before counts
        ordering._resume()
        return ordering

    def _resume(self) -> None:
        state, view = self.machine.state, self.model.view
        base, self._chosen = state.log.base.index, state.chosen
        self._take_base(Index(base), state.base_state)
        for held in state.log.above(base)[: state.chosen - base]:
            self._choose(held.entry)
        self._meet()
        found = self._advanced(None)
        self._behind = {key: None for key in view.branches if self._first_of(key) is not None}
        self._applied(found)

    def _take_base(self, index: Index, state: bytes) -> None:
        record = decode_record(state)
        self.journal.take_base(index, record)
        self.rostering.rebased(index, record.part(ROSTER_PART))

    def _choose(self, entry: LogEntry) -> None:
        self.journal.choose(entry)
        self.rostering.book.chosen(entry)

    # --- before a turn --------------------------------------------------------------------------
    def next_deadline(self, now: Now) -> int | None:
        due = self.machine.next_deadline()
        if self._inputs:
            return now.monotonic_ms
        look = self.configuring.next_deadline(self.machine, self.journal.config, now)
        times = (due, self._due_ms(now), look, self.discovering.next_deadline(now.monotonic_ms))
        return min((time for time in times if time is not None), default=None)

    def _due_ms(self, now: Now) -> int | None:
        """When references want a turn of their own; any turn before takes them along."""
        if self._since_ms is None or not self._may_propose():
            return None
        if self._is_urgent():
            return now.monotonic_ms
        waited_ms = self._since_ms + limits.ORDER_WAIT_MS
        return max(waited_ms, self._proposed_ms + self._pace_ms)

    def _is_urgent(self) -> bool:
        return self.is_awaited() or self.machine.is_awaited

    @property
    def hastens(self) -> bool:
        """Receipts are not to wait: the order waits for what they make Read."""
        return self.machine.is_awaited or self.machine.waits_for_model

    def _may_propose(self) -> bool:
        is_master = self.machine.state.role is Role.MASTER
        return is_master and len(self._tickets) < limits.ORDER_PROPOSALS_MAX

    def next_look(self, now: Now) -> int:
        return self.rostering.next_deadline(self.machine, now)

    def look_at_epochs(self, now: Now) -> tuple[list[Input], list[LogInput]]:
        return self.rostering.step(self.machine, self.next_ticket, now)

    def step(self, inputs: list[LogInput], coming: Sequence[Durable], now: Now) -> LogEffects:
        """`coming`: what the core makes durable in the same transaction."""
        if self._is_put_out(coming):
            self.is_forgotten = True  # all in memory is of a log that is none any more
            return LogEffects([ForgetLog()])
        inputs = [*self._inputs, *inputs]
        self._inputs.clear()
        self.model.expect(coming)
        said = self._discover(inputs, now)
        self._look(coming, inputs, now)
        self._propose(inputs, now)
        config = self.journal.config
        inputs += self.configuring.step(self.machine, config, self.next_ticket, now)
        due_ms = self.machine.next_deadline()
        if not inputs and (due_ms is None or due_ms > now.monotonic_ms):
            return LogEffects(spoken=said)
        effects = self.machine.step(inputs, now)
        effects.spoken += said
        return effects

    def _is_put_out(self, coming: Sequence[Durable]) -> bool:
        """By an epoch that others opened by force: it is followed in this turn."""
        found = [decode_document(e.document) for e in coming if isinstance(e, StoreEpoch)]
        key = self.settings.key.node_id
        return any(d.forced and all(m.node_id != key for m in d.members) for d in found)

    def _meet(self) -> None:
        """The members of a new epoch are neighbours."""
        newest = self.model.view.epochs.newest
        if self._met != newest.number and self.own_no != NOT_A_MEMBER:
            self._met = newest.number
            self.discovering.meet(newest.members)

    def _discover(self, inputs: list[LogInput], now: Now) -> list[LogSpoken]:
        """The messages of seed 000, taken out of the inputs, and what is said to them."""
        self._meet()
        said = self.discovering.tick(now.monotonic_ms)
        refused: list[LogSpoken] = []
        for item in [one for one in inputs if _is_discovery(one)]:
            inputs.remove(item)
            assert isinstance(item, LogMessageReceived)
            try:
                if item.peer not in self.machine.state.keys:
                    refuse(Reason.NOT_A_MEMBER)
                said += self.discovering.hear(item.peer, item.data)
            except Refused as refusal:
                refused.append(LogInputRefused(item.peer, refusal.reason, refusal.detail))
        return [*(SendLogMessage(peer, data) for peer, data in said), *refused]

    def next_ticket(self) -> LogTicket:
        self._last_ticket += 1
        return LogTicket(self._last_ticket)

    def _look(self, coming: Sequence[Durable], inputs: list[LogInput], now: Now) -> None:
        """What became Read may be proposed, and accepted."""
        grew = False
        for effect in coming:
            if isinstance(effect, PutBranch) and self._first_of(effect.record.key) is not None:
                self._behind[effect.record.key] = None
                grew = True
        if not grew:
            return
        self._since_ms = now.monotonic_ms if self._since_ms is None else self._since_ms
        if self.machine.waits_for_model:
            inputs.insert(0, ModelGrew())

    # --- references -----------------------------------------------------------------------------
    def _propose(self, inputs: list[LogInput], now: Now) -> None:
        if self._since_ms is None or not self._may_propose():
            return
        is_early = now.monotonic_ms < self._proposed_ms + self._pace_ms
        if is_early and not self._is_urgent():
            return
        metas = self._next_events()
        self._since_ms = None
        if not metas:
            return
        self._proposed_ms = now.monotonic_ms
        for meta in metas:
            self._proposed[meta.branch] = meta.seq
        ticket = self.next_ticket()
        self._tickets[ticket] = None
        inputs.append(ItemsProposed(ticket, tuple(map(_reference, metas))))
        self._pace_ms = limits.ORDER_PACE_MS
        if len(metas) == limits.ORDER_REFERENCES_MAX:  # there is more
            self._since_ms, self._pace_ms = now.monotonic_ms, limits.ORDER_PACE_FULL_MS

    def _next_events(self) -> list[EventMeta]:
        """By hlc. Where a branch has more than was looked at, nothing above the last one seen of it
        is taken: it could come before."""
        count_max = limits.ORDER_REFERENCES_MAX
        found: list[EventMeta] = []
        horizon: int | None = None
        for key in self._behind:
            first = self._first_of(key)
            if first is None:
                continue
            last = self.model.branch(key).read_seq
            metas = self.model.metas(key, first, last, count_max)
            found += metas
            for meta in metas:
                self.model.remember(meta)  # the log asks for each of them soon
            if metas and metas[-1].seq < last:
                horizon = min(horizon or metas[-1].hlc, metas[-1].hlc)
        found.sort(key=lambda meta: (meta.hlc, meta.id))
        return [meta for meta in found if horizon is None or meta.hlc <= horizon][:count_max]

    def _first_of(self, key: BranchKey) -> Seq | None:
        """The first of a branch that is Read and neither ordered nor proposed."""
        return self._first_unordered(key, self._proposed.get(key, 0))

    def _first_unordered(self, key: BranchKey, above: int = 0) -> Seq | None:
        record = self.model.branch(key)
        ordered = max(self.journal.ordered_seq(key), above, record.base_seq)
        return Seq(ordered + 1) if record.read_seq > ordered else None

    def _propose_anew(self) -> None:
        """From what the log holds: that alone can still come to be chosen."""
        self._tickets.clear()
        self._proposed.clear()
        log, applied = self.machine.state.log, self.journal.applied
        for held in log.above(max(applied, log.base.index)):
            for reference in references_of(held.entry.items):
                meta = self.model.read_meta(EventId(reference.id))
                if meta is not None:
                    self._proposed[meta.branch] = meta.seq
        self._since_ms = 0

    # --- after a turn ---------------------------------------------------------------------------
    def committed(self, durable: Sequence[Durable], effects: LogEffects) -> list[Applied]:
        """The view has been told before."""
        self.model.settle()
        for effect in durable:
            if isinstance(effect, PutOwnState):
                if effect.recovering and not self.core_recovers:
                    self._inputs.append(DiskSetBack())
                self.core_recovers = effect.recovering
        for notice in effects.spoken:
            self._hear(notice)
        found = self._advanced(limits.APPLIED_PER_TURN_MAX)
        if found:
            self._applied(found)
        # There may be more, in a turn of its own; and what is parked may rest on what is applied.
        is_full = len(found) == limits.APPLIED_PER_TURN_MAX
        if is_full or (found and self.machine.waits_for_model):
            self._inputs.append(ModelGrew())
        return found

    def _advanced(self, count_max: int | None) -> list[Applied]:
        """What is applied now; at marks nodes compare what it has led to."""
        found: list[Applied] = []
        for one in islice(self.journal.advance(), count_max):
            found.append(one)
            if one.entry.index % limits.ORDER_MARK_ENTRIES == 0:
                self.discovering.has_applied(one.entry.index, self.journal.sequences.digest())
        self.discovering.has_applied(self.journal.applied, None)
        self.numbers.take(found, self.machine.state.log.base.index)
        return found

    def _hear(self, notice: object) -> None:
        match notice:
            case EntryChosen(entry):
                self._choose(entry)
                self._chosen = Index(entry.index)
            case BaseTaken(index, state):
                self._chosen = index
                self._take_base(index, state)
            case ItemsOrdered(ticket):
                self._tickets.pop(ticket, None)
            case ItemsNotOrdered(ticket) if ticket in self._tickets:
                self._propose_anew()
            case MasterChanged(master=master) if master == self.own_no:
                self._propose_anew()

    def _applied(self, found: list[Applied]) -> None:
        self._bytes_since += sum(sum(map(len, one.entry.items)) for one in found)
        self.gate.applied = self.journal.applied
        for key in [key for key in self._behind if self._is_ordered_whole(key)]:
            del self._behind[key]
        self._compact()

    def _is_ordered_whole(self, key: BranchKey) -> bool:
        return self.journal.ordered_seq(key) >= self.model.view.branches[key].read_seq

    # --- what readers ask -----------------------------------------------------------------------
    @property
    def chosen(self) -> Index:
        """As far as it is committed."""
        return self._chosen

    def is_behind(self, author: NodeNo) -> bool:
        """Whether anything of that node is here and not ordered."""
        unread = any(key.author_no == author for key in self.model.view.unread)
        return unread or any(
            key.author_no == author and self._first_unordered(key) is not None
            for key in self._behind
        )

    def events_behind(self) -> int:
        """Asked while a new branch is committed, too."""
        behind = ((key, self._first_unordered(key)) for key in self._behind)
        return sum(self.model.branch(key).read_seq - seq + 1 for key, seq in behind if seq)

    # --- the base -------------------------------------------------------------------------------
    def _compact(self) -> None:
        """Two marks, so that a node which is a little behind finds entries and not a base."""
        log, applied = self.machine.state.log, self.journal.applied
        mark = max(self._mark[0], log.base.index)
        is_long = applied - mark >= limits.LOG_KEPT_ENTRIES
        if not is_long and self._bytes_since < limits.LOG_KEPT_BYTES:
            return
        kept_to = self.kept_to()
        if kept_to is not None and self._mark[0] > kept_to:
            return
        if self._mark[0] > log.base.index:
            self._inputs.append(LogCompacted(*self._mark))
        state = self.journal.record(self.rostering.record(applied))
        if len(state) <= ledger_limits.LOG_STATE_BYTES_MAX:
            self._mark, self._bytes_since = (applied, state), 0


def _is_discovery(item: LogInput) -> bool:
    return isinstance(item, LogMessageReceived) and is_discovery(item.data)


def _reference(meta: EventMeta) -> bytes:
    slot = meta.slot
    return encode_item(EventReference(slot.author_no, slot.journal, slot.seq, meta.id))


def _with_life(saved: SavedLog, random: int, now: Now) -> SavedLog:
    """A disk that was replaced or set back is another one than all before."""
    if saved.recovering:
        low = random & ((1 << LIFE_RANDOM_BITS) - 1)
        saved.life = Life(now.wall_ms << LIFE_RANDOM_BITS | low)
    return saved
