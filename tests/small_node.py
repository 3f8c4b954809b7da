"""A node in the test's own process: real loop and writer thread, a store that can be made fail."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import uvloop

from quipu.ledger.entry import data_entry, encode_entry
from quipu.ledger.words import EventId
from quipu.node import failpoints
from quipu.node.logs import open_log
from quipu.node.program import Node, open_node
from quipu.node.service import Ledger, Stored
from quipu.node.settings import LogSettings, NodeSettings, Settings, StoreSettings

WAIT_S = 30.0


def settings_in(folder: Path, writer: Any = "thread") -> Settings:
    return Settings(
        node=NodeSettings(name="n1", data_dir=folder),
        log=LogSettings(level="debug", format="json"),
        store=StoreSettings(writer=writer),
    )


@asynccontextmanager
async def small_node(folder: Path, writer: Any = "thread") -> AsyncIterator[Node]:
    settings = settings_in(folder, writer)
    log = open_log(settings.log, stream=io.StringIO())
    node = open_node(settings, log, asyncio.get_running_loop())
    try:
        yield node
    finally:
        await node.drain()
        node.close()


def running(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs the body of a test on the loop that a node uses."""

    async def bounded() -> None:
        async with asyncio.timeout(WAIT_S):
            await test()

    uvloop.run(bounded())


@contextmanager
def armed(text: str) -> Iterator[None]:
    failpoints.arm(text)
    try:
        yield
    finally:
        failpoints.arm("")


def entry_of(text: str, **more: Any) -> bytes:
    return encode_entry(data_entry(text.encode(), **more))


async def submitted(ledger: Ledger, texts: Sequence[str]) -> list[Stored]:
    """Side by side, as from so many apps."""
    return list(await asyncio.gather(*(ledger.submit([entry_of(text)]) for text in texts)))


async def read(ledger: Ledger, event_id: EventId) -> None:
    assert await ledger.wait_read(event_id, WAIT_S)
