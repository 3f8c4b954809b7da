"""What an operator says to a running node: signals, levels, and what is kept of it."""

import json
import os
import signal
import socket
from pathlib import Path
from typing import Any

from tests.process.cluster import wait_until
from tests.process.command import WAIT_S, RunningCommand, quipu

WATCHDOG_US = 400_000


def lines_of(logged: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in logged.splitlines() if line.startswith("{")]


def test_the_service_manager_is_told_ready_alive_and_stopping(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(WAIT_S)
        told = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": str(WATCHDOG_US)}
        with RunningCommand(tmp_path / "n1", **told) as node:
            assert manager.recv(100) == b"READY=1"
            assert [manager.recv(100) for _ in range(3)] == [b"WATCHDOG=1"] * 3
            code, _ = node.stop()
        assert code == 0
        said = b""
        while said != b"STOPPING=1":
            said = manager.recv(100)


def test_a_watchdog_of_another_process_is_not_fed(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(WAIT_S)
        told = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": str(WATCHDOG_US)}
        with RunningCommand(tmp_path / "n1", **told, WATCHDOG_PID=str(os.getpid())) as node:
            node.stop()
        assert [manager.recv(100), manager.recv(100)] == [b"READY=1", b"STOPPING=1"]


def test_sighup_reads_level_and_tokens_again_and_goes_on_where_they_are_wrong(
    tmp_path: Path,
) -> None:
    data, config = tmp_path / "n1", tmp_path / "quipu.toml"
    tokens = tmp_path / "tokens.json"
    assert quipu("token", "new", "one", "--file", str(tokens), "--scope", "admin").returncode == 0
    config.write_text('[log]\nlevel = "warning"\n')
    options = ("--config", str(config), "--set", f"api.tokens_file={tokens}")
    with RunningCommand(data, *options) as node:
        config.write_text('[log]\nlevel = "info"\n')
        node.process.send_signal(signal.SIGHUP)

        def level() -> str:
            told = quipu("log-level", "debug", "--data-dir", str(data), "--json")
            return str(json.loads(told.stdout)["before"])

        wait_until(lambda: level() in {"info", "debug"}, "the level is read again")
        config.write_text('[log]\nlevel = "loud"\n')
        wrong = quipu("reload", "--data-dir", str(data), "--json")
        assert wrong.returncode == 1
        assert "loud" in wrong.stdout
        tokens.write_text("no tokens")
        config.write_text('[log]\nlevel = "info"\n')
        wrong = quipu("reload", "--data-dir", str(data), "--json")
        assert (wrong.returncode, "tokens" in wrong.stdout) == (1, True)
        _, logged = node.stop()
    events = [line["event"] for line in lines_of(logged)]
    assert "running" not in events  # the first start heard warnings alone
    assert "stopped" in events


def test_admin_verbs_are_kept_with_who_and_what_at_every_level(tmp_path: Path) -> None:
    data = tmp_path / "n1"
    with RunningCommand(data, "--set", "log.level=error") as node:
        assert quipu("keys", "--data-dir", str(data)).returncode == 0
        asked = quipu("store", "scrub", "--data-dir", str(data))
        assert asked.returncode == 0
        _, logged = node.stop()
    audit = [line for line in lines_of(logged) if line.get("logger") == "quipu.audit"]
    assert [line["verb"] for line in audit][:2] == ["keys", "scrub"]
    for line in audit:
        assert line["who"].startswith(f"admin socket, uid {os.getuid()}, pid ")
        assert line["timestamp"].endswith("Z")
    assert audit[1]["asked"].startswith("POST /v1/admin/scrub")
    assert audit[1]["status"] == 202
    assert {line["event"] for line in lines_of(logged)} == {"admin verb"}
