"""What becomes of an erasure that was asked for, where it cannot be carried out, or not yet."""

from pathlib import Path

from quipu.ledger.erasures import Erasure, erasure_entry
from quipu.ledger.words import EventId
from quipu.node.eraser import Eraser, Waits
from quipu.node.program import Node
from quipu.node.service import EntryId
from tests.small_node import entry_of, read, running, small_node


async def submitted(node: Node, entry: bytes) -> EntryId:
    stored = await node.ledger.submit((entry,))
    await read(node.ledger, stored.event_id)
    return EntryId(stored.event_id, stored.index)


async def until_looked(eraser: Eraser) -> None:
    """Twice: the one under way may have begun before."""
    for _ in range(2):
        eraser._seen = (-1, -1)
        await eraser._looked.wait()


def test_it_waits_for_a_checkpoint_and_is_asked_for_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            eraser = node.administration.eraser
            assert isinstance(eraser, Eraser)
            eraser.start()
            target = await submitted(node, entry_of("Ann", salt=bytes(16)))
            asked = [await eraser.erase(target, 1.0) for _ in range(2)]
            await until_looked(eraser)
            assert asked[0].by is not None
            assert {one.by for one in asked} == {asked[0].by}
            waits = {by: why for by, (_, why) in eraser._waiting.items()}
            assert waits == {asked[0].by: Waits.CHECKPOINT}

    running(test)


def test_what_names_no_entry_or_one_that_stays_does_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            eraser = node.administration.eraser
            assert isinstance(eraser, Eraser)
            plain = await submitted(node, entry_of("stays"))
            void = [
                await submitted(node, erasure_entry(Erasure(plain.event, position)))
                for position in (plain.index, 7)
            ]
            unknown = await submitted(node, erasure_entry(Erasure(EventId(b"e" * 32), 0)))
            eraser.start()
            await until_looked(eraser)
            assert {by: why for by, (_, why) in eraser._waiting.items()} == {unknown: Waits.ENTRY}
            assert set(void) <= set(eraser._done)
            assert node.ledger.entry(plain.event, plain.index) == entry_of("stays")

    running(test)
