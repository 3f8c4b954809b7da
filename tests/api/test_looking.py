"""What the page asks beside what programs ask: figures, receipts, prefixes, the DAG as it grows."""

import pytest

from quipu.api.settings import Settings
from quipu.api.tokens import new_token
from quipu.ledger.words import NodeNo
from quipu.node.order_service import SequenceState
from tests.api.one_node import OneNode
from tests.api.talk import talking
from tests.api.test_stream import listening


async def test_figures_are_those_of_the_metrics() -> None:
    async with talking() as api:
        before = (await api.get("/v1/figures")).json
        assert before["finality"] is None
        assert before["has_report"] is False
        for number in range(3):
            await api.stored(number)
        told = (await api.get("/v1/figures")).json
        assert told["counters"] == {"entries_stored_total": "3"}
        assert told["gauges"] == {"feed_number": 3.0}
        assert told["finality"]["samples"] == 3
        assert told["finality"]["p50_ms"] <= told["finality"]["p99_ms"]
        assert {check["name"] for check in told["checks"]} >= {"loop", "writer", "quorum"}


async def test_receipts_say_who_has_signed_how_far() -> None:
    async with talking(node=OneNode(3)) as api:
        first = (await api.submit(1)).json["id"]
        await api.submit(2)
        api.node.confirm(bytes.fromhex(first[:64]))  # type: ignore[arg-type]
        told = (await api.get("/v1/cluster/receipts")).json
        (row,) = told["items"]
        assert (row["author"]["number"], row["held_seq"], row["read_seq"]) == (1, "2", "1")
        assert {"number": 2, "seq": "1"} in row["signed"]
        assert told["truncated"] is False


async def test_an_event_is_found_by_how_its_id_begins() -> None:
    async with talking() as api:
        ids = [(await api.stored(number))[:64] for number in range(20)]
        for digits in (4, 7, 31, 32, 33, 63, 64):
            told = (await api.get(f"/v1/events?prefix={ids[3][:digits].upper()}")).json
            assert ids[3] in [item["id"] for item in told["items"]]
        other = ids[3][:40] + ("0" if ids[3][40] != "0" else "1")
        assert (await api.get(f"/v1/events?prefix={other}")).json["items"] == []


@pytest.mark.parametrize(
    "query", ["", "?prefix=abc", "?prefix=xyzw", "?prefix=" + "a" * 65, "?prefix=abcd%0A"]
)
async def test_a_prefix_that_is_none(query: str) -> None:
    async with talking() as api:
        reply = await api.get(f"/v1/events{query}")
        assert (reply.code, reply.pointers) == ("invalid-parameter", ["prefix"])


async def test_sequences_are_listed_by_name() -> None:
    async with talking() as api:
        for name in ("c", "a", "b"):
            state = SequenceState(name, 7, bytes(32), 0, NodeNo(1), 0)
            api.node.order.sequences[name] = state
        told = (await api.get("/v1/sequences?limit=2")).json
        assert ([one["name"] for one in told["items"]], told["more"]) == (["a", "b"], True)
        rest = (await api.get(f"/v1/sequences?after={told['next']}")).json
        assert ([one["name"] for one in rest["items"]], rest["more"]) == (["c"], False)


async def test_the_dag_is_told_as_it_grows() -> None:
    async with talking(node=OneNode(3)) as api, listening(api, "events=dag") as told:
        assert (await told.next()).event == "connected"
        first = (await api.submit({"a": 1})).json["id"][:64]
        event = await told.of("event")
        assert (event.data["id"], event.data["state"]) == (first, "stored")
        assert (event.data["author"]["name"], event.data["entry_count"]) == ("n1", 1)
        api.node.confirm(bytes.fromhex(first))  # type: ignore[arg-type]
        status = await told.of("status")
        assert (status.data["event_id"], status.data["state"]) == (first, "read")


async def test_the_dag_needs_more_than_a_stream(tmp_path) -> None:  # type: ignore[no-untyped-def]
    tokens = tmp_path / "tokens.json"
    token = new_token(tokens, "app", ["entries:read:orders"])
    async with talking(Settings(port=0, ops_port=0, tokens_file=tokens)) as api:
        api.headers = {"Authorization": f"Bearer {token}"}
        assert (await api.get("/v1/stream?events=dag")).code == "forbidden"


async def test_everybody_is_heard_where_that_is_wished() -> None:
    async with talking() as api:
        asked = {"question": "version", "everybody": True}
        told = (await api.post("/v1/cluster/queries", asked)).json
        assert (told["verdict"], told["answered"], len(told["answers"])) == ("agreed", 1, 1)
