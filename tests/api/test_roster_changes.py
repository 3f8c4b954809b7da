"""Changes of the roster over HTTP: what is asked of the cluster, and what is refused at once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from quipu.api.settings import Settings
from quipu.api.tokens import new_token
from quipu.ledger.order.wishes import Candidate
from quipu.node.change_service import ChangeEnded, ChangeProgress, Stage
from tests.api.administered import administration_in
from tests.api.one_node import OneNode
from tests.api.one_roster import CHANGE_ID
from tests.api.talk import Reply, Talk, talking
from tests.api.test_cluster import view
from tests.small_ledger import key_of

PROPOSE = "/v1/cluster/roster:propose"
URI = f"quipu://10.0.0.4:8471/{key_of('n4').node_id.hex()}"


@asynccontextmanager
async def administered(folder: Path, size: int = 3) -> AsyncIterator[Talk]:
    file = folder / "tokens.json"
    token = new_token(file, "operator", ["admin"])
    administration, _ = administration_in(folder)
    settings = Settings(port=0, ops_port=0, tokens_file=file)
    async with talking(settings, OneNode(size=size), administration) as api:
        api.headers = {"Authorization": f"Bearer {token}"}
        yield api
        await administration.close()


async def propose(api: Talk, **asked: str) -> Reply:
    return await api.post(PROPOSE, asked)


def wanted(api: Talk) -> list[str]:
    (candidates, policy) = api.node.roster.proposed[-1]
    assert policy == "majority"
    return [one.name for one in candidates]


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ({"change": "add-member", "node": URI, "name": "n4"}, ["n1", "n2", "n3", "n4"]),
        ({"change": "remove-member", "node": "n2"}, ["n1", "n3"]),
        ({"change": "remove-member", "node": key_of("n2").node_id.hex()}, ["n1", "n3"]),
        (
            {"change": "replace-member", "node": "n1", "by": URI, "name": "n4"},
            ["n2", "n3", "n4"],
        ),
        ({"change": "checkpoint"}, ["n1", "n2", "n3"]),
    ],
)
async def test_what_an_operator_says_becomes_a_roster(
    asked: dict[str, str], names: list[str], tmp_path: Path
) -> None:
    async with administered(tmp_path) as api:
        reply = await propose(api, **asked)
        assert (reply.status, reply.json["id"]) == (202, CHANGE_ID.hex())
        assert wanted(api) == names


async def test_a_nominee_brings_where_it_can_be_dialled(tmp_path: Path) -> None:
    async with administered(tmp_path, size=1) as api:
        api.node.meets = (view(key_of("n4").node_id, name="n4"),)
        reply = await propose(api, change="add-member", node=URI)
        assert "one that is dead stops finality" in reply.json["warning"]
        new = api.node.roster.proposed[-1][0][-1]
        assert (new.where, new.name) == (("10.0.0.4", 8471), "n4")  # as it calls itself


async def test_a_nominee_that_does_not_answer_is_not_nominated(tmp_path: Path) -> None:
    async with administered(tmp_path) as api:
        reply = await propose(api, change="replace-member", node="n1", by=URI)
        assert (reply.status, reply.code) == (409, "nominee-unreachable")
        assert "10.0.0.4:8471" in reply.json["detail"]
        assert api.node.roster.proposed == []


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [
        ({"change": "grow"}, "/change"),
        ({"change": "add-member"}, "/node"),
        ({"change": "replace-member", "node": "n1"}, "/by"),
        ({"change": "remove-member", "node": "n1", "by": "n2"}, "/by"),
        ({"change": "checkpoint", "node": "n1"}, "/node"),
        ({"change": "add-member", "node": "quipu://nowhere"}, "/node"),
        ({"change": "add-member", "node": URI, "name": "é" * 65}, "/name"),
    ],
)
async def test_what_cannot_be_read_names_its_field(
    asked: dict[str, str], pointer: str, tmp_path: Path
) -> None:
    async with administered(tmp_path) as api:
        reply = await propose(api, **asked)
        assert (reply.status, reply.code) == (400, "invalid-field")
        assert [one["pointer"] for one in reply.json["errors"]] == [pointer]
        assert api.node.roster.proposed == []


async def test_only_an_admin_of_this_machine_changes_the_roster(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    token = new_token(file, "app", ["entries:write", "cluster:read"])
    administration, _ = administration_in(tmp_path)
    settings = Settings(port=0, ops_port=0, tokens_file=file)
    async with talking(settings, OneNode(), administration) as api:
        api.headers = {"Authorization": f"Bearer {token}"}
        assert (await propose(api, change="checkpoint")).code == "forbidden"
        assert (await api.get("/v1/cluster/roster")).status == 200
        await administration.close()


async def test_config_shows_roster_change_and_end(tmp_path: Path) -> None:
    async with administered(tmp_path) as api:
        found: Any = (await api.get("/v1/cluster/roster")).json
        assert [one["name"] for one in found["members"]] == ["n1", "n2", "n3"]
        assert (found["change"], found["ended"]) == (None, None)
        nodes = [key_of(f"n{number}").node_id for number in (1, 4)]
        candidates = tuple(Candidate(n, f"n{at}", []) for n, at in zip(nodes, (1, 4), strict=True))
        api.node.roster.change = ChangeProgress(
            CHANGE_ID, Stage.SEALING, candidates, "majority", 1_790_000_000_000, (nodes[1],)
        )
        api.node.roster.ended = ChangeEnded(bytes(32), "nominee-behind", (nodes[0],))
        found = (await api.get("/v1/cluster/roster")).json
        assert (found["change"]["stage"], found["change"]["id"]) == ("sealing", CHANGE_ID.hex())
        assert [one["name"] for one in found["change"]["missing"]] == ["n4"]
        assert found["ended"]["outcome"] == "nominee-behind"


# --- by force -------------------------------------------------------------------------------------
RECOVER = "/v1/cluster/roster:recover"


async def test_force_is_a_word_that_nobody_says_by_mistake(tmp_path: Path) -> None:
    async with administered(tmp_path) as api:
        for asked in ({}, {"force": False}, {"force": True, "node": "n2"}):
            assert (await api.post(RECOVER, asked)).status == 400
        reply = await api.post(RECOVER, {"force": True})
        assert reply.json == {"epoch": "2", "followed": False}


async def test_a_forced_epoch_is_shown_and_so_is_who_was_left_out(tmp_path: Path) -> None:
    async with administered(tmp_path) as api:
        api.node.roster.forced, api.node.roster.overruled_by = (2, 5), 6
        found = (await api.get("/v1/cluster/roster")).json
        assert (found["forced_epochs"], found["overruled_by"]) == (["2", "5"], "6")
        members = (await api.get("/v1/cluster/members")).json
        assert members["forced_epochs"] == ["2", "5"]
        (own,) = [one for one in members["items"] if one["is_self"]]
        assert "went on by force without this node (epoch 6)" in own["trouble"]
        assert (await api.post(RECOVER, {"force": True})).json["followed"] is True
