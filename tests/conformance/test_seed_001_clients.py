"""Seed 001: client write requests, from the app to the executor and back, on a real node."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from quipu.ledger.entry import EntryKind, decode_entry
from quipu.ledger.event import EVENT_VERSION
from quipu.ledger.order import clients as orders
from quipu.ledger.order.client_items import (
    AddClient,
    ReadResults,
    RemoveClient,
    read_client_item,
    signed_read,
)
from quipu.storage.executors.desk import content_digest
from quipu.storage.executors.interpreter import statement
from quipu.storage.executors.request import Message, decode_messages, encode_messages
from tests.api.one_node import OneNode
from tests.api.talk import FREE, Talk, talking
from tests.conformance.clauses import clause
from tests.small_ledger import key_of
from tests.small_node import running, small_node

KEY = key_of("client")
DONE = "/v1/clients/1/messages?wait=executed"
TABLE = statement("CREATE TABLE stock (item)")


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Talk]:
    async with small_node(folder) as node, talking(FREE, cast(OneNode, node.ledger)) as api:
        reply = await api.post("/v1/clients", {"public_key": KEY.node_id.hex()})
        assert reply.json["client"] == 1
        yield api


def signed(api: Talk, message_id: int, *messages: Message) -> dict[str, str]:
    data = encode_messages(messages)
    unsigned = orders.Request(orders.ClientId(1), message_id, content_digest(data), b"")
    text = orders.signed_request(api.node.cluster_id, unsigned)
    return {
        "message_id": str(message_id),
        "messages_base64": base64.b64encode(data).decode(),
        "signature_base64": base64.b64encode(KEY.sign(text)).decode(),
    }


@clause("001-27", "001-28", "001-29", "001-30", "001-31", "001-32", "001-33")
@clause("001-34", "001-35", "001-36", "001-37", "001-38", "001-39")
def test_request_travels_whole_and_with_its_signature(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as api:
            body = signed(api, 1, TABLE, statement("SELECT 1"))
            identity = (await api.post(DONE, body)).json["id"]
            event_id, index = bytes.fromhex(identity[:64]), int(identity[65:])
            event = api.node.event(event_id)  # type: ignore[arg-type]  # an id of an event
            assert event is not None
            assert event.header.version == EVENT_VERSION
            held = api.node.entry(event_id, index)  # type: ignore[arg-type]
            assert held is not None
            entry = decode_entry(held)
            assert (entry.client_id, entry.message_id) == (1, 1)
            assert (entry.kind, entry.sig_type) == (EntryKind.DATA, 1)
            assert entry.data == base64.b64decode(body["messages_base64"])
            assert entry.signature == base64.b64decode(body["signature_base64"])
            assert decode_messages(entry.data) == (TABLE, statement("SELECT 1"))

    running(test)


@clause("001-91", "001-92", "001-93", "001-94", "001-95")
def test_clients_are_added_and_removed_in_the_order(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as api:
            await api.ask("DELETE", "/v1/clients/1")
            items = [
                found
                for entry in api.node.order.entries(0, 100)
                for data in entry.items
                if (found := read_client_item(data)) is not None
            ]
            _, added, removed = items
            assert isinstance(added, AddClient)
            assert (len(added.acl), added.sig_type, added.public) == (15, 1, KEY.node_id)
            assert removed == RemoveClient(1)
            assert (await api.get("/v1/clients/1")).json["state"] == "removed"

    running(test)


@clause("001-12", "001-107", "001-110")
def test_executor_tells_clients_and_read_is_in_the_order(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as api:
            body = signed(api, 1, TABLE, statement("SELECT 7"))
            done = (await api.post(DONE, body)).json
            assert [one["rows"] for one in done["results"]] == [[], [[7]]]
            signature = KEY.sign(signed_read(api.node.cluster_id, 1, 1, 0))
            path = f"/v1/clients/1/results?upto=1&have=0&signature={signature.hex()}"
            [kept] = (await api.get(path)).json["items"]
            assert kept["results"] == done["results"]
            items = [data for entry in api.node.order.entries(0, 100) for data in entry.items]
            assert ReadResults(1, 1, 0, signature) in map(read_client_item, items)
            found = await api.post("/v1/sql:query", {"sql": "SELECT count(*) FROM stock"})
            assert found.json["rows"] == [[0]]

    running(test)


@clause("001-111", "001-112", "001-113")
def test_ids_are_strict_and_two_signatures_for_one_end_the_client(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as api:
            assert (await api.post(DONE, signed(api, 1, TABLE))).status == 201
            gap = await api.post(f"{DONE}&timeout=10ms", signed(api, 3, statement("SELECT 3")))
            assert (gap.status, gap.json["state"]) == (202, "ordered") or gap.json["state"] in {
                "stored",
                "read",
            }
            forged = signed(api, 2, statement("SELECT 2")) | {"message_id": "1"}
            assert (await api.post(DONE, forged)).code == "bad-signature"
            assert (await api.post(DONE, signed(api, 2, statement("SELECT 2")))).status == 201
            other = await api.post(DONE, signed(api, 2, statement("SELECT 'other'")))
            assert other.code == "client-terminated"
            assert (await api.get("/v1/clients/1")).json["proof_base64"]

    running(test)


@clause("001-116", "001-117")
def test_any_node_checks_a_request_ahead_within_the_rights_of_its_client(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as api:
            assert (await api.post(DONE, signed(api, 1, TABLE))).status == 201
            wrong = await api.post(DONE, signed(api, 2, statement("SELECT random()")))
            assert wrong.code == "not-deterministic"
            rules = [{"tables": "other", "rights": ["read"]}]
            asked = {"public_key": KEY.node_id.hex(), "rights": rules}
            assert (await api.post("/v1/clients", asked)).json["client"] == 2
            query = {"sql": "SELECT * FROM stock", "client": 2}
            refused = await api.post("/v1/sql:query", query)
            assert refused.code == "statement-refused"

    running(test)
