"""GET /v1/ingest: every answer that an entry and a connection can get, over real WebSockets."""

import asyncio
import base64
import socket
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from quipu.api import ingest_feed, limits
from quipu.api.settings import Settings
from quipu.api.tokens import new_token, revoke_token
from quipu.ledger import limits as ledger_limits
from quipu.ledger.entry import decode_entry
from quipu.ledger.words import EventId
from quipu.node.service import Backlogged, EntryId, OutcomeUnknown, Overloaded, StoreIsFull
from quipu.storage.store import DiskFailed
from tests.api.feeding import STORED, entries_of, producing
from tests.api.one_node import OneNode
from tests.api.talk import Talk, talking, until

DRAINING = "the node is stopping"


# --- entries --------------------------------------------------------------------------------------
async def test_entries_are_stored_as_they_were_given() -> None:
    async with talking() as api, producing(api) as producer:
        await producer.send(
            7,
            [b"\x00\xff"],
            [b'{"a": 1}', "orders", "key-1", "application/json", 1_790_000_000_000],
            [b"a,b", None, None, "text/csv"],
        )
        await producer.until_answered(3)
        assert sorted(producer.stored) == [7, 8, 9]
        assert producer.frames == 1
        plain, keyed, typed = [
            (await api.get(f"/v1/entries/{producer.stored[number][0]}")).json
            for number in (7, 8, 9)
        ]
        assert base64.b64decode(plain["data_base64"]) == b"\x00\xff"
        assert (plain["stream"], plain["content_type"]) == ("default", "application/octet-stream")
        assert (keyed["data"], keyed["stream"]) == ({"a": 1}, "orders")
        assert (keyed["idempotency_key"], keyed["time"]) == ("key-1", "2026-09-21T14:13:20.000Z")
        assert (typed["content_type"], typed["data_base64"]) == ("text/csv", "YSxi")


async def test_the_query_says_what_items_leave_out() -> None:
    async with talking() as api:
        async with producing(api, "stream=orders&content_type=application/json") as producer:
            await producer.send(0, [b"1"], [b"2", "other"], [b"\xff"], [b"\xff", None, None, "a/b"])
            await producer.until_answered(4)
        assert producer.refused[2][:2] == (400, "invalid-field")
        streams = [entry["stream"] for entry in await entries_of(api)]
        assert streams == ["orders", "other", "orders"]


async def test_twenty_thousand_entries_are_each_there_once_in_their_order() -> None:
    count, per_frame = 20_000, 250
    async with talking() as api, producing(api, "stream=many") as producer:

        async def send() -> None:
            for first in range(0, count, per_frame):
                items = [[b"%d" % number] for number in range(first, first + per_frame)]
                await producer.send(first, *items)

        sending = asyncio.create_task(send())
        await producer.until_answered(count)
        await sending
        await until(lambda: api.node.feed_number and not api.node.unread(1))
        found = await entries_of(api, "stream=many")
        numbers = [int(base64.b64decode(entry["data_base64"])) for entry in found]
        assert numbers == list(range(count))
        assert {entry["id"] for entry in found} == {one[0] for one in producer.stored.values()}
        assert api.running.face.counters.ingest_acknowledged == count


async def test_a_producer_that_goes_within_its_upgrade_is_no_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def gone(line: ingest_feed.Line, request: object) -> None:
        raise ConnectionResetError("cannot write to closing transport")

    monkeypatch.setattr(ingest_feed.Line, "prepare", gone)
    async with talking() as api:
        with pytest.raises(aiohttp.ClientError):
            async with producing(api):
                pass
        await until(lambda: api.running.face.counters.ingests == 0)
    assert "Error handling request" not in caplog.text


