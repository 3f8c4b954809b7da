"""A real Prometheus with our rules beside real nodes: an alert fires and clears."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml

from quipu.devnet import Devnet
from tests.docker.conftest import DOCKER
from tests.docker.test_manifests import ALERTS, tool
from tests.process.cluster import cluster, wait_until

LISTENS = re.compile(r'msg="Listening on" address=(\S+)')
EVERY = "1s"  # ours looks every 5 s, and judges every 15 s


def configuration(net: Devnet, folder: Path) -> Path:
    """Ours, but for where the nodes are and how often they are looked at."""
    ours = yaml.safe_load((DOCKER / "prometheus" / "prometheus.yaml").read_text())
    ours["global"] = {"scrape_interval": EVERY, "evaluation_interval": EVERY}
    ours["rule_files"] = [str(ALERTS)]
    [scrape] = ours["scrape_configs"]
    scrape["static_configs"] = [
        {"targets": [node.ops.removeprefix("http://") for node in net.nodes]}
    ]
    file = folder / "prometheus.yaml"
    file.write_text(yaml.safe_dump(ours))
    return file


@contextmanager
def prometheus(net: Devnet, folder: Path) -> Iterator[str]:
    """Its address."""
    folder.mkdir()
    command = [
        tool("prometheus", "prometheus"),
        f"--config.file={configuration(net, folder)}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--web.listen-address=127.0.0.1:0",
    ]
    log = folder / "log"
    with log.open("w") as file:
        process = subprocess.Popen(command, stderr=file, stdout=file)
    try:
        wait_until(lambda: is_ready(log), "Prometheus is ready")
        yield address_in(log)
    finally:
        process.kill()
        process.wait()


def address_in(log: Path) -> str:
    found = LISTENS.search(log.read_text())
    return f"http://{found[1]}" if found else ""


def is_ready(log: Path) -> bool:
    """It listens before it has read what it has."""
    address = address_in(log)
    if not address:
        return False
    try:
        with urlopen(f"{address}/-/ready") as answer:
            return bool(answer.status == HTTPStatus.OK)
    except OSError:
        return False


def asked(address: str, path: str, **query: str) -> Any:
    with urlopen(f"{address}/api/v1/{path}?{urlencode(query)}") as answer:
        return json.load(answer)["data"]


def up(address: str) -> list[str]:
    return sorted(one["health"] for one in asked(address, "targets")["activeTargets"])


def alerts(address: str) -> set[tuple[str, str]]:
    return {
        (one["labels"]["alertname"], one["state"]) for one in asked(address, "alerts")["alerts"]
    }


@pytest.mark.timeout(300)
def test_prometheus_sees_the_nodes_and_an_alert_fires_and_clears(tmp_path: Path) -> None:
    fires = ("QuipuNodesOfATest", "firing")
    with cluster(tmp_path / "net", members=2) as net, prometheus(net, tmp_path / "seen") as address:
        wait_until(lambda: up(address) == ["up", "up"], "both nodes are seen")
        assert fires not in alerts(address)
        net.partition([1], [2])
        wait_until(lambda: fires in alerts(address), "the alert fires")
        net.heal()
        wait_until(lambda: fires not in alerts(address), "it clears")
        net.kill(2)
        wait_until(lambda: up(address) == ["down", "up"], "one node is missed")
        wait_until(lambda: ("QuipuNodeDown", "pending") in alerts(address), "soon it is told")
        members = asked(address, "query", query="max(quipu_members)")["result"]
        assert [one["value"][1] for one in members] == ["2"]
