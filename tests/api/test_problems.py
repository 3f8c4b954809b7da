"""Each code of the closed list is triggered here, over HTTP; and bad input of every kind."""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from quipu.api import limits
from quipu.api.bodies import MSGPACK, NDJSON
from quipu.api.codes import KINDS, Code
from quipu.api.settings import Settings
from quipu.api.tokens import new_token
from quipu.ledger.effects import DropEvents, EraseEntry
from quipu.ledger.order.config_items import ConfigRefusal
from quipu.ledger.order.sequences import SequenceRefusal
from quipu.ledger.refusals import Reason, Refused
from quipu.ledger.words import EventId, NodeNo
from quipu.node.change_service import ChangeInFlight, ForceRefused, NomineeRefused, Unforced
from quipu.node.client_service import ClientRefused, NoExecutor
from quipu.node.config_service import ConfigRefused, NotConfigNode, UnknownNode
from quipu.node.order_service import (
    NoQuorum,
    OrderUnknown,
    SequenceRefused,
    SequenceState,
    StateDiffers,
)
from quipu.node.service import (
    EntryId,
    MemberRow,
    NotIngestNode,
    OutcomeUnknown,
    Overloaded,
    StoreIsFull,
)
from quipu.storage.store import DiskFailed
from quipu.verify import verify
from tests.api.administered import administration_in
from tests.api.one_node import OneNode
from tests.api.talk import Reply, Talk, talking
from tests.small_ledger import key_of

Trigger = Callable[[Talk], Awaitable[Reply]]
NOWHERE = "ab" * 32
TRIGGERS: dict[Code, Trigger] = {}


def triggers(code: Code) -> Callable[[Trigger], Trigger]:
    def note(trigger: Trigger) -> Trigger:
        TRIGGERS[code] = trigger
        return trigger

    return note


@triggers(Code.MALFORMED_BODY)
async def _malformed(api: Talk) -> Reply:
    return await api.post("/v1/entries", b'{"data":')


@triggers(Code.INVALID_FIELD)
async def _invalid_field(api: Talk) -> Reply:
    return await api.submit(1, stream="NO")


@triggers(Code.UNKNOWN_FIELD)
async def _unknown_field(api: Talk) -> Reply:
    return await api.submit(1, strem="orders")


@triggers(Code.INVALID_PARAMETER)
async def _invalid_parameter(api: Talk) -> Reply:
    return await api.get("/v1/entries?limit=0")


@triggers(Code.UNKNOWN_PARAMETER)
async def _unknown_parameter(api: Talk) -> Reply:
    return await api.get("/v1/entries?limt=5")


@triggers(Code.INVALID_ID)
async def _invalid_id(api: Talk) -> Reply:
    return await api.get("/v1/entries/7")


@triggers(Code.INVALID_CURSOR)
async def _invalid_cursor(api: Talk) -> Reply:
    return await api.get("/v1/entries?after=AAAA")


@triggers(Code.INVALID_HEADER)
async def _invalid_header(api: Talk) -> Reply:
    return await api.post("/v1/entries", {"data": 1}, Idempotency_Key="k" * 257)


@triggers(Code.BAD_REQUEST)
async def _bad_request(api: Talk) -> Reply:
    return await _raw(api, b"GET / NOT/HTTP\r\n\r\n")


@triggers(Code.UNAUTHENTICATED)
async def _unauthenticated(api: Talk) -> Reply:
    api.headers = {}
    return await api.get("/v1/entries")


@triggers(Code.FORBIDDEN)
async def _forbidden(api: Talk) -> Reply:
    return await api.get("/v1/node")


@triggers(Code.NOT_FOUND)
async def _not_found(api: Talk) -> Reply:
    return await api.get("/v2/entries")


@triggers(Code.ENTRY_NOT_FOUND)
async def _entry_not_found(api: Talk) -> Reply:
    return await api.get(f"/v1/entries/{NOWHERE}:0")


@triggers(Code.EVENT_NOT_FOUND)
async def _event_not_found(api: Talk) -> Reply:
    return await api.get(f"/v1/events/{NOWHERE}")


