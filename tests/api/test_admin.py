"""Admin verbs: who may use them, and operations from their begin to their end. The node is real."""

import asyncio
import errno
import io
import json
import os
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from quipu.api import server
from quipu.api.sockets import SocketPathTooLong, SocketPathUnusable
from quipu.api.tokens import new_token
from quipu.node.data_directory import STORE_FOLDER
from quipu.node.limits import REPORT_BYTES_MAX
from quipu.storage.verification import verify_store
from tests.api.administered import administration_in
from tests.api.one_node import OneNode
from tests.api.talk import FREE, Reply, Talk, talking, until
from tests.small_node import small_node, submitted

SCRUB, BACKUP = "/v1/admin/scrub", "/v1/admin/backup"
OPERATIONS, LAST = "/v1/admin/operations", "/v1/reports/last"
LOCAL = [
    ("POST", "/v1/admin/drain"),
    ("GET", "/v1/admin/keys"),
    ("POST", BACKUP),
    ("POST", "/v1/admin/exports"),
    ("POST", SCRUB),
    ("GET", OPERATIONS),
    ("GET", f"{OPERATIONS}/0123456789abcdef"),
    ("DELETE", f"{OPERATIONS}/0123456789abcdef"),
    ("PUT", LAST),
]


class Operator:
    """Somebody at the admin socket of a real node."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def ask(self, method: str, path: str, body: object = None) -> Reply:
        url, headers = f"http://localhost{path}", {"Content-Type": "application/json"}
        data = io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
        async with self._session.request(method, url, data=data, headers=headers) as response:
            return Reply(response.status, response.headers, await response.read())

    async def ended(self, begun: Reply) -> Reply:
        """The operation, when it has."""
        assert begun.status == 202, begun.body
        while True:
            found = await self.ask("GET", begun.headers["Location"])
            if found.json["state"] != "running":
                return found


@asynccontextmanager
async def operated(folder: Path) -> AsyncIterator[tuple[Operator, Talk]]:
    path = folder / "admin.sock"
    async with small_node(folder) as node:
        settings = replace(FREE, admin_socket=path)
        running = await server.serve(node.ledger, settings, node.administration)
        connector = aiohttp.UnixConnector(path=str(path))
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            aiohttp.ClientSession() as outside,
        ):
            yield Operator(session), Talk(node.ledger, running, outside)  # type: ignore[arg-type]
        await running.stop(0.5)
        assert not path.exists()


# --- who ------------------------------------------------------------------------------------------
async def test_socket_is_for_its_owner_and_serves_everything(tmp_path: Path) -> None:
    async with operated(tmp_path) as (operator, api):
        found = (tmp_path / "admin.sock").stat()
        assert (stat.S_ISSOCK(found.st_mode), stat.S_IMODE(found.st_mode)) == (True, 0o600)
        stored = await operator.ask("POST", "/v1/entries?wait=read", {"data": 1})
        assert stored.status == 201
        assert (await api.get(f"/v1/entries/{stored.json['id']}")).json["data"] == 1
        keys = (await operator.ask("GET", "/v1/admin/keys")).json["items"]
        assert [key["name"] for key in keys] == ["node", "cluster", "genesis"]
        assert [key["mode"] for key in keys] == ["0600", "0600", "0644"]
        secret = (tmp_path / "cluster.key").read_text().split()[1]
        assert secret not in str(keys)


async def test_without_tokens_the_socket_alone_will_do(tmp_path: Path) -> None:
    async with operated(tmp_path) as (_, api):
        for method, path in LOCAL:
            reply = await api.ask(method, path, b"{}", Content_Type="application/json")
            assert (reply.status, reply.code) == (403, "forbidden")


async def test_tokens_need_the_scope_and_the_machine(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    root, app = new_token(file, "root", ["admin"]), new_token(file, "app", ["cluster:read"])
    administration, drained = administration_in(tmp_path)
    settings = replace(FREE, tokens_file=file)
    async with talking(settings, administration=administration) as api:
        for method, path in LOCAL:
            assert (await api.ask(method, path)).code == "unauthenticated"
            told = await api.ask(method, path, Authorization=f"Bearer {app}")
            assert told.code == "forbidden"
            for header in ("X_Forwarded_For", "Forwarded"):
                far = {"Authorization": f"Bearer {root}", header: "for=192.0.2.7"}
                assert (await api.ask(method, path, None, **far)).code == "forbidden"
        assert drained.count == 0
        api.headers = {"Authorization": f"Bearer {root}"}
        assert (await api.get("/v1/admin/keys")).status == 200
        done = await api.ask("PUT", LAST, b"{}", Content_Type="application/json")
        assert done.status == 204
        assert (await api.get(LAST, Authorization=f"Bearer {app}")).body == b"{}"
        told = await api.ask("POST", "/v1/admin/drain")
        assert (told.status, told.json["draining"], drained.count) == (202, True, 1)


async def test_a_token_writes_nowhere_but_in_the_data_directory(tmp_path: Path) -> None:
    root = new_token(tmp_path / "tokens.json", "root", ["admin"])
    administration, _ = administration_in(tmp_path)
    settings = replace(FREE, tokens_file=tmp_path / "tokens.json")
    async with talking(settings, administration=administration) as api:
        api.headers = {"Authorization": f"Bearer {root}"}
        for target in (f"{tmp_path}/x", "../x", "..", "a/b", ".x", "a\0b"):
            reply = await api.post(BACKUP, {"target": target})
            assert (reply.code, reply.pointers) == ("invalid-field", ["/target"])
        begun = await api.post(BACKUP, {"target": "monday"})
        assert begun.status == 202
        await administration.operations.ended(administration.operations.list()[0])
        found = (await api.get(begun.headers["Location"])).json
        assert (found["state"], found["error"]) == ("done", "")
        copy = tmp_path / "backups" / "monday"
        assert sorted(item.name for item in copy.iterdir()) == ["data.mdb", "genesis"]
        assert stat.S_IMODE(copy.stat().st_mode) == 0o700
        assert verify_store(copy).events == 5
        again = await api.post(BACKUP, {"target": "monday"})
        assert (again.code, again.pointers) == ("invalid-field", ["/target"])
        await administration.close()


# --- operations -----------------------------------------------------------------------------------
async def test_backup_and_scrub_beside_writes(tmp_path: Path) -> None:
    async with operated(tmp_path / "data") as (operator, api):
        await asyncio.gather(*(api.submit(number) for number in range(50)))
        scrub = await operator.ask("POST", f"{SCRUB}?signatures=true")
        copy = await operator.ask("POST", BACKUP, {"target": str(tmp_path / "copy")})
        again = await operator.ask("POST", SCRUB)
        assert (again.status, again.code) == (409, "operation-running")
        assert scrub.json["id"] in again.json["detail"]
        writing = [api.submit(f"more {number}") for number in range(50)]
        assert {reply.status for reply in await asyncio.gather(*writing)} == {201}
        scrubbed, copied = await operator.ended(scrub), await operator.ended(copy)
        assert scrubbed.json["result"]["found"] == 0
        assert scrubbed.json["result"]["events"] > 0
        assert copied.json["result"]["target"] == str(tmp_path / "copy")
        assert verify_store(tmp_path / "copy", signatures=True).found == 0
        listed = (await operator.ask("GET", OPERATIONS)).json["items"]
        assert [one["kind"] for one in listed] == ["backup", "scrub"]
        assert listed[1]["ended"] >= listed[1]["started"]
        assert (await operator.ended(await operator.ask("POST", SCRUB))).json["state"] == "done"


def slow(folder: Path) -> str:
    """In the place of the process that works: it has begun, and goes on until it is killed."""
    program = folder / "slow"
    program.write_text(
        f"#!/bin/sh\nmkdir -p {folder}/copy.partial\n"
        """echo '{"phase": "copy", "done": 1, "total": 2, "found": 0}'\n"""
        "exec sleep 600\n"
    )
    program.chmod(0o700)
    return str(program)


async def test_cancelled_is_ended_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with operated(tmp_path / "data") as (operator, _):
        with monkeypatch.context() as patch:
            patch.setattr("sys.executable", slow(tmp_path))
            begun = await operator.ask("POST", BACKUP, {"target": str(tmp_path / "copy")})
            shown = begun
            while shown.json["phase"] != "copy":
                shown = await operator.ask("GET", begun.headers["Location"])
            assert (shown.json["done"], shown.json["total"]) == ("1", "2")
            again = await operator.ask("POST", BACKUP, {"target": str(tmp_path / "other")})
            assert again.code == "operation-running"
            ended = await operator.ask("DELETE", begun.headers["Location"])
        assert (ended.status, ended.json["state"]) == (200, "cancelled")
        assert ended.json["ended"] is not None
        assert list(tmp_path.glob("copy*")) == []
        assert (await operator.ask("DELETE", begun.headers["Location"])).json == ended.json
        assert (await operator.ask("DELETE", f"{OPERATIONS}/7")).code == "operation-not-found"
        begun = await operator.ask("POST", BACKUP, {"target": str(tmp_path / "copy")})
        assert (await operator.ended(begun)).json["state"] == "done"


async def test_what_fails_says_why(tmp_path: Path) -> None:
    async with operated(tmp_path / "data") as (operator, _):
        (tmp_path / "file").write_text("mine")
        begun = await operator.ask("POST", BACKUP, {"target": str(tmp_path / "file/copy")})
        ended = await operator.ended(begun)
        assert ended.json["state"] == "failed"
        assert ended.json["error"].startswith("BackupFailed: ")


async def test_a_stop_ends_what_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", slow(tmp_path))
    async with small_node(tmp_path / "data") as node:
        await submitted(node.ledger, ["a"])
        scrub = node.administration.scrub()
        copy = node.administration.backup(tmp_path / "copy")
        await until(lambda: scrub.phase == copy.phase == "copy")
        await node.drain()
        assert {str(scrub.state), str(copy.state)} == {"cancelled"}
        assert list(tmp_path.glob("copy*")) == []


# --- the report -----------------------------------------------------------------------------------
async def test_report_is_kept_byte_for_byte(tmp_path: Path) -> None:
    async with operated(tmp_path) as (operator, api):
        assert (await api.get(LAST)).code == "report-not-found"
        for report in (b"{}", '{"findings": [1.50],\n "made": "ü"}'.encode()):
            assert (await operator.ask("PUT", LAST, report)).status == 204
        assert (await api.get(LAST)).body == report
        assert stat.S_IMODE((tmp_path / "report.json").stat().st_mode) == 0o600
        wrong = b'{"big": "' + b"x" * REPORT_BYTES_MAX + b'"}'
        assert (await operator.ask("PUT", LAST, wrong)).code == "too-large"
        assert (await operator.ask("PUT", LAST, b"[1]")).code == "invalid-field"
        assert (await operator.ask("PUT", LAST, b'{"a":')).code == "malformed-body"
        assert (await api.get(LAST)).json["made"] == "ü"
        assert [item.name for item in tmp_path.glob("*report*")] == ["report.json"]


@pytest.mark.parametrize(
    ("number", "status", "code"),
    [(errno.ENOSPC, 507, "storage-full"), (errno.EIO, 503, "storage-failed")],
)
async def test_a_disk_that_fails_keeps_the_report_before(
    number: int, status: int, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fd: int) -> None:
        raise OSError(number, os.strerror(number))

    async with operated(tmp_path) as (operator, api):
        assert (await operator.ask("PUT", LAST, b'{"a": 1}')).status == 204
        with monkeypatch.context() as patch:
            patch.setattr("quipu.node.whole_file.os.fsync", fail)
            told = await operator.ask("PUT", LAST, b'{"a": 2}')
        assert (told.status, told.code) == (status, code)
        assert (await api.get(LAST)).body == b'{"a": 1}'
        assert [item.name for item in tmp_path.glob("*report*")] == ["report.json"]


# --- the socket -----------------------------------------------------------------------------------
async def test_socket_of_a_killed_node_is_replaced(tmp_path: Path) -> None:
    async with operated(tmp_path):
        pass
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "admin.sock"))
    async with operated(tmp_path) as (operator, _):
        assert (await operator.ask("GET", "/v1/admin/keys")).status == 200


async def test_socket_that_cannot_be_made(tmp_path: Path) -> None:
    administration, _ = administration_in(tmp_path)
    long = tmp_path / ("x" * 107)
    with pytest.raises(SocketPathTooLong, match="takes 107"):
        await server.serve(OneNode(), replace(FREE, admin_socket=long), administration)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SocketPathUnusable, match="is no socket"):
        await server.serve(OneNode(), replace(FREE, admin_socket=tmp_path / "file"), administration)
    assert (tmp_path / "file").read_text() == "mine"


# --- by itself ------------------------------------------------------------------------------------
async def test_damage_is_found_without_being_asked_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quipu.node.limits.SCRUB_START_DELAY_S", 0.0)
    async with small_node(tmp_path) as node:
        await submitted(node.ledger, ["a", "b"])
    damage(tmp_path / STORE_FOLDER)
    async with small_node(tmp_path) as node:
        running = await server.serve(node.ledger, FREE, node.administration)
        async with aiohttp.ClientSession() as session:
            api = Talk(node.ledger, running, session)  # type: ignore[arg-type]
            assert (await api.ops("/readyz?for=store")).status == 200
            node.administration.scrub_every(86_400)
            await until(lambda: node.ledger.soundness.scrubs == 1)
            told = await api.ops("/readyz?for=store")
            assert told.status == 503
            assert "first: events: author 1" in told.json["checks"][0]["detail"]
            assert (await api.ops("/readyz")).status == 200
            assert b"quipu_scrub_findings 1.0" in (await api.ops("/metrics")).body
        await running.stop(0.5)
    async with small_node(tmp_path) as node:
        assert node.ledger.soundness.found == 1, "it is remembered"
        assert not node.ledger.health().store[0].passes


def damage(store: Path) -> None:
    from quipu.storage import keys
    from quipu.storage.environment import records_from
    from tests.unit.storage.lmdb_files import flip, tampering

    with tampering(store) as (txn, tables):
        key = bytes(next(records_from(txn, tables.events))[0])  # type: ignore[arg-type]
    assert keys.slot_of(key).author_no == 1
    flip(store, "events", key, -1)
