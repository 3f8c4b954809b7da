"""Pruning on real nodes: what goes, what stays, and nodes that begin with a checkpoint."""

import json
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from quipu.client import Client, NotFound, QuipuError
from quipu.devnet import Devnet
from quipu.node.exits import Exit
from quipu.node.founding import GENESIS_FILE
from quipu.testing import LocalNode
from quipu.verify import verify
from tests.process.cluster import WAIT_S, client_of, cluster, read_at, wait_until
from tests.process.command import QUIPU, environment

BATCH = 40


def quipu(data: Path, *said: str, expects: Exit = Exit.OK) -> dict[str, Any]:
    done = subprocess.run(
        [*QUIPU, *said, "--data-dir", str(data), "--json"],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=3 * WAIT_S,
        check=False,
    )
    assert done.returncode == expects, (said, done.stdout, done.stderr)
    found: dict[str, Any] = json.loads(done.stdout or "{}")
    return found


def written(client: Client, count: int = BATCH) -> list[str]:
    """An event each, as they are sent one after the other; in the end all are ordered."""
    found = [client.submit({"n": n}).id for n in range(count - 1)]
    last = client.submit({"n": count - 1}, wait="ordered", timeout=WAIT_S)
    assert last.state in {"ordered", "executed"}
    return [*found, last.id]


def code_of(client: Client, identity: str) -> str:
    with pytest.raises(NotFound) as caught:
        client.get(identity)
    return str(caught.value.code)


def has_epoch(client: Client, number: int) -> bool:
    return int(client.node()["epoch"]) >= number


def test_a_lone_node_prunes_compacts_and_goes_on(tmp_path: Path) -> None:
    node = LocalNode(tmp_path)
    ids: list[str] = []
    with node:
        for _ in range(3):
            ids += written(node.client)
            quipu(node.data_dir, "members", "checkpoint")
        proof = node.client.proof(ids[1])
        page = node.client.list(limit=10)
        node.client.keep_consumer("slow", page.next, ttl="1h")
        held = quipu(node.data_dir, "store", "prune", "--keep", "0s")  # beside the running node
        assert held["held_by"] == "consumer slow"
        assert 0 < held["events"] <= 10
        assert code_of(node.client, ids[1]) == "pruned"
        assert len(node.client.list(after=page.next, limit=20).items) == 20
        node.client.forget_consumer("slow")
    data = node.data_dir
    quipu(data, "store", "prune", expects=Exit.USAGE)  # nothing says what is to be kept
    before = quipu(data, "store", "stats")
    planned = quipu(data, "store", "prune", "--keep", "0s", "--dry-run")
    done = quipu(data, "store", "prune", "--keep", "0s")
    assert planned["events"] == done["events"] > BATCH
    assert planned["events_left"] == before["events"]
    assert quipu(data, "store", "verify", "--signatures")["found"] == 0
    compacted = quipu(data, "store", "compact")
    assert compacted["bytes_after"] < compacted["bytes_before"]
    with node:
        client = node.client
        said = client.node()
        assert int(said["history_from"]) >= 2
        first, last = int(said["feed_first"]), int(said["feed_number"])
        assert len(client.list(limit=1_000).items) == last - first + 1
        with pytest.raises(NotFound) as caught:
            client.list(after=page.next)
        assert caught.value.code == "cursor-gone"
        assert code_of(client, ids[20]) == "pruned"
        assert client.get(ids[-1]).data == {"n": BATCH - 1}
        verify(client.proof(ids[-1]), node.genesis)
        written(client, 3)
        quipu(data, "members", "checkpoint")
        assert quipu(data, "store", "scrub")["found"] == 0
    verify(proof, (data / GENESIS_FILE).read_bytes())


def same_frontier(net: Devnet, *numbers: int) -> bool:
    found = []
    for number in numbers:
        try:
            with client_of(net, number) as client:
                rows = client.frontier()["rows"]
        except QuipuError:
            return False
        found.append([(row["author"], row["read_seq"], row["held_id"]) for row in rows])
    return all(one == found[0] for one in found)


def test_a_wiped_node_comes_up_to_date_from_peers_that_have_pruned(tmp_path: Path) -> None:
    with cluster(tmp_path / "net") as net:
        ids: list[str] = []
        for number in (1, 2, 3, 1):
            with client_of(net, number) as client:
                ids += written(client, 15)
            data = net.data_of(net.node(1))
            quipu(data, "members", "checkpoint")
        for number in (1, 2):
            read_at(net, number, ids[-1])
            data = net.data_of(net.node(number))
            with client_of(net, number) as client:
                wait_until(partial(has_epoch, client, 5), "the checkpoint is everywhere")
            done = quipu(data, "store", "prune", "--keep", "0s")
            assert done["events"] >= 30, done
        with client_of(net, 1) as client:
            assert code_of(client, ids[0]) == "pruned"
        net.stop(3)
        shutil.rmtree(net.data_of(net.node(3)) / "store")
        net.start(3)
        wait_until(lambda: same_frontier(net, 1, 2, 3), "n3 holds what the others hold")
        with client_of(net, 3) as client:
            assert int(client.node()["history_from"]) >= 2
            assert code_of(client, ids[0]) == "entry-not-found"
            assert client.get(ids[-1]).data == {"n": 14}
            last = client.submit({"after": 1}, wait="ordered", timeout=WAIT_S)
            assert last.state == "ordered"
        for number in (1, 2):
            read_at(net, number, last.id)
        data = net.data_of(net.node(1))
        quipu(data, "members", "checkpoint")  # n3's receipts count again
        for number in (1, 2, 3):
            folder = net.data_of(net.node(number))
            assert quipu(folder, "store", "scrub")["found"] == 0
        with client_of(net, 3) as client:
            verify(client.proof(last.id), (data / GENESIS_FILE).read_bytes())
