"""GET /v1/entries: pages, cursors, filters, long-poll; and the streams and the DAG beside it."""

import asyncio
import json
from typing import Any

import pytest

from quipu.api.bodies import NDJSON
from quipu.api.cursors import Cursor, read_cursor
from quipu.ledger.words import EventId, NodeId
from tests.api.one_node import OneNode
from tests.api.talk import Talk, talking, until


async def pages(api: Talk, query: str) -> list[dict[str, Any]]:
    """All pages of a query, each through the Link header of the one before."""
    items: list[dict[str, Any]] = []
    path = f"/v1/entries?{query}"
    while True:
        reply = await api.get(path)
        assert reply.status == 200, reply.body
        items += reply.json["items"]
        if not reply.json["more"]:
            return items
        assert reply.json["items"] or reply.json["more"]
        path = reply.headers["Link"].partition("<")[2].partition(">")[0]


async def filled(api: Talk, batches: int = 5, size: int = 7) -> list[str]:
    ids = []
    for batch in range(batches):
        items = [{"data": [batch, n], "stream": f"s{n % 3}"} for n in range(size)]
        reply = await api.post("/v1/entries:batch?wait=read&atomic=true", items)
        assert reply.status == 201, reply.body
        ids += [result["id"] for result in reply.json["results"]]
    return ids


@pytest.mark.parametrize("limit", [1, 3, 7, 1000])
async def test_pages_hold_everything_once_in_both_orders(limit: int) -> None:
    async with talking() as api:
        ids = await filled(api)
        up = await pages(api, f"limit={limit}")
        assert [item["id"] for item in up] == ids
        down = await pages(api, f"limit={limit}&order=desc")
        assert [item["id"] for item in down] == ids[::-1]


async def test_paging_while_many_write_gives_everything_once() -> None:
    async with talking() as api:
        ids = await filled(api, batches=2)

        async def write(writer: int) -> list[str]:
            return [await api.stored([writer, n], stream="late") for n in range(30)]

        async def walk(limit: int) -> list[str]:
            seen: list[str] = []
            path = f"/v1/entries?limit={limit}"
            while len(seen) < 134:
                page = (await api.get(path)).json
                seen += [item["id"] for item in page["items"]]
                path = f"/v1/entries?limit={limit}&after={page['next']}"
            return seen

        walking = [asyncio.create_task(walk(limit)) for limit in (1, 3, 50)]
        written = await asyncio.gather(*(write(writer) for writer in range(4)))
        everything = sorted(ids + [identity for one in written for identity in one])
        for walked in walking:
            assert sorted(await walked) == everything


async def test_filters() -> None:
    async with talking() as api:
        await filled(api)
        await api.stored("x", stream="old", time="2020-01-01T00:00:00.5+01:00")
        assert {i["stream"] for i in await pages(api, "stream=s1&limit=2")} == {"s1"}
        old = await pages(api, "until=2021-01-01T00:00:00Z")
        assert [item["time"] for item in old] == ["2019-12-31T23:00:00.500Z"]
        assert len(await pages(api, "since=2021-01-01T00:00:00Z")) == 35
        for author in ("n1", "1", api.node.node_id.hex()):
            assert len(await pages(api, f"author={author}")) == 36
        assert await pages(api, "client=4") == []
        assert await pages(api, "submitter=app") == []


async def test_narrow_filter_over_much_is_answered_in_bounded_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("quipu.api.limits.PAGE_SCANNED_MAX", 4)
    async with talking() as api:
        ids = await filled(api)
        first = (await api.get("/v1/entries?stream=none")).json
        assert (first["items"], first["more"]) == ([], True)
        found = await pages(api, "stream=s2&limit=50")
        assert [item["id"] for item in found] == [i for i in ids if i[65:] in {"2", "5"}]


@pytest.mark.parametrize("limit", [1, 4, 1000])
async def test_pages_of_what_is_stored_and_not_final(limit: int) -> None:
    async with talking(node=OneNode(size=3)) as api:
        ids = await unread(api, 5)
        assert (await api.get("/v1/entries")).json["items"] == []
        seen = await pages(api, f"state=stored&limit={limit}")
        assert [item["id"] for item in seen] == ids
        only = await pages(api, f"state=stored&stream=s1&limit={limit}")
        assert [item["id"] for item in only] == [item["id"] for item in seen if item["data"][1] % 2]
        end = (await api.get("/v1/entries?state=stored&limit=1000")).json["next"]
        late = await unread(api, 1)
        page = (await api.get(f"/v1/entries?state=stored&after={end}")).json
        assert ([item["id"] for item in page["items"]], page["more"]) == (late, False)


