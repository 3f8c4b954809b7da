"""`quipu run` and its neighbours: exit codes, and what to do next."""

import json
import os
import signal
import socket
import time
import urllib.request
from pathlib import Path

import pytest

from quipu.node.exits import Exit
from quipu.node.limits import STOP_S
from tests.process.command import ANY_PORTS, RunningCommand, quipu


def test_a_node_starts_answers_and_stops(tmp_path: Path) -> None:
    with RunningCommand(tmp_path / "data") as node:
        assert node.facts["data_dir"] == str(tmp_path / "data")
        with urllib.request.urlopen(node.facts["ops"] + "/livez", timeout=10) as answer:
            assert answer.status == 200
        code, logged = node.stop()
    assert code == Exit.OK
    assert '"stopped"' in logged


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_in_time_by_either_signal(number: int, tmp_path: Path) -> None:
    with RunningCommand(tmp_path / "data") as node:
        begun = time.monotonic()
        code, _ = node.stop(number)
        assert (code, time.monotonic() - begun < STOP_S) == (Exit.OK, True)


def test_a_second_start_is_the_same_node(tmp_path: Path) -> None:
    facts = []
    for _ in range(2):
        with RunningCommand(tmp_path / "data") as node:
            facts.append(node.facts)
            node.stop()
    assert [f["node_id"] for f in facts] == [facts[0]["node_id"]] * 2
    assert facts[0]["cluster_id"] == facts[1]["cluster_id"]


def test_a_second_node_in_the_same_directory_is_refused(tmp_path: Path) -> None:
    with RunningCommand(tmp_path / "data") as node:
        done = quipu("run", "--data-dir", str(tmp_path / "data"), *ANY_PORTS)
        assert done.returncode == Exit.CONFLICT
        assert f"in use by process {node.facts['pid']}" in done.stderr
        assert "--data-dir" in done.stderr


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        done = quipu(
            *("run", "--data-dir", str(tmp_path / "data")),
            *("--api-listen", address, *ANY_PORTS[2:]),
        )
    assert done.returncode == Exit.CONFLICT
    assert address in done.stderr
    assert "--api-listen" in done.stderr


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    done = quipu("run", "--data-dir", str(tmp_path), *ANY_PORTS)
    assert done.returncode == Exit.CONFLICT
    assert "thesis.tex" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["thesis.tex"]


