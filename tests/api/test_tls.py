"""https from end to end: node, client and command, with the certificate checked."""

import json
import os
import ssl
import subprocess
from pathlib import Path

import pytest

import quipu
from quipu.client import transport
from quipu.pytest_plugin import NewNode
from quipu.testing import LocalNode
from tests.api.test_connections import certificate
from tests.process.command import QUIPU, environment


@pytest.fixture
def secured(quipu_new_node: NewNode, tmp_path: Path) -> tuple[LocalNode, Path]:
    file, key = certificate(tmp_path, "node")
    os.chmod(key, 0o600)
    node = quipu_new_node({"api.tls_certificate": str(file), "api.tls_key": str(key)})
    assert node.url.startswith("https://")
    return node, file


def test_client_checks_who_answers(
    secured: tuple[LocalNode, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    node, file = secured
    monkeypatch.setattr(transport, "PAUSE_S", 0.001)
    trusting = ssl.create_default_context(cafile=str(file))
    with quipu.Client(node.url, tls=trusting) as ledger:
        assert ledger.submit({"order": 7}, wait="read").state == "read"
    with quipu.Client(node.url) as ledger, pytest.raises(quipu.Unreachable):
        ledger.list()
    plain = node.url.replace("https", "http")
    with quipu.Client(plain) as ledger, pytest.raises(quipu.Unreachable):
        ledger.list()


def test_command_takes_the_certificate_to_trust(secured: tuple[LocalNode, Path]) -> None:
    node, file = secured

    def asked(*options: str) -> subprocess.CompletedProcess[str]:
        variables = environment(QUIPU_URL=node.url, QUIPU_OPS_URL=node.ops_url)
        return subprocess.run(
            [*QUIPU, *options], env=variables, capture_output=True, text=True, check=False
        )

    told = asked("list", "--json", "--ca-file", str(file))
    assert (told.returncode, json.loads(told.stdout)) == (0, [])
    assert asked("check", "--ca-file", str(file)).returncode == 0
    assert asked("list").returncode == 3
    assert asked("check").returncode == 3
