"""Erasing on real nodes: what an entry says goes everywhere; its place and its proof stay."""

import shutil
from functools import partial
from pathlib import Path

from quipu.client import Client, QuipuError
from quipu.devnet import Devnet
from quipu.node.exits import Exit
from quipu.node.founding import GENESIS_FILE
from quipu.storage.environment import DATA_FILE
from quipu.verify import verify
from tests.process.cluster import WAIT_S, client_of, cluster, wait_until
from tests.process.test_pruning import quipu, same_frontier

SECRET = "what Ann asked us to forget"
ERASABLE = ["node.streams_erasable=people"]


def is_erased(client: Client, identity: str) -> bool:
    try:
        client.get(identity)
    except QuipuError as error:
        return str(error.code) == "erased"
    return False


def wait_erased(net: Devnet, identity: str, *numbers: int) -> None:
    for number in numbers:
        with client_of(net, number) as client:
            wait_until(partial(is_erased, client, identity), f"n{number} has erased {identity}")


def check_proofs(client: Client, ids: list[str], proof: bytes, genesis: bytes) -> None:
    """Of the middle one, which is erased, and of those beside it; `proof` was taken before."""
    before, now = verify(proof, genesis), verify(client.proof(ids[1]), genesis)
    assert SECRET.encode() in before.entry.data
    assert (now.entry.kind, now.entry.data) == ("erased", b"")
    assert (now.event_id, now.index) == (before.event_id, before.index)
    assert now.entry.leaf_hash == before.entry.leaf_hash
    for other in (ids[0], ids[2]):
        assert verify(client.proof(other), genesis).entry.data == client.get(other).raw
    assert client.status(ids[1]).state in {"read", "ordered"}
    listed = [one.id for one in client.list(stream="people", limit=100).items]
    assert ids[1] not in listed
    assert ids[0] in listed


def test_what_was_erased_is_gone_everywhere_and_still_proven(tmp_path: Path) -> None:
    with cluster(tmp_path / "net", members=2, observers=1, settings=ERASABLE) as net:
        n1, n2 = net.data_of(net.node(1)), net.data_of(net.node(2))
        genesis = (n1 / GENESIS_FILE).read_bytes()
        with client_of(net, 1) as client:
            said = [{"n": 0}, {"said": SECRET}, {"n": 2}]
            sent = client.submit_batch(said, stream="people", atomic=True)
            ids = [str(one.id) for one in sent.results]
            later = client.submit({"said": SECRET}, stream="people").id
            client.submit({"n": 3}, wait="ordered", timeout=WAIT_S)
            proof = client.proof(ids[1])
        wait_until(lambda: same_frontier(net, 1, 2, 3), "all hold it")
        net.stop(3)
        waits = quipu(n1, "store", "erase", ids[1], "--timeout", "1s", expects=Exit.WAITED)
        assert waits["waits_for"] in {"finality", "checkpoint"}
        quipu(n1, "members", "checkpoint")
        wait_erased(net, ids[1], 1, 2)
        quipu(n1, "store", "erase", later, "--timeout", "0s", expects=Exit.WAITED)
        net.kill(1)  # between the word and the deed
        net.start(1)
        net.start(3)  # it was away, and has the whole entry
        wait_erased(net, ids[1], 1, 3)
        wait_erased(net, later, 1, 2, 3)
        net.stop(2)
        shutil.rmtree(n2 / "store")
        net.start(2)  # it gets from others what they have left
        wait_until(lambda: same_frontier(net, 1, 2, 3), "n2 holds what the others hold")
        with client_of(net, 2) as client:
            check_proofs(client, ids, proof, genesis)
        assert quipu(n2, "store", "scrub")["found"] == 0
        net.stop(1)
        quipu(n1, "store", "compact")
        for data in (n1, n2):
            assert SECRET.encode() not in (data / "store" / DATA_FILE).read_bytes()