async def unread(api: Talk, batches: int) -> list[str]:
    ids = []
    for batch in range(batches):
        items = [{"data": [batch, n], "stream": f"s{n % 2}"} for n in range(3)]
        reply = await api.post("/v1/entries:batch?atomic=true", items)
        assert reply.status == 201, reply.body
        ids += [result["id"] for result in reply.json["results"]]
    return ids


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
async def test_what_becomes_final_between_two_pages_is_in_the_feed(limit: int) -> None:
    """Walk over the stored and the feed from where it was before: the union is everything, and
    in neither of the two anything comes twice."""
    async with talking(node=OneNode(size=2)) as api:
        ids = await unread(api, 8)
        start = (await api.get("/v1/entries")).json["next"]
        seen: list[str] = []
        path, more, walked, confirmed = f"/v1/entries?state=stored&limit={limit}", True, 0, 0
        while more:
            if len(ids) < 40:
                ids += await unread(api, 1)
            page = (await api.get(path)).json
            seen += [item["id"] for item in page["items"]]
            more = page["more"]
            path = f"/v1/entries?state=stored&limit={limit}&after={page['next']}"
            walked += 1
            if confirmed < 8 and walked % 2:
                confirmed += 1
                api.node.confirm(EventId(bytes.fromhex(ids[3 * confirmed - 1][:64])))
        final = [item["id"] for item in await pages(api, f"limit=5&after={start}")]
        assert len(seen) == len(set(seen))
        assert len(final) == len(set(final)) == 3 * confirmed > 0
        assert set(seen) | set(final) == set(ids)
        assert set(seen) >= set(ids) - set(final), "what stayed stored was seen"


async def test_a_filter_that_fits_nothing_stored_is_answered_in_bounded_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("quipu.api.limits.PAGE_SCANNED_MAX", 4)
    async with talking(node=OneNode(size=3)) as api:
        await unread(api, 5)
        first = (await api.get("/v1/entries?state=stored&stream=none")).json
        assert (first["items"], first["more"]) == ([], True)
        assert await pages(api, "state=stored&stream=none") == []
        assert (await api.get("/v1/entries?state=stored&author=n2")).json["more"]
        assert len(await pages(api, "state=stored&stream=s1")) == 5


async def test_cursors_of_the_two_lists_are_not_mixed_up() -> None:
    async with talking(node=OneNode(size=3)) as api:
        await unread(api, 1)
        stored = (await api.get("/v1/entries?state=stored&limit=1")).json["next"]
        feed = (await api.get("/v1/entries")).json["next"]
        assert (await api.get(f"/v1/entries?after={stored}")).code == "invalid-cursor"
        assert (await api.get(f"/v1/entries?state=stored&after={feed}")).code == "invalid-cursor"
        for wrong in ("wait=1s", "order=desc"):
            reply = await api.get(f"/v1/entries?state=stored&{wrong}")
            assert (reply.code, reply.pointers) == ("invalid-parameter", ["state"])


async def test_long_poll() -> None:
    async with talking() as api:
        first = (await api.get("/v1/entries?wait=1ms")).json
        assert first["items"] == []
        asked = asyncio.create_task(api.get(f"/v1/entries?wait=30s&after={first['next']}"))
        await until(lambda: api.node.listeners == 1)
        identity = await api.stored("new")
        assert [item["id"] for item in (await asked).json["items"]] == [identity]
        assert api.node.listeners == 0


async def test_long_poll_ends_when_the_node_stops() -> None:
    async with talking() as api:
        asked = asyncio.create_task(api.get("/v1/entries?wait=30s"))
        await until(lambda: api.node.listeners == 1)
        await api.running.stop(5)
        assert (await asked).json["items"] == []


async def test_cursor_leads_on_at_another_node() -> None:
    """The other node has the same events behind other numbers, and more of them."""
    async with talking() as api:
        ids = await filled(api)
        page = (await api.get("/v1/entries?limit=10")).json
        cursor = read_cursor(page["next"], NodeId(bytes(32)), "after")
        assert cursor.by_vector
        assert cursor.number == 0
        foreign = cursor.copy()
        foreign.by_vector = False
        foreign.number = 10_000  # as far as that node has come
        text = foreign.text(NodeId(bytes(32)))
        rest = await pages(api, f"limit=4&after={text}")
        assert [item["id"] for item in rest] == ids[10:]


