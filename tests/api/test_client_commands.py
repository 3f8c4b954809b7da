"""quipu client, quipu sql, quipu executor against a real node of this machine."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import Result

from quipu.api.server import Running, serve
from quipu.node.exits import Exit
from tests.api.one_node import OneNode
from tests.api.talk import FREE
from tests.api.test_commands import quipu
from tests.small_node import small_node


class Serving:
    """A real node on a loop of its own in another thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = AsyncExitStack()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(daemon=True, target=self._loop.run_forever)
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(20).url

    async def _start(self) -> Running:
        node = await self._stack.enter_async_context(small_node(self._folder))
        self._running = await serve(cast(OneNode, node.ledger), FREE)
        return self._running

    def stop(self) -> None:
        async def end() -> None:
            await self._running.stop(1)
            await self._stack.aclose()

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    node = Serving(tmp_path / "n1")
    monkeypatch.setenv("QUIPU_URL", node.url)
    yield str(tmp_path / "app.state")
    node.stop()


def told(*arguments: str) -> Any:
    done = quipu(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def execute(state: str, *arguments: str) -> Result:
    return quipu("client", "execute", *arguments, "--state", state)


def test_what_an_operator_types(state: str) -> None:
    made = told("client", "new", "--state", state, "--allow", "stock*=read,write,schema")
    assert (made["client"], made["state"]) == (1, "active")
    assert execute(state, "CREATE TABLE stock (item TEXT, n INT)").exit_code == 0
    done = execute(state, "INSERT INTO stock VALUES (?, ?) RETURNING item", "nut", "7")
    assert (done.exit_code, done.stdout.split()) == (0, ["item", "nut"])
    assert told("sql", "SELECT * FROM stock WHERE n > ?", "3", "--linear") == [
        {"item": "nut", "n": 7}
    ]
    kept = told("client", "results", "--state", state)
    assert [one["code"] for one in kept] == ["ok"] * len(kept)
    assert told("client", "show", "1")["next_message_id"] == "3"
    assert told("executor")["state"] == "running"
    failed = execute(state, "INSERT INTO stock_of_others VALUES (1)")
    assert (failed.exit_code, "bad-sql" in failed.stdout) == (Exit.REJECTED, True)
    refused = execute(state, "SELECT random()")
    assert refused.exit_code == Exit.CONFLICT
    assert "not-deterministic" in refused.stderr
    assert told("client", "remove", "1")["state"] == "removed"
    gone = execute(state, "SELECT 1")
    assert gone.exit_code == Exit.NOT_FOUND
    assert "client-removed" in gone.stderr


def test_what_is_wrong_is_said_with_what_to_do(state: str) -> None:
    for arguments, code, says in (
        (("client", "new"), Exit.USAGE, "--public-key"),
        (("client", "new", "--state", state, "--allow", "stock"), Exit.USAGE, "stock*=read"),
        (("client", "execute", "SELECT 1", "--state", state), Exit.USAGE, "quipu client new"),
        (("client", "show", "9"), Exit.NOT_FOUND, "client-not-found"),
        (("sql", "SELEC"), Exit.CONFLICT, "statement-refused"),
    ):
        done = quipu(*arguments)
        assert done.exit_code == code, done.output
        assert says in done.stderr
    assert told("client", "new", "--public-key", "ab" * 32)["client"] == 1
