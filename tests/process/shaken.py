"""A cluster of real nodes behind a network that a test spoils, and apps that write to it."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlsplit

from quipu.client import Client
from quipu.devnet import Devnet
from quipu.devnet.founding import PORTS_PER_NODE, found
from quipu.devnet.plan import Plan, write_plan
from quipu.devnet.ports import HeldPorts
from quipu.devnet.processes import ProcessState, until
from quipu.p2p.words import PeerState
from tests.process.chaos import Chaos
from tests.process.cluster import wait_until

EQUAL_S_MAX = 6.0  # from the end of the faults to equal Models, besides what is to be carried over
TRANSFER_S = 4.0  # for that, and for a machine that is busy with other tests
AGAIN_S_MAX = 10.0  # from the start of a cluster that was killed to Read
WRITE_WAIT = "1s"  # that a write waits to be Read
PAUSE_S = 0.02  # of an app between two writes
ANSWER_S = 5.0


class Written(NamedTuple):
    id: str
    state: str  # as it was acknowledged
    node: int
    begun_s: float
    took_s: float


class Apps:
    """One for each node named; they write until they are ended, whatever happens to the nodes, at
    the latest with the cluster: a test that fails ends nobody."""

    begun: ClassVar[list["Apps"]] = []

    def __init__(self, net: Devnet, numbers: Sequence[int]) -> None:
        self.begun.append(self)
        self._net = net
        self._ends = threading.Event()
        self.written: list[Written] = []
        self._threads = [
            threading.Thread(daemon=True, target=self._write, args=(n,)) for n in numbers
        ]
        for thread in self._threads:
            thread.start()

    def _write(self, number: int) -> None:
        count = 0
        connection: http.client.HTTPConnection | None = None
        while not self._ends.wait(PAUSE_S):
            count += 1
            try:
                if connection is None:
                    address = urlsplit(self._net.node(number).api).netloc
                    connection = http.client.HTTPConnection(address, timeout=ANSWER_S)
                self._post(connection, number, f"{number}/{count}")
            except (OSError, http.client.HTTPException):
                if connection is not None:
                    connection.close()
                connection = None
        if connection is not None:
            connection.close()

    def _post(self, connection: http.client.HTTPConnection, number: int, text: str) -> None:
        begun_s = time.monotonic()
        path = f"/v1/entries?wait=read&timeout={WRITE_WAIT}"
        body = json.dumps({"data": text})
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        told = json.loads(answer.read())
        if answer.status < 300:
            took_s = time.monotonic() - begun_s
            self.written.append(Written(told["id"], told["state"], number, begun_s, took_s))

    def end(self) -> list[Written]:
        self._ends.set()
        for thread in self._threads:
            thread.join()
        return self.written


class Shaken:
    """Nodes are counted from 1. `chaos` is between them, never between them and the test."""

    def __init__(self, net: Devnet, chaos: Chaos) -> None:
        self.net = net
        self.chaos = chaos

    @property
    def numbers(self) -> range:
        return range(1, len(self.net.nodes) + 1)

    def running(self) -> list[int]:
        return [n for n in self.numbers if self.net.state(n) is ProcessState.RUNNING]

    def ask(self, number: int, path: str) -> Any:
        """None where it does not answer."""
        connection = http.client.HTTPConnection(
            urlsplit(self.net.node(number).api).netloc, timeout=ANSWER_S
        )
        try:
            connection.request("GET", path)
            return json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def state_of(self, seen: int, by: int) -> str:
        """On the ladder of the other one."""
        return str(self._row(seen, by).get("state", ""))

    def missed_s(self, seen: int, by: int) -> float:
        """How long the other one has not heard it, once that one misses it: both of one answer, for
        a witness that heard it later may vouch for it a moment after."""
        found: list[float] = []

        def is_missed() -> bool:
            row = self._row(seen, by)
            if row and row["state"] != PeerState.ALIVE and row["heard_ms_ago"] is not None:
                found.append(float(row["heard_ms_ago"]) / 1_000)
            return bool(found)

        wait_until(is_missed, f"n{seen} is missed by n{by}")
        return found[0]

    def _row(self, seen: int, by: int) -> dict[str, Any]:
        told = self.ask(by, "/v1/cluster/members") or {"items": []}
        wanted = self.net.node(seen).node_id
        return next((row for row in told["items"] if row["node_id"] == wanted), {})

    def are_equal(self) -> bool:
        """All hold the same, and all of it is Read everywhere. The last event of a node that does
        not run may lack its author's receipt: that one nobody can make Read meanwhile."""
        tables = [self.ask(number, "/v1/dag/frontier") for number in self.running()]
        first = tables[0]
        present = {self.net.node(number).node_id for number in self.running()}
        return (
            bool(first)
            and all(table == first for table in tables)
            and all(
                row["held_seq"] == row["read_seq"] or row["author"] not in present
                for row in first["rows"]
            )
        )

    def await_equal(self, since_s: float, limit_s: float = EQUAL_S_MAX + TRANSFER_S) -> float:
        """Seconds from then to equal Models on all that run."""
        left_s = max(limit_s - (time.monotonic() - since_s), 0.0)
        assert until(self.are_equal, left_s), f"no equal Models:\n{self.described()}"
        return time.monotonic() - since_s

    def described(self) -> str:
        """What each of them has besides what all have, and whom it sees how."""
        names = {node.node_id: node.name for node in self.net.nodes}
        tables = {
            number: {
                f"{names[row['author']]}/{row['journal']} {row['read_seq']}/{row['held_seq']}"
                for row in (self.ask(number, "/v1/dag/frontier") or {"rows": []})["rows"]
            }
            for number in self.running()
        }
        same = set.intersection(*tables.values())
        lines = [f"n{number} Read/held: {sorted(rows - same)}" for number, rows in tables.items()]
        for number in self.running():
            seen = (self.ask(number, "/v1/cluster/members") or {"items": []})["items"]
            states = [
                f"{x['name']} {x['state']} {x['linked_in']:d}{x['linked_out']:d}" for x in seen
            ]
            lines.append(f"n{number} sees {', '.join(states)}")
        return "\n".join(lines)

    def check_kept(self, written: Sequence[Written], states: Sequence[str] = ("read",)) -> None:
        """Whatever was acknowledged is Read on every node, or in one of these states."""
        for number in self.running():
            with Client([self.net.node(number).api]) as client:
                held = {entry.id for state in states for entry in client.pages(state=state)}
            lost = [one for one in written if one.id not in held]
            assert not lost, f"n{number} lost {len(lost)}, first {lost[0]}"

    def farewells(self) -> int:
        """How often any node took another one for gone by its own word."""
        logs = (self.net.log_of(self.net.node(number)) for number in self.numbers)
        return sum(log.read_text(errors="replace").count('"after": "left"') for log in logs)


@contextmanager
def shaken(
    folder: Path,
    members: int = 3,
    seed: int = 1,
    settings: Sequence[str] = (),
    make: Callable[[Path, Plan], Devnet] = Devnet,
) -> Iterator[Shaken]:
    """Started and linked; no process of it is left, whatever happens."""
    with HeldPorts(members * (PORTS_PER_NODE + 1)) as ports:
        plan = found(folder, members, 0, ports.numbers)
        for node, port in zip(plan.nodes, ports.numbers[members * PORTS_PER_NODE :], strict=True):
            node.listen_port = port
        plan.settings = list(settings)
        write_plan(folder, plan)
        net = make(folder.absolute(), plan)
        numbered = dict(enumerate(plan.nodes, start=1))
        targets = {number: node.listen_port or 0 for number, node in numbered.items()}

        def pids() -> dict[int, int]:
            return {n: node.running.pid for n, node in numbered.items() if node.running}

        with Chaos(targets, pids, seed) as chaos:
            chaos.open({number: node.p2p_port for number, node in numbered.items()})
            try:
                net.up()
                yield Shaken(net, chaos)
            finally:
                net.kill(*numbered)
                while Apps.begun:
                    Apps.begun.pop().end()
