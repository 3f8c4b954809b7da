"""Named cursors: asked of the first node that the client names, for a consumer is kept by one."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

import msgspec

from quipu.client.errors import Conflict, NotFound, QuipuError, Unavailable, Unreachable
from quipu.client.models import Consumer, ConsumerList
from quipu.client.transport import READ_ROUNDS, Transport

TTL = "7d"
PATH = "/v1/consumers"
SAVE_S = 1.0  # between two acknowledgements: each costs the node a sync of its disk
SAVE_ITEMS = 100  # as many as a page has
RENEW_SHARE = 0.25  # of its ttl, after which a quiet consumer is put again
CHANGED = "consumer-changed"


async def all_consumers(transport: Transport) -> list[Consumer]:
    answer = await transport.ask_first("GET", PATH)
    return msgspec.json.decode(answer.body, type=ConsumerList).items


async def get(transport: Transport, name: str) -> Consumer:
    answer = await transport.ask_first("GET", _path(name))
    return msgspec.json.decode(answer.body, type=Consumer)


async def put(
    transport: Transport,
    name: str,
    body: Mapping[str, str],
    conditions: Mapping[str, str],
    rounds: int = READ_ROUNDS,
) -> Consumer:
    headers = {"Content-Type": "application/json", **conditions}
    data = msgspec.json.encode(body)
    answer = await transport.ask_first("PUT", _path(name), data, headers, rounds)
    return msgspec.json.decode(answer.body, type=Consumer)


async def delete(transport: Transport, name: str) -> None:
    await transport.ask_first("DELETE", _path(name))


def wish(cursor: str, ttl: str, stream: str | None) -> dict[str, str]:
    return {"cursor": cursor, "ttl": ttl} | ({} if stream is None else {"stream": stream})


def _path(name: str) -> str:
    return f"{PATH}/{quote(name, safe='')}"


@dataclass(slots=True)
class Bookmark:
    """Invariant: the caller has dealt with everything up to `done`, which is never behind what the
    node keeps."""

    transport: Transport
    kept: Consumer
    done: str
    items: int = 0  # passed since it was saved
    saved_s: float = 0.0

    @classmethod
    async def open(
        cls, transport: Transport, name: str, start: str, stream: str | None
    ) -> "Bookmark":
        """Made where there is none yet: then nothing after `start` is missed by a crash."""
        try:
            kept = await get(transport, name)
        except NotFound:
            try:
                body = wish(start, TTL, stream)
                kept = await put(transport, name, body, {"If-None-Match": "*"})
            except Conflict as error:
                if error.code != CHANGED:
                    raise
                kept = await get(transport, name)
        if stream is not None and stream != kept.stream:
            raise ValueError(f"the consumer {name} follows {kept.stream or 'all streams'}")
        return cls(transport, kept, kept.cursor, saved_s=time.monotonic())

    async def passed(self, cursor: str, items: int) -> None:
        """Raises `Conflict` where another process uses the same consumer."""
        self.done = cursor
        self.items += items
        if self._is_due(time.monotonic() - self.saved_s):
            await self._save()

    def _is_due(self, since_s: float) -> bool:
        if self.done == self.kept.cursor:
            return since_s >= RENEW_SHARE * _ttl_s(self.kept)
        return self.items >= SAVE_ITEMS or since_s >= SAVE_S

    async def close(self) -> None:
        if self.done != self.kept.cursor:
            with suppress(QuipuError):  # what is not saved is given again
                await self._save(rounds=1)

    async def _save(self, rounds: int = READ_ROUNDS) -> None:
        self.items, self.saved_s = 0, time.monotonic()
        kept = self.kept
        body = wish(self.done, kept.ttl, kept.stream)
        with suppress(Unreachable, Unavailable):  # the next one tries again
            self.kept = await put(self.transport, kept.name, body, {"If-Match": kept.etag}, rounds)


def _ttl_s(kept: Consumer) -> float:
    expires, stored = map(datetime.fromisoformat, (kept.expires, kept.stored))
    return (expires - stored).total_seconds()
