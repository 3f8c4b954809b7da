"""The commands that ask a node, with their exit codes; a real node answers."""

import asyncio
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from quipu.api.codes import KINDS, Code
from quipu.api.server import Running, serve
from quipu.api.settings import Settings
from quipu.api.tokens import new_token
from quipu.cli.main import app, show_help
from quipu.client import transport
from quipu.node.administration import Administration
from quipu.node.service import Overloaded
from tests import tree
from tests.api.one_node import OneNode
from tests.api.talk import FREE

NOWHERE = "ab" * 32 + ":0"


class Threaded:
    """A node on a loop of its own in another thread."""

    def __init__(
        self,
        settings: Settings = FREE,
        size: int = 1,
        administration: Administration | None = None,
    ) -> None:
        self._administration = administration
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(daemon=True, target=self._loop.run_forever)
        self._thread.start()
        self.running = asyncio.run_coroutine_threadsafe(self._start(settings, size), self._loop)
        self.node = self.running.result(10)

    async def _start(self, settings: Settings, size: int) -> Running:
        return await serve(OneNode(size), settings, self._administration)

    def stop(self) -> None:
        if self._administration is not None:
            asyncio.run_coroutine_threadsafe(self._administration.close(), self._loop).result(10)
        asyncio.run_coroutine_threadsafe(self.node.stop(1), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    threaded = Threaded()
    monkeypatch.setenv("QUIPU_URL", threaded.node.url)
    monkeypatch.setenv("QUIPU_OPS_URL", str(threaded.node.ops_url))
    yield threaded.node.url
    threaded.stop()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "PAUSE_S", 0.001)


def quipu(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin)


def told(*arguments: str, stdin: str | None = None) -> object:
    done = quipu(*arguments, "--json", stdin=stdin)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def submitted(*arguments: str) -> str:
    receipt = told("submit", *arguments, "--wait", "read")
    assert isinstance(receipt, dict)
    return str(receipt["id"])


def test_submit_get_list(url: str) -> None:
    identity = submitted('{"order": 7.50}', "--stream", "orders")
    entry = told("get", identity)
    assert isinstance(entry, dict)
    assert (entry["data"], entry["stream"]) == ({"order": 7.5}, "orders")
    assert quipu("get", identity, "--raw").stdout == '{"order": 7.50}'
    typed = submitted("-", "--content-type", "text/plain")
    assert quipu("get", typed, "--raw").stdout == ""
    listed = told("list", "--newest", "-n", "1")
    assert isinstance(listed, list)
    assert listed[0]["id"] == typed
    table = quipu("list", "--stream", "orders").stdout.splitlines()
    assert table[0].split() == ["id", "stream", "time", "author", "data"]
    assert table[1].startswith(identity)
    lines = quipu("list", "-o", "ndjson").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [identity, typed]


def test_key_and_conflict(url: str) -> None:
    first = submitted("1", "--key", "k")
    assert submitted("1", "--key", "k") == first
    clash = quipu("submit", "2", "--key", "k")
    assert clash.exit_code == 6
    assert "key-reused" in clash.stderr
    assert "quipu errors lookup key-reused" in clash.stderr


def test_lines(url: str) -> None:
    done = quipu("submit", "-", "--lines", "--json", stdin='1\n\n{"a":2}\n3\n')
    fine = {"stored": 3, "duplicates": 0, "refused": 0, "undecided": 0}
    assert (done.exit_code, json.loads(done.stdout)) == (0, fine)
    partly = quipu("submit", "-", "--lines", "--stream", "BAD", stdin="1\n")
    assert partly.exit_code == 10
    assert "line 1: invalid-field" in partly.stderr
    mixed = quipu("submit", "-", "--lines", "--json", stdin="1\n{\n3\n")
    assert (mixed.exit_code, json.loads(mixed.stdout)["stored"]) == (10, 2)
    assert "line 2: is not JSON" in mixed.stderr
    assert quipu("submit", "1", "--lines").exit_code == 2


def test_a_load_with_a_key_can_be_run_again(url: str) -> None:
    rows = "".join(f'{{"n": {number}}}\n' for number in range(3_000))
    load = ("submit", "-", "--lines", "--json", "--key", "load-7", "--wait", "read")
    for stored, duplicates in ((3_000, 0), (0, 3_000)):
        done = quipu(*load, stdin=rows)
        assert done.exit_code == 0, done.stderr
        told_counts = json.loads(done.stdout)
        assert (told_counts["stored"], told_counts["duplicates"]) == (stored, duplicates)
    changed = quipu(*load, stdin=rows.replace('"n": 7}', '"n": 8}'))
    assert changed.exit_code == 10
    assert "line 8: key-reused" in changed.stderr


def test_lines_that_are_not_final_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    threaded = Threaded(FREE, size=3)
    monkeypatch.setenv("QUIPU_URL", threaded.node.url)
    try:
        load = ("submit", "-", "--lines", "--wait", "read", "--timeout", "0.01")
        assert quipu(*load, stdin="1\n2\n").exit_code == 8
    finally:
        threaded.stop()


