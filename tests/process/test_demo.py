"""`quipu demo`: its story with real nodes, and that it leaves nothing, however it ends."""

import os
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not deep: the name of a socket may be 107 bytes long."""
    with tempfile.TemporaryDirectory(prefix="q") as made:
        yield Path(made)


def begun(seconds: int, folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "quipu.cli", "demo", "--no-open", "--seconds", str(seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )


def test_it_tells_its_story_and_all_nodes_hold_the_same(folder: Path) -> None:
    process = begun(12, folder)
    said, talk = process.communicate(timeout=240)
    assert process.returncode == 0, talk
    assert said.strip().startswith("http://127.0.0.1:")
    for words in ("n3 was killed", "n3 is back", "The network is cut", "healed", "hold the same"):
        assert words in talk
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_it_is_told_to(by: signal.Signals, folder: Path) -> None:
    process = begun(600, folder)
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    with urllib.request.urlopen(url.partition("#")[0], timeout=30) as page:
        assert b"<title>Quipu</title>" in page.read()
    process.send_signal(by)
    _, talk = process.communicate(timeout=120)
    assert process.returncode == 0, talk
    assert "nothing is left behind" in talk
    assert list(folder.iterdir()) == []
    assert tempfile.gettempdir() != str(folder)


@pytest.mark.parametrize("seconds", ["1", "4000", "many"])
def test_a_length_that_is_no_story(seconds: str) -> None:
    command = [sys.executable, "-m", "quipu.cli", "demo", "--seconds", seconds]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