WRONG_ITEMS: dict[str, tuple[list[Any], str, str]] = {
    "stream": ([b"x", "NO"], "invalid-field", "/stream"),
    "stream empty": ([b"x", ""], "invalid-field", "/stream"),
    "stream long": ([b"x", "a" * 129], "invalid-field", "/stream"),
    "key empty": ([b"x", None, ""], "invalid-field", "/key"),
    "key wide": ([b"x", None, "é" * 129], "invalid-field", "/key"),
    "media type": ([b"x", None, None, "x"], "invalid-field", "/content_type"),
    "media type long": ([b"x", None, None, "a/" + "b" * 127], "invalid-field", "/content_type"),
    "header in type": ([b"x", None, None, "a/b\r\nX: y"], "invalid-field", "/content_type"),
    "no json": ([b"\xff", None, None, "application/json"], "invalid-field", "/data"),
    "no json, keyed": ([b"{", None, "k", "application/json"], "invalid-field", "/data"),
    "no event": ([b"{}", None, None, "application/cloudevents+json"], "invalid-field", "/spec"),
    "event with key": (
        [b"{}", None, "k", "application/cloudevents+json"],
        "invalid-field",
        "/key",
    ),
    "large": ([bytes(ledger_limits.ENTRY_BYTES_MAX)], "too-large", "an entry takes"),
    "large, keyed": ([bytes(ledger_limits.ENTRY_BYTES_MAX), None, "k"], "too-large", "an entry"),
}


@pytest.mark.parametrize("name", WRONG_ITEMS)
async def test_what_is_wrong_with_one_is_said_of_it_alone(name: str) -> None:
    item, code, place = WRONG_ITEMS[name]
    async with talking() as api, producing(api) as producer:
        await producer.send(2**64 - 3, [b"before"], item, [b"after"])
        await producer.until_answered(3)
        assert sorted(producer.stored) == [2**64 - 3, 2**64 - 1]
        _, found, detail, _ = producer.refused[2**64 - 2]
        assert (found, place in detail) == (code, True)
        await producer.send(0, item)  # with nothing beside it that could be stored
        assert await producer.code_of(0) == code
        assert api.running.face.counters.ingest_refused == 2


async def test_answers_that_are_alike_are_one_row() -> None:
    async with talking() as api, producing(api) as producer:
        await producer.send(
            5, [b"x"], [b"x"], [b"x", "NO"], [b"x", "NO"], [b"x", "a" * 129], [b"x"]
        )
        said = [await producer.next(), await producer.next()]
        rows = [[row[:2] for row in one.fields[0]] for one in said]
        assert rows == [[[5, 2], [10, 1]], [[7, 3]]]
        assert said[1].fields[0][0][2:] == [
            400,
            "invalid-field",
            False,
            "/stream: a stream is 1 to 128 of a-z 0-9 . _ - and begins with a letter or digit",
            "",
        ]


async def test_the_same_key_gives_the_first_answer() -> None:
    async with talking() as api, producing(api) as producer:
        await producer.send(0, [b"x", "s", "k"], [b"x", "s", "k"], [b"x", "t", "k"])
        await producer.until_answered(3)
        first, again, elsewhere = (producer.stored[number] for number in range(3))
        assert (first[2], again[0::2]) == (False, (first[0], True))
        assert elsewhere[0] != first[0]
        await producer.send(3, [b"x", "s", "k"], [b"y", "s", "k"], [b"z"])
        await producer.until_answered(6)
        assert producer.stored[3][0::2] == (first[0], True)
        assert producer.refused[4][:2] == (422, "key-reused")
        assert producer.refused[4][3] == first[0]
        body = {"data_base64": "eA==", "stream": "s", "idempotency_key": "k"}
        reply = await api.post("/v1/entries", body)
        assert (reply.status, reply.json["id"]) == (200, first[0])


async def test_a_key_under_way_with_other_bytes() -> None:
    async with talking() as api, producing(api) as producer:
        api.node.paused = asyncio.Event()
        await producer.send(0, [b"x", None, "k"])
        await producer.send(1, [b"y", None, "k"])
        assert await producer.code_of(1) == "key-in-flight"
        api.node.paused.set()
        await producer.until_answered(2)