@pytest.mark.parametrize(
    "how",
    [("--rate", "200"), ("--batch", "5", "--rate", "100"), ("--rate", "40", "--wait", "read")],
    ids=["one", "batch", "read"],
)
def test_bench_submits_what_it_says(url: str, how: tuple[str, ...]) -> None:
    said = told("bench", "--seconds", "0.3", "-c", "2", "--size", "64", "--stream", "load", *how)
    assert isinstance(said, dict)
    entries = told("list", "--stream", "load", "-n", "1000")
    assert isinstance(entries, list)
    assert said["entries"] == len(entries) > 0
    assert {len(json.dumps(entry["data"])) for entry in entries} == {64}
    assert said["refused"] == said["failed_requests"] == said["not_reached"] == 0
    assert 0 < said["p50_ms"] <= said["p95_ms"] <= said["p99_ms"]


def test_bench_says_what_it_cannot_do(url: str) -> None:
    for wrong in (("--seconds", "0"), ("-c", "300"), ("--size", "1"), ("--wait", "soon")):
        refused = quipu("bench", *wrong)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert wrong[1] in refused.stderr
    refused = quipu("bench", "--seconds", "5", "--stream", "NO")
    assert refused.exit_code == 5
    assert "invalid-field" in refused.stderr
    assert quipu("bench", "--url", "http://127.0.0.1:1").exit_code == 3


def test_bench_of_a_node_that_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    threaded = Threaded()
    full = threaded.node.face.ledger
    assert isinstance(full, OneNode)
    full.full = Overloaded(0, "the inbox is full")
    done = quipu("bench", "--seconds", "0.2", "-c", "1", "--url", threaded.node.url, "--json")
    threaded.stop()
    assert done.exit_code == 1
    assert json.loads(done.stdout)["entries"] == 0
    assert "nothing was taken: node-full" in done.stderr


def test_proof_and_verify(url: str, tmp_path: Path) -> None:
    identity = submitted('"proven"')
    path = tmp_path / "p.quipu"
    assert quipu("proof", identity, "--out", str(path), "--wait", "5").exit_code == 0
    verified = quipu("verify", str(path), "--json")
    assert (verified.exit_code, json.loads(verified.stdout)["entry_id"]) == (0, identity)
    assert quipu("proof", identity, "--out", "-").stdout_bytes == path.read_bytes()
    bundle = bytearray(path.read_bytes())
    bundle[-40] ^= 1
    path.write_bytes(bundle)
    assert quipu("verify", str(path)).exit_code == 9
    assert quipu("verify", str(tmp_path / "none")).exit_code == 2


def test_status_explain_follow(url: str) -> None:
    identity = submitted("1")
    node = told("status")
    assert isinstance(node, dict)
    assert node["name"] == "n1"
    assert "takes entries  yes" in quipu("status").stdout
    assert "read" in quipu("status", identity, "--wait", "5").stdout
    assert "It is read" in quipu("explain", identity).stdout
    assert isinstance(told("explain", identity), dict)
    line = quipu("follow", "--from", "start", "-n", "1").stdout
    assert json.loads(line)["id"] == identity


def test_follow_goes_on_where_its_consumer_has_come_to(url: str) -> None:
    first, second, third = (submitted(text) for text in ("1", "2", "3"))

    def followed(*more: str) -> list[str]:
        done = quipu("follow", "--from", "start", "--consumer", "billing", *more)
        assert done.exit_code == 0, done.stderr
        return [json.loads(line)["id"] for line in done.stdout.splitlines()]

    assert followed("-n", "2") == [first, second]
    assert followed("-n", "1") == [third]
    listed = told("consumers", "list")
    assert isinstance(listed, list)
    assert [(one["name"], one["owner"]) for one in listed] == [("billing", None)]
    assert quipu("consumers", "delete", "billing").exit_code == 0
    assert quipu("consumers", "delete", "billing").exit_code == 4
    assert told("consumers", "list") == []


def test_waited_and_not_there_yet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    threaded = Threaded(size=3)
    monkeypatch.setenv("QUIPU_URL", threaded.node.url)
    monkeypatch.setenv("QUIPU_OPS_URL", str(threaded.node.ops_url))
    try:
        done = quipu("submit", "1", "--wait", "read", "--timeout", "0.01", "--json")
        assert (done.exit_code, json.loads(done.stdout)["state"]) == (8, "stored")
        identity = json.loads(done.stdout)["id"]
        assert told("list") == []
        (listed,) = json.loads(quipu("list", "--unread", "--json").stdout)
        assert listed["id"] == identity
        assert quipu("list", "--unread", "--newest").exit_code == 5
        assert quipu("status", identity, "--wait", "0.01").exit_code == 8
        assert quipu("proof", identity, "--out", str(tmp_path / "p")).exit_code == 8
        explained = quipu("explain", identity)
        assert "receipts of more members are needed: n2, n3" in explained.stdout
        assert "not connected: n2, n3" in explained.stdout
        warned = quipu("check", "--format", "nagios")
        assert (warned.exit_code, warned.stdout.split()[1]) == (1, "WARNING")
    finally:
        threaded.stop()


