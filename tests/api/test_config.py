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
        assert before["nodes"][0]["roles"] == ["ingest", "executor", "config"]
        assert before["nodes"][0]["serializer"]
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
        only = await api.post(PROPOSE, {"kind": "remove-executor", "nodes": ["n1"]})
        assert only.code == "last-node"
