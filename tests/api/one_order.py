"""An order that does what a test tells it, for tests of what HTTP makes of it."""

import asyncio

from quipu.ledger.log.words import Index
from quipu.ledger.order.config import ChangeState
from quipu.ledger.order.config_items import ConfigKind
from quipu.ledger.order.sequences import SequenceRefusal
from quipu.ledger.words import EventId, NodeId, NodeNo
from quipu.node.config_service import ConfigState, NodeRoles
from quipu.node.numbers import NumberHeld
from quipu.node.order_service import (
    JournalGone,
    LockGranted,
    LyingSerializer,
    NumberGone,
    NumberPublished,
    OrderedEntry,
    OrderStatus,
    SequenceRefused,
    SequenceState,
)


class OneOrder:
    """Of a lone node: nothing is ordered until `order` says so."""

    def __init__(self) -> None:
        self.ordered: set[EventId] = set()
        self.log: list[OrderedEntry] = []
        self.base = 0
        self.recovering = self.lied = False
        self.fault: Exception | None = None  # raised by what asks the log
        self.sequences: dict[str, SequenceState] = {}
        self.published: list[tuple[str, bytes, int | None, int]] = []
        self.awaited: list[asyncio.Future[bool]] = []
        self._waiting: dict[EventId, list[asyncio.Future[bool]]] = {}

    def order(self, event_id: EventId) -> None:
        self.ordered.add(event_id)
        for waiting in self._waiting.pop(event_id, ()):
            if not waiting.done():
                waiting.set_result(True)

    def when_ordered(self, event_id: EventId) -> asyncio.Future[bool]:
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.awaited.append(answer)
        if event_id in self.ordered:
            answer.set_result(True)
        else:
            self._waiting.setdefault(event_id, []).append(answer)
        return answer

    def status(self) -> OrderStatus:
        role = "recovering" if self.recovering else "master"
        last, me = self.base + len(self.log), NodeNo(1)
        digest = self.log[-1].digest if self.log else bytes(32)
        return OrderStatus(
            role, 1, me, (me,), None, self.base, last, last, last, digest, len(self.ordered), 0
        )

    def states(self) -> dict[NodeNo, str]:
        return {NodeNo(1): "WRK"}

    def entries(self, after: int, limit: int) -> list[OrderedEntry]:
        if after < self.base:
            raise JournalGone(self.base + 1)
        return self.log[after - self.base :][:limit]

    # --- sequences ------------------------------------------------------------------------------
    def sequence(self, name: str) -> SequenceState | None:
        return self.sequences.get(name)

    def sequences_after(self, after: str, limit: int) -> list[SequenceState]:
        return [self.sequences[name] for name in sorted(self.sequences) if name > after][:limit]

    async def linear(self) -> None:
        self._fail()

    async def lock(self, name: str, count: int) -> LockGranted:
        self._fail()
        self.sequences[name] = SequenceState(name, 0, bytes(32), 7, NodeNo(1), count)
        return LockGranted(7, 1, count)

    async def publish(
        self, name: str, digest: bytes, token: int | None = None, number: int = 0
    ) -> NumberPublished:
        self._fail()
        self.published.append((name, digest, token, number))
        return NumberPublished(number or len(self.published), digest, 7)

    async def release(self, name: str, token: int) -> None:
        self._fail()
        if name not in self.sequences:
            raise SequenceRefused(SequenceRefusal.NOT_HOLDER, name)

    # --- configuration --------------------------------------------------------------------------
    @property
    def config(self) -> "OneOrder":
        return self

    def state(self) -> ConfigState:
        return ConfigState(None, (NodeRoles(NodeNo(1), ("ingest", "config"), False),))

    async def propose(
        self, kind: ConfigKind, nodes: tuple[NodeNo, ...], timeout_s: float
    ) -> ChangeState:
        self._fail()
        return ChangeState(Index(7), kind, nodes, "nominate", Index(8))

    def _fail(self) -> None:
        if self.fault is not None:
            raise self.fault

    def number(self, name: str, number: int) -> NumberHeld | None:
        if self.base:
            raise NumberGone(2)
        held = NumberHeld(1, bytes(32), bytes(32), NodeNo(1), 1)
        return held if number == 1 and name in self.sequences else None

    def liars(self) -> list[LyingSerializer]:
        return [LyingSerializer(NodeId(bytes(32)), b"proof")] if self.lied else []

    def force_recovery(self) -> None:
        self.recovering = False