@triggers(Code.METHOD_NOT_ALLOWED)
async def _method_not_allowed(api: Talk) -> Reply:
    reply = await api.ask("DELETE", "/v1/entries")
    assert reply.headers["Allow"] == "GET, HEAD, POST"
    return reply


@triggers(Code.NOT_ACCEPTABLE)
async def _not_acceptable(api: Talk) -> Reply:
    return await api.get("/v1/entries", Accept="text/csv")


@triggers(Code.BODY_TIMEOUT)
async def _body_timeout(api: Talk) -> Reply:
    head = b"POST /v1/entries HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    return await _raw(api, head + b"Content-Length: 100\r\n\r\n{")


@triggers(Code.NOT_READ)
async def _not_read(api: Talk) -> Reply:
    identity = (await api.submit(1)).json["id"]
    return await api.get(f"/v1/entries/{identity}/proof")


@triggers(Code.KEY_IN_FLIGHT)
async def _key_in_flight(api: Talk) -> Reply:
    api.node.paused = asyncio.Event()
    first = asyncio.create_task(api.submit(1, idempotency_key="k"))
    second = asyncio.create_task(api.submit(2, idempotency_key="k"))
    done, _ = await asyncio.wait((first, second), return_when=asyncio.FIRST_COMPLETED)
    api.node.paused.set()
    await asyncio.wait((first, second))
    return done.pop().result()


@triggers(Code.CURSOR_GONE)
async def _cursor_gone(api: Talk) -> Reply:
    from quipu.api.cursors import Cursor

    reply = await api.get("/v1/entries?after=" + Cursor(99).text(api.node.node_id))
    assert (await api.get(f"/v1/entries?after={reply.json['oldest']}")).status == 200
    return reply


@triggers(Code.PRUNED)
async def _pruned(api: Talk) -> Reply:
    place = (await api.submit(1)).json["id"]
    identity = EventId(bytes.fromhex(place.split(":")[0]))
    meta = api.node.meta(identity)
    assert meta is not None
    assert isinstance(api.node, OneNode)
    api.node.store.commit([DropEvents(meta.branch, meta.seq, meta.seq)])
    assert (await api.get(f"/v1/events/{identity.hex()}")).code == Code.PRUNED
    return await api.get(f"/v1/entries/{place}")


@triggers(Code.ERASED)
async def _erased(api: Talk) -> Reply:
    place = (await api.submit(1)).json["id"]
    meta = api.node.meta(EventId(bytes.fromhex(place.split(":")[0])))
    assert meta is not None
    assert isinstance(api.node, OneNode)
    api.node.store.commit([EraseEntry(meta.slot, 0)])
    assert (await api.get(f"/v1/entries/{place}/status")).json["state"] == "read"
    proof = (await api.get(f"/v1/entries/{place}/proof")).body
    assert verify(proof, api.node.genesis).entry.kind == "erased"
    assert (await api.get("/v1/entries")).json["items"] == []
    assert (await api.ask("DELETE", f"/v1/entries/{place}")).json["erased"]
    return await api.get(f"/v1/entries/{place}")


@triggers(Code.NOT_ERASABLE)
async def _not_erasable(api: Talk) -> Reply:
    place = (await api.submit(1)).json["id"]
    return await api.ask("DELETE", f"/v1/entries/{place}")


@triggers(Code.TOO_LARGE)
async def _too_large(api: Talk) -> Reply:
    return await api.submit("x" * (1 << 20))


@triggers(Code.UNSUPPORTED_MEDIA_TYPE)
async def _unsupported(api: Talk) -> Reply:
    return await api.post("/v1/entries", b"a=1", "application/x-www-form-urlencoded")


@triggers(Code.KEY_REUSED)
async def _key_reused(api: Talk) -> Reply:
    await api.submit(1, idempotency_key="k")
    return await api.submit(2, idempotency_key="k")


@triggers(Code.UPGRADE_REQUIRED)
async def _upgrade_required(api: Talk) -> Reply:
    return await api.get("/v1/ingest")


@triggers(Code.TOO_MANY_REQUESTS)
async def _too_many(api: Talk) -> Reply:
    api.running.face.pressure.per_caller_max = 0
    return await api.submit(1)


@triggers(Code.INTERNAL)
async def _internal(api: Talk) -> Reply:
    api.node.fault = RuntimeError("planted")
    reply = await api.submit(1)
    assert b"planted" not in reply.body
    return reply


@triggers(Code.NODE_FULL)
async def _node_full(api: Talk) -> Reply:
    api.node.full = Overloaded(2.5, "the inbox is full")
    reply = await api.submit(1)
    assert reply.headers["Retry-After"] == "3"
    return reply


def _refused(reason: Reason) -> Trigger:
    async def trigger(api: Talk) -> Reply:
        api.node.fault = Refused(reason, "planted")
        return await api.submit(1)

    return trigger


TRIGGERS[Code.UNREAD_BACKLOG] = _refused(Reason.UNREAD_BACKLOG)
TRIGGERS[Code.CATCHING_UP] = _refused(Reason.CATCHING_UP)
TRIGGERS[Code.NOT_A_MEMBER] = _refused(Reason.NOT_A_MEMBER)
TRIGGERS[Code.OVERRULED] = _refused(Reason.OVERRULED)


@triggers(Code.DRAINING)
async def _draining(api: Talk) -> Reply:
    api.node.drain()
    return await api.submit(1)


@triggers(Code.OUTCOME_UNKNOWN)
async def _outcome_unknown(api: Talk) -> Reply:
    identity = EntryId(EventId(bytes(32)), 3)
    api.node.fault = OutcomeUnknown((identity,))
    reply = await api.submit(1)
    assert reply.json["entry_id"] == str(identity)
    return reply


@triggers(Code.STORAGE_FULL)
async def _storage_full(api: Talk) -> Reply:
    identity = (await api.submit(1)).json["id"]
    api.node.full = StoreIsFull("no space left")
    assert (await api.get(f"/v1/entries/{identity}")).status == 200
    reply = await api.submit(1)
    api.node.full = None
    assert (await api.submit(2)).status == 201
    return reply


@triggers(Code.STORAGE_FAILED)
async def _storage_failed(api: Talk) -> Reply:
    api.node.read_fault = DiskFailed("planted")
    return await api.get(f"/v1/entries/{NOWHERE}:0")


@triggers(Code.OPERATION_RUNNING)
async def _operation_running(api: Talk) -> Reply:
    assert (await api.post("/v1/admin/scrub", b"")).status == 202
    return await api.post("/v1/admin/scrub", b"")


@triggers(Code.OPERATION_NOT_FOUND)
async def _operation_not_found(api: Talk) -> Reply:
    return await api.get("/v1/admin/operations/0123456789abcdef")


@triggers(Code.REPORT_NOT_FOUND)
async def _report_not_found(api: Talk) -> Reply:
    return await api.get("/v1/reports/last")


@triggers(Code.CONSUMER_NOT_FOUND)
async def _consumer_not_found(api: Talk) -> Reply:
    return await api.get("/v1/consumers/billing")


async def _put_consumer(api: Talk, name: str, **headers: str) -> Reply:
    headers["Content_Type"] = "application/json"
    return await api.ask("PUT", f"/v1/consumers/{name}", b'{"cursor":"start"}', **headers)


@triggers(Code.CONSUMER_CHANGED)
async def _consumer_changed(api: Talk) -> Reply:
    return await _put_consumer(api, "billing", If_Match='"0"')


@triggers(Code.CONSUMER_LIMIT)
async def _consumer_limit(api: Talk) -> Reply:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("quipu.node.limits.CONSUMERS_MAX", 1)
        assert (await _put_consumer(api, "a")).status == 201
        reply = await _put_consumer(api, "b")
        assert (await _put_consumer(api, "a")).status == 200
    return reply


@triggers(Code.PEER_NOT_FOUND)
async def _peer_not_found(api: Talk) -> Reply:
    return await api.get("/v1/dag/diff?peer=nobody")


@triggers(Code.PEER_SILENT)
async def _peer_silent(api: Talk) -> Reply:
    return await api.get("/v1/dag/diff?peer=2")


PROPOSE = "/v1/cluster/roster:propose"


async def _proposed(api: Talk, **asked: str) -> Reply:
    return await api.post(PROPOSE, asked)


@triggers(Code.ROSTER_IN_FLIGHT)
async def _roster_in_flight(api: Talk) -> Reply:
    api.node.roster.fault = ChangeInFlight("planted")
    return await _proposed(api, change="checkpoint")


@triggers(Code.ALREADY_A_MEMBER)
async def _already_a_member(api: Talk) -> Reply:
    uri = f"quipu://127.0.0.1:8471/{api.node.node_id.hex()}"
    return await _proposed(api, change="add-member", node=uri)


@triggers(Code.MEMBER_UNKNOWN)
async def _member_unknown(api: Talk) -> Reply:
    return await _proposed(api, change="remove-member", node="n9")


@triggers(Code.LAST_MEMBER)
async def _last_member(api: Talk) -> Reply:
    return await _proposed(api, change="remove-member", node="n1")


@triggers(Code.ROSTER_FULL)
async def _roster_full(api: Talk) -> Reply:
    names = [MemberRow(NodeNo(n), key_of(f"n{n}").node_id, f"n{n}", ()) for n in range(1, 33)]
    api.node.members = lambda: tuple(names)  # type: ignore[method-assign]
    uri = f"quipu://127.0.0.1:8471/{key_of('n33').node_id.hex()}"
    return await _proposed(api, change="add-member", node=uri)


@triggers(Code.POLICY_UNFIT)
async def _policy_unfit(api: Talk) -> Reply:
    return await _proposed(api, change="policy", policy="3")


@triggers(Code.NOMINEE_UNREACHABLE)
async def _nominee_unreachable(api: Talk) -> Reply:
    return await _proposed(api, change="add-member", node="n9")


@triggers(Code.NOMINEE_BEHIND)
async def _nominee_behind(api: Talk) -> Reply:
    api.node.roster.fault = NomineeRefused("nominee-behind", [api.node.node_id])
    return await _proposed(api, change="checkpoint")


async def _recovered(api: Talk, why: Unforced) -> Reply:
    api.node.roster.fault = ForceRefused(why, "planted")
    return await api.post("/v1/cluster/roster:recover", {"force": True})


@triggers(Code.QUORUM_ANSWERS)
async def _quorum_answers(api: Talk) -> Reply:
    return await _recovered(api, Unforced.QUORUM)


@triggers(Code.CANNOT_FORCE)
async def _cannot_force(api: Talk) -> Reply:
    return await _recovered(api, Unforced.UNFIT)


@triggers(Code.JOURNAL_GONE)
async def _journal_gone(api: Talk) -> Reply:
    api.node.order.base = 7
    reply = await api.get("/v1/journal/entries?after=3")
    assert reply.json["oldest"] == "8"
    assert (await api.get("/v1/journal/entries?after=7")).status == 200
    return reply


@triggers(Code.SEQUENCE_NOT_FOUND)
async def _sequence_not_found(api: Talk) -> Reply:
    return await api.get("/v1/sequences/invoices")


@triggers(Code.NUMBER_NOT_FOUND)
async def _number_not_found(api: Talk) -> Reply:
    api.node.order.sequences["invoices"] = SequenceState("invoices", 8, bytes(32), 0, None, 8)
    return await api.get("/v1/sequences/invoices/9")


@triggers(Code.NUMBER_GONE)
async def _number_gone(api: Talk) -> Reply:
    api.node.order.base = 7
    return await api.get("/v1/sequences/invoices/1")


@triggers(Code.NO_QUORUM)
async def _no_quorum(api: Talk) -> Reply:
    api.node.order.fault = NoQuorum(1.5, "planted")
    reply = await api.post("/v1/sequences/invoices:publish", {"data": 1})
    assert reply.headers["Retry-After"] == "2"
    return reply


@triggers(Code.STATE_DIFFERS)
async def _state_differs(api: Talk) -> Reply:
    api.node.order.fault = StateDiffers("planted")
    return await api.post("/v1/sequences/invoices:lock", {"count": 2})


@triggers(Code.ORDER_UNKNOWN)
async def _order_unknown(api: Talk) -> Reply:
    api.node.order.fault = OrderUnknown("planted")
    return await api.post("/v1/sequences/invoices:lock", {"count": 2})


def _sequence_refused(why: SequenceRefusal) -> Trigger:
    async def trigger(api: Talk) -> Reply:
        api.node.order.fault = SequenceRefused(why, "invoices")
        return await api.post("/v1/sequences/invoices:release", {"token": "3"})

    return trigger


def _change_refused(fault: Exception) -> Trigger:
    async def trigger(api: Talk) -> Reply:
        api.node.order.fault = fault
        return await api.post(
            "/v1/journal/config:propose", {"kind": "remove-ingest", "nodes": ["n1"]}
        )

    return trigger


for reason in ConfigRefusal:
    TRIGGERS[Code(reason)] = _change_refused(ConfigRefused(reason, "remove-ingest"))
TRIGGERS[Code.UNKNOWN_NODE] = _change_refused(UnknownNode("7"))
TRIGGERS[Code.NOT_CONFIG_NODE] = _change_refused(NotConfigNode("planted"))


@triggers(Code.NOT_INGEST_NODE)
async def _not_ingest_node(api: Talk) -> Reply:
    api.node.full = NotIngestNode("planted")
    return await api.submit(1)


for why in SequenceRefusal:
    TRIGGERS[Code(why)] = _sequence_refused(why)


REQUEST = {"message_id": "1", "messages_base64": "kA==", "signature_base64": "AA=="}


def _client_refused(why: str) -> Trigger:
    async def trigger(api: Talk) -> Reply:
        api.node.clients.fault = ClientRefused(why, "planted")
        return await api.post("/v1/clients/1/messages", REQUEST)

    return trigger


for code in (
    Code.ACL_NOT_FOUND,
    Code.TOO_MANY_CLIENTS,
    Code.CLIENT_TERMINATED,
    Code.TOO_FAR_AHEAD,
    Code.RESULTS_UNREAD,
    Code.RELEASED,
    Code.CLIENT_REMOVED,
    Code.BAD_SIGNATURE,
    Code.BAD_MESSAGE_ID,
    Code.NOT_DETERMINISTIC,
    Code.STATEMENT_REFUSED,
):
    TRIGGERS[code] = _client_refused(code)


@triggers(Code.CLIENT_NOT_FOUND)
async def _client_not_found(api: Talk) -> Reply:
    return await api.get("/v1/clients/7")


@triggers(Code.NO_EXECUTOR)
async def _no_executor(api: Talk) -> Reply:
    api.node.clients.fault = NoExecutor("it is off", may_come=False)
    return await api.post("/v1/sql:query", {"sql": "SELECT 1"})


@triggers(Code.EXECUTOR_BEHIND)
async def _executor_behind(api: Talk) -> Reply:
    api.node.clients.fault = NoExecutor("it is being opened", may_come=True)
    reply = await api.post("/v1/sql:query", {"sql": "SELECT 1"})
    assert reply.headers["Retry-After"] == "1"
    return reply


async def _raw(api: Talk, request: bytes) -> Reply:
    host, port = api.running.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    lines = head.split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:] if line)
    body = await reader.readexactly(int(headers["Content-Length"]))
    writer.close()
    await writer.wait_closed()
    return Reply(int(lines[0].split()[1]), headers, body)