def test_a_store_of_another_node(tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert quipu("init", "--data-dir", str(tmp_path / name)).returncode == Exit.OK
    (tmp_path / "one/store").rename(tmp_path / "aside")
    (tmp_path / "two/store").rename(tmp_path / "one/store")
    done = quipu("run", "--data-dir", str(tmp_path / "one"), *ANY_PORTS)
    assert done.returncode == Exit.CONFLICT
    assert "belongs to another cluster" in done.stderr


def test_a_key_that_others_can_read(tmp_path: Path) -> None:
    quipu("init", "--data-dir", str(tmp_path / "data"))
    (tmp_path / "data/node.key").chmod(0o640)
    done = quipu("run", "--data-dir", str(tmp_path / "data"), *ANY_PORTS)
    assert done.returncode == Exit.AUTH
    assert "chmod 600" in done.stderr


def test_wrong_settings(tmp_path: Path) -> None:
    file = tmp_path / "quipu.toml"
    file.write_text('[api]\nlisen = "127.0.0.1:1"\n')
    done = quipu("run", "--config", str(file))
    assert (done.returncode, "Did you mean api.listen?" in done.stderr) == (Exit.USAGE, True)
    done = quipu("config", "show", QUIPU_API_LISTEM="127.0.0.1:1")
    assert (done.returncode, "QUIPU_API_LISTEN?" in done.stderr) == (Exit.USAGE, True)
    done = quipu("run", "--set", "log.level=loud")
    assert (done.returncode, "one of debug" in done.stderr) == (Exit.USAGE, True)
    assert quipu("run", "--no-such-flag").returncode == Exit.USAGE


def test_settings_and_their_origin(tmp_path: Path) -> None:
    file = tmp_path / "quipu.toml"
    file.write_text('[node]\nname = "from-file"\n[log]\nlevel = "error"\n')
    done = quipu(
        *("config", "show", "--origin", "--json", "--config", str(file)),
        *("--set", "node.name=from-flag"),
        QUIPU_LOG_LEVEL="debug",
    )
    rows = json.loads(done.stdout)
    assert rows["node.name"] == {"value": "from-flag", "origin": "--set"}
    assert rows["log.level"] == {"value": "debug", "origin": "QUIPU_LOG_LEVEL"}
    assert rows["api.listen"]["origin"] == "default"


def test_init_makes_a_node_once(tmp_path: Path) -> None:
    done = quipu("init", "--data-dir", str(tmp_path / "data"), "--json")
    facts = json.loads(done.stdout)
    assert quipu("init", "--data-dir", str(tmp_path / "data")).returncode == Exit.CONFLICT
    with RunningCommand(tmp_path / "data") as node:
        assert node.facts["node_id"] == facts["node_id"]


def test_erasable_streams_are_declared_once(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    made = quipu("init", "--data-dir", data, "--erasable", "people", "--erasable", "gdpr")
    assert made.returncode == Exit.OK
    code, said = started(tmp_path, "--erasable", "gdpr")
    assert (code, "declares (gdpr, people)" in said) == (Exit.USAGE, True)
    with RunningCommand(tmp_path / "data", "--erasable", "people,gdpr") as node:
        assert node.stop()[0] == Exit.OK
    with RunningCommand(tmp_path / "data") as node:
        assert node.stop()[0] == Exit.OK


def test_doctor_sees_what_is_wrong(tmp_path: Path) -> None:
    options = ("--data-dir", str(tmp_path / "data"), *ANY_PORTS)
    quipu("init", "--data-dir", str(tmp_path / "data"))
    fine = json.loads(quipu("doctor", *options, "--json").stdout)
    assert [f["check"] for f in fine if not f["is_fine"] and f["check"] != "sync"] == []
    (tmp_path / "data/cluster.key").chmod(0o644)
    done = quipu("doctor", *options)
    assert done.returncode == Exit.FAILURE
    assert "BAD  cluster.key" in done.stdout


def test_doctor_looks_at_a_running_node(tmp_path: Path) -> None:
    with RunningCommand(tmp_path / "data") as node:
        findings = json.loads(
            quipu("doctor", "--data-dir", str(tmp_path / "data"), *ANY_PORTS, "--json").stdout
        )
        found = {finding["check"]: finding for finding in findings}
        assert f"process {node.facts['pid']}" in found["data directory"]["what"]
        assert found["store"]["is_fine"]


def test_failpoints_have_to_be_known() -> None:
    done = quipu("run", QUIPU_FAILPOINTS="nowhere=kill")
    assert done.returncode == Exit.USAGE
    assert "commit.begin" in done.stderr


def test_help_comes_at_once_and_every_command_has_an_example() -> None:
    best_s = 1.0
    for _ in range(5):
        before = os.times()
        assert quipu("--help").returncode == 0
        after = os.times()
        used = after.children_user + after.children_system
        best_s = min(best_s, used - before.children_user - before.children_system)
    assert best_s < 0.2
    for command in (("run",), ("init",), ("doctor",), ("config",), ("config", "show")):
        assert f"Example: `quipu {command[0]}" in quipu(*command, "--help").stdout


def started(tmp_path: Path, *more: str) -> tuple[int, str]:
    done = quipu("run", "--data-dir", str(tmp_path / "data"), *ANY_PORTS, *more)
    return done.returncode, done.stderr


def test_a_public_address_without_tokens(tmp_path: Path) -> None:
    code, said = started(tmp_path, "--api-listen", "0.0.0.0:0")
    assert (code, "--insecure" in said) == (Exit.USAGE, True)
    with RunningCommand(tmp_path / "data", "--api-listen", "0.0.0.0:0", "--insecure") as node:
        assert node.stop()[0] == Exit.OK


def test_an_address_that_is_not_of_this_machine(tmp_path: Path) -> None:
    code, said = started(tmp_path, "--ops-listen", "192.0.2.1:1")
    assert (code, "an address of this machine" in said) == (Exit.FAILURE, True)


def test_tokens_and_certificates_that_cannot_be_used(tmp_path: Path) -> None:
    code, said = started(tmp_path, "--set", f"api.tokens_file={tmp_path / 'none'}")
    assert (code, "quipu token new" in said) == (Exit.AUTH, True)
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    tls = ("--set", f"api.tls_certificate={certificate}", "--set", f"api.tls_key={key}")
    code, said = started(tmp_path, *tls)
    assert (code, f"cannot read {certificate}" in said) == (Exit.USAGE, True)
    assert started(tmp_path, *tls[:2])[0] == Exit.USAGE, "a certificate alone"
    certificate.write_text("no certificate")
    key.write_text("no key")
    key.chmod(0o644)
    assert started(tmp_path, *tls)[0] == Exit.AUTH
    key.chmod(0o600)
    code, said = started(tmp_path, *tls)
    assert (code, "belong together" in said) == (Exit.USAGE, True)
