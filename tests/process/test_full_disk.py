"""A disk that is full, in a process of its own: RLIMIT_FSIZE stops its files from growing, which
is what LMDB meets on a full disk. It is lifted again, and the node goes on by itself."""

import asyncio
import resource
from pathlib import Path

import pytest

from quipu.node.service import Ledger, Stored, StoreIsFull
from tests.process.lives import WAIT_S, forked
from tests.small_node import entry_of, running, small_node, submitted

ENTRY_BYTES = 100_000
FILL_ENTRIES_MAX = 1_000


async def fill(ledger: Ledger) -> list[Stored]:
    taken: list[Stored] = []
    for number in range(FILL_ENTRIES_MAX):
        try:
            taken.append(await ledger.submit([padded(number)]))
        except StoreIsFull:
            return taken
    raise AssertionError("it never got full")


def padded(number: int) -> bytes:
    return entry_of(f"{number}".ljust(ENTRY_BYTES))


def fill_and_recover(folder: Path) -> None:
    async def test() -> None:
        async with small_node(folder) as node:
            ledger = node.ledger
            (before,) = await submitted(ledger, ["before"])
            file_bytes = int(ledger.metrics().gauges["store_file_bytes"])
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes + (2 << 20), limits[1]))
            taken = await fill(ledger)
            assert taken
            assert not ledger.health().is_ready
            assert ledger.entry(taken[-1].event_id, 0) == padded(len(taken) - 1)
            with pytest.raises(StoreIsFull):
                ledger.admit(1)
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            while not ledger.health().is_ready:  # noqa: ASYNC110 - nothing else tells of it
                await asyncio.sleep(0.01)
            (after,) = await submitted(ledger, ["after"])
            assert await ledger.wait_read(after.event_id, WAIT_S)
        async with small_node(folder) as node:
            ids = [before.event_id, *(stored.event_id for stored in taken), after.event_id]
            assert [identity for _, identity in node.ledger.feed(0, len(ids) + 9)] == ids

    running(test)


def test_a_full_disk_refuses_reads_on_and_recovers(tmp_path: Path) -> None:
    process = forked.Process(target=fill_and_recover, args=(tmp_path / "data",))
    process.start()
    process.join(WAIT_S)
    assert process.exitcode == 0