OF_ADMINS = {
    Code.ERASED,
    Code.NOT_ERASABLE,
    Code.OPERATION_RUNNING,
    Code.OPERATION_NOT_FOUND,
    Code.ROSTER_IN_FLIGHT,
    Code.ALREADY_A_MEMBER,
    Code.MEMBER_UNKNOWN,
    Code.LAST_MEMBER,
    Code.ROSTER_FULL,
    Code.POLICY_UNFIT,
    Code.NOMINEE_UNREACHABLE,
    Code.NOMINEE_BEHIND,
    Code.QUORUM_ANSWERS,
    Code.CANNOT_FORCE,
}
OF_ADMINS |= {Code.UNKNOWN_NODE, Code.NOT_CONFIG_NODE, *(Code(why) for why in ConfigRefusal)}


def _settings(code: Code, folder: Path) -> tuple[Settings, dict[str, str]]:
    if code in {Code.UNAUTHENTICATED, Code.FORBIDDEN} | OF_ADMINS:
        path = folder / "tokens.json"
        scopes = ["admin", "entries:write"] if code in OF_ADMINS else []
        text = new_token(path, "app", ["entries:read", *scopes])
        return Settings(port=0, ops_port=0, tokens_file=path), {"Authorization": f"Bearer {text}"}
    return Settings(port=0, ops_port=0, body_s=0.05), {}


