"""Exactly-once SQL over the cluster log with real processes: nodes and apps that are killed."""

import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from quipu.client import Client, Outcome, Session, Unavailable
from quipu.devnet import Devnet
from tests.process.cluster import WAIT_S, client_of, cluster, wait_until
from tests.process.test_hand_over import proposed

NODES = (1, 2, 3)
REQUESTS = 40
LONG_LIST = [{"tables": f"{'t' * 110}{n}", "rights": ["read"]} for n in range(1_000)]
COUNT = "INSERT INTO counted VALUES (?, 1) ON CONFLICT DO UPDATE SET times = times + 1"
TABLE = "CREATE TABLE counted (request INTEGER PRIMARY KEY, times INT)"


def urls(net: Devnet) -> list[str]:
    return [net.node(number).api for number in NODES]


def begun(session: Session) -> None:
    session.register()
    assert session.execute(TABLE).ok


def rows(net: Devnet, number: int) -> list[list[Any]]:
    with client_of(net, number) as client:
        found = client.sql("SELECT request, times FROM counted ORDER BY request")
    return list(found["rows"])


def executors_agree(net: Devnet, *among: int) -> None:
    """Level, with one digest of all commands."""

    def are_equal() -> bool:
        found = []
        for number in among:
            with client_of(net, number) as client:
                found.append(client.executor())
        assert all(one["state"] != "failed" for one in found), found
        return len({(one["digest"], one["behind"]) for one in found}) == 1

    wait_until(are_equal, "executors are level and equal")


def is_at(outcomes: list[Outcome], goal: int, worker: threading.Thread) -> bool:
    return len(outcomes) >= goal or not worker.is_alive()


def test_each_request_is_executed_once_while_nodes_are_killed(tmp_path: Path) -> None:
    with (
        cluster(tmp_path / "net") as net,
        Client(urls(net)) as client,
        client.session(tmp_path / "app.state") as session,
    ):
        begun(session)
        outcomes: list[Outcome] = []

        def work() -> None:
            for number in range(1, REQUESTS + 1):
                outcome = session.execute((COUNT, number), timeout=WAIT_S)
                outcomes.append(outcome)

        worker = threading.Thread(daemon=True, target=work)
        worker.start()
        for number in NODES:
            goal = len(outcomes) + 3
            wait_until(partial(is_at, outcomes, goal, worker), "work goes on")
            net.kill(number)
            net.start(number)
        worker.join(WAIT_S * 2)
        assert [one.message_id for one in outcomes] == list(range(2, REQUESTS + 2))
        assert all(one.ok for one in outcomes)
        executors_agree(net, *NODES)
        for number in NODES:
            assert rows(net, number) == [[n, 1] for n in range(1, REQUESTS + 1)]


APP = """
import os, signal, sys
from quipu.client import Client
with Client(sys.argv[2].split(",")) as client, client.session(sys.argv[1]) as session:
    for outcome in session.recover():
        print(outcome.message_id, flush=True)
    while True:
        outcome = session.execute((sys.argv[3], session._session.state.next_id))
        print(outcome.message_id, flush=True)
        if outcome.message_id % 7 == int(sys.argv[4]):
            os.kill(os.getpid(), signal.SIGKILL)
"""


def test_an_app_that_is_killed_goes_on_and_does_nothing_twice(tmp_path: Path) -> None:
    state = tmp_path / "app.state"
    with cluster(tmp_path / "net") as net:
        with Client(urls(net)) as client, client.session(state) as session:
            begun(session)
        said: list[int] = []
        for round_ in range(3):
            done = subprocess.run(
                [sys.executable, "-c", APP, str(state), ",".join(urls(net)), COUNT, str(round_)],
                capture_output=True,
                text=True,
                check=False,
                timeout=WAIT_S,
            )
            assert done.returncode == -9, done.stderr
            said += [int(line) for line in done.stdout.split()]
        assert sorted(set(said)) == list(range(2, max(said) + 1))
        executors_agree(net, *NODES)
        assert rows(net, 2) == [[n, 1] for n in range(2, max(said) + 1)]


