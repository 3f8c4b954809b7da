"""What operators are given beside the image: manifests, alerts, dashboards, a systemd unit."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import kubernetes_validate
import pytest
import yaml

from quipu.testing import LocalNode
from tests.docker.conftest import DOCKER

MANIFESTS = DOCKER / "kubernetes" / "quipu.yaml"
ALERTS = DOCKER / "prometheus" / "alerts.yaml"
DASHBOARD = DOCKER / "grafana" / "dashboards" / "quipu.json"
UNIT = DOCKER / "systemd" / "quipu.service"
KUBERNETES = ("1.28", "1.31", "1.34")
METRIC = re.compile(r"\bquipu_[a-z_]+")
CALLERS = 1_000
EXPOSURE_MAX = 2.0  # of 10, as systemd-analyze counts it


def tool(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{name} is missing: apt-get install {package}", pytrace=False)
        pytest.skip(f"{name} is missing: apt-get install {package}")
    return found


def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(MANIFESTS.read_text()))


def manifest(kind: str, name: str = "quipu") -> dict[str, Any]:
    [found] = [m for m in manifests() if m["kind"] == kind and m["metadata"]["name"] == name]
    return found


# --- Kubernetes ---------------------------------------------------------------------------------
@pytest.mark.parametrize("version", KUBERNETES)
def test_every_manifest_is_as_its_schema_wants_it(version: str) -> None:
    for one in manifests():
        kubernetes_validate.validate(one, version, strict=True)


def test_the_validator_finds_a_wrong_field() -> None:
    wrong = manifest("StatefulSet")
    wrong["spec"]["template"]["spec"]["containers"][0]["readOnlyRoot"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES[0], strict=True)


def test_nodes_find_each_other_before_they_are_ready() -> None:
    service = manifest("Service", "quipu-nodes")["spec"]
    assert service["clusterIP"] == "None"
    assert service["publishNotReadyAddresses"] is True
    nodes = manifest("StatefulSet")["spec"]
    assert nodes["serviceName"] == "quipu-nodes"
    assert nodes["podManagementPolicy"] == "Parallel"
    labels = nodes["template"]["metadata"]["labels"]
    for other in (service["selector"], nodes["selector"]["matchLabels"]):
        assert other.items() <= labels.items()
    [node] = nodes["template"]["spec"]["containers"]
    names = next(one["value"] for one in node["env"] if one["name"] == "FOUNDING_NAMES")
    assert names.split() == [f"quipu-{number}" for number in range(nodes["replicas"])]


def test_pods_may_do_nothing_they_need_not() -> None:
    pod = manifest("StatefulSet")["spec"]["template"]["spec"]
    [node] = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert node["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert node["securityContext"]["readOnlyRootFilesystem"] is True
    assert {one["mountPath"] for one in node["volumeMounts"]} == {"/data", "/founding", "/tmp"}
    probes = {name: node[f"{name}Probe"]["httpGet"]["path"] for name in PROBES}
    assert probes == PROBES


PROBES = {"startup": "/startupz", "liveness": "/livez", "readiness": "/readyz"}


# --- Prometheus and Grafana -----------------------------------------------------------------------
@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What a node that has done something says about itself."""
    with LocalNode(tmp_path_factory.mktemp("n1")) as node:
        node.client.submit({"order": 7}, wait="read")
        yield metrics_of(node)


def metrics_of(node: LocalNode) -> str:
    with urlopen(f"{node.ops_url}/metrics") as answer:
        return str(answer.read().decode())


def expressions() -> list[str]:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    found = [rule["expr"] for group in groups for rule in group["rules"]]
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return found + [target["expr"] for panel in panels for target in panel.get("targets", ())]


def test_promtool_accepts_what_a_node_exposes(exposed: str) -> None:
    command = [tool("promtool", "prometheus"), "check", "metrics"]
    done = subprocess.run(command, input=exposed, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""


def test_promtool_accepts_rules_and_configuration() -> None:
    promtool = tool("promtool", "prometheus")
    checks = (
        ("check", "rules", str(ALERTS)),
        ("check", "config", "--syntax-only", str(DOCKER / "prometheus" / "prometheus.yaml")),
    )
    for check in checks:
        done = subprocess.run([promtool, *check], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_expression_of_the_dashboard_is_promql(tmp_path: Path) -> None:
    rules = [{"record": f"panel_{n}", "expr": text} for n, text in enumerate(expressions())]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    command = [tool("promtool", "prometheus"), "check", "rules", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_metric_that_is_named_exists(exposed: str) -> None:
    there = {line.split()[2] for line in exposed.splitlines() if line.startswith("# TYPE")}
    there |= {f"{name}_{end}" for name in there for end in ("bucket", "sum", "count")}
    named = {name for text in expressions() for name in METRIC.findall(text)}
    assert named
    assert named - there == set()


def series_of(text: str) -> set[str]:
    return {line.rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith("#")}


def test_labels_are_bounded_whoever_comes_and_goes(tmp_path: Path) -> None:
    """A thousand callers, each asking for what is not there, leave one series."""
    with LocalNode(tmp_path / "n1") as node:
        node.client.submit({"order": 7}, wait="read")
        with suppress(HTTPError):
            urlopen(f"{node.url}/nowhere")
        metrics_of(node)
        before = series_of(metrics_of(node))
        for number in range(CALLERS):
            with suppress(HTTPError):
                urlopen(f"{node.url}/nowhere/{number}")
        found = series_of(metrics_of(node))
    assert found - before == set()
    names = {name for one in found for name in re.findall(r'(\w+)="', one)}
    assert names <= {"operation", "status", "reason", "le"}


def test_the_dashboard_is_one_that_grafana_loads() -> None:
    board = json.loads(DASHBOARD.read_text())
    assert board["uid"] == "quipu"
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    [source] = yaml.safe_load((DOCKER / "grafana/datasources/prometheus.yaml").read_text())[
        "datasources"
    ]
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        if panel["type"] != "row":
            assert panel["datasource"] == {"type": source["type"], "uid": source["uid"]}
            assert panel["targets"]
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells), "panels lie on one another"


# --- compose --------------------------------------------------------------------------------------
def test_compose_files_hold_no_secret_and_publish_on_loopback_alone() -> None:
    for name in ("compose.yaml", "compose.five.yaml"):
        services = yaml.safe_load((DOCKER / name).read_text())["services"]
        for service in services.values():
            for port in service.get("ports", ()):
                assert port.startswith("127.0.0.1:"), port
            for variable, value in dict(service.get("environment", {})).items():
                assert "PASSWORD" not in variable or value is None
        text = (DOCKER / name).read_text()
        assert not re.search(r"(?i)(password|secret|token)\w*\s*[:=]\s*['\"]?[A-Za-z0-9]{6,}", text)


# --- systemd --------------------------------------------------------------------------------------
def unit_with(command: Path, folder: Path) -> Path:
    """The unit, with a program that is there."""
    file = folder / UNIT.name
    file.write_text(re.sub(r"(?m)^ExecStart=\S+", f"ExecStart={command}", UNIT.read_text()))
    return file


def test_systemd_takes_the_unit_and_finds_it_hardened(tmp_path: Path) -> None:
    analyze = tool("systemd-analyze", "systemd")
    file = unit_with(Path("/bin/true"), tmp_path)
    done = subprocess.run(
        [analyze, "verify", "--man=no", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert UNIT.name not in done.stderr
    judged = subprocess.run(
        [analyze, "security", "--offline=true", "--no-pager", str(file)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", judged)
    assert found is not None, judged
    assert float(found[1]) <= EXPOSURE_MAX