def test_every_code_has_a_trigger() -> None:
    assert set(TRIGGERS) == set(Code)


@pytest.mark.parametrize("code", list(Code))
async def test_code_is_triggered(code: Code, tmp_path: Path) -> None:
    settings, headers = _settings(code, tmp_path)
    node = OneNode(size=3) if code in {Code.NOT_READ, Code.PEER_SILENT} else OneNode()
    administration, _ = administration_in(tmp_path)
    async with talking(settings, node, administration) as api:
        api.headers = headers
        reply = await TRIGGERS[code](api)
        await administration.close()
        assert reply.code == code
        kind = KINDS[code]
        assert (reply.status, reply.json["retryable"]) == (kind.status, kind.retryable)
        assert reply.json["title"] == kind.title
        page = await api.get(reply.json["type"], Accept="text/html")
        assert kind.title.encode() in page.body
        as_json = await api.get(reply.json["type"], Accept="application/json")
        assert as_json.json["remedy"] == kind.remedy


BIG = base64.b64encode(bytes(limits.BODY_BYTES_MAX)).decode()
WRONG_BODIES: dict[str, tuple[bytes, str, str]] = {
    "nothing": (b"", "malformed-body", ""),
    "no object": (b"[1]", "invalid-field", ""),
    "neither data": (b"{}", "invalid-field", "/data"),
    "both data": (b'{"data":1,"data_base64":"AA=="}', "invalid-field", "/data"),
    "no base64": (b'{"data_base64":"*"}', "invalid-field", "/data_base64"),
    "cut base64": (b'{"data_base64":"A"}', "invalid-field", "/data_base64"),
    "data with a type": (
        b'{"data":1,"content_type":"text/plain"}',
        "invalid-field",
        "/content_type",
    ),
    "no media type": (b'{"data":1,"content_type":"x"}', "invalid-field", "/content_type"),
    "header in type": (
        b'{"data_base64":"","content_type":"a/b\\r\\nX: y"}',
        "invalid-field",
        "/content_type",
    ),
    "false json": (
        b'{"data_base64":"AA==","content_type":"application/json"}',
        "invalid-field",
        "/data_base64",
    ),
    "stream number": (b'{"data":1,"stream":5}', "invalid-field", "/stream"),
    "stream upper": (b'{"data":1,"stream":"A"}', "invalid-field", "/stream"),
    "stream newline": (b'{"data":1,"stream":"a\\n"}', "invalid-field", "/stream"),
    "stream empty": (b'{"data":1,"stream":""}', "invalid-field", "/stream"),
    "stream null": (b'{"data":1,"stream":null}', "invalid-field", "/stream"),
    "stream long": (
        b'{"data":1,"stream":"' + b"a" * 129 + b'"}',
        "invalid-field",
        "/stream",
    ),
    "key empty": (b'{"data":1,"idempotency_key":""}', "invalid-field", "/idempotency_key"),
    "key wide": (
        b'{"data":1,"idempotency_key":"' + "é".encode() * 200 + b'"}',
        "invalid-field",
        "/idempotency_key",
    ),
    "time": (b'{"data":1,"time":"yesterday"}', "invalid-field", "/time"),
    "time without zone": (b'{"data":1,"time":"2026-01-01T00:00:00"}', "invalid-field", "/time"),
    "time before 1970": (b'{"data":1,"time":"1969-01-01T00:00:00Z"}', "invalid-field", "/time"),
    "no such day": (b'{"data":1,"time":"2026-02-30T00:00:00Z"}', "invalid-field", "/time"),
    "unknown": (b'{"data":1,"a/b~c":1}', "unknown-field", "/a~1b~0c"),
    "latin-1": (b'{"data":"\xe9"}', "malformed-body", ""),
    "surrogate bytes": (b'{"data":"\xed\xa0\x80"}', "malformed-body", ""),
    "bom": (b'\xef\xbb\xbf{"data":1}', "malformed-body", ""),
    "utf-16": ('{"data":1}'.encode("utf-16"), "malformed-body", ""),
    "trailing": (b'{"data":1} x', "malformed-body", ""),
    "nan": (b'{"data":NaN}', "malformed-body", ""),
    "comment": (b'{"data":1/**/}', "malformed-body", ""),
    "deep": (b'{"data":' + b"[" * 9_999 + b"]" * 9_999 + b"}", "malformed-body", ""),
}


