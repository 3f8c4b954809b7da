"""A new node from a URI and a secret file, by the real commands; and all that can be wrong."""

import json
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quipu.client import Client, NotFound
from quipu.client.asynchronous import reached
from quipu.node.exits import Exit
from tests.process.cluster import wait_until
from tests.process.command import RunningCommand, quipu

ANY_PORT = ("--p2p-listen", "127.0.0.1:0")


@contextmanager
def seed(folder: Path) -> Iterator[tuple[RunningCommand, Path]]:
    """A running node, and a copy of its cluster's secret."""
    with RunningCommand(folder / "n1") as n1:
        secret = folder / "secret"
        shutil.copy(folder / "n1" / "cluster.key", secret)
        yield n1, secret


def join(folder: Path, uri: str, secret: Path, *more: str) -> tuple[int, str]:
    done = quipu(
        *("join", uri, "--secret-file", str(secret), "--data-dir", str(folder / "n2")),
        *(ANY_PORT + more),
    )
    return done.returncode, done.stdout + done.stderr


def is_read(client: Client, entry: str) -> bool:
    try:
        return reached(client.wait(entry, "read", 1).state, "read")
    except NotFound:
        return False


def test_a_uri_and_the_secret_are_enough(tmp_path: Path) -> None:
    with seed(tmp_path) as (n1, secret):
        uri = n1.facts["p2p"]
        options = ("--name", "n2", "--join", uri, "--secret-file", str(secret))
        with RunningCommand(tmp_path / "n2", *options) as n2:
            assert n2.facts["cluster_id"] == n1.facts["cluster_id"]
            assert (tmp_path / "n2" / "seeds").read_text() == f"{uri}\n"
            with Client([n1.facts["api"]]) as client, Client([n2.facts["api"]]) as other:
                receipt = client.submit({"order": 7}, wait="read")
                wait_until(lambda: is_read(other, receipt.id), "n2 has what n1 took")
            assert n2.stop()[0] == Exit.OK
        secret.unlink()
        with RunningCommand(tmp_path / "n2", *options) as n2:  # it has its place
            assert n2.facts["cluster_id"] == n1.facts["cluster_id"]
        code, logged = n1.stop()
        assert code == Exit.OK
        said = [json.loads(line) for line in logged.splitlines()]
        assert [x["event"] for x in said].count("guest served") == 1


def test_a_founder_whose_cluster_was_made_elsewhere_needs_no_file_of_it(tmp_path: Path) -> None:
    with socket.socket() as held:  # the port that the founders are told
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        listen = ("--p2p-listen", f"127.0.0.1:{held.getsockname()[1]}")
    made = quipu("init", "--key-only", "--json", "--data-dir", str(tmp_path / "n2"), *listen)
    founder = f"n2={json.loads(made.stdout)['uri']}"
    found = quipu(
        *("init", "--data-dir", str(tmp_path / "n1"), "--founder", founder, "--policy", "1"),
        *("--p2p-listen", "127.0.0.1:8471"),
    )
    assert found.returncode == Exit.OK, found.stderr
    with seed(tmp_path) as (n1, secret):
        options = ("--join", n1.facts["p2p"], "--secret-file", str(secret), *listen)
        with RunningCommand(tmp_path / "n2", "--name", "n2", *options) as n2:
            assert n2.facts["cluster_id"] == n1.facts["cluster_id"]
            with Client([n2.facts["api"]]) as client:
                wait_until(lambda: client.cluster()["members_live"] == 2, "both are up")


@pytest.mark.parametrize("case", ["secret", "node", "port", "no way back", "none", "exposed"])
def test_each_trouble_has_its_own_words(case: str, tmp_path: Path) -> None:
    with seed(tmp_path) as (n1, secret):
        uri: str = n1.facts["p2p"]
        where, _, node_id = uri.removeprefix("quipu://").partition("/")
        more: tuple[str, ...] = ()
        if case == "secret":
            text = secret.read_text()
            secret.write_text(text[:-2] + ("0" if text[-2] != "0" else "1") + "\n")
        if case == "node":
            quipu("init", "--data-dir", str(tmp_path / "other"), *ANY_PORT)
            keys = quipu("keys", "--json", "--data-dir", str(tmp_path / "other"))
            other = json.loads(keys.stdout)[0]["public"]
            uri = f"quipu://{where}/{other}"
        if case == "port":
            uri = f"quipu://127.0.0.1:1/{node_id}"
        if case == "no way back":
            more = ("--advertise", "127.0.0.1:1")
        if case == "none":
            secret.unlink()
        if case == "exposed":
            secret.chmod(0o644)
        code, said = join(tmp_path, uri, secret, *more)
    expected, words, advice = {
        "secret": (Exit.AUTH, "does not hold its cluster's secret", "Copy cluster.key anew"),
        "node": (Exit.AUTH, "is not node", "`quipu keys` on that node"),
        "port": (Exit.UNREACHABLE, "cannot reach 127.0.0.1:1", "Is that node running"),
        "no way back": (Exit.UNREACHABLE, "cannot dial 127.0.0.1:1", "p2p.advertise"),
        "none": (Exit.USAGE, "cannot read", "Copy cluster.key of a member"),
        "exposed": (Exit.AUTH, "can be read by others", "chmod 600"),
    }[case]
    assert (code, words in said, advice in said) == (expected, True, True), said
    assert not (tmp_path / "n2" / "genesis").exists()


def test_a_uri_alone_is_not_enough(tmp_path: Path) -> None:
    uri = f"quipu://127.0.0.1:1/{'ab' * 32}"
    done = quipu("join", uri, "--data-dir", str(tmp_path / "n2"), *ANY_PORT)
    assert done.returncode == Exit.USAGE
    assert "--secret-file" in done.stderr
    done = quipu("join", "quipu://127.0.0.1:1/ab", "--data-dir", str(tmp_path / "n3"), *ANY_PORT)
    assert done.returncode == Exit.USAGE
    assert "64 hex digits" in done.stderr