async def test_a_cloudevent_is_known_again_by_its_source_and_id() -> None:
    event = b'{"specversion":"1.0","id":"A-1","source":"/shop","type":"t","data":7}'
    kind = "application/cloudevents+json"
    async with talking() as api, producing(api, "stream=orders") as producer:
        await producer.send(0, [event, None, None, kind])
        await producer.until_answered(1)
        reply = await api.post("/v1/entries?stream=orders", event, kind)
        assert (reply.status, reply.json["id"]) == (200, producer.stored[0][0])


async def test_entries_of_an_erasable_stream_are_salted() -> None:
    async with talking(node=OneNode(erasable=["gdpr"])) as api, producing(api) as producer:
        event = b'{"specversion":"1.0","id":"1","source":"/a","type":"t","data":1}'
        cloud = [event, "gdpr", None, "application/cloudevents+json"]
        await producer.send(0, [b"x", "gdpr"], [b"x", "gdpr", "k"], [b"x", "gdpr", "k"], cloud)
        await producer.send(4, [b"x"])
        await producer.until_answered(5)
        assert (producer.stored[2][0], producer.stored[2][2]) == (producer.stored[1][0], True)
        salts = []
        for number in range(5):
            name, _, index = producer.stored[number][0].partition(":")
            canonical = api.node.entry(EventId(bytes.fromhex(name)), int(index))
            assert canonical is not None
            salts.append(decode_entry(canonical).salt)
        assert [salt is None for salt in salts] == [False, False, False, False, True]
        assert len(set(salts)) == 4


async def test_wait_for_read() -> None:
    async with talking() as api, producing(api, "wait=read") as producer:
        await producer.send(0, [b"x"], [b"y", None, "k"])
        await producer.until_answered(2)
        assert [told[1] for told in producer.stored.values()] == ["read", "read"]


async def test_a_wait_that_runs_out_is_no_refusal() -> None:
    query = "wait=read&timeout=10ms"
    async with talking(node=OneNode(size=3)) as api, producing(api, query) as producer:
        await producer.send(0, [b"x"])
        await producer.until_answered(1)
        assert producer.stored[0][1] == "stored"


async def test_the_widest_frame_fits_one_event(tmp_path: Path) -> None:
    """Names and keys at their longest, in a frame as large as it may be."""
    path = tmp_path / "tokens.json"
    text = new_token(path, "n" * 128, ["entries:write"])
    stream, kind = "s" * 128, "t/" + "t" * 126
    count = limits.INGEST_FRAME_ENTRIES_MAX
    size = limits.INGEST_FRAME_BYTES_MAX // count
    event = b'{"specversion":"1.0","id":"%0253d","source":"/","type":"t","pad":"%s"}'
    cloud = "application/cloudevents+json"
    pad = b"x" * (size - len(event % (0, b"")) - 8)
    frames: dict[str, list[list[Any]]] = {
        f"stream={stream}&content_type={kind}": [[b"x" * (size - 8)]] * count,
        f"stream={stream}&content_type={cloud}": [[event % (n, pad)] for n in range(count)],
    }
    async with talking(Settings(port=0, ops_port=0, tokens_file=path)) as api:
        api.headers = {"Authorization": f"Bearer {text}"}
        for query, items in frames.items():
            async with producing(api, query.replace("+", "%2B")) as producer:
                await producer.send(0, *items)
                await producer.until_answered(count)
                assert producer.refused == {}
                assert len({told[0].partition(":")[0] for told in producer.stored.values()}) == 1


# --- the connection -------------------------------------------------------------------------------
async def test_the_first_frame_says_the_window_and_the_limits() -> None:
    async with talking() as api, producing(api) as producer:
        assert producer.welcome == [
            1,
            limits.INGEST_WINDOW_ENTRIES,
            limits.INGEST_WINDOW_BYTES,
            limits.INGEST_WINDOW_FRAMES,
            limits.INGEST_FRAME_ENTRIES_MAX,
            limits.INGEST_FRAME_BYTES_MAX,
            ledger_limits.ENTRY_BYTES_MAX,
            15_000,
        ]
        await producer.line.close()
        assert producer.line.close_code == 1000


