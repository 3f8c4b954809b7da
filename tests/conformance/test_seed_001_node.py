"""Seeds 000 and 001 on a running node: what it takes, what it orders, what it answers."""

from pathlib import Path

from quipu.ledger.entry import data_entry, decode_entry, encode_entry
from quipu.ledger.event import EVENT_VERSION, decode_header, has_valid_signature
from quipu.ledger.merkle import leaf_hash, root_of
from quipu.ledger.order.extension import references_of
from quipu.ledger.order.items import LockAndPublish, read_item
from quipu.ledger.signing import verify
from quipu.ledger.words import EventId
from quipu.node.program import Node
from quipu.node.service import EntryId
from tests.api.one_node import OneNode
from tests.api.talk import FREE, talking
from tests.conformance.clauses import clause
from tests.small_node import running, small_node, submitted


def ordered_events(node: Node) -> list[EventId]:
    entries = node.ledger.order.entries(0, 1_000)
    return [EventId(one.id) for entry in entries for one in references_of(entry.items)]


@clause("001-18", "001-19", "001-20")
def test_member_takes_entries_into_a_chain_that_only_its_key_extends(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            ledger = node.ledger
            stored = [(await submitted(ledger, [text]))[0] for text in "abc"]
            ids = {str(EntryId(one.event_id, one.index)) for one in stored}
            assert len(ids) == 3
            events = [ledger.event(one.event_id) for one in stored]
            assert None not in events
            for before, event in zip([None, *events], [e for e in events if e], strict=False):
                assert event.header.author == ledger.node_id
                assert has_valid_signature(event, verify)
                if before is not None:
                    assert event.header.prev == before.id

    running(test)


@clause("001-40", "001-41", "001-42", "001-43", "001-44")
def test_an_ingest_message_names_node_journal_and_index_and_binds_its_entries(
    tmp_path: Path,
) -> None:
    journals: list[int] = []

    async def written() -> None:
        async with small_node(tmp_path) as node:
            ledger = node.ledger
            for number, texts in enumerate((["a"], ["b", "c"]), start=1):
                stored = (await submitted(ledger, texts))[0]
                event = ledger.event(stored.event_id)
                assert event is not None
                header = event.header
                assert decode_header(event.header_bytes) == header
                assert header.version == EVENT_VERSION
                assert header.author == ledger.node_id
                assert header.seq == number  # from 1 on, without a gap
                body = [ledger.entry(stored.event_id, at) for at in range(header.entry_count)]
                leaves = [leaf_hash(entry) for entry in body if entry]
                assert root_of(leaves) == header.entries_root
                journals.append(header.journal)

    async def test() -> None:
        await written()
        await written()  # the same node, started again
        first, again, other, _ = journals
        assert first == again < other < 2**64

    running(test)


@clause("001-02", "001-06", "001-15")
def test_entries_that_came_together_are_one_message_of_bytes_that_are_kept(tmp_path: Path) -> None:
    datas = [b"\0\xff no text", b"SELECT 1"]

    async def test() -> None:
        async with small_node(tmp_path) as node:
            entries = [encode_entry(data_entry(data)) for data in datas]
            stored = await node.ledger.submit(entries)
            assert await node.ledger.order.when_ordered(stored.event_id)
            assert ordered_events(node) == [stored.event_id]
        async with small_node(tmp_path) as node:  # the same server on the same disk
            assert ordered_events(node) == [stored.event_id]
            held = [node.ledger.entry(stored.event_id, index) for index in range(2)]
            assert [decode_entry(one).data for one in held if one] == datas

    running(test)


@clause("001-10")
def test_streams_only_select_and_the_order_is_of_whole_events(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            streams = ("orders", "stock")
            entries = [encode_entry(data_entry(b"x", stream=stream)) for stream in streams]
            both = await node.ledger.submit(entries)
            one = await node.ledger.submit(entries[:1])
            assert await node.ledger.order.when_ordered(one.event_id)
            assert ordered_events(node) == [both.event_id, one.event_id]

    running(test)


@clause("001-25")
def test_that_an_answer_is_missing_is_no_error() -> None:
    async def test() -> None:
        async with talking(FREE, OneNode()) as api:  # which orders nothing by itself
            reply = await api.post("/v1/entries?wait=ordered&timeout=10ms", {"data": 1})
            assert (reply.status, reply.json["state"]) == (202, "read")

    running(test)


@clause("000-04")
def test_acknowledgement_comes_after_processing(tmp_path: Path) -> None:
    """What was answered is applied, and on the disk."""

    async def test() -> None:
        async with small_node(tmp_path) as node:
            assert await node.ledger.order.when_ordered(
                (await submitted(node.ledger, ["so that there is a master"]))[0].event_id
            )
            done = await node.ledger.order.publish("s", bytes(32))
            found = node.ledger.order.sequence("s")
            assert found is not None
            assert (found.number, found.running) == (done.number, done.running)
            saved = node.ledger.machine.store.saved_log()
            assert saved.chosen >= done.log_index
        async with small_node(tmp_path) as node:
            [entry] = node.ledger.order.entries(done.log_index - 1, 1)
            [item] = [read_item(data) for data in entry.items]
            assert item == LockAndPublish("s", 1, bytes(32))
            assert node.ledger.order.sequence("s") == found

    running(test)