@pytest.mark.parametrize("name", WRONG_BODIES)
async def test_wrong_body_is_refused_with_its_place(name: str) -> None:
    body, code, pointer = WRONG_BODIES[name]
    async with talking() as api:
        for path in ("/v1/entries", "/v1/entries:validate"):
            reply = await api.post(path, body)
            assert reply.code == code
            assert reply.pointers == [pointer]
        if code != "malformed-body" and body.startswith(b"{"):
            batch = await api.post("/v1/entries:batch", b"[" + body + b"]")
            (result,) = batch.json["results"]
            assert (batch.status, result["problem"]["code"]) == (207, code)
            assert result["problem"]["errors"][0]["pointer"] == "/0" + pointer
        assert api.node.submissions == 0


async def test_an_unknown_field_is_told_the_known_ones() -> None:
    async with talking() as api:
        reply = await api.post("/v1/entries", b'{"dat":1}')
        assert "/dat: is no field here; there are data, data_base64, stream" in reply.json["detail"]


async def test_a_wrong_name_is_told_how_names_look() -> None:
    async with talking() as api:
        reply = await api.post("/v1/entries", b'{"data":1,"stream":"Bad stream!"}')
        assert reply.json["detail"].startswith("/stream: is 1 to 128 of a-z 0-9")


