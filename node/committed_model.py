"""What the log sees of the ledger: what is committed, and what this turn's transaction will add."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from quipu.ledger.effects import Durable, PutBranch, StoreEvent
from quipu.ledger.event import EventMeta
from quipu.ledger.history import BranchRecord
from quipu.ledger.words import BranchKey, EventId, Journal, NodeNo, Seq, Slot
from quipu.node import limits
from quipu.node.view import View
from quipu.storage.store import Store


@dataclass(slots=True)
class CommittedModel:
    """The Model as the disk has it; within a turn, as its transaction will leave it."""

    store: Store
    view: View
    recent: dict[EventId, EventMeta] = field(default_factory=dict)
    _coming: dict[BranchKey, BranchRecord] = field(default_factory=dict)
    _coming_metas: dict[BranchKey, list[EventMeta]] = field(default_factory=dict)

    def expect(self, durable: Sequence[Durable]) -> None:
        """What the core has decided in this turn is one transaction with what the log decides."""
        for effect in durable:
            match effect:
                case StoreEvent(meta=meta):
                    self.remember(meta)
                    self._coming_metas.setdefault(meta.branch, []).append(meta)
                case PutBranch(record=record):
                    self._coming[record.key] = record

    def settle(self) -> None:
        """It is committed, and the view says so."""
        self._coming.clear()
        self._coming_metas.clear()

    def branch(self, key: BranchKey) -> BranchRecord:
        return self._coming.get(key) or self.view.branches[key]

    def is_read(self, meta: EventMeta) -> bool:
        record = self._coming.get(meta.branch)
        return self.view.is_read(meta) if record is None else record.read_seq >= meta.seq

    def metas(self, key: BranchKey, first: Seq, last: Seq, count_max: int) -> list[EventMeta]:
        found = self.store.metas_from(Slot(*key.cord, first, key.number), last, count_max)
        begun = found[-1].seq if found else first - 1
        fresh = [m for m in self._coming_metas.get(key, ()) if begun < m.seq <= last]
        return [*found, *fresh] if len(found) < count_max else found

    def read_meta(self, identity: EventId) -> EventMeta | None:
        meta = self.recent.get(identity)
        if meta is None:
            meta = self.store.meta(identity)
            if meta is None:
                return None
            self.remember(meta)
        return meta if self.is_read(meta) else None

    def still_held(self, identities: tuple[EventId, ...]) -> tuple[EventId, ...]:
        if not self.view.has_gone:  # nearly always: nothing is looked up
            return identities
        held = (one for one in identities if one in self.recent or self.store.meta(one))
        return tuple(held)

    def is_gone(self, node_no: int, journal: int, seq: int) -> bool:
        key = BranchKey(NodeNo(node_no), Journal(journal), 0)
        record = self._coming.get(key) or self.view.branches.get(key)
        return record is not None and record.gone_upto >= seq

    def forks_of(self, branch: BranchKey) -> list[tuple[BranchKey, Seq, EventId]]:
        found: list[tuple[BranchKey, Seq, EventId]] = []
        record = self.view.branches[branch]
        while record.base_seq:
            below = branch._replace(number=record.parent)
            identity = self.store.id_at(Slot(*below.cord, record.base_seq, below.number))
            if identity is not None:
                found.append((below, record.base_seq, identity))
            record = self.view.branches[below]
        return found

    def remember(self, meta: EventMeta) -> None:
        self.recent[meta.id] = meta
        if len(self.recent) > limits.METAS_RECENT_MAX:
            del self.recent[next(iter(self.recent))]
