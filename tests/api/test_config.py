"""The config stream over HTTP, on a real node that is alone."""

from pathlib import Path
from typing import cast

from quipu.api.settings import Settings
from quipu.api.tokens import new_token
from tests.api.administered import administration_in
from tests.api.one_node import OneNode
from tests.api.talk import talking
from tests.small_node import small_node

PROPOSE = "/v1/journal/config:propose"


async def test_roles_are_given_and_taken_and_the_last_stays(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    text = new_token(path, "operator", ["admin", "cluster:read", "entries:write"])
    settings = Settings(port=0, ops_port=0, tokens_file=path)
    administration, _ = administration_in(tmp_path)
    async with (
        small_node(tmp_path / "node") as node,
        talking(settings, cast(OneNode, node.ledger), administration) as api,
    ):
        api.headers = {"Authorization": f"Bearer {text}"}
        before = (await api.get("/v1/journal/config")).json
        assert before["change"] is None
        assert before["nodes"][0]["roles"] == ["ingest", "config"]
        assert before["nodes"][0]["serializer"]
        made = await api.post(PROPOSE, {"kind": "add-executor", "nodes": ["n1"]})
        assert made.status == 201, made.body
        assert (made.json["stage"], made.json["ended"]) == ("live", True)
        again = await api.post(PROPOSE, {"kind": "add-executor", "nodes": ["1"]})
        assert again.code == "already-so"
        last = await api.post(PROPOSE, {"kind": "remove-ingest", "nodes": ["n1"]})
        assert last.code == "last-node"
        same = await api.post(PROPOSE, {"kind": "serializers", "nodes": ["n1"]})
        assert same.code == "already-so"
        strange = await api.post(PROPOSE, {"kind": "serializers", "nodes": ["n9"]})
        assert strange.code == "unknown-node"
        twice = await api.post(PROPOSE, {"kind": "serializers", "nodes": ["n1", "1"]})
        assert twice.code == "invalid-field"
        many = await api.post(PROPOSE, {"kind": "bogus", "nodes": ["n1"]})
        assert many.code == "invalid-field"
        gone = await api.post(PROPOSE, {"kind": "remove-executor", "nodes": ["n1"]})
        assert (gone.status, gone.json["stage"]) == (201, "implemented")
        after = (await api.get("/v1/journal/config")).json
        assert after["nodes"][0]["roles"] == ["ingest", "config"]
        assert after["change"]["index"] == gone.json["index"]
        page = (await api.get("/v1/journal/entries?limit=100")).json
        items = [item for one in page["items"] for item in one["items"]]
        stages = [(one["change"], one["stage"]) for one in items if one["kind"] == "config"]
        assert stages == [
            ("add-executor", "catchup"),
            ("add-executor", "live"),
            ("remove-executor", "implement"),
        ]
