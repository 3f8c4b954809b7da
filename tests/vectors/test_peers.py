"""The vectors of the peer protocol hold: a stranger agrees, and so do our own codecs."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from quipu.p2p import gossip
from quipu.p2p.decen import encode_command
from quipu.p2p.refusals import Cause, FrameRefused
from tests import tree
from tests.peer_readers import READERS
from tests.peer_samples import LONGEST_HELLO
from tests.vectors.check import plain, refused_cases
from tests.vectors.check_peers import DECODERS, FOLDER

CODECS = ("cast", "frame", "decen", "forms", "hello", "addresses", "leaving", "bodies", "gossip")


def read(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def named(item: dict[str, Any]) -> str:
    return f"{item['kind']}: {item['name']}"


@pytest.mark.parametrize("item", read("peers"), ids=named)
def test_what_is_valid_is_read_as_told(item: dict[str, Any]) -> None:
    inputs = [bytes.fromhex(part) for part in item["inputs"]]
    assert plain(READERS[item["kind"]](*inputs)) == item["value"]


def test_what_is_refused_is_refused_for_its_cause() -> None:
    wrong = []
    for name, kind, cause, inputs in refused_cases(read("peers_refused")):
        with pytest.raises(FrameRefused) as caught:
            READERS[kind](*inputs)
        if caught.value.cause != cause:
            wrong.append(f"{name}: {caught.value}, not {cause}")
    assert wrong == []


def stranger(folder: Path) -> subprocess.CompletedProcess[str]:
    program = (
        "import runpy, sys; sys.modules['quipu'] = sys.modules['msgspec'] = None;"
        f"sys.path.insert(0, {str(tree.ROOT)!r}); sys.argv = ['check', {str(folder)!r}];"
        "runpy.run_module('tests.vectors.check_peers', run_name='__main__')"
    )
    return subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False
    )


def test_a_stranger_agrees() -> None:
    done = stranger(FOLDER)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[0]) > 1500


@pytest.mark.parametrize("kind", DECODERS)
def test_the_stranger_fails_where_a_vector_is_wrong(kind: str, tmp_path: Path) -> None:
    rows = read("peers")
    of_kind = [row for row in rows if row["kind"] == kind]
    data = of_kind[-1]["inputs"][0]
    middle = len(data) // 2 + 1
    of_kind[-1]["inputs"][0] = data[:middle] + f"{int(data[middle], 16) ^ 1:x}" + data[middle + 1 :]
    (tmp_path / "peers.json").write_text(json.dumps(rows))
    (tmp_path / "peers_refused.json").write_text("[]")
    assert stranger(tmp_path).returncode == 1
    fine = [[[part, 1]] for part in of_kind[0]["inputs"]]
    refused = [{"name": "fine", "kind": kind, "reason": "malformed", "inputs": fine}]
    (tmp_path / "peers.json").write_text("[]")
    (tmp_path / "peers_refused.json").write_text(json.dumps(refused))
    assert stranger(tmp_path).returncode == 1


def test_every_command_kind_and_cause_has_vectors() -> None:
    rows = read("peers")
    commands = {row["value"][0] for row in rows if row["kind"] == "command"}
    assert commands == {"HELLO", "ALIVE", "BROADCAST", "JOIN", "LEAVE", "PING", "DECENACK"}
    kinds = {row["value"][2] for row in rows if row["kind"] == "gossip"}
    assert kinds == set(gossip.Kind)
    named_by_codecs = {
        Cause[name]
        for module in CODECS
        for name in re.findall(r"\bCause\.([A-Z_]+)", tree.read(f"p2p/{module}.py"))
    }
    causes = {row["reason"] for row in read("peers_refused")}
    assert causes == named_by_codecs | {Cause.NOT_HELLO}
    assert set(READERS) == set(DECODERS) == {row["kind"] for row in read("peers_refused")}


def test_the_longest_hello_fits_the_header() -> None:
    data = encode_command(LONGEST_HELLO)
    assert DECODERS["command"](data) == READERS["command"](data)
    assert len(data) < 2**16