def packed(value: object) -> bytes:
    return msgspec.msgpack.encode(value)


UNREADABLE: dict[str, tuple[bytes, str, int]] = {
    "nothing": (b"", "malformed-body", 1007),
    "no msgpack": (b"\xc1", "malformed-body", 1007),
    "cut": (packed([0, [[b"x"]]])[:-1], "malformed-body", 1007),
    "trailing": (packed([0, [[b"x"]]]) + b"\x00", "malformed-body", 1007),
    "no UTF-8": (b"\x92\x00\x91\x92\xc4\x00\xa1\xff", "malformed-body", 1007),
    "map": (packed({"first": 0}), "invalid-field", 1007),
    "no entries": (packed([0, []]), "invalid-field", 1007),
    "text as data": (packed([0, [["x"]]]), "invalid-field", 1007),
    "six fields": (packed([0, [[b"x", None, None, None, None, 0]]]), "invalid-field", 1007),
    "negative": (packed([-1, [[b"x"]]]), "invalid-field", 1007),
    "beyond u64": (packed([2**64 - 1, [[b"x"], [b"y"]]]), "invalid-field", 1007),
    "too many": (
        packed([0, [[b""]] * (limits.INGEST_FRAME_ENTRIES_MAX + 1)]),
        "invalid-field",
        1007,
    ),
    "too large": (bytes(limits.INGEST_FRAME_BYTES_MAX + 1), "too-large", 1009),
}


@pytest.mark.parametrize("name", UNREADABLE)
async def test_what_came_before_an_unreadable_frame_is_answered_first(name: str) -> None:
    data, code, close_code = UNREADABLE[name]
    async with talking() as api, producing(api) as producer:
        api.node.paused = asyncio.Event()
        await producer.send(0, [b"before"])
        await until(lambda: api.node.submissions == 1)
        await producer.line.send_bytes(data)
        await producer.send(1, [b"after"])
        api.node.paused.set()
        goodbye = await producer.goodbye()
        assert list(producer.stored) == [0]
        assert (goodbye[1], producer.line.close_code) == (code, close_code)
        await until(lambda: api.running.face.counters.ingests == 0)
        assert api.node.submissions == 1


async def test_text_frames_are_not_read() -> None:
    async with talking() as api, producing(api, autoclose=False) as producer:
        await producer.line.send_str("[0, []]")
        assert (await producer.next()).fields[1] == "unsupported-media-type"
        message = await producer.line.receive()
        assert (message.data, message.extra) == (
            1003,
            "unsupported-media-type: frames are binary, and hold msgpack",
        )


