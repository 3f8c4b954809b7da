"""Clients, their requests and their results over HTTP, on a real node that is alone."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from quipu.client import AsyncClient, Conflict, NotFound, SessionInUse
from quipu.ledger.order import clients as orders
from quipu.ledger.order.client_items import signed_read
from quipu.storage.executors.acl import Acl, Right, Rule, encode_acl
from quipu.storage.executors.desk import content_digest
from quipu.storage.executors.interpreter import statement
from quipu.storage.executors.request import Message, encode_messages
from tests.api.one_executor import OneExecutor
from tests.api.one_node import OneNode
from tests.api.talk import FREE, Reply, Talk, talking
from tests.small_ledger import key_of
from tests.small_node import small_node

KEY = key_of("client")
MESSAGES = "/v1/clients/1/messages"
DONE = f"{MESSAGES}?wait=executed"
TABLE = statement("CREATE TABLE stock (item TEXT UNIQUE)")


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Talk]:
    async with small_node(folder) as node, talking(FREE, cast(OneNode, node.ledger)) as api:
        yield api


@asynccontextmanager
async def registered(folder: Path) -> AsyncIterator[Talk]:
    async with serving(folder) as api:
        reply = await api.post("/v1/clients", {"public_key": KEY.node_id.hex()})
        assert (reply.status, reply.headers["Location"]) == (201, "/v1/clients/1"), reply.body
        assert (await api.post(DONE, signed(api, 1, TABLE))).status == 201
        yield api


def signed(api: Talk, message_id: int, *messages: Message) -> dict[str, str]:
    data = encode_messages(messages)
    digest = content_digest(data)
    request = orders.Request(orders.ClientId(1), message_id, digest, b"")
    signature = KEY.sign(orders.signed_request(api.node.cluster_id, request))
    return {
        "message_id": str(message_id),
        "messages_base64": base64.b64encode(data).decode(),
        "signature_base64": base64.b64encode(signature).decode(),
    }


async def test_they_are_listed_by_number(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        empty = {"items": [], "next": "0", "more": False}
        assert (await api.get("/v1/clients")).json == empty
        for name in ("client", "another", "third"):
            await api.post("/v1/clients", {"public_key": key_of(name).node_id.hex()})
        first = (await api.get("/v1/clients?limit=2")).json
        assert [one["client"] for one in first["items"]] == [1, 2]
        assert first["items"][0] == (await api.get("/v1/clients/1")).json
        assert (first["next"], first["more"]) == ("2", True)
        rest = (await api.get(f"/v1/clients?after={first['next']}")).json
        assert [one["public_key"] for one in rest["items"]] == [key_of("third").node_id.hex()]
        assert not rest["more"]


def insert(item: str) -> Message:
    return statement("INSERT INTO stock VALUES (?)", item)


def read(api: Talk, upto: int, have: int) -> str:
    signature = KEY.sign(signed_read(api.node.cluster_id, 1, upto, have)).hex()
    return f"/v1/clients/1/results?upto={upto}&have={have}&signature={signature}"


async def test_client_is_who_was_registered(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        rules = [{"tables": "stock*", "rights": ["read", "write"]}]
        asked = {"public_key": KEY.node_id.hex(), "rights": rules}
        first = (await api.post("/v1/clients", asked)).json
        assert (first["client"], first["state"], first["rights"]) == (1, "active", rules)
        again = {"public_key": KEY.node_id.hex(), "acl_id": first["acl_id"]}
        second = (await api.post("/v1/clients", again)).json
        assert (second["client"], second["acl_id"]) == (2, first["acl_id"])
        assert (second["next_message_id"], second["have"]) == ("1", "0")
        removed = await api.ask("DELETE", "/v1/clients/1")
        assert (removed.json["state"], removed.json["rights"]) == ("removed", None)
        assert (await api.ask("DELETE", "/v1/clients/1")).code == "client-removed"
        assert (await api.get("/v1/clients/2")).json == second
        missing = await api.post("/v1/clients", again | {"acl_id": "0" * 30})
        assert missing.code == "acl-not-found"
        page = (await api.get("/v1/journal/entries")).json
        kinds = [item["kind"] for one in page["items"] for item in one["items"]]
        assert kinds[:4] == ["access-list", "add-client", "add-client", "remove-client"]


async def put(api: Talk, body: object, number: int = 1) -> Reply:
    path, content = f"/v1/clients/{number}/rights", msgspec.json.encode(body)
    return await api.ask("PUT", path, content, Content_Type="application/json")


async def test_other_rights_leave_ids_and_results(tmp_path: Path) -> None:
    async with registered(tmp_path) as api:
        assert (await api.post(DONE, signed(api, 2, insert("nut")))).json["code"] == "ok"
        rules = [{"tables": "stock", "rights": ["read"]}]
        changed = await put(api, {"rights": rules})
        assert (changed.status, changed.json["rights"]) == (200, rules), changed.body
        assert (changed.json["next_message_id"], changed.json["have"]) == ("3", "0")
        refused = await api.post(DONE, signed(api, 3, insert("bolt")))
        assert refused.code == "statement-refused"
        # What is ordered all the same is judged by the rights at its place in the order.
        forced = await api.post(f"{DONE}&again=true", signed(api, 3, insert("bolt")))
        assert (forced.json["state"], forced.json["code"]) == ("executed", "no-right")
        kept = await api.post(MESSAGES, signed(api, 2, insert("nut")))
        assert (kept.status, kept.json["code"]) == (200, "ok")
        again = await put(api, {"rights": [{"tables": "*", "rights": ["write"]}]})
        assert again.json["acl_id"] != changed.json["acl_id"]
        assert (await api.post(DONE, signed(api, 4, insert("bolt")))).json["code"] == "ok"
        named = await put(api, {"acl_id": changed.json["acl_id"]})
        assert named.json["rights"] == rules
        assert (await put(api, {})).code == "invalid-field"
        assert (await put(api, {"acl_id": "0" * 30})).code == "acl-not-found"
        missing = await put(api, {"rights": rules}, 9)
        assert missing.code == "client-not-found"
        await api.ask("DELETE", "/v1/clients/1")
        assert (await put(api, {"rights": rules})).code == "client-removed"


async def test_request_is_executed_once_and_its_result_stays(tmp_path: Path) -> None:
    async with registered(tmp_path) as api:
        body = signed(api, 2, insert("nut"), statement("SELECT item, x'00' AS b FROM stock"))
        reply = await api.post(DONE, body)
        assert (reply.status, reply.json["state"], reply.json["code"]) == (201, "executed", "ok")
        assert reply.json["results"][1]["rows"] == [["nut", {"base64": "AA=="}]]
        again = await api.post(MESSAGES, body)
        assert (again.status, again.json["id"]) == (200, None)
        assert again.json["results"] == reply.json["results"]
        entry = (await api.get(f"/v1/entries/{reply.json['id']}")).json
        assert (entry["stream"], entry["client_id"], entry["message_id"]) == ("clients", 1, "2")
        status = (await api.get(f"/v1/entries/{reply.json['id']}/status")).json
        assert status["state"] == "executed"
        failed = await api.post(DONE, signed(api, 3, insert("nut")))
        assert (failed.status, failed.json["code"]) == (201, "not-unique")


async def test_who_waits_for_execution_hurries_the_order() -> None:
    """Else references that nobody waits for have time, and so would the request."""
    body = {"message_id": "2", "messages_base64": "kA==", "signature_base64": "AA=="}
    async with talking(FREE, OneNode()) as api:
        assert (await api.post(MESSAGES, body)).status == 201
        assert api.node.order.awaited == []
        assert (await api.post(DONE, body)).json["state"] == "executed"
        (hurried,) = api.node.order.awaited
        assert hurried.cancelled()  # nobody waits any more


async def test_gap_waits_and_is_executed_in_order(tmp_path: Path) -> None:
    async with registered(tmp_path) as api:
        waits = await api.post(f"{DONE}&timeout=50ms", signed(api, 3, insert("two")))
        assert waits.status == 202
        later = asyncio.ensure_future(api.post(DONE, signed(api, 4, insert("three"))))
        assert (await api.post(DONE, signed(api, 2, insert("one")))).json["state"] == "executed"
        assert (await later).json["state"] == "executed"
        found = await api.post("/v1/sql:query", {"sql": "SELECT item FROM stock ORDER BY rowid"})
        assert found.json["rows"] == [["one"], ["two"], ["three"]]
        far = await api.post(MESSAGES, signed(api, 5 + 64, insert("far")))
        assert (far.status, far.code) == (409, "too-far-ahead")


async def test_what_cannot_be_executed_is_refused_before_it_is_ordered(tmp_path: Path) -> None:
    async with registered(tmp_path) as api:
        for said, code in (
            ("SELECT random()", "not-deterministic"),
            ("INSERT INTO stock VALUES (datetime('now'))", "not-deterministic"),
            ("PRAGMA user_version", "statement-refused"),
            ("SELEC", "statement-refused"),
        ):
            reply = await api.post(DONE, signed(api, 2, statement(said)))
            assert (reply.status, reply.code) == (422, code)
        again = await api.post(f"{DONE}&again=true", signed(api, 2, statement("SELECT random()")))
        assert again.json["code"] == "not-deterministic"  # ordered now, and the same everywhere
        assert (await api.post(DONE, signed(api, 3, insert("nut")))).json["code"] == "ok"


async def test_bad_signatures_are_refused_and_end_nobody(tmp_path: Path) -> None:
    async with registered(tmp_path) as api:
        good = signed(api, 2, insert("nut"))
        for wrong in (
            good | {"signature_base64": base64.b64encode(bytes(64)).decode()},
            good | {"signature_type": 2},
            good | {"message_id": "3"},
        ):
            assert (await api.post(DONE, wrong)).code == "bad-signature"
        reply = await api.get("/v1/clients/1/results?upto=1&signature=" + "00" * 64)
        assert reply.code == "bad-signature"
        assert (await api.post(DONE, good | {"message_id": "0"})).code == "bad-message-id"
        assert (await api.post(DONE, good)).json["state"] == "executed"


async def test_two_valid_signatures_for_one_id_end_the_client(tmp_path: Path) -> None:
    async with registered(tmp_path) as api:
        assert (await api.post(DONE, signed(api, 2, insert("nut")))).status == 201
        other = await api.post(DONE, signed(api, 2, insert("bolt")))
        assert (other.status, other.code) == (409, "client-terminated")
        assert (await api.post(DONE, signed(api, 3, insert("x")))).code == "client-terminated"
        found = (await api.get("/v1/clients/1")).json
        assert (found["state"], found["proof_base64"] is None) == ("terminated", False)
        assert (await api.get(read(api, 2, 0))).json["items"][1]["code"] == "ok"


async def test_results_stay_until_the_client_holds_them(tmp_path: Path) -> None:
    async with registered(tmp_path) as api:
        for number in (2, 3):
            await api.post(DONE, signed(api, number, insert(str(number))))
        page = (await api.get(read(api, 9, 1))).json
        assert [one["message_id"] for one in page["items"]] == ["2", "3"]
        assert (page["upto"], page["released"], page["more"]) == ("3", "1", False)
        assert (await api.get(read(api, 9, 1))).json["items"] == page["items"]
        assert (await api.get(read(api, 9, 3))).json["items"] == []
        late = await api.post(DONE, signed(api, 2, insert("2")))
        assert (late.status, late.code) == (410, "released")


async def level(api: Talk) -> Any:
    """The executor has done all that is ordered."""
    while True:
        found = (await api.get("/v1/executor")).json
        if found["state"] == "running" and found["behind"] == 0:
            return found
        await asyncio.sleep(0.01)


async def test_all_of_it_outlives_a_restart(tmp_path: Path) -> None:
    async with registered(tmp_path) as api:
        body = signed(api, 2, insert("nut"))
        before = (await api.post(DONE, body)).json
        assert (await api.post(MESSAGES, signed(api, 4, insert("waits")))).status == 201
        mark = (await api.get("/v1/executor")).json
    async with serving(tmp_path) as api:
        found = await level(api)
        again = (await api.post(MESSAGES, body)).json
        assert (again["results"], again["state"]) == (before["results"], "executed")
        assert int(found["applied"]) >= int(mark["applied"])
        assert (await api.post(DONE, signed(api, 3, insert("bolt")))).json["code"] == "ok"
        reply = await api.post(
            "/v1/sql:query?consistency=linear", {"sql": "SELECT item FROM stock"}
        )
        assert reply.json["rows"] == [["nut"], ["bolt"], ["waits"]]


async def test_query_has_the_rights_of_a_client_and_writes_nothing(tmp_path: Path) -> None:
    async with registered(tmp_path) as api:
        rules = [{"tables": "other", "rights": ["read"]}]
        asked = {"public_key": KEY.node_id.hex(), "rights": rules}
        assert (await api.post("/v1/clients", asked)).json["client"] == 2
        for body in (
            {"sql": "SELECT * FROM stock", "client": 2},
            {"sql": "DELETE FROM stock"},
            {"sql": "SELECT"},
        ):
            assert (await api.post("/v1/sql:query", body)).code == "statement-refused"
        given = [None, 1, 1.5, "x", {"base64": "AA=="}]
        reply = await api.post(
            "/v1/sql:query", {"sql": "SELECT ?, ?, ?, ?, ?", "parameters": given}
        )
        assert reply.json["rows"] == [given]
        assert (await api.get("/v1/clients/3")).code == "client-not-found"


async def test_node_without_an_executor_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        execution = api.node.execution  # type: ignore[attr-defined]  # it is a running node
        await execution.stop()
        execution.state, execution.executor, execution.detail = "off", None, "it is off"
        reply = await api.post("/v1/clients", {"public_key": KEY.node_id.hex()})
        assert (reply.status, reply.json["rights"]) == (201, None)
        body = signed(api, 1, TABLE)
        assert (await api.post(DONE, body)).code == "no-executor"
        assert (await api.post(f"{MESSAGES}?wait=ordered", body)).json["state"] == "ordered"
        assert (await api.post("/v1/sql:query", {"sql": "SELECT 1"})).code == "no-executor"
        assert (await api.get("/v1/executor")).json["state"] == "off"


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/v1/clients", {"public_key": "ab"}, "invalid-field"),
        (
            "/v1/clients",
            {"public_key": "ab" * 32, "rights": [], "acl_id": "0" * 30},
            "invalid-field",
        ),
        (
            "/v1/clients",
            {"public_key": "ab" * 32, "rights": [{"tables": "a", "rights": ["own"]}]},
            "invalid-field",
        ),
        ("/v1/clients", {"public_key": "ab" * 32, "key": "ab"}, "unknown-field"),
        ("/v1/clients", b"{", "malformed-body"),
        ("/v1/clients/x/messages", {}, "invalid-field"),
        (
            MESSAGES,
            {"message_id": "1", "messages_base64": "!", "signature_base64": ""},
            "invalid-field",
        ),
        (f"{MESSAGES}?wait=done", {}, "invalid-parameter"),
        ("/v1/sql:query?consistency=strong", {"sql": "SELECT 1"}, "invalid-parameter"),
        ("/v1/sql:query", {"sql": "SELECT ?", "parameters": [True]}, "invalid-field"),
        ("/v1/sql:query", {"sql": "SELECT ?", "parameters": [{"base64": "!"}]}, "invalid-field"),
        ("/v1/sql:query", {"sql": "SELECT ?", "parameters": [[1]]}, "invalid-field"),
    ],
)
async def test_what_is_not_taken(path: str, body: object, code: str) -> None:
    async with talking(FREE, OneNode()) as api:
        assert (await api.post(path, body)).code == code
        assert api.node.clients.asked == []


async def test_rules_and_values_in_their_forms() -> None:
    async with talking(FREE, OneNode()) as api:
        executor: OneExecutor = api.node.clients
        rules = [{"tables": "a*", "rights": ["read", "schema"]}]
        await api.post("/v1/clients", {"public_key": "ab" * 32, "rights": rules})
        wanted = encode_acl(Acl((Rule("a*", int(Right.READ | Right.SCHEMA)),)))
        assert executor.added == [(bytes.fromhex("ab" * 32), wanted, None)]
        body = {"message_id": "2", "messages_base64": "kA==", "signature_base64": "AA=="}
        plain = (await api.post(DONE, body)).json["results"][0]["rows"]
        assert plain == [[7], [{"base64": "AA=="}], [{"float": "inf"}]]
        packed = await api.post(DONE, body, Accept="application/msgpack")
        assert msgspec.msgpack.decode(packed.body)["results"][0]["rows"] == [
            [7],
            [b"\x00"],
            [float("inf")],
        ]


# --- the client of the app ------------------------------------------------------------------------
@asynccontextmanager
async def at_work(api: Talk, state: Path) -> AsyncIterator[Any]:
    async with AsyncClient(api.running.url) as client, client.session(state) as session:
        await session.register()
        yield session


async def test_session_numbers_signs_and_says_what_it_holds(tmp_path: Path) -> None:
    state = tmp_path / "app.state"
    async with serving(tmp_path / "n1") as api:
        async with at_work(api, state) as session:
            assert (await session.execute("CREATE TABLE t (v)")).ok
            many = [session.execute(("INSERT INTO t VALUES (?)", n)) for n in range(8)]
            done = await asyncio.gather(*many)
            assert sorted(one.message_id for one in done) == list(range(2, 10))
            found = await session.execute(("SELECT count(*), ? FROM t", b"\x00"))
            assert found.rows == [[8, b"\x00"]]
            assert [one.message_id for one in await session.results()][-1] == 10
        client = (await api.get("/v1/clients/1")).json
        assert (client["next_message_id"], client["have"]) == ("11", "10")
        async with at_work(api, state) as session:
            assert session.client == 1
            assert await session.recover() == []
            assert (await session.execute("SELECT 1")).message_id == 11


async def test_session_takes_a_refused_id_back(tmp_path: Path) -> None:
    async with serving(tmp_path / "n1") as api, at_work(api, tmp_path / "s") as session:
        with pytest.raises(Conflict, match="not-deterministic"):
            await session.execute("SELECT random()")
        wrong = asyncio.ensure_future(session.execute("SELECT random()"))
        right = await session.execute("SELECT 1")
        assert (right.ok, right.message_id) in {(True, 1), (True, 2)}
        with suppress(Conflict):  # where no id came after it, it is refused before the order
            assert (await wrong).code == "not-deterministic"


async def test_session_sends_again_what_was_under_way(tmp_path: Path) -> None:
    state = tmp_path / "s"
    async with serving(tmp_path / "n1") as api:
        async with AsyncClient(api.running.url) as client:
            session = client.session(state)
            await session.register()
            await session.execute("CREATE TABLE t (v)")
            lost = session.state.add(encode_messages((statement("INSERT INTO t VALUES (1)"),)))
            session.state.close()  # as if the process had ended here
        async with at_work(api, state) as session:
            [found] = await session.recover()
            assert (found.message_id, found.ok) == (lost, True)
            assert (await session.execute("SELECT count(*) FROM t")).rows == [[1]]


async def test_state_file_is_held_by_one(tmp_path: Path) -> None:
    state = tmp_path / "s"
    async with AsyncClient("http://127.0.0.1:9") as client, client.session(state) as session:
        with pytest.raises(SessionInUse):
            client.session(state)
        with pytest.raises(ValueError, match="register"):
            await session.execute("SELECT 1")
        assert state.stat().st_mode & 0o077 == 0


async def test_client_has_the_plain_verbs_as_well(tmp_path: Path) -> None:
    async with registered(tmp_path) as api, AsyncClient(api.running.url) as client:
        assert (await client.client(1))["next_message_id"] == "2"
        assert (await client.new_client("ab" * 32))["client"] == 2
        rules = [{"tables": "a*", "rights": ["read"]}]
        assert (await client.change_rights(2, rights=rules))["rights"] == rules
        assert (await client.remove_client(2))["state"] == "removed"
        done = await client.client_messages(1, signed(api, 2, insert("nut")), wait="executed")
        assert done["code"] == "ok"
        signature = read(api, 2, 0).rpartition("=")[2]
        assert len((await client.client_results(1, 2, signature=signature))["items"]) == 2
        assert (await client.sql("SELECT ?", b"x"))["rows"] == [[{"base64": "eA=="}]]
        assert (await client.executor())["state"] == "running"
        with pytest.raises(NotFound, match="client-not-found"):
            await client.client(9)
        with pytest.raises(Conflict, match="statement-refused"):
            await client.sql("SELECT * FROM nowhere")
