"""/v1/consumers: named cursors, kept durably, one writer of each at a time."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from quipu.api.cursors import Cursor
from quipu.api.tokens import new_token
from quipu.node.consumers import KeptConsumers
from tests.api.talk import FREE, Reply, Talk, talking


async def put(api: Talk, name: str, body: dict[str, object], **headers: str) -> Reply:
    data = json.dumps(body).encode()
    given = {"Content_Type": "application/json", **headers}
    return await api.ask("PUT", f"/v1/consumers/{name}", data, **given)


async def delete(api: Talk, name: str, **headers: str) -> Reply:
    return await api.ask("DELETE", f"/v1/consumers/{name}", None, **headers)


async def test_a_cursor_is_kept_and_leads_on() -> None:
    async with talking() as api:
        first = await api.stored(1)
        page = (await api.get("/v1/entries?limit=1")).json
        made = await put(api, "billing", {"cursor": page["next"], "ttl": "90m", "stream": "orders"})
        assert made.status == 201
        told = made.json
        assert (told["cursor"], told["ttl"], told["stream"]) == (page["next"], "90m", "orders")
        assert (told["owner"], made.headers["ETag"]) == (None, told["etag"])
        assert told["stored"] < told["expires"]
        found = await api.get("/v1/consumers/billing")
        assert (found.status, found.json) == (200, told)
        second = await api.stored(2)
        items = (await api.get(f"/v1/entries?after={found.json['cursor']}")).json["items"]
        assert [item["id"] for item in items] == [second] != [first]


async def test_now_and_start_are_words_for_cursors() -> None:
    async with talking() as api:
        first = await api.stored(1)
        now = (await put(api, "late", {"cursor": "now"})).json["cursor"]
        start = (await put(api, "early", {"cursor": "start"})).json["cursor"]
        second = await api.stored(2)
        assert await ids_after(api, now) == [second]
        assert await ids_after(api, start) == [first, second]
        listed = (await api.get("/v1/consumers")).json["items"]
        assert [one["name"] for one in listed] == ["early", "late"]


async def ids_after(api: Talk, cursor: str) -> list[str]:
    return [item["id"] for item in (await api.get(f"/v1/entries?after={cursor}")).json["items"]]


async def test_two_processes_do_not_overwrite_each_other() -> None:
    async with talking() as api:
        first = await put(api, "billing", {"cursor": "start"}, If_None_Match="*")
        again = await put(api, "billing", {"cursor": "start", "ttl": "8d"}, If_None_Match="*")
        assert (first.status, again.code) == (201, "consumer-changed")
        tag = first.headers["ETag"]
        await api.stored(1)
        cursors = [(await api.get(f"/v1/entries?limit={n}")).json["next"] for n in (1, 2)]
        await api.stored(2)
        cursors.append((await api.get("/v1/entries")).json["next"])
        replies = await asyncio.gather(
            put(api, "billing", {"cursor": cursors[0]}, If_Match=tag),
            put(api, "billing", {"cursor": cursors[2]}, If_Match=tag),
        )
        assert sorted(reply.status for reply in replies) == [200, 412]
        won = next(reply for reply in replies if reply.status == 200)
        assert (await api.get("/v1/consumers/billing")).json == won.json
        kept = {"cursor": won.json["cursor"]}
        lost_answer = await put(api, "billing", kept, If_Match=tag)
        assert lost_answer.status == 200  # it was carried out before: nobody is overwritten
        assert (await delete(api, "billing", If_Match=tag)).code == "consumer-changed"
        assert (await delete(api, "billing", If_Match=lost_answer.headers["ETag"])).status == 204
        assert (await delete(api, "billing")).code == "consumer-not-found"
        gone = await put(api, "billing", kept, If_Match="*")
        assert (gone.status, gone.code) == (412, "consumer-changed")


async def test_a_consumer_is_forgotten_after_its_ttl(monkeypatch: pytest.MonkeyPatch) -> None:
    async with talking() as api:
        consumers = api.node.consumers
        await put(api, "short", {"cursor": "now", "ttl": "1h"})
        await put(api, "long", {"cursor": "now", "ttl": "2d"})
        later_ms = api.node.now().wall_ms + 3_600_000
        monkeypatch.setattr(consumers, "wall_ms", lambda: later_ms)
        assert (await api.get("/v1/consumers/short")).code == "consumer-not-found"
        assert [x["name"] for x in (await api.get("/v1/consumers")).json["items"]] == ["long"]
        assert (await put(api, "long", {"cursor": "now", "ttl": "2d"})).status == 200
        assert [path.name for path in consumers.folder.iterdir()] == ["long.json"]
        assert (await put(api, "short", {"cursor": "now"})).status == 201


async def test_what_was_answered_is_there_after_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    async with talking() as api:
        consumers = api.node.consumers
        told = (await put(api, "billing", {"cursor": "start"})).json
        (consumers.folder / ".billing.json.77").write_bytes(b'{"cut')
        (consumers.folder / "other.json").write_bytes(b"nonsense")
        (consumers.folder / "wrong.json").write_bytes(
            (consumers.folder / "billing.json").read_bytes()
        )
        started = KeptConsumers.of(consumers.folder.parent, consumers.wall_ms)
        assert [f'"{one.etag}"' for one in started.all()] == [told["etag"]]
        assert started.unreadable == ["other.json", "wrong.json"]
        assert not (consumers.folder / ".billing.json.77").exists()

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("quipu.node.whole_file.os.fsync", full)
        await api.stored(1)
        refused = await put(api, "billing", {"cursor": "now"})
        assert (refused.status, refused.code) == (507, "storage-full")
        assert (await api.get("/v1/consumers/billing")).json == told
        monkeypatch.undo()
        assert KeptConsumers.of(consumers.folder.parent, consumers.wall_ms).all() == started.all()


WRONG = {
    "no cursor": ({}, "invalid-field", "/cursor"),
    "not a cursor": ({"cursor": "AAAA"}, "invalid-cursor", "/cursor"),
    "empty": ({"cursor": ""}, "invalid-field", "/cursor"),
    "no unit": ({"cursor": "now", "ttl": "7"}, "invalid-field", "/ttl"),
    "no time": ({"cursor": "now", "ttl": "0s"}, "invalid-field", "/ttl"),
    "too long": ({"cursor": "now", "ttl": "31d"}, "invalid-field", "/ttl"),
    "stream": ({"cursor": "now", "stream": "NO"}, "invalid-field", "/stream"),
    "unknown": ({"cursor": "now", "name": "x"}, "unknown-field", "/name"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_body_that_makes_no_sense(name: str) -> None:
    body, code, pointer = WRONG[name]
    async with talking() as api:
        reply = await put(api, "billing", body)  # type: ignore[arg-type]
        assert (reply.status, reply.code, reply.pointers) == (400, code, [pointer])
        assert (await api.get("/v1/consumers")).json["items"] == []


async def test_cursors_that_lead_nowhere_here() -> None:
    async with talking() as api:
        await api.stored(1)
        downwards = (await api.get("/v1/entries?order=desc&limit=1")).json["next"]
        assert (await put(api, "a", {"cursor": downwards})).code == "invalid-cursor"
        beyond = Cursor(99).text(api.node.node_id)
        reply = await put(api, "a", {"cursor": beyond})
        assert (reply.status, reply.code) == (410, "cursor-gone")
        assert (await put(api, "a", {"cursor": reply.json["oldest"]})).status == 201


@pytest.mark.parametrize("name", ["A", ".a", "a" * 129, "a b", "%C3%A9", "a%0A", "a%2Fb"])
async def test_names_that_are_none(name: str) -> None:
    async with talking() as api:
        reply = await put(api, name, {"cursor": "now"})
        assert reply.code == ("not-found" if "%2F" in name else "invalid-parameter")


async def test_a_consumer_belongs_to_who_made_it(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    scopes = {
        "shop": ["entries:read:orders"],
        "other": ["entries:read"],
        "writer": ["entries:write"],
        "root": ["admin"],
    }
    tokens = {name: new_token(path, name, given) for name, given in scopes.items()}
    async with talking(replace(FREE, tokens_file=path)) as api:

        def become(name: str) -> None:
            api.headers["Authorization"] = f"Bearer {tokens[name]}"

        become("shop")
        assert (await put(api, "a", {"cursor": "now", "stream": "cars"})).code == "forbidden"
        made = await put(api, "a", {"cursor": "now", "stream": "orders"})
        assert (made.status, made.json["owner"]) == (201, "shop")
        become("other")
        assert (await api.get("/v1/consumers/a")).code == "consumer-not-found"
        assert (await delete(api, "a")).code == "consumer-not-found"
        assert (await put(api, "a", {"cursor": "now"})).code == "forbidden"
        assert (await api.get("/v1/consumers")).json["items"] == []
        become("writer")
        assert (await api.get("/v1/consumers")).code == "forbidden"
        become("root")
        assert [x["name"] for x in (await api.get("/v1/consumers")).json["items"]] == ["a"]
        assert (await put(api, "a", {"cursor": "start"})).json["owner"] == "shop"
        become("shop")
        assert (await delete(api, "a")).status == 204