async def raw_line(api: Talk) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A WebSocket by hand, after its upgrade."""
    host, port = api.running.url.removeprefix("http://").split(":")
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    plain.connect((host, int(port)))
    reader, writer = await asyncio.open_connection(sock=plain, limit=1 << 16)
    key = base64.b64encode(bytes(16)).decode()
    writer.write(
        b"GET /v1/ingest HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key.encode() + b"\r\n\r\n"
    )
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 ")
    return reader, writer


def masked(payload: bytes, opcode: int = 2) -> bytes:
    """One WebSocket frame of a client; the mask is zero, so the bytes stay."""
    size = len(payload)
    head = bytes([0x80 | opcode])
    if size < 126:
        return head + bytes([0x80 | size]) + bytes(4) + payload
    if size < 1 << 16:
        return head + b"\xfe" + size.to_bytes(2, "big") + bytes(4) + payload
    return head + b"\xff" + size.to_bytes(8, "big") + bytes(4) + payload


async def test_what_is_no_websocket_is_told_so() -> None:
    async with talking() as api:
        reader, writer = await raw_line(api)
        writer.write(masked(packed([0, [[b"x"]]])))
        await until(lambda: api.running.face.counters.ingest_acknowledged == 1)
        writer.write(b"\xf2\x00")  # reserved bits
        told = await reader.read()
        assert b"bad-request" in told
        assert (1002).to_bytes(2, "big") + b"bad-request: " in told
        writer.close()


async def test_beyond_the_window_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "INGEST_WINDOW_ENTRIES", 16)
    async with talking() as api, producing(api) as producer:
        api.node.paused = asyncio.Event()
        for first in range(0, 400, 4):
            await producer.send(first, *[[b"x"]] * 4)
        await until(lambda: api.node.submissions == 4)
        for _ in range(3):  # the node has time for others
            assert (await api.get("/v1/node")).status == 200
        assert api.node.submissions == 4
        api.node.paused.set()
        await producer.until_answered(400)


@pytest.mark.parametrize(
    ("name", "most"), [("INGEST_WINDOW_FRAMES", 2), ("INGEST_WINDOW_BYTES", 20)]
)
async def test_the_window_bounds_frames_and_bytes(
    name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, name, most)
    async with talking() as api, producing(api) as producer:
        api.node.paused = asyncio.Event()
        for number in range(20):
            await producer.send(number, [b"ten bytes!"])
        await until(lambda: api.node.submissions == 2)
        assert (await api.get("/v1/node")).status == 200
        assert api.node.submissions == 2
        api.node.paused.set()
        await producer.until_answered(20)


async def test_a_full_inbox_closes_the_window_and_refuses_nothing() -> None:
    async with talking() as api, producing(api) as producer:
        api.node.full = Overloaded(1, "the inbox is full")
        await producer.send(0, [b"x"], [b"y"])
        await until(lambda: api.node.refused.count(True) > 2)
        assert api.node.refused.count(False) == 1  # one stall, however often it asks
        assert (await api.submit(1)).code == "node-full"
        api.node.full = None
        await producer.until_answered(2)
        assert producer.refused == {}


REFUSALS = [
    (Backlogged(5, "too much waits"), 503, "unread-backlog"),
    (StoreIsFull("no room on the disk"), 507, "storage-full"),
]


@pytest.mark.parametrize(("error", "status", "code"), REFUSALS)
async def test_what_does_not_pass_by_waiting_is_said_of_each_entry(
    error: Exception, status: int, code: str
) -> None:
    async with talking() as api, producing(api) as producer:
        for place in ("full", "fault"):  # before the entries are handed over, and after
            setattr(api.node, place, error)
            await producer.send(0, *[[b"x"]] * 100)
            await producer.send(100, [b"x", None, "k"])
            await producer.until_answered(101)
            assert {told[:2] for told in producer.refused.values()} == {(status, code)}
            producer.refused.clear()
            setattr(api.node, place, None)
        await producer.send(200, [b"x"])
        await producer.until_answered(1)
        assert list(producer.stored) == [200]


async def test_an_unknown_outcome_is_said_with_the_ids() -> None:
    async with talking() as api, producing(api) as producer:
        ids = tuple(EntryId(EventId(bytes(32)), index) for index in (4, 5))
        api.node.fault = OutcomeUnknown(ids)
        await producer.send(0, [b"x"], [b"x", "NO"], [b"y"])
        await producer.until_answered(3)
        assert [producer.refused[n][1::2] for n in (0, 2)] == [
            ("outcome-unknown", str(ids[0])),
            ("outcome-unknown", str(ids[1])),
        ]
        await producer.send(3, [b"x", None, "k"])
        await producer.until_answered(4)
        assert producer.refused[3][1::2] == ("outcome-unknown", "")


async def test_a_fault_of_the_node_is_said_and_the_line_goes_on() -> None:
    async with talking() as api, producing(api) as producer:
        api.node.fault = RuntimeError("planted")
        await producer.send(0, [b"x"], [b"x", "NO"])
        assert await producer.code_of(0) == "internal"
        assert "planted" not in producer.refused[0][2]
        api.node.fault = None
        await producer.send(2, [b"x"])
        await producer.until_answered(3)


async def test_what_is_stored_is_said_though_its_state_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with talking() as api:

        def broken(event: EventId) -> None:
            raise DiskFailed("planted")

        for query in ("wait=read", ""):
            async with producing(api, query) as producer:
                await producer.send(0, [b"x", None, "k"], [b"y"])
                monkeypatch.setattr(api.node, "status", broken)
                await producer.until_answered(2)
                assert {told[1] for told in producer.stored.values()} == {"stored"}


async def test_a_fault_behind_the_storing_is_said_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("planted")

    async with talking() as api, producing(api) as producer:
        monkeypatch.setattr(ingest_feed, "stored_runs", broken)
        await producer.send(0, [b"x"], [b"x", "NO"])
        assert await producer.code_of(0) == "internal"
        await producer.line.close()
        assert producer.line.close_code == 1000


async def test_one_who_does_not_read_its_answers_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What waits to be written for it stays within the window."""
    monkeypatch.setattr(limits, "INGEST_WINDOW_ENTRIES", 64)
    settings = Settings(port=0, ops_port=0, body_s=0.2, stream_write_bytes=4_096)
    async with talking(settings) as api:
        counters = api.running.face.counters
        reader, writer = await raw_line(api)
        # Each refusal has words of its own, so that answers are larger than buffers.
        items = [[b"x", f"NO{number}", None, "x" * 129] for number in range(64)]
        frame = masked(packed([0, [item for pair in zip(items, [[b"y"]] * 64) for item in pair]]))  # noqa: B905

        async def send() -> None:
            while True:
                writer.write(frame)
                await writer.drain()

        sending = asyncio.create_task(send())
        await until(lambda: counters.ingests == 0)
        sending.cancel()
        assert 0 < api.node.submissions < 100  # then the buffers were full
        assert counters.ingest_acknowledged == api.node.submissions * 64
        stored = sum(
            entry["content_type"] == "application/octet-stream" for entry in await entries_of(api)
        )
        assert stored == counters.ingest_acknowledged
        writer.close()
        del reader


