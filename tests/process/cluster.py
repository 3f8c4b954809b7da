"""A cluster of real processes that a test starts, harms, and throws away."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from quipu.client import Client, NotFound
from quipu.client.asynchronous import reached
from quipu.devnet import Devnet
from quipu.devnet.processes import until

WAIT_S = 60.0  # for anything at all; a test that waits so long has failed


@contextmanager
def cluster(
    folder: Path, members: int = 3, observers: int = 0, settings: Sequence[str] = ()
) -> Iterator[Devnet]:
    """Started, ready and linked; no process of it is left, whatever happens. Nodes count from 1."""
    net = Devnet.make(folder, members, observers, settings, is_tied=True)
    try:
        yield net
    finally:
        net.kill(*range(1, len(net.nodes) + 1))


def client_of(net: Devnet, number: int) -> Client:
    return Client([net.node(number).api])


def read_at(net: Devnet, number: int, identity: str) -> None:
    """Waits until that node has the entry as Read; it may not have heard of it yet."""
    with client_of(net, number) as client:

        def is_read() -> bool:
            try:
                return reached(client.status(identity).state, "read")
            except NotFound:
                return False

        wait_until(is_read, f"{identity} is Read at node {number}")


def wait_until(is_so: Callable[[], bool], what: str, timeout_s: float = WAIT_S) -> None:
    assert until(is_so, timeout_s), f"not within {timeout_s:g} s: {what}"


async def wait_until_async(is_so: Callable[[], bool], what: str) -> None:
    assert await asyncio.to_thread(until, is_so, WAIT_S), f"not within {WAIT_S:g} s: {what}"