def test_exit_codes(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert quipu("get", NOWHERE).exit_code == 4
    assert quipu("get", "x").exit_code == 5
    assert quipu("submit", "{no json").exit_code == 2
    assert quipu("submit", "1", "--url", "http://127.0.0.1:9").exit_code == 3
    assert quipu("submit", "1", "--token-file", "/nonexistent").exit_code == 2
    assert quipu("submit", "1", "--ca-file", "/nonexistent").exit_code == 2
    assert quipu("nonsense").exit_code == 2
    failing = quipu("check", "--ops-url", "http://127.0.0.1:9")
    assert failing.exit_code == 3
    assert quipu("check", "--ops-url", "nowhere", "--format", "nagios").exit_code == 2


def test_check(url: str) -> None:
    assert json.loads(quipu("check").stdout)["ready"]["passes"] is True
    assert 'quipu_check{check="live"} 1' in quipu("check", "--format", "prometheus").stdout
    nagios = quipu("check", "--format", "nagios")
    assert (nagios.exit_code, nagios.stdout) == (0, "QUIPU OK - live, ready, finality, store\n")


def test_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sub" / "tokens.json"
    new = ("token", "new", "shop", "--scope", "entries:write:orders", "--file", str(path))
    made = quipu(*new, "--scope", "cluster:read", "--days", "30")
    assert made.stdout.startswith("quipu_")
    assert quipu(*new).exit_code == 2
    listed = json.loads(quipu("token", "list", "--file", str(path), "--json").stdout)
    assert listed[0]["scopes"] == "entries:write:orders cluster:read"
    assert made.stdout.strip() not in quipu("token", "list", "--file", str(path)).stdout
    secret = tmp_path / "token"
    secret.write_text(made.stdout)
    threaded = Threaded(Settings(port=0, ops_port=0, tokens_file=path))
    monkeypatch.setenv("QUIPU_URL", threaded.node.url)
    try:
        asked = quipu("status", "--token-file", str(secret))
        assert asked.exit_code == 0, asked.output
        assert quipu("status").exit_code == 7
        assert quipu("list", "--token-file", str(secret)).exit_code == 7
    finally:
        threaded.stop()
    assert quipu("token", "revoke", "shop", "--file", str(path)).exit_code == 0
    assert quipu("token", "revoke", "shop", "--file", str(path)).exit_code == 4
    assert quipu("token", "list", "--file", str(tmp_path / "none")).exit_code == 2


def test_errors_lookup(tmp_path: Path) -> None:
    new_token(tmp_path / "t", "x", ["admin"])
    assert "A new" not in quipu("errors", "lookup", "key-reused").stdout
    assert "Use a new key" in quipu("errors", "lookup", "/problems/key-reused").stdout
    assert len(quipu("errors", "lookup").stdout.splitlines()) > 30
    wrong = quipu("errors", "lookup", "key-resued")
    assert wrong.exit_code == 4
    assert "is it key-reused?" in wrong.stderr


@pytest.mark.parametrize("code", list(Code))
def test_every_code_is_looked_up(code: Code) -> None:
    shown = json.loads(quipu("errors", "lookup", code, "--json").stdout)
    kind = KINDS[code]
    assert (shown["code"], shown["status"]) == (code, kind.status)
    assert (shown["meaning"], shown["what to do"]) == (kind.meaning, kind.remedy)
    assert f"\n## {code}\n" in tree.read("docs/problems.md")


COMMANDS = re.compile(r"^  ([a-z]+)  ", re.MULTILINE)


def commands() -> list[tuple[str, ...]]:
    top = COMMANDS.findall(quipu("--help").stdout)
    assert "submit" in top
    found: list[tuple[str, ...]] = []
    for name in top:
        shown = quipu(name, "--help").stdout
        below = COMMANDS.findall(shown.partition("Commands:")[2])
        found += [(name, sub) for sub in below] or [(name,)]
    return found


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_every_command_has_an_example(command: tuple[str, ...]) -> None:
    shown = quipu(*command, "--help")
    assert shown.exit_code == 0
    text = " ".join(shown.stdout.split())
    assert f"Example: `quipu {' '.join(command)}" in text


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_help_at_once_is_what_parsing_would_show(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    for option in ("--help", "-h"):
        assert show_help([*command, option])
        shown = capsys.readouterr().out
        parsed = CliRunner().invoke(app, [*command, option], prog_name="quipu").stdout
        assert shown.split() == parsed.split()  # the runner has a width of its own
    assert not show_help([*command])
    assert not show_help([*command, "more", "--help"])


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom quipu.cli.main import app\n"
        "heavy = ('aiohttp', 'asyncio', 'lmdb', 'msgspec', 'rich.table', 'nacl', 'quipu.client')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
