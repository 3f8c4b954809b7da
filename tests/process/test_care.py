"""`quipu store`, `drain` and `keys`: beside a running node and without one, with their exit codes.

The nodes are processes; the commands run in the test's own, which is faster and the same code.
"""

import http.client
import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from quipu.cli.main import app
from quipu.node.exits import Exit
from tests.process.apps import missing
from tests.process.command import ANY_PORTS, QUIPU, WAIT_S, RunningCommand, environment
from tests.unit.storage.lmdb_files import tampering


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def quipu(*arguments: str) -> Done:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return Done(done.exit_code, done.stdout, done.stderr)


def told(folder: Path, *arguments: str) -> Any:
    done = quipu(*arguments, "--data-dir", str(folder), "--json")
    assert done.returncode == Exit.OK, done.stderr
    return json.loads(done.stdout)


def stored(url: str, count: int) -> list[str]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=WAIT_S)
    ids = []
    for number in range(count):
        body = json.dumps({"data": number})
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/entries?wait=read", body, headers)
        ids.append(json.loads(connection.getresponse().read())["id"])
    connection.close()
    return ids


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory in which a node has lived, and the entries it holds in `ids`."""
    with RunningCommand(tmp_path / "data") as node:
        ids = stored(node.facts["api"], 5)
        (tmp_path / "ids").write_text(json.dumps(ids))
        assert node.stop()[0] == Exit.OK
    return tmp_path / "data"


def damage(data: Path) -> None:
    with tampering(data / "store") as (txn, tables):
        with txn.cursor(tables.events) as cursor:
            assert cursor.first()
            key, value = bytes(cursor.key()), bytearray(cursor.value())
        value[-1] ^= 1
        txn.put(key, bytes(value), db=tables.events)


def test_beside_a_running_node(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with RunningCommand(data) as node:
        ids = stored(node.facts["api"], 5)
        assert told(data, "store", "stats")["feed"] == 5
        assert told(data, "store", "scrub", "--signatures")["found"] == 0
        assert told(data, "store", "verify")["events"] == 5
        copy = tmp_path / "copy"
        assert told(data, "store", "backup", str(copy))["target"] == str(copy)
        again = quipu("store", "backup", str(copy), "--data-dir", str(data))
        assert (again.returncode, "is there already" in again.stderr) == (Exit.CONFLICT, True)
        assert told(data, "store", "stats")["scrub_found"] == 0
        listed = told(data, "keys")
        assert listed[0]["public"] == node.facts["node_id"]
        for command in ("compact", f"restore {copy}"):
            done = quipu("store", *command.split(), "--data-dir", str(data))
            assert done.returncode == Exit.CONFLICT
            assert f"in use by process {node.facts['pid']}" in done.stderr
        assert missing(node.facts["api"], ids) == []
        assert told(data, "drain") == {"pid": node.facts["pid"], "ended": True}
        assert node.ended()[0] == Exit.OK
    assert not (data / "admin.sock").exists()
    alone = told(data, "keys")
    # While it ran it knew its port; now the settings say one.
    assert alone[0].pop("uri") == f"quipu://127.0.0.1:8471/{node.facts['node_id']}"
    assert listed[0].pop("uri") == node.facts["p2p"]
    assert alone == listed


def test_without_a_node(data: Path, tmp_path: Path) -> None:
    assert told(data, "store", "scrub")["events"] == 5
    assert told(data, "store", "stats")["scrub_found"] == 0
    told(data, "store", "backup", str(tmp_path / "copy"))
    done = told(data, "store", "compact")
    assert done["bytes_after"] < done["bytes_before"]
    done = quipu("drain", "--data-dir", str(data))
    assert (done.returncode, "no node runs" in done.stderr) == (Exit.UNREACHABLE, True)
    with RunningCommand(data) as node:
        assert missing(node.facts["api"], json.loads((tmp_path / "ids").read_text())) == []


def test_a_new_machine_with_the_keys_and_a_backup(data: Path, tmp_path: Path) -> None:
    told(data, "store", "backup", str(tmp_path / "copy"))
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    done = quipu("store", "restore", str(tmp_path / "copy"), "--data-dir", str(fresh))
    assert (done.returncode, "holds no node" in done.stderr) == (Exit.CONFLICT, True)
    for name in ("node.key", "cluster.key"):
        (fresh / name).touch(mode=0o600)
        (fresh / name).write_bytes((data / name).read_bytes())
    assert told(fresh, "store", "restore", str(tmp_path / "copy"))["events"] == 5
    taken = quipu("store", "restore", str(tmp_path / "copy"), "--data-dir", str(fresh))
    assert (taken.returncode, "--set-aside" in taken.stderr) == (Exit.CONFLICT, True)
    done = told(fresh, "store", "restore", str(tmp_path / "copy"), "--set-aside")
    assert Path(done["set_aside"]).name == "store.aside-1"
    with RunningCommand(fresh) as node:
        assert missing(node.facts["api"], json.loads((tmp_path / "ids").read_text())) == []
        assert len(stored(node.facts["api"], 1)) == 1


def test_what_is_wrong_has_its_exit_code(data: Path, tmp_path: Path) -> None:
    copy, other = tmp_path / "copy", tmp_path / "other"
    told(data, "store", "backup", str(copy))
    assert quipu("init", "--data-dir", str(other)).returncode == Exit.OK
    done = quipu("store", "restore", str(copy), "--set-aside", "--data-dir", str(other))
    assert (done.returncode, "another node" in done.stderr) == (Exit.CONFLICT, True)
    damage(data)
    done = quipu("store", "scrub", "--data-dir", str(data))
    assert (done.returncode, "events: author 1" in done.stdout) == (Exit.NOT_VERIFIED, True)
    done = quipu("store", "verify", "--data-dir", str(data))
    assert (done.returncode, "1 wrong" in done.stdout) == (Exit.NOT_VERIFIED, True)
    done = quipu("store", "compact", "--data-dir", str(data))
    assert (done.returncode, "not sound" in done.stderr) == (Exit.FAILURE, True)
    bad = tmp_path / "bad"
    told(data, "store", "backup", str(bad))
    done = quipu("store", "restore", str(bad), "--set-aside", "--data-dir", str(data))
    assert (done.returncode, "is damaged" in done.stderr) == (Exit.NOT_VERIFIED, True)
    assert sorted(path.name for path in data.glob("store*")) == ["store"]
    for command in ("stats", "verify", "scrub", "compact", "backup x", f"restore {other}"):
        done = quipu("store", *command.split(), "--data-dir", str(tmp_path / "none"))
        assert done.returncode in {Exit.NOT_FOUND, Exit.CONFLICT}, (command, done.stderr)
        assert "--data-dir" in done.stderr or "quipu init" in done.stderr


def test_a_socket_that_does_not_answer(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with RunningCommand(data):
        (data / "admin.sock").rename(data / "away.sock")
        done = quipu("keys", "--data-dir", str(data))
        assert (done.returncode, "admin.socket=PATH" in done.stderr) == (Exit.UNREACHABLE, True)
        away = f"admin.socket={data}/away.sock"
        assert quipu("keys", "--data-dir", str(data), "--set", away).returncode == Exit.OK


def test_a_path_that_no_socket_can_have(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("d" * 60)
    done = quipu("run", "--data-dir", str(deep), *ANY_PORTS)
    assert (done.returncode, "admin.socket=" in done.stderr) == (Exit.USAGE, True)
    near = ("--set", f"admin.socket={tmp_path}/s")
    with RunningCommand(deep, *near) as node:
        assert node.facts["admin_socket"] == f"{tmp_path}/s"
        assert quipu("keys", "--data-dir", str(deep), *near).returncode == Exit.OK


def test_a_bar_on_a_terminal_alone(data: Path) -> None:
    command = [*QUIPU, "store", "verify", "--data-dir", str(data)]
    assert quipu("store", "verify", "--data-dir", str(data)).stderr == ""
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=theirs, env=environment(), timeout=WAIT_S
        )
        assert done.returncode == Exit.OK
        assert b"events   [##############################] 100 %" in os.read(ours, 65_536)
    finally:
        os.close(ours)
        os.close(theirs)
