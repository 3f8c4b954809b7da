"""`quipu debug bundle`, and the commands that change the cluster's secret."""

import json
import tarfile
from pathlib import Path
from typing import Any

from quipu.devnet import Devnet
from quipu.node.founding import CLUSTER_KEY_FILE, NODE_KEY_FILE
from tests.process.cluster import client_of, cluster
from tests.process.command import RunningCommand, quipu

NODES = (1, 2, 3)


def told(*arguments: str) -> Any:
    done = quipu(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def secret_of(file: Path) -> str:
    return file.read_text().split()[-1]


def unpacked(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as archive:
        streams = {item.name: archive.extractfile(item) for item in archive}
        return {name.split("/")[1]: s.read() for name, s in streams.items() if s is not None}


def test_a_bundle_tells_much_and_no_secret(tmp_path: Path) -> None:
    data, tokens = tmp_path / "n1", tmp_path / "tokens.json"
    scopes = ("--scope", "entries:write", "--scope", "cluster:read")
    token = quipu("token", "new", "app", "--file", str(tokens), *scopes).stdout.strip()
    ops = ("--set", f"api.tokens_file={tokens}")
    with RunningCommand(data, *ops) as node:
        address = node.facts["ops"].removeprefix("http://")
        given = ("--data-dir", str(data), *ops, "--set", f"ops.listen={address}")
        (tmp_path / "token").write_text(token)
        (tmp_path / "token").chmod(0o600)
        stored = quipu(
            "submit",
            '"a word that nobody may see"',
            *("--url", node.facts["api"], "--token-file", str(tmp_path / "token")),
        )
        assert stored.returncode == 0, stored.stderr
        made = told("debug", "bundle", str(tmp_path / "report.tar.gz"), *given)
    found = unpacked(tmp_path / "report.tar.gz")
    assert sorted(found) == sorted(made["parts"])
    assert (tmp_path / "report.tar.gz").stat().st_mode & 0o777 == 0o600
    assert b"quipu_entries_stored_total 1.0" in found["metrics.txt"]
    assert json.loads(found["health.json"])[1]["passes"] is True
    assert json.loads(found["members.json"])
    assert json.loads(found["store.json"])
    for name, content in found.items():
        assert b"cannot be told" not in content, (name, content)
    whole = b"".join(found.values())
    for file in (data / NODE_KEY_FILE, data / CLUSTER_KEY_FILE):
        assert secret_of(file).encode() not in whole
        assert bytes.fromhex(secret_of(file)) not in whole
    assert token.encode() not in whole
    assert b"a word that nobody may see" not in whole


def test_a_bundle_of_a_node_that_does_not_run(tmp_path: Path) -> None:
    assert quipu("init", "--data-dir", str(tmp_path / "n1")).returncode == 0
    file = tmp_path / "report.tar.gz"
    told("debug", "bundle", str(file), "--data-dir", str(tmp_path / "n1"))
    found = unpacked(file)
    assert b"no node runs here" in found["members.json"]
    assert json.loads(found["store.json"])
    again = quipu("debug", "bundle", str(file), "--data-dir", str(tmp_path / "n1"))
    assert (again.returncode, "is there already" in again.stderr) == (6, True)


def changed(net: Devnet, number: int, *command: str) -> list[str]:
    """While it does not run; all fingerprints that it holds then."""
    found: list[str] = told("secret", *command, "--data-dir", str(net.data_of(net.node(number))))[
        "secrets"
    ]
    return found


def all_in_touch(net: Devnet) -> None:
    net.start(*NODES)  # waits until all are linked
    with client_of(net, 3) as client:
        assert client.submit({"order": 7}, wait="read", timeout=60).state == "read"
    net.kill(*NODES)


def test_the_secret_changes_in_steps_and_who_was_away_is_not_locked_out(tmp_path: Path) -> None:
    """One after the other with running nodes: test_secret_change.py."""
    new = tmp_path / "next.key"
    with cluster(tmp_path / "net") as net:
        net.kill(*NODES)
        fingerprint = told("secret", "new", str(new))["fingerprint"]
        before, added = changed(net, 1, "add", str(new))
        assert added == fingerprint
        changed(net, 2, "add", str(new))
        all_in_touch(net)  # n3 was away for the first step
        for number in (1, 2):
            assert changed(net, number, "lead", fingerprint) == [fingerprint, before]
        all_in_touch(net)  # and for the second
        for number in (1, 2):
            assert changed(net, number, "drop", before) == [fingerprint]
        changed(net, 3, "add", str(new))  # the file alone brings it back
        all_in_touch(net)
        # Who has the old secret alone learns nothing of the new one: no log holds it.
        for number in NODES:
            assert secret_of(new) not in net.log_of(net.node(number)).read_text()


def test_steps_that_would_lock_out_are_refused(tmp_path: Path) -> None:
    data, new = tmp_path / "n1", tmp_path / "next.key"
    assert quipu("init", "--data-dir", str(data)).returncode == 0
    [row] = [row for row in told("keys", "--data-dir", str(data)) if row["name"] == "cluster"]
    where = ("--data-dir", str(data))
    alone = quipu("secret", "drop", row["fingerprint"], *where)
    assert (alone.returncode, "only secret" in alone.stderr) == (6, True)
    told("secret", "new", str(new))
    assert quipu("secret", "new", str(new)).returncode == 6
    first = told("secret", "add", str(new), *where)
    assert told("secret", "add", str(new), *where) == first  # twice is as once
    assert len(first["secrets"]) == 2
    assert quipu("secret", "lead", "SHA256:", *where).returncode == 2
    assert quipu("secret", "add", str(tmp_path / "none"), *where).returncode == 2
    assert (data / CLUSTER_KEY_FILE).stat().st_mode & 0o777 == 0o600
