"""`POST /v1/admin/exports`: a real node writes a signed dump of itself, and adds to it."""

from pathlib import Path

from quipu.dumps.checking import check_contents, check_files
from quipu.node.data_directory import read_directory
from tests.api.test_admin import operated

EXPORTS = "/v1/admin/exports"


async def test_a_running_node_dumps_itself(tmp_path: Path) -> None:
    data, target = tmp_path / "data", tmp_path / "dump"
    async with operated(data) as (operator, _api):
        stored = await operator.ask("POST", "/v1/entries?wait=read", {"data": 1})
        assert stored.status == 201
        asked = {"target": str(target), "entries": "with data"}
        done = await operator.ended(await operator.ask("POST", EXPORTS, asked))
        assert (done.json["state"], done.json["error"]) == ("done", "")
        assert done.json["result"]["read"] == 1
        checked = check_files(target)
        assert checked.problems + check_contents(checked, signatures=True) == []
        assert checked.manifest is not None
        assert checked.manifest.node_id == read_directory(data).key.node_id.hex()
        await operator.ask("POST", "/v1/entries?wait=read", {"data": 2})
        done = await operator.ended(await operator.ask("POST", EXPORTS, asked))
        assert (done.json["result"]["dump"], done.json["result"]["added"]) == (2, 1)
        checked = check_files(target)
        assert checked.problems + check_contents(checked, signatures=True) == []


async def test_a_name_is_a_dump_in_the_data_directory(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with operated(data) as (operator, _):
        done = await operator.ended(await operator.ask("POST", EXPORTS, {"target": "all"}))
        assert done.json["state"] == "done"
        assert check_files(data / "dumps" / "all").problems == []
        (data / "dumps" / "mine").mkdir()
        (data / "dumps" / "mine" / "x").write_text("mine")
        failed = await operator.ended(await operator.ask("POST", EXPORTS, {"target": "mine"}))
        assert failed.json["state"] == "failed"
        assert "no dump" in failed.json["error"]
        refused = await operator.ask("POST", EXPORTS, {"target": "all", "entries": "half"})
        assert (refused.status, refused.code) == (400, "invalid-field")