WRONG_PACKED = {
    "cut": (b"\x81\xa4data", "malformed-body"),
    "trailing": (b"\x81\xa4data\x01\x02", "malformed-body"),
    "array": (b"\x91\x01", "invalid-field"),
    "unknown": (msgspec.msgpack.encode({"data": 1, "x": 1}), "unknown-field"),
    "number as key": (msgspec.msgpack.encode({1: 1}), "invalid-field"),
    "json": (b'{"data":1}', "invalid-field"),  # its first octet is the number 123
}


@pytest.mark.parametrize("name", WRONG_PACKED)
async def test_wrong_msgpack_is_refused(name: str) -> None:
    body, code = WRONG_PACKED[name]
    async with talking() as api:
        reply = await api.post("/v1/entries", body, MSGPACK)
        assert (reply.status, reply.code) == (400, code)


WRONG_PATHS = {
    "/v1/entries?limit=1001": "invalid-parameter",
    "/v1/entries?limit=x": "invalid-parameter",
    "/v1/entries?limit=1&limit=2": "invalid-parameter",
    "/v1/entries?stream=A": "invalid-parameter",
    "/v1/entries?author=nobody": "invalid-parameter",
    "/v1/entries?client=-1": "invalid-parameter",
    "/v1/entries?client=null": "invalid-parameter",
    "/v1/entries?limit=null": "invalid-parameter",
    "/v1/entries?state=ordered": "invalid-parameter",
    "/v1/entries?state=stored&wait=1s": "invalid-parameter",
    "/v1/entries?order=up": "invalid-parameter",
    "/v1/entries?since=now": "invalid-parameter",
    "/v1/entries?until=2026": "invalid-parameter",
    "/v1/entries?wait=30": "invalid-parameter",
    "/v1/entries?wait=3h": "invalid-parameter",
    "/v1/entries?after=": "invalid-cursor",
    "/v1/entries?after=%00": "invalid-cursor",
    "/v1/entries?after=" + "A" * 3_000: "invalid-cursor",
    "/v1/entries?" + "a" * 5_000: "bad-request",
    "/v1/entries/": "not-found",
    "/v1/entries/x": "invalid-id",
    f"/v1/entries/{NOWHERE}": "invalid-id",
    f"/v1/entries/{NOWHERE}:": "invalid-id",
    f"/v1/entries/{NOWHERE}:-1": "invalid-id",
    f"/v1/entries/{NOWHERE}:999999": "invalid-id",
    f"/v1/entries/{NOWHERE}:\u0661": "invalid-id",
    f"/v1/entries/{' ' * 64}:0": "invalid-id",
    f"/v1/entries/{NOWHERE}:0/status?wait=x": "invalid-parameter",
    f"/v1/entries/{NOWHERE}:0/other": "not-found",
    f"/v1/events/{NOWHERE[:-1]}": "invalid-id",
    f"/v1/events/{NOWHERE}/ancestors?depth=65": "invalid-parameter",
    f"/v1/dag/window?center={NOWHERE}": "event-not-found",
    "/v1/dag/window?center=x": "invalid-id",
    "/v1/stream?from=yesterday": "invalid-cursor",
    "/v1/stream?events=all": "invalid-parameter",
    "/problems/none": "not-found",
    "/../etc/passwd": "not-found",
    "//v1/entries": "not-found",
}


