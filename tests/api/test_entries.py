"""POST /v1/entries, one entry, its status and proof."""

import asyncio
import base64
import json

import msgspec
import pytest

import quipu.verify
from quipu.api.bodies import CLOUDEVENT, MSGPACK
from quipu.client.asynchronous import reached
from quipu.node.service import Overloaded
from quipu.storage.store import DiskFailed
from tests.api.one_node import OneNode
from tests.api.talk import talking, until

AWKWARD = [
    b'{"a":1}',
    b'{ "b" : [1.50, 1e3, -0.0 , 12345678901234567890123 ] }',
    b'"\\u00e9\xc3\xa9\\/"',
    b"null",
    b"0",
    b'{"a":1,"a":2}',
    b'""',
    b'{"nested":{"data":"x"}}',
    b"[\n  1,\r\n\t2 ]",
]


@pytest.mark.parametrize("data", AWKWARD)
async def test_data_comes_back_byte_for_byte(data: bytes) -> None:
    async with talking() as api:
        body = b'{ "stream":"orders", "data": ' + data + b' , "idempotency_key":"k"}'
        receipt = (await api.post("/v1/entries?wait=read", body)).json
        entry = await api.get(f"/v1/entries/{receipt['id']}")
        assert b'"data":' + data + b"," in entry.body.replace(b'"content_type"', b"")
        held = api.node.proof(bytes.fromhex(receipt["id"][:64]), 0)  # type: ignore[arg-type]
        assert quipu.verify.verify(held, api.node.genesis).entry.data == data
        for media_type in ("application/x-ndjson", "application/json", MSGPACK):
            page = await api.get("/v1/entries", Accept=media_type)
            assert page.status == 200
            if media_type == MSGPACK:
                assert msgspec.msgpack.decode(page.body)["items"][0]["data"] == data
        lines = (await api.get("/v1/entries", Accept="application/x-ndjson")).body.splitlines()
        (line,) = lines
        item = json.loads(line)
        if "data_base64" in item:
            assert base64.b64decode(item["data_base64"]) == data
        else:
            assert b'"data":' + data in line


async def test_receipt_says_where_and_how_far() -> None:
    async with talking() as api:
        reply = await api.submit({"order": 7}, stream="orders")
        assert reply.status == 201
        receipt = reply.json
        assert receipt["state"] == "stored"
        assert not receipt["duplicate"]
        assert reply.headers["Location"] == f"/v1/entries/{receipt['id']}"
        assert reply.headers["X-Request-Id"]
        again = await api.get(reply.headers["Location"])
        assert again.json["data"] == {"order": 7}
        assert again.json["stream"] == "orders"
        assert again.json["author"]["name"] == "n1"
        assert again.json["hlc"].isdigit()


async def test_waiting_for_read() -> None:
    async with talking() as api:
        reply = await api.post("/v1/entries?wait=read&timeout=5s", {"data": 1})
        assert (reply.status, reply.json["state"]) == (201, "read")


async def test_wait_that_runs_out_is_no_error() -> None:
    async with talking(node=OneNode(size=3)) as api:
        reply = await api.post("/v1/entries?wait=read&timeout=1ms", {"data": 1})
        assert (reply.status, reply.json["state"]) == (202, "stored")
        path = f"/v1/entries/{reply.json['id']}"
        status = await api.get(f"{path}/status?wait=1ms")
        assert (status.status, status.json["state"], status.json["required"]) == (200, "stored", 1)
        proof = await api.get(f"{path}/proof")
        assert (proof.status, proof.code) == (409, "not-read")
        explained = await api.get(f"/v1/events/{reply.json['id'][:64]}/explain")
        assert explained.json["obstacles"][0]["cause"] == "receipts"
        assert "not final" in explained.json["sentence"]
        batch = await api.post("/v1/entries:batch?wait=read&timeout=1ms", [{"data": 1}])
        assert (batch.status, batch.json["results"][0]["status"]) == (202, 202)


@pytest.mark.parametrize("fault", [Overloaded(1, "too many wait"), DiskFailed("planted")])
async def test_a_wait_that_cannot_be_had_does_not_take_the_entry_back(fault: Exception) -> None:
    async with talking(node=OneNode(size=3)) as api:
        api.node.wait_fault = fault
        reply = await api.post("/v1/entries?wait=read", {"data": 1})
        assert (reply.status, reply.json["state"]) == (202, "stored")
        identity = reply.json["id"]
        assert (await api.get(reply.headers["Location"])).json["data"] == 1
        assert (await api.get(f"/v1/entries/{identity}/status?wait=1s")).json["state"] == "stored"
        batch = await api.post("/v1/entries:batch?wait=read", [{"data": 2}])
        assert (batch.status, batch.json["results"][0]["state"]) == (202, "stored")


