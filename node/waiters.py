"""Who waits for an event to come further, bounded in number."""

import asyncio
from dataclasses import dataclass, field
from functools import partial

from quipu.ledger.words import EventId
from quipu.node import limits
from quipu.node.service import Overloaded


@dataclass(slots=True)
class Waiters:
    what: str
    _waiting: dict[EventId, dict[asyncio.Future[bool], None]] = field(default_factory=dict)
    _count: int = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def wait(self, event_id: EventId) -> asyncio.Future[bool]:
        """Whoever waits no longer ends it. Raises `Overloaded`."""
        if self._count >= limits.WAITERS_MAX:
            raise Overloaded(limits.RETRY_AFTER_S, f"too many wait for {self.what}")
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(event_id, {})[answer] = None
        self._count += 1
        answer.add_done_callback(partial(self._waits_no_more, event_id))
        return answer

    def _waits_no_more(self, event_id: EventId, answer: asyncio.Future[bool]) -> None:
        self._count -= 1
        others = self._waiting.get(event_id)
        if others is not None:
            others.pop(answer, None)
            if not others:
                del self._waiting[event_id]

    def answer(self, event_id: EventId, outcome: bool) -> None:
        for waiting in self._waiting.pop(event_id, ()):
            if not waiting.done():
                waiting.set_result(outcome)

    def end(self) -> None:
        for event_id in list(self._waiting):
            self.answer(event_id, False)


def answered(outcome: bool) -> asyncio.Future[bool]:
    answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    answer.set_result(outcome)
    return answer
