"""Sequences, the journal and `wait=ordered` over HTTP, on a real node that is alone."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest

from quipu.api.settings import Settings
from quipu.api.tokens import new_token
from quipu.ledger.order.sequences import next_running
from tests.api.administered import administration_in
from tests.api.one_node import OneNode
from tests.api.talk import FREE, Talk, talking
from tests.small_node import small_node

INVOICES = "/v1/sequences/invoices"


@asynccontextmanager
async def ordering(folder: Path, settings: Settings = FREE) -> AsyncIterator[Talk]:
    async with small_node(folder) as node:
        ledger = cast(OneNode, node.ledger)  # the same to whoever talks to it
        async with talking(settings, ledger) as api:
            yield api


async def made(api: Talk, path: str, body: object) -> Any:
    reply = await api.post(path, body)
    assert reply.status == 201, reply.body
    return reply.json


async def test_entry_waits_for_its_place_in_the_order(tmp_path: Path) -> None:
    async with ordering(tmp_path) as api:
        reply = await api.post("/v1/entries?wait=ordered", {"data": 1})
        assert (reply.status, reply.json["state"]) == (201, "ordered")
        status = await api.get(f"/v1/entries/{reply.json['id']}/status")
        assert status.json["state"] == "ordered"
        batch = await api.post("/v1/entries:batch?wait=ordered", [{"data": 2}, {"data": 3}])
        assert batch.status == 201
        assert {one["state"] for one in batch.json["results"]} == {"ordered"}
        later = (await api.submit(4)).json["id"]
        status = await api.get(f"/v1/entries/{later}/status?wait=10s&state=ordered")
        assert status.json["state"] == "ordered"
        again = await api.get(f"/v1/entries/{later}/status?wait=1s&state=executed")
        assert again.code == "invalid-parameter"


async def test_wait_that_runs_out_is_no_error(tmp_path: Path) -> None:
    async with talking(FREE, OneNode()) as api:  # which orders nothing by itself
        reply = await api.post("/v1/entries?wait=ordered&timeout=10ms", {"data": 1})
        assert (reply.status, reply.json["state"]) == (202, "read")


async def test_journal_shows_what_stands_at_each_index(tmp_path: Path) -> None:
    async with ordering(tmp_path) as api:
        entry = (await api.post("/v1/entries?wait=ordered", {"data": 1})).json["id"]
        number = await made(api, f"{INVOICES}:publish", {"digest": "ab" * 32})
        lock = await made(api, f"{INVOICES}:lock", {"count": 2})
        held = {"token": lock["token"], "number": lock["first"], "data": 7}
        await made(api, f"{INVOICES}:publish", held)
        await api.post(f"{INVOICES}:release", {"token": lock["token"]})
        found = (await api.get("/v1/journal")).json
        assert (found["role"], found["regime"], found["events"]) == ("master", 1, "1")
        assert [member["name"] for member in found["serializers"]] == ["n1"]
        assert found["applied"] == found["chosen"] == found["last"]
        page = (await api.get("/v1/journal/entries?limit=1000")).json
        items = [item for one in page["items"] for item in one["items"]]
        assert [item["kind"] for item in items] == [
            "event",
            "lock-and-publish",
            "lock",
            "publish",
            "release",
        ]
        assert items[0]["event_id"] == entry.partition(":")[0]
        assert items[1]["digest"] == "ab" * 32
        assert page["items"][-1]["digest"] == found["digest"]
        assert number["index"] in {one["index"] for one in page["items"]}
        first = (await api.get("/v1/journal/entries?limit=1")).json
        assert (first["next"], first["more"], len(first["items"])) == ("1", True, 1)
        rest = (await api.get(f"/v1/journal/entries?after={first['next']}")).json
        assert first["items"] + rest["items"] == page["items"]
        assert not rest["more"]


async def test_numbers_are_published_one_after_the_other(tmp_path: Path) -> None:
    async with ordering(tmp_path) as api:
        running = bytes(32)
        payloads = [{"data": {"a": 1}}, {"data_base64": base64.b64encode(b"raw").decode()}]
        digests = [sha256(b'{"a": 1}').digest(), sha256(b"raw").digest()]
        for number, (body, digest) in enumerate(zip(payloads, digests, strict=True), start=1):
            found = await made(api, f"{INVOICES}:publish", body)
            running = next_running(running, number, digest)
            assert (found["number"], found["running_digest"]) == (str(number), running.hex())
        held = (await api.get(f"{INVOICES}/2")).json
        assert held["digest"] == sha256(b"raw").hexdigest()
        assert (held["number"], held["running_digest"]) == ("2", running.hex())
        assert held["publisher"]["name"] == "n1"
        assert (await api.get(f"{INVOICES}/3")).code == "number-not-found"
        assert (await api.get(f"{INVOICES}/0")).code == "number-not-found"
        assert (await api.get(f"{INVOICES}/x")).code == "invalid-id"
        assert (await api.get(f"{INVOICES}-none/1")).code == "sequence-not-found"
        shown = (await api.get(f"{INVOICES}?consistency=linear")).json
        assert (shown["number"], shown["holder"]) == ("2", None)
        assert shown["running_digest"] == running.hex()


async def test_lock_keeps_numbers_for_its_token(tmp_path: Path) -> None:
    async with ordering(tmp_path) as api:
        lock = await made(api, f"{INVOICES}:lock", {"count": 2})
        assert (lock["first"], lock["last"]) == ("1", "2")
        shown = (await api.get(INVOICES)).json
        assert (shown["token"], shown["locked_upto"]) == (lock["token"], "2")
        assert shown["holder"]["name"] == "n1"
        for body, code in (
            ({"data": 1}, "locked"),
            ({"data": 1, "token": "999", "number": "1"}, "old-token"),
            ({"data": 1, "token": lock["token"], "number": "2"}, "not-next"),
        ):
            reply = await api.post(f"{INVOICES}:publish", body)
            assert (reply.status, reply.code) == (409, code)
        locked = await api.post(f"{INVOICES}:lock", {"count": 1})
        assert (locked.code, locked.headers["Retry-After"]) == ("locked", "1")
        await made(api, f"{INVOICES}:publish", {"data": 1, "token": lock["token"], "number": "1"})
        released = await api.post(f"{INVOICES}:release", {"token": lock["token"]})
        assert (released.json["number"], released.json["holder"]) == ("1", None)
        assert (await made(api, f"{INVOICES}:publish", {"data": 2}))["number"] == "2"


async def test_sequences_survive_a_restart(tmp_path: Path) -> None:
    async with ordering(tmp_path) as api:
        before = await made(api, f"{INVOICES}:publish", {"data": 1})
        lock = await made(api, f"{INVOICES}:lock", {"count": 1})
    async with ordering(tmp_path) as api:
        shown = (await api.get(INVOICES)).json
        assert (shown["running_digest"], shown["token"]) == (
            before["running_digest"],
            lock["token"],
        )
        held = {"data": 2, "token": lock["token"], "number": lock["first"]}
        assert (await made(api, f"{INVOICES}:publish", held))["number"] == "2"
        numbers = [(await api.get(f"{INVOICES}/{n}")).json["running_digest"] for n in (1, 2)]
        assert numbers[0] == before["running_digest"]


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/v1/sequences/No:publish", {"data": 1}, "invalid-id"),
        ("/v1/sequences/no%0A:publish", {"data": 1}, "invalid-id"),
        (f"{INVOICES}:publish", {}, "invalid-field"),
        (f"{INVOICES}:publish", {"data": 1, "digest": "ab" * 32}, "invalid-field"),
        (f"{INVOICES}:publish", {"digest": "ab"}, "invalid-field"),
        (f"{INVOICES}:publish", {"data_base64": "!"}, "invalid-field"),
        (f"{INVOICES}:publish", {"data": 1, "token": "3"}, "invalid-field"),
        (f"{INVOICES}:publish", {"data": 1, "token": "x", "number": "1"}, "invalid-field"),
        (f"{INVOICES}:publish", {"date": 1}, "unknown-field"),
        (f"{INVOICES}:publish", b"{", "malformed-body"),
        (f"{INVOICES}:lock", {"count": 65}, "invalid-field"),
        (f"{INVOICES}:release", {}, "invalid-field"),
        (f"{INVOICES}:steal", {}, "method-not-allowed"),
    ],
)
async def test_what_is_not_taken(path: str, body: object, code: str) -> None:
    async with talking(FREE, OneNode()) as api:
        assert (await api.post(path, body)).code == code
        assert api.node.order.published == []


async def test_consistency_is_one_of_two() -> None:
    async with talking(FREE, OneNode()) as api:
        assert (await api.get(f"{INVOICES}?consistency=strong")).code == "invalid-parameter"


async def test_token_of_a_stream_is_good_for_the_sequence_of_its_name(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    text = new_token(path, "app", ["entries:write:invoices", "entries:read:invoices"])
    settings = Settings(port=0, ops_port=0, tokens_file=path)
    async with ordering(tmp_path / "n1", settings) as api:
        api.headers = {"Authorization": f"Bearer {text}"}
        await made(api, f"{INVOICES}:publish", {"data": 1})
        assert (await api.get(INVOICES)).json["number"] == "1"
        other = await api.post("/v1/sequences/orders:publish", {"data": 1})
        assert other.code == "forbidden"
        assert (await api.get("/v1/sequences/orders")).code == "forbidden"


async def test_a_serializer_that_lied_stands_among_the_evidence() -> None:
    async with talking() as api:
        api.node.order.lied = True
        (found,) = (await api.get("/v1/evidence")).json["items"]
        assert (found["role"], found["node_id"]) == ("serializer", "00" * 32)
        assert base64.b64decode(found["proof_base64"]) == b"proof"


async def test_operator_lets_a_node_vote_again(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    text = new_token(path, "op", ["admin", "cluster:read"])
    node = OneNode()
    node.order.recovering = True
    administration, _ = administration_in(tmp_path)
    settings = Settings(port=0, ops_port=0, tokens_file=path)
    async with talking(settings, node, administration) as api:
        api.headers = {"Authorization": f"Bearer {text}"}
        assert (await api.get("/v1/journal")).json["role"] == "recovering"
        reply = await api.post("/v1/admin/journal/recover", b"")
        assert (reply.status, reply.json["role"]) == (200, "master")
        await administration.close()