async def test_entry_is_for_ever() -> None:
    async with talking() as api:
        path = f"/v1/entries/{await api.stored(1)}"
        entry = await api.get(path)
        assert "immutable" in entry.headers["Cache-Control"]
        same = await api.get(path, If_None_Match=entry.headers["ETag"])
        assert (same.status, same.body) == (304, b"")
        assert (await api.ask("HEAD", path)).body == b""


async def test_proof_verifies_offline() -> None:
    async with talking() as api:
        reply = await api.post("/v1/entries?wait=read", {"data": "proven"})
        proof = await api.get(f"/v1/entries/{reply.json['id']}/proof")
        assert proof.headers["Content-Type"] == "application/vnd.quipu.bundle"
        verified = quipu.verify.verify(proof.body, api.node.genesis)
        assert verified.entry.data == b'"proven"'


async def test_bytes_of_another_type() -> None:
    async with talking() as api:
        raw = bytes(range(256))
        body = {"data_base64": base64.b64encode(raw).decode(), "content_type": "image/png"}
        reply = await api.post("/v1/entries", body)
        entry = (await api.get(f"/v1/entries/{reply.json['id']}")).json
        assert base64.b64decode(entry["data_base64"]) == raw
        assert entry["content_type"] == "image/png"
        assert "data" not in entry


async def test_a_text_in_msgpack_that_is_not_utf8() -> None:
    """It ended in an answer 500."""
    async with talking() as api:
        reply = await api.post("/v1/entries", b"\x82\xa4data\x01\xa6stream\xa2\xc3\x28", MSGPACK)
        assert (reply.status, reply.code) == (400, "malformed-body")
        assert "UTF-8" in reply.json["detail"]


async def test_msgpack_both_ways() -> None:
    async with talking() as api:
        value = {"k": [1, b"\x00\xff", 2**63]}
        body = msgspec.msgpack.encode({"data": value, "stream": "s"})
        reply = await api.post("/v1/entries", body, MSGPACK, Accept=MSGPACK)
        identity = msgspec.msgpack.decode(reply.body)["id"]
        entry = await api.get(f"/v1/entries/{identity}", Accept=MSGPACK)
        assert msgspec.msgpack.decode(entry.body)["data"] == value
        as_json = (await api.get(f"/v1/entries/{identity}")).json
        assert base64.b64decode(as_json["data_base64"]) == msgspec.msgpack.encode(value)
        typed = msgspec.msgpack.encode({"data": b"plain", "content_type": "text/plain"})
        identity = (await api.post("/v1/entries", typed, MSGPACK)).json["id"]
        entry = await api.get(f"/v1/entries/{identity}", Accept=MSGPACK)
        assert msgspec.msgpack.decode(entry.body)["data"] == b"plain"
        wrong = msgspec.msgpack.encode({"data": 5, "content_type": "text/plain"})
        assert (await api.post("/v1/entries", wrong, MSGPACK)).code == "invalid-field"


async def test_cloudevent_is_kept_whole() -> None:
    async with talking() as api:
        event = b'{ "specversion":"1.0","id":"1","source":"/a","type":"t","extra" : 1.0 }'
        first = await api.post("/v1/entries?stream=ce", event, CLOUDEVENT)
        assert first.status == 201
        entry = await api.get(f"/v1/entries/{first.json['id']}")
        assert b'"data":' + event in entry.body
        assert entry.json["stream"] == "ce"
        again = await api.post("/v1/entries?stream=ce", event, CLOUDEVENT)
        assert (again.status, again.json["id"]) == (200, first.json["id"])
        changed = event.replace(b"1.0 }", b"2.0 }")
        assert (await api.post("/v1/entries?stream=ce", changed, CLOUDEVENT)).code == "key-reused"
        long = event.replace(b"/a", b"/" + b"a" * 300)
        assert (await api.post("/v1/entries", long, CLOUDEVENT)).status == 201


