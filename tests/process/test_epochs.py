"""Epochs with real processes: checkpoints, and rosters that change while entries come."""

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from quipu.client import NotFound, QuipuError
from quipu.devnet import Devnet
from quipu.node.exits import Exit
from quipu.verify import verify
from tests.process.cluster import WAIT_S, client_of, cluster, read_at, wait_until
from tests.process.command import QUIPU, environment

NODES = (1, 2, 3)
LATE = ("nominee-unreachable", "nominee-behind", "no-quorum", "order-unknown", "change-in-flight")
ALREADY = ("already-a-member", "already-so", "member-unknown")  # a first try was done after all
HAND_OVER_S = 0.5  # a planned change of serializers stops the order for no longer


def changed(net: Devnet, at: int, *said: str, expects: Exit = Exit.OK) -> str:
    """What an operator types on the machine of that node; answers what was said to him. He says
    it again where a nominee or a master could not answer in time: this machine may be busy."""
    data = str(net.data_of(net.node(at)))
    told: list[str] = []

    def is_done() -> bool:
        done = subprocess.run(
            [*QUIPU, "members", *said, "--data-dir", data, "--json"],
            capture_output=True,
            text=True,
            env=environment(),
            timeout=3 * WAIT_S,
            check=False,
        )
        is_late = any(why in done.stderr for why in LATE) and expects is Exit.OK
        was_done = bool(told) and any(why in done.stderr for why in ALREADY)
        assert is_late or was_done or done.returncode == expects, (said, done.stderr)
        told.append(done.stderr)
        return was_done or done.returncode == expects

    wait_until(is_done, f"{said} is done")
    return told[-1]


def config(net: Devnet, at: int) -> dict[str, Any]:
    with client_of(net, at) as client:
        found: dict[str, Any] = client.roster()
    return found


def epoch_of(net: Devnet, number: int) -> int:
    return int(config(net, number)["epoch"])


def names(found: dict[str, Any], what: str = "members") -> list[str]:
    return [one["name"] for one in found[what]]


def seated(net: Devnet, at: int, *wanted: str) -> None:
    """These vote, and nobody else."""

    def are() -> bool:
        found = config(net, at)
        return found["next_serializers"] is None and set(names(found, "serializers")) == {*wanted}

    wait_until(are, f"{wanted} vote")


def ordered_at(net: Devnet, number: int, value: object) -> str:
    """A node that has just become a member may have to wait for its epoch, and for a master."""
    found: list[str] = []

    def is_ordered() -> bool:
        try:
            with client_of(net, number) as client:
                receipt = client.submit(value, wait="ordered", timeout=WAIT_S)
        except QuipuError:
            return False
        found.append(receipt.id)
        return receipt.state == "ordered"

    wait_until(is_ordered, f"n{number} writes")
    return found[-1]


class Load:
    """Entries one after the other through some nodes; when each became what was waited for."""

    def __init__(self, net: Devnet, wait: str) -> None:
        self.written: list[str] = []
        self.lost = 0
        self._net, self._wait, self._done = net, wait, threading.Event()
        self._times: dict[int, list[float]] = {}

    @contextmanager
    def through(self, *numbers: int) -> Iterator[None]:
        self._done.clear()
        self._times = {number: [] for number in numbers}
        threads = [threading.Thread(daemon=True, target=self._write, args=(n,)) for n in numbers]
        for thread in threads:
            thread.start()
        wait_until(lambda: all(len(t) > 3 for t in self._times.values()), "entries come")
        try:
            yield
            enough = {n: len(times) + 3 for n, times in self._times.items()}
            wait_until(
                lambda: all(len(t) > enough[n] for n, t in self._times.items()), "more entries"
            )
        finally:
            self._done.set()
            for thread in threads:
                thread.join()

    def _write(self, number: int) -> None:
        with client_of(self._net, number) as client:
            while not self._done.is_set():
                try:
                    receipt = client.submit({"n": number}, wait=self._wait, timeout=WAIT_S)
                except QuipuError:
                    self.lost += 1
                    continue
                self.written.append(receipt.id)
                self._times[number].append(time.monotonic())

    @property
    def pause_s(self) -> float:
        """The longest that nothing came through, at the luckiest of the nodes."""
        return min(
            max(after - before for before, after in pairwise(times))
            for times in self._times.values()
        )


# --- checkpoints ----------------------------------------------------------------------------------
def test_a_member_that_restarts_often_is_read_everywhere(tmp_path: Path) -> None:
    with cluster(tmp_path / "net") as net:
        written = []
        for start in range(21):
            if start:
                net.kill(3)
                net.start(3)
            with client_of(net, 3) as client:
                written.append(client.submit({"start": start}).id)
        for identity in written:
            for number in NODES:
                read_at(net, number, identity)
        assert epoch_of(net, 1) > 1


