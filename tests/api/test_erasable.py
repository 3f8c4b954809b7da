"""Entries of a stream that is declared erasable carry a salt, which nobody is asked for."""

import asyncio
import json

import pytest

import quipu.verify
from quipu.api.bodies import CLOUDEVENT, JSON, MSGPACK, NDJSON
from quipu.ledger import limits
from quipu.ledger.entry import (
    SALT_BYTES,
    ContentType,
    Entry,
    data_entry,
    decode_entry,
    encode_entry,
)
from tests.api.one_node import OneNode
from tests.api.talk import Talk, talking, until

A_CLOUDEVENT = b'{"specversion":"1.0","id":"1","source":"/a","type":"t","data":1}'


def declared() -> OneNode:
    return OneNode(erasable=["gdpr", "people"])


def held(api: Talk, identity: str) -> Entry:
    event, _, index = identity.partition(":")
    canonical = api.node.store.entry(bytes.fromhex(event), int(index))  # type: ignore[arg-type]
    assert canonical is not None
    return decode_entry(canonical)


def salt(api: Talk, identity: str) -> bytes | None:
    return held(api, identity).salt


async def test_entries_of_an_erasable_stream_are_salted_each_with_its_own() -> None:
    async with talking(node=declared()) as api:
        ids = [await api.stored("same", stream="gdpr") for _ in range(20)]
        salts = [salt(api, identity) for identity in ids]
        assert all(one is not None and len(one) == SALT_BYTES for one in salts)
        assert len(set(salts)) == 20
        assert salt(api, await api.stored("same", stream="orders")) is None
        assert (await api.get("/v1/node")).json["streams_erasable"] == ["gdpr", "people"]


@pytest.mark.parametrize(
    ("path", "kind", "body"),
    [
        ("/v1/entries?stream=gdpr", JSON, b'{"data":1}'),
        ("/v1/entries?stream=gdpr", MSGPACK, b"\x81\xa4data\x01"),
        ("/v1/entries?stream=gdpr", CLOUDEVENT, A_CLOUDEVENT),
        ("/v1/entries:batch?stream=gdpr", JSON, b'[{"data":1}]'),
        ("/v1/entries:batch?stream=gdpr&atomic=true", JSON, b'[{"data":1}]'),
        ("/v1/entries:batch?stream=gdpr", NDJSON, b'{"data":1}\n'),
    ],
)
async def test_whatever_way_they_come(path: str, kind: str, body: bytes) -> None:
    async with talking(node=declared()) as api:
        answer = (await api.post(path, body, kind)).json
        identity = answer["results"][0]["id"] if "results" in answer else answer["id"]
        assert salt(api, identity) is not None


async def test_data_and_proof_are_as_of_any_entry() -> None:
    async with talking(node=declared()) as api:
        identity = await api.stored({"name": "Ann"}, stream="people")
        entry = (await api.get(f"/v1/entries/{identity}")).json
        assert (entry["data"], "salt" in entry) == ({"name": "Ann"}, False)
        proof = (await api.get(f"/v1/entries/{identity}/proof")).body
        proven = quipu.verify.verify(proof, api.node.genesis)
        assert json.loads(proven.entry.data) == {"name": "Ann"}
        assert proven.entry.salt == salt(api, identity)


async def test_a_repetition_is_known_in_spite_of_the_salt() -> None:
    async with talking(node=declared()) as api:

        async def sent(data: object) -> tuple[int, str]:
            body = {"data": data, "stream": "gdpr", "idempotency_key": "k"}
            reply = await api.post("/v1/entries", body)
            return reply.status, reply.json.get("id") or reply.code

        api.node.paused = asyncio.Event()
        flying = [asyncio.create_task(sent(1)) for _ in range(5)]
        await until(lambda: api.node.submissions == 1)
        assert await sent(2) == (409, "key-in-flight")
        api.node.paused.set()
        answers = [await task for task in flying]
        assert sorted(status for status, _ in answers) == [200, 200, 200, 200, 201]
        assert len({identity for _, identity in answers}) == 1
        assert await sent(1) == (200, answers[0][1])
        assert await sent(2) == (422, "key-reused")


async def test_the_salt_counts_as_part_of_the_entry() -> None:
    """What would not fit with its salt is refused before it is stored, with its own code."""
    async with talking(node=declared()) as api:
        for stream, status in (("orders", 201), ("gdpr", 413)):
            shortest = data_entry(b'""', stream=stream, content_type=ContentType.JSON)
            frame = len(encode_entry(shortest)) + 3  # a long bin has 3 bytes more of length
            body = b'{"data":"' + b"x" * (limits.ENTRY_BYTES_MAX - frame) + b'"}'
            reply = await api.post(f"/v1/entries?stream={stream}", body)
            assert reply.status == status
            assert status == 201 or reply.code == "too-large"
