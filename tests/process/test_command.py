"""`quipu run` and its neighbours: exit codes, and what to do next."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from quipu.node.exits import Exit
from quipu.node.limits import STOP_S
from tests.process.command import ANY_PORTS, QUIPU, WAIT_S, RunningCommand, environment, quipu


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


BARE_S = 0.03  # of CPU: what an interpreter takes to start where 200 ms are promised


def cpu_of(command: list[str]) -> float:
    """The least of some runs: other work on the machine adds to it."""
    used_s = []
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(used_s)


@pytest.mark.alone
@pytest.mark.parametrize("command", [(), ("submit",), ("token", "new")], ids=" ".join)
def test_help_comes_at_once(command: tuple[str, ...]) -> None:
    """200 ms of CPU; on a slow machine as much longer as its interpreter takes to start."""
    slower = max(1.0, cpu_of([sys.executable, "-c", ""]) / BARE_S)
    assert cpu_of([*QUIPU, *command, "--help"]) < 0.2 * slower


@pytest.mark.parametrize(
    ("shell", "mark"), [("bash", "-F _quipu_completion quipu"), ("zsh", "#compdef quipu")]
)
def test_shells_are_told_how_to_complete(shell: str, mark: str) -> None:
    script = quipu(_QUIPU_COMPLETE=f"source_{shell}").stdout
    assert f"_QUIPU_COMPLETE=complete_{shell}" in script
    assert mark in script
    asked = {"COMP_WORDS": "quipu tok", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "quipu tok"}
    completed = quipu(_QUIPU_COMPLETE=f"complete_{shell}", **asked).stdout
    assert "token" in completed
    assert "submit" not in completed


def test_completion_is_installed_and_works(tmp_path: Path) -> None:
    """As a person does it, in a home of its own."""
    said = in_bash(tmp_path, "quipu --show-completion; quipu --install-completion")
    assert "bash completion installed" in said
    script = tmp_path / ".bash_completions" / "quipu.sh"
    assert script.read_text() in said
    ask = "COMP_WORDS=(quipu sub) COMP_CWORD=1; _quipu_completion quipu; echo ${COMPREPLY[@]}"
    assert in_bash(tmp_path, f"source .bashrc; {ask}").split() == ["submit"]


def in_bash(home: Path, line: str) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"{line}; true"],  # more than one command: else it is no parent
        cwd=home,
        capture_output=True,
        text=True,
        env=environment(HOME=str(home), PATH=path),
        timeout=WAIT_S,
        check=True,
    )
    return done.stdout


def started(tmp_path: Path, *more: str) -> tuple[int, str]:
    done = quipu("run", "--data-dir", str(tmp_path / "data"), *ANY_PORTS, *more)
    return done.returncode, done.stderr


def test_a_public_address_without_tokens(tmp_path: Path) -> None:
    code, said = started(tmp_path, "--api-listen", "0.0.0.0:0")
    assert (code, "--insecure" in said) == (Exit.USAGE, True)
    assert not (tmp_path / "data").exists()  # nothing was made that would have to go again
    with RunningCommand(tmp_path / "data", "--api-listen", "0.0.0.0:0", "--insecure") as node:
        assert node.stop()[0] == Exit.OK