@pytest.mark.alone
def test_a_checkpoint_under_load_loses_nothing_and_is_short(tmp_path: Path) -> None:
    with cluster(tmp_path / "net") as net:
        load, pauses = Load(net, "read"), []
        for _ in range(2):
            with load.through(*NODES):
                changed(net, 1, "checkpoint")
            pauses.append(load.pause_s)
        assert load.lost == 0
        assert epoch_of(net, 2) == 3
        for identity in load.written:
            for number in NODES:
                read_at(net, number, identity)
        print(f"pauses of checkpoints: {[round(one, 3) for one in pauses]} s")
        assert min(pauses) < 2.0


# --- rosters --------------------------------------------------------------------------------------
def test_growth_to_five_and_back_keeps_old_proofs(tmp_path: Path) -> None:
    with cluster(tmp_path / "net", members=1, observers=4) as net:
        genesis = (net.data_of(net.node(1)) / "genesis").read_bytes()
        proofs: list[bytes] = []

        def prove(number: int) -> None:
            identity = ordered_at(net, number, {"epoch of": number})
            with client_of(net, number) as client:
                proofs.append(client.proof(identity))

        prove(1)
        said = changed(net, 1, "add", net.node(2).uri)
        assert "one that is dead stops finality" in said
        changed(net, 1, "add", "n3")
        seated(net, 3, "n1", "n2", "n3")
        prove(3)
        changed(net, 2, "add", "n4")
        changed(net, 3, "add", net.node(5).uri)
        seated(net, 5, "n1", "n2", "n3", "n4", "n5")
        prove(5)
        for leaving in ("n1", "n4"):
            changed(net, 2, "remove", leaving)
        seated(net, 2, "n2", "n3", "n5")
        prove(2)
        for leaving in ("n2", "n5"):
            changed(net, 3, "remove", leaving)
        seated(net, 3, "n3")
        prove(3)
        assert names(config(net, 3)) == ["n3"]
        epochs = [verify(proof, genesis=genesis).epoch for proof in proofs]
        assert epochs == sorted(set(epochs))
        with client_of(net, 1) as client, pytest.raises(QuipuError) as refused:
            client.submit("by one who left")
        assert refused.value.code == "not-a-member"


def test_a_dead_member_is_replaced_and_what_it_did_not_confirm_is_void(tmp_path: Path) -> None:
    with cluster(tmp_path / "net", members=3, observers=1) as net:
        before = ordered_at(net, 3, "before")
        net.partition([3], [1, 2, 4])
        with client_of(net, 3) as client:
            alone = client.submit("never confirmed").id
        net.kill(3)
        net.heal(wait=False)
        refused = changed(net, 1, "add", "n3", expects=Exit.CONFLICT)
        assert "already-a-member" in refused
        changed(net, 2, "replace", "n3", net.node(4).uri)
        seated(net, 4, "n1", "n2", "n4")
        after = ordered_at(net, 4, "after")
        for identity in (before, after):
            for number in (1, 2, 4):
                read_at(net, number, identity)
        net.start(3)

        def is_void() -> bool:
            with client_of(net, 3) as client:
                try:
                    return client.status(alone).state == "void"
                except NotFound:
                    return False

        wait_until(is_void, "what the dead member alone held is void")
        with client_of(net, 3) as client:
            assert "author-left" in str(client.explain(alone.partition(":")[0]))


@pytest.mark.alone
def test_all_three_are_replaced_one_after_the_other_under_load(tmp_path: Path) -> None:
    with cluster(tmp_path / "net", members=3, observers=3) as net:
        ordered_at(net, 1, "first")
        load, pauses = Load(net, "ordered"), []
        steps = (("n1", 4, (2, 3)), ("n2", 5, (3, 4)), ("n3", 6, (4, 5)))
        for leaving, coming, staying in steps:
            with load.through(*staying):
                changed(net, staying[0], "replace", leaving, net.node(coming).uri)
                wanted = {f"n{n}" for n in (*staying, coming)}
                seated(net, staying[0], *wanted)
            pauses.append(load.pause_s)
            net.stop(int(leaving[1:]))
            ordered_at(net, coming, leaving)
        assert load.lost == 0
        assert sorted(names(config(net, 6))) == ["n4", "n5", "n6"]
        for identity in load.written:
            read_at(net, 6, identity)
        print(f"pauses of replacements: {[round(one, 3) for one in pauses]} s")


def test_a_change_outlives_its_master(tmp_path: Path) -> None:
    with cluster(tmp_path / "net", members=3, observers=1) as net:
        ordered_at(net, 1, "first")
        master = next(n for n in NODES if _is_master(net, n))
        others = [n for n in NODES if n != master]
        net.pause(4)  # the nominee cannot answer: the change waits for it
        asked = threading.Thread(
            daemon=True,
            target=lambda: changed(net, others[0], "add", net.node(4).uri, "--timeout", "60"),
        )
        asked.start()
        wait_until(lambda: config(net, others[1])["change"] is not None, "the change is ordered")
        net.kill(master)
        net.resume(4)
        asked.join()
        seated(net, others[0], "n4", *(f"n{n}" for n in others))
        net.start(master)
        ordered_at(net, master, "after")
        seated(net, others[0], "n1", "n2", "n3", "n4")


def _is_master(net: Devnet, number: int) -> bool:
    with client_of(net, number) as client:
        return bool(client.journal()["role"] == "master")