def test_a_lone_node_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    with (
        cluster(tmp_path / "net", 1) as net,
        Client([net.node(1).api]) as client,
        client.session(tmp_path / "app.state") as session,
    ):
        begun(session)
        for number in range(1, 10):
            assert session.execute((COUNT, number), timeout=WAIT_S).ok
            if number % 3 == 0:
                before = client.executor()
                net.kill(1)
                net.start(1)
                wait_until(lambda: client.executor()["state"] == "running", "the executor is back")
                after = client.executor()
                assert after["digest"] == before["digest"]
        assert rows(net, 1) == [[n, 1] for n in range(1, 10)]
        kept = session.results()
        assert {one.message_id for one in kept} <= set(range(1, 11))


def test_an_executor_that_differs_stops_serving(tmp_path: Path) -> None:
    with (
        cluster(tmp_path / "net") as net,
        Client(urls(net)[:2]) as client,  # until it is found out, n3 answers with what it has
        client.session(tmp_path / "app.state") as session,
    ):
        begun(session)
        assert session.execute((COUNT, 1), timeout=WAIT_S).ok
        executors_agree(net, *NODES)
        net.kill(3)
        file = tmp_path / "net" / "n3" / "data" / "executor" / "executor.sqlite3"
        with closing(sqlite3.connect(file)) as spoiled:  # what its disk makes of it
            spoiled.execute("UPDATE counted SET times = 7")
            spoiled.commit()
        net.start(3)
        counted = "SELECT times FROM counted WHERE request = 1"
        wait_until(lambda: is_running(net, 3), "the executor is back")
        assert session.execute(counted, timeout=WAIT_S).rows == [[1]]

        def has_stopped() -> bool:
            with client_of(net, 3) as spoiled:
                found = spoiled.executor()
            return found["state"] == "failed" and "another digest" in found["detail"]

        wait_until(has_stopped, "the executor that differs stops")
        assert is_running(net, 1)
        assert is_running(net, 2)
        with client_of(net, 3) as spoiled_node, pytest.raises(Unavailable, match="no-executor"):
            spoiled_node.sql(counted)
        assert session.execute((COUNT, 2), timeout=WAIT_S).ok


def test_an_executor_that_lost_its_database_begins_from_a_snapshot(tmp_path: Path) -> None:
    with (
        cluster(tmp_path / "net") as net,
        Client(urls(net)) as client,
        client.session(tmp_path / "app.state") as session,
    ):
        begun(session)
        assert session.execute((COUNT, 1), timeout=WAIT_S).ok
        while not all(base_of(net, n) > 10 for n in NODES):
            client.new_client("ab" * 32, rights=LONG_LIST)  # a log keeps 4 to 8 MiB
        executors_agree(net, *NODES)
        net.kill(3)
        shutil.rmtree(tmp_path / "net" / "n3" / "data" / "executor")
        net.start(3)
        wait_until(lambda: is_running(net, 3), "the executor is back")
        assert session.execute((COUNT, 2), timeout=WAIT_S).ok
        executors_agree(net, *NODES)
        assert rows(net, 3) == [[1, 1], [2, 1]]
        # The role is taken and given by the order: the executor goes and comes as it says.
        assert proposed(net, 1, "remove-executor", "n3")["stage"] == "implemented"
        wait_until(lambda: executor_of(net, 3)["state"] == "off", "the executor has stopped")
        assert session.execute((COUNT, 3), timeout=WAIT_S).ok
        assert proposed(net, 2, "add-executor", "n3")["stage"] == "live"
        wait_until(lambda: is_running(net, 3), "the executor has begun anew")
        executors_agree(net, *NODES)
        assert rows(net, 3) == [[1, 1], [2, 1], [3, 1]]
        assert (tmp_path / "net" / "n3" / "data" / "executor" / "aside-1.sqlite3").exists()


def base_of(net: Devnet, number: int) -> int:
    with client_of(net, number) as client:
        return int(client.journal()["base"])


def executor_of(net: Devnet, number: int) -> dict[str, Any]:
    with client_of(net, number) as client:
        found: dict[str, Any] = client.executor()
        return found


def is_running(net: Devnet, number: int) -> bool:
    return bool(executor_of(net, number)["state"] == "running")
