"""Serializers hand over to another set, with real processes and under load: nothing is lost, and
the order stands still for less than half a second."""

import json
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import pytest

from quipu.client import Client, QuipuError
from quipu.devnet import Devnet
from tests.process.cluster import client_of, cluster, wait_until
from tests.process.command import quipu
from tests.process.test_order import events_in, journal, journals_agree, master_of, write_ordered

PAUSE_S = 0.5
MEMBERS = 4


class Writing:
    """Writes to one node, entry by entry, each waited for until it is ordered."""

    def __init__(self, api: str) -> None:
        self.api = api
        self.ids: list[str] = []
        self.answered_s: list[float] = []
        self.faults: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(daemon=True, target=self._run)

    def _run(self) -> None:
        with Client([self.api]) as client:
            while not self._stop.is_set():
                try:
                    receipt = client.submit("x", wait="ordered", timeout=30)
                except QuipuError as error:
                    self.faults.append(repr(error))
                    return
                self.ids.append(receipt.id.partition(":")[0])
                self.answered_s.append(time.monotonic())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def pause_s(self, begun_s: float, ended_s: float) -> float:
        """The longest time without an answer."""
        within = [at for at in self.answered_s if begun_s <= at <= ended_s]
        marks = [begun_s, *within, ended_s]
        return max(after - before for before, after in pairwise(marks))


def asked(net: Devnet, number: int, *wanted: str) -> tuple[int, dict[str, Any], str]:
    """As an operator does: exit code, answer, what was said."""
    data = str(net.data_of(net.node(number)))
    done = quipu("journal", "propose", *wanted, "--json", "--data-dir", data)
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


def proposed(net: Devnet, number: int, *wanted: str) -> dict[str, Any]:
    code, change, said = asked(net, number, *wanted)
    assert code == 0, said
    return change


@pytest.mark.alone
def test_serializers_hand_over_under_load_without_loss_or_a_long_pause(tmp_path: Path) -> None:
    with cluster(tmp_path / "net", members=MEMBERS) as net:
        everybody = tuple(range(1, MEMBERS + 1))
        write_ordered(net, 1, "first")
        names = {number: net.node(number).name for number in everybody}
        pauses: list[float] = []
        others: list[str] = []
        with Writing(net.node(2).api) as writing:
            for _ in range(2):  # the master leaves, and one of those who stay
                wait_until(lambda: len(writing.ids) > 3, "it writes")
                master = master_of(net, *everybody)
                others = [names[n] for n in everybody if n != master]
                begun_s = time.monotonic()
                change = proposed(net, master, "serializers", *others)
                ended_s = time.monotonic()
                assert change["stage"] == "confirm"
                pauses.append(writing.pause_s(begun_s, ended_s))
                wait_until(
                    lambda left=master: journal(net, left)["role"] != "master",  # type: ignore[misc]
                    "the old master has left",
                )
        assert writing.faults == []
        assert min(pauses) < PAUSE_S, pauses
        with client_of(net, 1) as client:
            config = client.journal_config()
            serving = [one["member"]["name"] for one in config["nodes"] if one["serializer"]]
            assert serving == others
        ordered = events_in(journals_agree(net, *everybody))
        assert len(set(ordered)) == len(ordered)
        assert set(writing.ids) <= set(ordered)


def test_a_node_is_taken_from_the_ingest_nodes_and_nothing_of_it_is_lost(tmp_path: Path) -> None:
    with cluster(tmp_path / "net") as net:
        written = write_ordered(net, 2, "before")
        assert proposed(net, 1, "remove-ingest", "n2")["stage"] == "drop"
        with client_of(net, 2) as client:
            with pytest.raises(QuipuError) as refused:
                client.submit("after")
            assert refused.value.code == "not-ingest-node"
        assert proposed(net, 3, "add-ingest", "n2")["stage"] == "live"
        again = write_ordered(net, 2, "again")
        ordered = events_in(journals_agree(net, 1, 2, 3))
        assert {one.partition(":")[0] for one in (written, again)} <= set(ordered)
        with client_of(net, 1) as client:
            assert client.journal_config()["change"]["kind"] == "add-ingest"


def test_a_dead_nominee_is_waited_for_and_one_change_is_in_flight(tmp_path: Path) -> None:
    with cluster(tmp_path / "net", members=MEMBERS) as net:
        write_ordered(net, 1, "first")
        net.kill(4)
        with client_of(net, 1) as client:

            def is_missed() -> bool:
                rows = client.members()["items"]
                return [row["state"] for row in rows if row["number"] == 4] != ["alive"]

            wait_until(is_missed, "n1 misses n4")
        master_of(net, 1, 2, 3)  # it may have been n4
        code, change, said = asked(net, 1, "serializers", "n1", "n2", "n4", "--timeout", "2s")
        assert code == 8, said
        assert not change["ended"]
        code, _, said = asked(net, 2, "add-executor", "n1")
        assert (code, "change-in-flight" in said) == (6, True)
        net.start(4)
        with client_of(net, 1) as client:
            wait_until(
                lambda: client.journal_config()["change"]["ended"], "the nominee has caught up"
            )
            assert client.journal_config()["change"]["stage"] == "confirm"