@pytest.mark.parametrize("path", WRONG_PATHS)
async def test_wrong_path_or_parameter(path: str) -> None:
    async with talking() as api:
        if path == f"/v1/entries/{NOWHERE}:0/status?wait=x":
            path = path.replace(f"{NOWHERE}:0", await api.stored(1))
        assert (await api.get(path)).code == WRONG_PATHS.get(path, "invalid-parameter")


async def test_wrong_headers() -> None:
    async with talking() as api:
        sent = [
            ({"Content_Encoding": "gzip"}, "unsupported-media-type"),
            ({"Content_Type": "application/json; charset=latin-1"}, "unsupported-media-type"),
            ({"Idempotency_Key": " "}, "invalid-header"),
            ({"Accept": "application/json;q=0"}, "not-acceptable"),
        ]
        for headers, code in sent:
            given = {"Content_Type": "application/json", **headers}
            reply = await api.ask("POST", "/v1/entries", b'{"data":1}', **given)
            if code == "not-acceptable":
                assert reply.status in {201, 406}
            else:
                assert reply.code == code
        body = {"data": 1, "idempotency_key": "a"}
        assert (await api.post("/v1/entries", body, Idempotency_Key="b")).code == "invalid-field"
        assert (
            await api.post("/v1/entries?stream=a", {"data": 1, "stream": "b"})
        ).code == "invalid-field"
        fine = await api.post("/v1/entries", {"data": 1}, "application/json; charset=utf-8")
        assert fine.status == 201


async def test_body_above_its_size_is_refused_unread() -> None:
    async with talking() as api:
        reply = await api.post("/v1/entries", {"data_base64": BIG})
        assert (reply.status, reply.code) == (413, "too-large")
        lines = b'{"data":"' + b"x" * (limits.BODY_BYTES_MAX + 9)
        results = (await api.post("/v1/entries:batch", lines, NDJSON)).body.splitlines()
        assert json.loads(results[-1])["problem"]["code"] == "too-large"


async def test_request_id_is_echoed_where_it_is_sane() -> None:
    async with talking() as api:
        kept = await api.get("/v1/nope", X_Request_Id="abc-1")
        assert (kept.headers["X-Request-Id"], kept.json["request_id"]) == ("abc-1", "abc-1")
        other = await api.get("/v1/nope", X_Request_Id="<script>")
        assert other.json["request_id"] != "<script>"
