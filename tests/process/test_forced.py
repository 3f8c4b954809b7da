"""Two of three members are lost for ever: the third goes on by force, and nobody forks."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from quipu.client import QuipuError
from quipu.devnet import Devnet
from quipu.node.exits import Exit
from quipu.verify import verify
from tests.process.cluster import client_of, cluster, read_at, wait_until
from tests.process.command import QUIPU, environment
from tests.process.test_epochs import changed, config, names, ordered_at, seated


def forced(net: Devnet, at: int) -> str:
    """The operator's word, once the node itself has noticed that the others are silent."""
    data = str(net.data_of(net.node(at)))
    command = [*QUIPU, "members", "recover", "--force", "--data-dir", data, "--json"]
    said: list[str] = []

    def is_done() -> bool:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment(), check=False
        )
        assert done.returncode in {Exit.OK, Exit.CONFLICT}, done.stderr
        said.append(done.stderr)
        return done.returncode == Exit.OK

    wait_until(is_done, f"n{at} goes on by force")
    assert all("quorum-answers" in refused for refused in said[:-1])
    return said[-1]


def trouble_of(net: Devnet, number: int) -> str:
    with client_of(net, number) as client:
        found: list[dict[str, Any]] = client.members()["items"]
    return next(str(one["trouble"]) for one in found if one["is_self"])


def votes(net: Devnet, number: int) -> bool:
    with client_of(net, number) as client:
        return bool(client.journal()["role"] != "recovering")


def stands_still(net: Devnet, number: int) -> None:
    wait_until(lambda: "went on by force" in trouble_of(net, number), f"n{number} stands still")
    with client_of(net, number) as client, pytest.raises(QuipuError) as refused:
        client.submit("a fork")
    assert refused.value.code == "overruled"
    with client_of(net, number) as client:
        assert client.journal()["master"] is None


def test_one_that_is_left_goes_on_by_force_and_nobody_forks(tmp_path: Path) -> None:
    with cluster(tmp_path / "net", members=3, observers=1) as net:
        genesis = (net.data_of(net.node(1)) / "genesis").read_bytes()
        before = ordered_at(net, 2, "before")
        read_at(net, 1, before)
        with client_of(net, 1) as client:
            old = client.proof(before)
        assert "answer" in changed(net, 1, "recover", "--force", expects=Exit.CONFLICT)
        changed(net, 1, "recover", expects=Exit.USAGE)
        net.kill(2, 3)
        with client_of(net, 1) as client:
            alone = client.submit("alone").id
        assert "only member" in forced(net, 1)
        read_at(net, 1, alone)
        after = ordered_at(net, 1, "after")
        with client_of(net, 1) as client:
            proofs = [client.proof(one) for one in (alone, after)]
            assert client.members()["forced_epochs"] == ["2"]
        for proof in proofs:
            assert verify(proof, genesis=genesis).forced == (2,)
        assert verify(old, genesis=genesis).forced == ()
        read_at(net, 4, after)  # an observer has nothing to lose by it, and goes along

        net.start(2, 3)
        for number in (2, 3):
            stands_still(net, number)

        assert "follows" in changed(net, 2, "recover", "--force")
        changed(net, 1, "add", net.node(2).uri)
        changed(net, 1, "add", "n4")
        seated(net, 1, "n1", "n2", "n4")
        wait_until(lambda: votes(net, 2), "n2 votes again, with a log that it has learned")
        net.kill(1)  # the two of them are a quorum of their own
        late = ordered_at(net, 2, "late")
        for identity in (before, alone, after, late):
            read_at(net, 4, identity)
        assert names(config(net, 2)) == ["n1", "n2", "n4"]
        stands_still(net, 3)