async def test_a_line_that_is_lost_keeps_what_was_taken() -> None:
    async with talking() as api:
        async with producing(api) as producer:
            api.node.paused = asyncio.Event()
            await producer.send(0, [b"x"])
            await until(lambda: api.node.submissions == 1)
            connection = producer.line.get_extra_info("socket")
            assert connection is not None
            producer.line._response.close()
        api.node.paused.set()
        await until(lambda: api.running.face.counters.ingests == 0)
        assert len(await entries_of(api)) == 1
        assert api.running.face.under_way == 0


async def test_one_who_is_silent_is_told_goodbye() -> None:
    settings = Settings(port=0, ops_port=0, heartbeat_s=0.01, body_s=0.03)
    options: dict[str, Any] = {"autoping": False, "autoclose": False}
    async with talking(settings) as api, producing(api, **options) as producer:
        while (message := await producer.line.receive()).type is aiohttp.WSMsgType.PING:
            pass
        assert msgspec.msgpack.decode(message.data)[2] == "body-timeout"
        assert (await producer.line.receive()).data == 1008


async def test_one_who_answers_pings_is_not_silent() -> None:
    settings = Settings(port=0, ops_port=0, heartbeat_s=0.01, body_s=1.0)
    loop = asyncio.get_running_loop()
    async with talking(settings) as api, producing(api, autoping=False) as producer:
        begun_s = loop.time()
        while loop.time() - begun_s < 2 * settings.body_s:
            message = await producer.line.receive()
            assert message.type is aiohttp.WSMsgType.PING
            await producer.line.pong(message.data)
        await producer.send(0, [b"x"])
        while (message := await producer.line.receive()).type is aiohttp.WSMsgType.PING:
            pass
        assert msgspec.msgpack.decode(message.data)[0] == STORED


