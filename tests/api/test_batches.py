"""POST /v1/entries:batch: arrays, atomic ones, lines."""

import asyncio
import json

import msgspec

from quipu.api import limits
from quipu.api.bodies import CLOUDEVENTS, MSGPACK, NDJSON
from quipu.node.service import Overloaded
from tests.api.talk import talking


async def test_each_item_has_its_result() -> None:
    async with talking() as api:
        items = [{"data": 1}, {"data": 2, "x": 1}, {"data": 3, "idempotency_key": "k"}]
        reply = await api.post("/v1/entries:batch", items)
        body = reply.json
        assert (reply.status, body["stored"], body["refused"]) == (207, 2, 1)
        assert [result["status"] for result in body["results"]] == [201, 400, 201]
        assert body["results"][1]["problem"]["code"] == "unknown-field"
        again = await api.post("/v1/entries:batch", [items[2], {"data": 4, "idempotency_key": "k"}])
        assert [result["status"] for result in again.json["results"]] == [200, 422]
        assert again.json["results"][0]["id"] == body["results"][2]["id"]


async def test_all_stored_is_201_and_all_known_is_200() -> None:
    async with talking() as api:
        items = [{"data": n, "idempotency_key": f"k{n}"} for n in range(3)]
        first = await api.post("/v1/entries:batch?wait=read", items)
        assert (first.status, first.json["results"][0]["state"]) == (201, "read")
        again = await api.post("/v1/entries:batch", items)
        assert (again.status, again.json["duplicates"]) == (200, 3)


async def test_one_key_twice_in_a_batch_is_stored_once() -> None:
    async with talking() as api:
        item = {"data": 1, "idempotency_key": "k"}
        results = (await api.post("/v1/entries:batch", [item, item])).json["results"]
        assert [result["status"] for result in results] == [201, 200]
        assert results[0]["id"] == results[1]["id"]


async def test_atomic_is_one_event_or_nothing() -> None:
    async with talking() as api:
        good = [{"data": n} for n in range(100)]
        reply = await api.post("/v1/entries:batch?atomic=true", good)
        assert len({result["id"][:64] for result in reply.json["results"]}) == 1
        bad = await api.post("/v1/entries:batch?atomic=true", [*good, {"data": 1, "stream": "A"}])
        assert (bad.status, bad.code, bad.pointers) == (400, "invalid-field", ["/100/stream"])
        assert api.node.submissions == 1
        keyed = {"data": 1, "idempotency_key": "k"}
        await api.post("/v1/entries", keyed)
        mixed = await api.post("/v1/entries:batch?atomic=true", [{"data": 2}, keyed])
        assert (mixed.code, mixed.pointers) == ("key-reused", ["/1"])
        wide = [{"data": "x" * 1_000_000} for _ in range(5)]
        assert (await api.post("/v1/entries:batch?atomic=true", wide)).code == "too-large"


async def test_large_batch_takes_several_events() -> None:
    async with talking() as api:
        wide = [{"data": "x" * 1_000_000} for _ in range(6)]
        reply = await api.post("/v1/entries:batch", wide)
        assert reply.status == 201
        assert len({result["id"][:64] for result in reply.json["results"]}) == 2


async def test_sizes_of_a_batch() -> None:
    async with talking() as api:
        assert (await api.post("/v1/entries:batch", [])).code == "invalid-field"
        many = b"[" + b",".join([b'{"data":1}'] * (limits.BATCH_ITEMS_MAX + 1)) + b"]"
        assert (await api.post("/v1/entries:batch", many)).code == "too-large"
        assert (await api.post("/v1/entries:batch", {"data": 1})).code == "invalid-field"
        assert (await api.post("/v1/entries:batch", b"[1")).code == "malformed-body"
        assert (await api.post("/v1/entries:batch", b'["\xff"]')).code == "malformed-body"


async def test_other_forms_of_a_batch() -> None:
    async with talking() as api:
        packed = msgspec.msgpack.encode([{"data": 1}, {"data": b"2"}])
        assert (await api.post("/v1/entries:batch", packed, MSGPACK)).status == 201
        event = {"specversion": "1.0", "id": "1", "source": "/a", "type": "t"}
        events = await api.post("/v1/entries:batch", [event, {**event, "id": "2"}], CLOUDEVENTS)
        assert events.json["stored"] == 2
        wrong = await api.post("/v1/entries:batch", b"", "text/csv")
        assert wrong.code == "unsupported-media-type"
        keyed = await api.post("/v1/entries:batch", [{"data": 1}], Idempotency_Key="k")
        assert keyed.code == "invalid-header"


async def test_lines_are_answered_line_by_line() -> None:
    async with talking() as api:
        lines = b'{"data":0}\n\n{"data":\n{"data":2,"stream":"s"}'
        reply = await api.post("/v1/entries:batch", lines, NDJSON)
        results = [json.loads(line) for line in reply.body.splitlines()]
        assert [result["index"] for result in results] == [0, 1, 2]
        assert [result["status"] for result in results] == [201, 400, 201]
        atomic = await api.post("/v1/entries:batch?atomic=true", b"", NDJSON)
        assert atomic.code == "invalid-parameter"


async def test_receipts_go_out_while_lines_come_in() -> None:
    async with talking() as api:
        host, port = api.running.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            b"POST /v1/entries:batch HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        for number in range(3):
            line = b'{"data":%d}\n' % number
            writer.write(b"%x\r\n%s\r\n" % (len(line), line))
            receipt = await reader.readuntil(b"}\n")
            assert b'"index":%d,"status":201' % number in receipt
        api.node.full = Overloaded(1, "full")
        writer.write(b"b\r\n" + b'{"data":9}\n' + b"\r\n")
        assert b"node-full" in await reader.readuntil(b"}\n")
        writer.write(b"0\r\n\r\n")
        await reader.readuntil(b"0\r\n\r\n")
        writer.close()
        await writer.wait_closed()


async def test_lines_that_do_not_come_end_the_request() -> None:
    from quipu.api.settings import Settings

    async with talking(Settings(port=0, ops_port=0, body_s=0.02)) as api:
        host, port = api.running.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            b"POST /v1/entries:batch HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"
            b"Content-Length: 50\r\n\r\n{"
        )
        assert b"body-timeout" in await reader.read()
        writer.close()
        await writer.wait_closed()


async def test_full_node_refuses_before_it_reads() -> None:
    async with talking() as api:
        api.node.full = Overloaded(1, "full")
        for kind in (NDJSON, "application/json"):
            reply = await api.post("/v1/entries:batch", b"[]", kind)
            assert (reply.status, reply.code) == (503, "node-full")
