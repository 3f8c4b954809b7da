"""The pytest plugin that comes with the package, as another project's tests use it."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import quipu
from quipu.client import transport
from quipu.client.asynchronous import reached
from quipu.node.exits import BadSetting, DirectoryTaken
from quipu.testing import LocalNode
from tests import tree

RUN_S = 120
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LAZY = """
import sys

def test_nothing_of_a_node_is_imported():
    heavy = ("quipu.testing", "quipu.client", "quipu.node", "aiohttp", "lmdb", "uvloop", "nacl")
    assert [name for name in heavy if name in sys.modules] == []
    assert "quipu.pytest_plugin" in sys.modules
"""


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "PAUSE_S", 0.001)


def run_as_another_project(folder: Path, text: str, *options: str) -> str:
    (folder / "test_app.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", *options, "--basetemp=work"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=RUN_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_examples_of_the_documentation_run(tmp_path: Path) -> None:
    example = "\n\n".join(BLOCK.findall(tree.read("docs/testing.md")))
    assert f"{example.count('def test_')} passed" in run_as_another_project(tmp_path, example)


def test_a_project_that_uses_none_of_it_pays_nothing(tmp_path: Path) -> None:
    options = ("-p", "no:schemathesis", "-p", "no:hypothesispytest", "-p", "no:anyio")
    assert "1 passed" in run_as_another_project(tmp_path, LAZY, *options)


def test_the_fixtures_are_listed_with_what_they_are(tmp_path: Path) -> None:
    listed = run_as_another_project(tmp_path, LAZY, "--fixtures")
    documented = tree.read("docs/testing.md")
    fixtures = re.findall(r"^(quipu_\w+).* -- .*pytest_plugin", listed, re.MULTILINE)
    assert sorted(fixtures) == [
        "quipu_cluster",
        "quipu_new_node",
        "quipu_node",
        "quipu_node_session",
    ]
    assert all(f"| `{name}` |" in documented for name in fixtures)


def test_two_nodes_side_by_side_know_nothing_of_each_other(quipu_new_node: object) -> None:
    assert callable(quipu_new_node)
    first, second = quipu_new_node(), quipu_new_node({"node.name": "other"})
    receipt = first.client.submit({"order": 7}, wait="read")
    assert second.client.node()["name"] == "other"
    with pytest.raises(quipu.NotFound):
        second.client.get(receipt.id)
    with pytest.raises(quipu.verify.VerificationFailed):
        quipu.verify.verify(first.client.proof(receipt.id), second.genesis)


def test_a_killed_node_answers_nobody_and_keeps_what_it_acknowledged(
    quipu_node: LocalNode,
) -> None:
    ids = [quipu_node.client.submit(n).id for n in range(20)]
    following = quipu_node.client.follow(start="start")
    assert next(following)
    url = quipu_node.url
    quipu_node.kill()
    assert not quipu_node.is_running
    with pytest.raises(quipu.Unreachable):
        quipu_node.client.list()
    quipu_node.start()
    assert quipu_node.url == url
    assert reached(quipu_node.client.wait(ids[-1]).state, "read")
    assert [entry.id for entry in quipu_node.client.pages()] == ids
    assert quipu_node.client.submit("later", wait="read").state == "read"
    quipu_node.kill()
    quipu_node.kill()
    quipu_node.stop()
    del following


def test_a_folder_may_lie_deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deeper than the name of a socket may be long."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with LocalNode(tmp_path / ("d" * 100)) as node:
        assert len(list(tmp_path.glob("quipu-*.sock"))) == 1
        assert node.client.submit(1, wait="read").state == "read"
        node.kill()
        node.start()
    assert list(tmp_path.glob("quipu-*.sock")) == []


def test_what_stops_a_start_is_said_as_by_the_command(tmp_path: Path) -> None:
    with pytest.raises(BadSetting) as caught:
        LocalNode(tmp_path, {"node.nmae": "x"})
    assert "Did you mean node.name?" in caught.value.next_step
    with LocalNode(tmp_path) as node:
        node.start()  # it runs already
        rival = LocalNode(tmp_path)
        with pytest.raises(DirectoryTaken):
            rival.start()
        assert not rival.is_running
        assert node.client.node()["ready"]