async def test_same_key_same_bytes_is_the_first_answer() -> None:
    async with talking() as api:
        first = await api.post("/v1/entries", {"data": 1}, Idempotency_Key="k")
        again = await api.post("/v1/entries", {"data": 1, "idempotency_key": "k"})
        assert (first.status, again.status) == (201, 200)
        assert again.json["id"] == first.json["id"]
        assert again.json["duplicate"] is True
        assert reached(again.json["state"], "read")
        other = await api.post("/v1/entries", {"data": 2}, Idempotency_Key="k")
        assert (other.status, other.code) == (422, "key-reused")
        assert other.json["entry_id"] == first.json["id"]
        elsewhere = await api.post("/v1/entries?stream=x", {"data": 2}, Idempotency_Key="k")
        assert elsewhere.status == 201
        found = (await api.get("/v1/entries?idempotency_key=k")).json
        assert [item["id"] for item in found["items"]] == [first.json["id"]]
        assert (await api.get("/v1/entries?idempotency_key=none")).json["items"] == []


async def test_same_key_at_the_same_time_stores_once() -> None:
    async with talking() as api:
        api.node.paused = asyncio.Event()
        one = asyncio.create_task(api.post("/v1/entries", {"data": 1}, Idempotency_Key="k"))
        await until(lambda: api.node.submissions == 1)
        two = asyncio.create_task(api.post("/v1/entries", {"data": 1}, Idempotency_Key="k"))
        other = await api.post("/v1/entries", {"data": 2}, Idempotency_Key="k")
        assert (other.status, other.code) == (409, "key-in-flight")
        api.node.paused.set()
        replies = await asyncio.gather(one, two)
        assert sorted(reply.status for reply in replies) == [200, 201]
        assert len({reply.json["id"] for reply in replies}) == 1
        assert api.node.submissions == 1


async def test_key_of_a_submission_that_failed_is_free_again() -> None:
    async with talking() as api:
        api.node.fault = RuntimeError("planted")
        assert (await api.post("/v1/entries", {"data": 1}, Idempotency_Key="k")).status == 500
        api.node.fault = None
        assert (await api.post("/v1/entries", {"data": 2}, Idempotency_Key="k")).status == 201


async def test_caller_that_goes_away_leaves_its_entry() -> None:
    async with talking() as api:
        api.node.paused = asyncio.Event()
        gone = asyncio.create_task(api.post("/v1/entries", {"data": 1}, Idempotency_Key="k"))
        await until(lambda: api.node.submissions == 1)
        gone.cancel()
        api.node.paused.set()
        again = await api.post("/v1/entries", {"data": 1}, Idempotency_Key="k")
        assert again.status in {200, 201}
        assert api.node.submissions == 1


async def test_validate_stores_nothing() -> None:
    async with talking() as api:
        reply = await api.post("/v1/entries:validate", {"data": {"a": 1}, "stream": "s"})
        assert (reply.json["valid"], reply.json["data_bytes"]) == (True, 8)
        assert api.node.submissions == 0
        identity = await api.stored(1, idempotency_key="k")
        known = await api.post("/v1/entries:validate", {"data": 1, "idempotency_key": "k"})
        assert known.json["duplicate_of"] == identity
        assert (await api.post("/v1/entries:validate", {"dat": 1})).code == "unknown-field"


async def test_what_another_node_called_json_does_not_break_a_page() -> None:
    from quipu.ledger.entry import ContentType, data_entry, encode_entry

    async with talking() as api:
        wrong = [b"{no json", b'"\xff"', b""]
        entries = [encode_entry(data_entry(data, content_type=ContentType.JSON)) for data in wrong]
        await api.node.submit(entries)
        items = (await api.get("/v1/entries")).json["items"]
        assert [base64.b64decode(item["data_base64"]) for item in items] == wrong
        odd = encode_entry(data_entry(b"\xc1", content_type=ContentType.MSGPACK))
        stored = await api.node.submit([odd])
        await api.node.wait_read(stored.event_id, 5)
        page = await api.get("/v1/entries", Accept=MSGPACK)
        assert msgspec.msgpack.decode(page.body)["items"][-1]["data"] == b"\xc1"


async def test_expect_continue_is_answered() -> None:
    async with talking() as api:
        host, port = api.running.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        body = b'{"data":1}'
        writer.write(
            b"POST /v1/entries HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body)
        )
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        writer.write(body)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 201")
        writer.close()
        await writer.wait_closed()
