"""The executor role of the config stream: it stops the node's executor and begins it anew."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from quipu.ledger.order.config import NodeRole
from quipu.ledger.words import NodeNo
from quipu.node.execution import Execution
from quipu.node.running_clients import RunningClients
from quipu.storage.executors import keeping
from quipu.storage.store import DiskFailed
from tests.api.talk import Talk, until
from tests.api.test_clients import DONE, insert, registered, signed
from tests.small_node import WAIT_S


def execution_of(api: Talk) -> Execution:
    found = cast(RunningClients, api.node.clients).execution
    assert isinstance(found, Execution)
    return found


def give(execution: Execution, has: bool) -> None:
    """As an entry of the order would; of a node that is alone the last executor is not taken."""
    config = execution.machine.ordering.journal.config
    config._deviants[NodeNo(1), NodeRole.EXECUTOR] = has
    execution.pump()


async def reached(execution: Execution, state: str) -> None:
    async with asyncio.timeout(2 * WAIT_S):
        await until(lambda: execution.state == state)


async def status(api: Talk) -> Any:
    return (await api.get("/v1/executor")).json


async def test_who_loses_the_role_stops_and_who_gets_it_begins_from_the_log(tmp_path: Path) -> None:
    async with registered(tmp_path) as api:
        execution = execution_of(api)
        assert (await api.post(DONE, signed(api, 2, insert("nut")))).status == 201
        before = await status(api)
        give(execution, False)
        await reached(execution, "off")
        async with asyncio.timeout(2 * WAIT_S):
            await until(lambda: not keeping.is_begun(execution.directory))
            await until(lambda: "aside-1.sqlite3" in execution.detail)
        assert "is no executor" in (await status(api))["detail"]
        assert (await api.post("/v1/sql:query", {"sql": "SELECT 1"})).code == "no-executor"
        ordered = DONE.replace("executed", "ordered")
        stored = await api.post(ordered, signed(api, 3, insert("bolt")))
        assert stored.json["state"] == "ordered"
        give(execution, True)
        await reached(execution, "running")
        found = await api.post(
            "/v1/sql:query?consistency=linear", {"sql": "SELECT item FROM stock ORDER BY rowid"}
        )
        assert found.json["rows"] == [["nut"], ["bolt"]]
        assert (await api.post(DONE, signed(api, 4, insert("screw")))).json["code"] == "ok"
        assert int((await status(api))["applied"]) > int(before["applied"])


async def test_a_database_that_cannot_be_moved_is_left_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(directory: Path) -> None:
        raise DiskFailed("no")

    async with registered(tmp_path) as api:
        execution = execution_of(api)
        monkeypatch.setattr(keeping, "set_aside", fails)
        give(execution, False)
        await reached(execution, "off")
        async with asyncio.timeout(2 * WAIT_S):
            await until(lambda: "could not be set aside: no" in execution.detail)
        assert keeping.is_begun(execution.directory)


async def test_an_executor_that_has_failed_begins_anew_with_the_role(tmp_path: Path) -> None:
    async with registered(tmp_path) as api:
        execution = execution_of(api)
        execution.fail("it differs")
        give(execution, False)
        await reached(execution, "off")
        give(execution, True)
        await reached(execution, "running")
        assert (await api.post(DONE, signed(api, 2, insert("nut")))).json["code"] == "ok"