async def test_a_ping_is_answered() -> None:
    async with talking() as api, producing(api, autoping=False) as producer:
        await producer.line.ping(b"there?")
        message = await producer.line.receive()
        assert (message.type, message.data) == (aiohttp.WSMsgType.PONG, b"there?")


# --- the end --------------------------------------------------------------------------------------
async def test_a_node_that_stops_answers_what_it_took_and_says_goodbye() -> None:
    async with talking() as api, producing(api) as producer:
        api.node.paused = asyncio.Event()
        for number in range(5):
            await producer.send(number, [b"x"])
        await until(lambda: api.node.submissions == 5)
        stopping = asyncio.create_task(api.running.stop(5))
        await until(lambda: api.running.face.draining)
        api.node.paused.set()
        assert await producer.goodbye() == [503, "draining", True, DRAINING]
        assert sorted(producer.stored) == [0, 1, 2, 3, 4]
        assert producer.line.close_code == 1001
        await stopping
        assert api.running.face.under_way == 0


async def test_a_ledger_that_drains_takes_no_more_and_says_so() -> None:
    async with talking() as api, producing(api) as producer:
        await producer.send(0, [b"x"])
        await producer.until_answered(1)
        api.node.drain()
        await producer.send(1, [b"y"])
        assert (await producer.goodbye())[1] == "draining"
        assert (list(producer.stored), producer.refused) == ([0], {})
        assert (await api.get("/v1/ingest")).code == "draining"


# --- who may --------------------------------------------------------------------------------------
async def test_tokens_and_streams(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    reads = new_token(path, "reader", ["entries:read"])
    writes = new_token(path, "shop", ["entries:write:orders"])
    async with talking(Settings(port=0, ops_port=0, tokens_file=path)) as api:
        assert (await api.get("/v1/ingest")).code == "unauthenticated"
        api.headers = {"Authorization": f"Bearer {reads}"}
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await api.session.ws_connect(api.running.url + "/v1/ingest", headers=api.headers)
        assert caught.value.status == 403
        api.headers = {"Authorization": f"Bearer {writes}"}
        async with producing(api) as producer:
            await producer.send(0, [b"x", "orders"], [b"x", "other"], [b"x", "other", "key"])
            await producer.until_answered(3)
            assert list(producer.stored) == [0]
            assert producer.refused[1][:2] == (403, "forbidden")
            assert "entries:write:other" in producer.refused[1][2]
            api.headers = {"Authorization": f"Bearer {reads}"}
            entry = (await api.get(f"/v1/entries/{producer.stored[0][0]}")).json
            assert entry["submitter"] == "shop"
            revoke_token(path, "shop")
            assert api.running.face.tokens is not None
            api.running.face.tokens.refresh()
            await producer.send(3, [b"x", "orders"])
            assert (await producer.goodbye())[1] == "unauthenticated"
            assert producer.line.close_code == 1008


async def test_what_is_no_upgrade() -> None:
    async with talking() as api:
        reply = await api.get("/v1/ingest")
        assert (reply.status, reply.code) == (426, "upgrade-required")
        assert reply.headers["Upgrade"] == "websocket"
        assert (await api.ask("HEAD", "/v1/ingest")).status == 405
        for query in ("wait=executed", "timeout=5", "stream=NO", "content_type=x", "x=1"):
            assert (await api.get(f"/v1/ingest?{query}")).status == 400
        assert api.running.face.counters.ingests == 0


async def test_so_many_producers_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "INGESTS_MAX", 1)
    async with talking() as api:
        async with producing(api):
            reply = await api.get("/v1/ingest")
            assert (reply.status, reply.code) == (503, "node-full")
            shown = (await api.ops("/metrics")).body
            assert b"quipu_http_ingests" in shown
        await until(lambda: api.running.face.counters.ingests == 0)
        assert (await api.get("/v1/ingest")).code == "upgrade-required"
