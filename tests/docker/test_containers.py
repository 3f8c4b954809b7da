"""Three containers, as `docker/up` makes them: used, stopped, killed, replaced, moved."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import pytest

from tests.docker.conftest import DOCKER
from tests.docker.engine import Engine

WAIT_S = 60.0
READY_S_MAX = 5.0
NAMES = ("n1", "n2", "n3")
PORTS = {"n1": 8470, "n2": 8480, "n3": 8490}
MISSED_S = 0.05


class Containers(NamedTuple):
    engine: Engine
    token: str

    def compose(self, *arguments: str) -> str:
        return self.engine.run(DOCKER / "compose", *arguments).stdout.strip()

    def container(self, name: str) -> str:
        """Asked of the engine: compose is a second of CPU each time."""
        label = f"label=com.docker.compose.service={name}"
        return self.engine.docker("ps", "--all", "--quiet", "--no-trunc", "--filter", label)

    def read(self, name: str, *files: str) -> str:
        return self.engine.docker("exec", self.container(name), "cat", *files)

    def facts(self, name: str) -> Any:
        return json.loads(self.engine.docker("inspect", self.container(name)))[0]

    def address(self, name: str) -> str:
        [network] = self.facts(name)["NetworkSettings"]["Networks"].values()
        return str(network["IPAddress"])

    def ask(self, name: str, path: str, body: Any = None) -> Any:
        """None: no answer, or not yet."""
        told = ["curl", "-sS", "-f", "-m", "20", f"http://127.0.0.1:{PORTS[name]}{path}"]
        told += ["-H", f"authorization: Bearer {self.token}"]
        if body is not None:
            told += ["-H", "content-type: application/json", "-d", json.dumps(body)]
        done = self.engine.inside(*told)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def submit(self, name: str, order: int, wait: str = "read") -> str:
        body = {"stream": "orders", "data": {"order": order}}
        answer = self.ask(name, f"/v1/entries?wait={wait}&timeout=20s", body)
        assert answer is not None
        return str(answer["id"])

    def read_at(self, name: str, identity: str) -> None:
        def is_read() -> bool:
            found = self.ask(name, f"/v1/entries/{identity}/status")
            return found is not None and found["state"] in {"read", "ordered", "executed"}

        until(is_read, f"{identity} is Read at {name}")


def until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline, f"not within {WAIT_S:g} s: {what}"
        time.sleep(MISSED_S)


@pytest.fixture(scope="package")
def three(running: Engine) -> Iterator[Containers]:
    said = running.run(DOCKER / "up").stdout
    assert "3 nodes are healthy: n1 n2 n3" in said
    first = running.run(DOCKER / "compose", "exec", "-T", "n1", "cat", "/founding/app.token")
    try:
        yield Containers(running, first.stdout.strip())
    finally:
        running.run(DOCKER / "compose", "down", "--volumes", check=False)


pytestmark = pytest.mark.usefixtures("image")


def test_posted_through_one_port_it_is_final_on_all(three: Containers) -> None:
    identity = three.submit("n1", 1)
    for name in NAMES:
        three.read_at(name, identity)
    for name in NAMES:
        assert three.facts(name)["State"]["Health"]["Status"] == "healthy"


def test_only_127_0_0_1_is_published_and_no_token_is_no_answer(three: Containers) -> None:
    for name in NAMES:
        bound = three.facts(name)["NetworkSettings"]["Ports"]["8470/tcp"]
        assert [one["HostIp"] for one in bound] == ["127.0.0.1"]
    assert Containers(three.engine, "quipu_" + "x" * 43).ask("n1", "/v1/node") is None


def test_containers_are_confined_and_start_is_quick(three: Containers) -> None:
    for name in NAMES:
        host = three.facts(name)["HostConfig"]
        assert host["ReadonlyRootfs"]
        assert host["CapDrop"] == ["ALL"]
        assert host["CapAdd"] is None
        assert not host["Privileged"]
        assert host["SecurityOpt"] == ["no-new-privileges:true"]
    three.engine.docker("restart", three.container("n3"))
    until(lambda: three.ask("n3", "/v1/node") is not None, "n3 answers")
    begun = datetime.fromisoformat(three.facts("n3")["State"]["StartedAt"][:23] + "+00:00")
    lines = three.engine.run("docker", "logs", three.container("n3")).stderr.splitlines()
    told = [json.loads(line) for line in lines if line.startswith("{")]
    ready = [line for line in told if line["event"] == "running"][-1]["timestamp"]
    assert (datetime.fromisoformat(ready) - begun).total_seconds() < READY_S_MAX


def test_stopped_killed_restarted_and_replaced_nothing_is_lost(three: Containers) -> None:
    kept = [three.submit(name, 10) for name in NAMES]
    engine = three.engine

    stopped = three.container("n2")
    engine.docker("stop", "--time", "20", stopped)
    assert three.facts("n2")["State"]["ExitCode"] == 0  # drained by SIGTERM, not killed
    kept.append(three.submit("n1", 11))
    engine.docker("start", stopped)

    killed = three.container("n3")
    engine.docker("kill", killed)
    kept.append(three.submit("n1", 12))
    engine.docker("start", killed)

    for identity in kept:
        for name in NAMES:
            three.read_at(name, identity)

    before = [three.container(name) for name in NAMES]
    three.compose("up", "--detach", "--force-recreate", "n1", "n2", "n3")
    assert not set(before) & {three.container(name) for name in NAMES}
    until(lambda: all(three.ask(name, "/v1/node") for name in NAMES), "all answer")
    kept.append(three.submit("n2", 13))
    for identity in kept:
        for name in NAMES:
            three.read_at(name, identity)


def test_all_killed_at_once_come_back(three: Containers) -> None:
    identity = three.submit("n3", 20)
    containers = [three.container(name) for name in NAMES]
    three.engine.docker("kill", *containers)
    three.engine.docker("start", *containers)
    until(lambda: all(three.ask(name, "/v1/node") for name in NAMES), "all answer")
    later = three.submit("n1", 21)
    for name in NAMES:
        three.read_at(name, identity)
        three.read_at(name, later)


def test_addresses_may_change(three: Containers) -> None:
    """Names stay, what they mean is another address: links are made anew without a hand."""
    identity = three.submit("n1", 30)
    before = {name: three.address(name) for name in NAMES}
    three.compose("rm", "--stop", "--force", "n1", "n2")
    for name in ("n2", "n1"):  # each gets the first address that is free
        three.compose("up", "--detach", "--no-deps", name)
    assert {name: three.address(name) for name in NAMES} != before
    until(lambda: all(three.ask(name, "/v1/node") for name in NAMES), "all answer")
    later = three.submit("n2", 31)
    for name in NAMES:
        three.read_at(name, identity)
        three.read_at(name, later)


def test_no_secret_is_in_logs_or_in_what_the_engine_tells(three: Containers) -> None:
    secrets = {three.token}
    for name in NAMES:
        for file in ("node.key", "cluster.key"):
            text = three.read(name, f"/data/{file}")
            secrets |= {line.split()[-1] for line in text.splitlines()}
    assert len(secrets) == 1 + len(NAMES) + 1  # a token, a key each, one of the cluster
    invitation = three.read("n1", "/founding/cluster.invitation")
    secrets.add(invitation.split()[-1])
    for name in NAMES:
        done = three.engine.run("docker", "logs", three.container(name))
        inside = three.read(name, "/proc/1/environ", "/proc/1/cmdline")
        told = done.stdout + done.stderr + json.dumps(three.facts(name)) + inside
        assert not [secret for secret in secrets if secret in told]
        container = three.container(name)
        modes = three.engine.docker("exec", container, "stat", "-c", "%a", "/data/node.key")
        assert modes == "600"


def test_the_volume_outlives_the_containers(three: Containers) -> None:
    identity = three.submit("n1", 40)
    three.compose("down")
    assert "3 nodes are healthy" in three.engine.run(DOCKER / "up").stdout
    for name in NAMES:
        three.read_at(name, identity)


def test_a_first_founder_whose_volume_is_gone_founds_no_second_cluster(three: Containers) -> None:
    """The last test: n1 comes back with another key, which is no member's."""
    identity = three.submit("n2", 50)
    before = three.ask("n1", "/v1/node")
    three.compose("rm", "--stop", "--force", "n1")
    three.engine.docker("volume", "rm", "quipu_n1")
    three.compose("up", "--detach", "--no-deps", "n1")
    three.read_at("n1", identity)
    after = three.ask("n1", "/v1/node")
    assert after["cluster_id"] == before["cluster_id"]
    assert after["node_id"] != before["node_id"]