async def test_cursor_of_another_node_does_not_scan_the_feed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is looked at grows with what is new to the caller, not with the ledger."""
    async with talking() as api:
        ids = await filled(api, batches=40, size=2)
        looked: list[int] = []
        plain_feed = api.node.feed

        def counted(after: int, limit: int) -> list[tuple[int, EventId]]:
            found = plain_feed(after, limit)
            looked.extend(number for number, _ in found)
            return found

        monkeypatch.setattr("quipu.api.pages.FEED_STEP", 4)
        monkeypatch.setattr(api.node, "feed", counted)
        for given in (0, 1, 73, 74, 79, 80):
            cursor = await moved_to_another_node(api, given)
            looked.clear()
            rest = await pages(api, f"limit=1000&after={cursor}")
            assert [item["id"] for item in rest] == ids[given:]
            fresh = 40 - given // 2
            assert len(looked) <= 2 * (fresh + 4)
        monkeypatch.setattr("quipu.api.limits.SEEK_EVENTS_MAX", 8)
        for given in (0, 20, 78):
            rest = await pages(api, f"limit=9&after={await moved_to_another_node(api, given)}")
            assert [item["id"] for item in rest] == ids[given:]


async def moved_to_another_node(api: Talk, given: int) -> str:
    """A cursor after so many entries, as a node with another numbering would have given it."""
    cursor = Cursor()
    if given:
        text = (await api.get(f"/v1/entries?limit={given}")).json["next"]
        cursor = read_cursor(text, api.node.node_id, "after")
    cursor.number = 10_000
    return cursor.text(NodeId(bytes(32)))


async def test_cursor_of_the_other_order_is_refused() -> None:
    async with talking() as api:
        await filled(api)
        down = (await api.get("/v1/entries?order=desc&limit=3")).json["next"]
        assert (await api.get(f"/v1/entries?after={down}")).code == "invalid-cursor"
        elsewhere = Cursor(3, downwards=True).text(NodeId(bytes(32)))
        path = f"/v1/entries?order=desc&after={elsewhere}"
        assert (await api.get(path)).code == "invalid-cursor"
        changed = down[:-6] + ("A" if down[-6] != "A" else "B") + down[-5:]
        assert (await api.get(f"/v1/entries?order=desc&after={changed}")).code == "invalid-cursor"


def test_vector_of_a_cursor_is_bounded() -> None:
    from quipu.api.cursors import VECTOR_CORDS_MAX
    from tests.made_events import MadeCluster

    cluster, cursor = MadeCluster(), Cursor()
    for journal in range(1, 3 * VECTOR_CORDS_MAX):
        cursor.pass_over(journal, cluster.write(1, journal=journal).meta)
    again = read_cursor(cursor.text(NodeId(bytes(32))), NodeId(bytes(32)), "after")
    assert len(again.vector) == VECTOR_CORDS_MAX
    assert max(cord.journal for cord in again.vector) == 3 * VECTOR_CORDS_MAX - 1


async def test_ndjson_page() -> None:
    async with talking() as api:
        ids = await filled(api, batches=1)
        reply = await api.get("/v1/entries", Accept=NDJSON)
        assert [json.loads(line)["id"] for line in reply.body.splitlines()] == ids
        assert 'rel="next"' in reply.headers["Link"]


async def test_streams_are_counted() -> None:
    async with talking() as api:
        await filled(api)
        found = (await api.get("/v1/streams")).json["items"]
        assert [(row["name"], row["entries"]) for row in found] == [
            ("s0", "15"),
            ("s1", "10"),
            ("s2", "10"),
        ]
        await api.stored(1, stream="s1")
        found = (await api.get("/v1/streams")).json["items"]
        assert found[1]["entries"] == "11"


async def test_dag() -> None:
    async with talking() as api:
        ids = [identity[:64] for identity in await filled(api, size=1)]
        middle = f"/v1/events/{ids[2]}"
        event = (await api.get(middle)).json
        assert (event["prev"], event["seq"], event["state"]) == (ids[1], "3", "read")
        below = (await api.get(f"{middle}/parents")).json["items"]
        assert [one["id"] for one in below] == [ids[1]]
        above = (await api.get(f"{middle}/children")).json["items"]
        assert [one["id"] for one in above] == [ids[3]]
        deep = (await api.get(f"{middle}/ancestors?depth=9")).json
        assert [one["id"] for one in deep["items"]] == [ids[1], ids[0]]
        cut = (await api.get(f"{middle}/ancestors?depth=9&limit=1")).json
        assert (len(cut["items"]), cut["truncated"]) == (1, True)
        assert (await api.get("/v1/dag/leaves")).json["items"][0]["id"] == ids[4]
        window = (await api.get(f"/v1/dag/window?center={ids[2]}&before=1&after=1")).json
        assert [one["id"] for one in window["items"]] == ids[1:4]
        newest = (await api.get("/v1/dag/window?before=1&after=9")).json
        assert [one["id"] for one in newest["items"]] == ids[3:]
        (row,) = (await api.get("/v1/dag/frontier")).json["rows"]
        assert (row["held_seq"], row["read_id"]) == ("5", ids[4])
        assert (await api.get(f"{middle}/explain")).json["obstacles"] == []


async def test_window_shows_what_is_not_final() -> None:
    async with talking(node=OneNode(size=3)) as api:
        identity = (await api.submit(1)).json["id"][:64]
        window = (await api.get("/v1/dag/window")).json["items"]
        assert [(one["id"], one["state"]) for one in window] == [(identity, "stored")]


async def test_node_and_evidence() -> None:
    async with talking() as api:
        node = (await api.get("/v1/node")).json
        assert (node["name"], node["number"], node["safe"], node["ready"]) == ("n1", 1, True, True)
        assert node["limits"]["entry_bytes"] == 1 << 20
        assert (await api.get("/v1/evidence")).json["items"] == []
