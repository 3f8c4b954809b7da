"""Who wants to hear what happens: bounded queues that never make the loop wait.

A subscriber that is too slow loses news and is told so, at the place where they would have been.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from quipu.node import limits
from quipu.node.service import EventOrdered, EventRead, Gap, Goodbye, News, Overloaded


@dataclass(slots=True, eq=False)
class Listener:
    """Invariant: what lies in the queue is in order, and a gap stands where something is missing:
    once one has begun, nothing is queued until the reader has taken it."""

    newsroom: "Newsroom"
    feed_number: int
    queue_max: int
    hears_order: bool = False
    _queue: deque[News] = field(default_factory=deque)
    _missed: int = 0
    _missed_after: int = 0
    _told: int = 0  # the last feed number that was queued or counted as missed
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _closed: bool = False

    def __post_init__(self) -> None:
        self._told = self.feed_number

    def __aiter__(self) -> AsyncIterator[News]:
        return self

    async def __anext__(self) -> News:
        while True:
            if self._queue:
                return self._queue.popleft()
            if self._missed:
                return self._take_gap()
            if self._closed:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()

    def close(self) -> None:
        self._closed = True
        self._queue.clear()
        self._missed = 0
        self._wake.set()
        self.newsroom.leave(self)

    def tell(self, news: Sequence[News]) -> None:
        for item in news:
            if self._missed or len(self._queue) >= self.queue_max:
                self._miss(item)
            else:
                self._queue.append(item)
            if isinstance(item, EventRead):
                self._told = item.number
        self._wake.set()

    def end(self, reason: str) -> None:
        if self._missed:
            self._queue.append(self._take_gap())
        self._queue.append(Goodbye(reason))
        self._closed = True
        self._wake.set()

    def _miss(self, item: News) -> None:
        if not self._missed:
            self._missed_after = self._told
        self._missed += 1

    def _take_gap(self) -> Gap:
        gap = Gap(self._missed, self._missed_after, self._told)
        self._missed = 0
        return gap


@dataclass(slots=True)
class Newsroom:
    listeners: dict[Listener, None] = field(default_factory=dict)

    def subscribe(self, feed_number: int, queue_max: int, hears_order: bool = False) -> Listener:
        if len(self.listeners) >= limits.SUBSCRIPTIONS_MAX:
            raise Overloaded(limits.RETRY_AFTER_S, "too many subscriptions")
        listener = Listener(
            self,
            feed_number,
            max(1, min(queue_max, limits.SUBSCRIPTION_QUEUE_MAX)),
            hears_order,
        )
        self.listeners[listener] = None
        return listener

    def leave(self, listener: Listener) -> None:
        self.listeners.pop(listener, None)

    def tell(self, news: Sequence[News]) -> None:
        for listener in self.listeners:
            listener.tell(news)

    def tell_order(self, news: Sequence[EventOrdered]) -> None:
        for listener in self.listeners:
            if listener.hears_order:
                listener.tell(news)

    def end(self, reason: str) -> None:
        for listener in list(self.listeners):
            listener.end(reason)
        self.listeners.clear()
