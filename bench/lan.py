"""A local network of its own: each node in a network namespace, one cable to a bridge for the peers
and another one for whoever asks it. Needs `ip`, and the right to make namespaces."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from bench.servers import ROOT, Answering
from quipu.devnet.processes import until

ALONE = ("unshare", "--user", "--map-root-user", "--net")
PEERS, APPS = "10.77.0", "10.78.0"
API_PORT, P2P_PORT, OPS_PORT = 8470, 8471, 8472
QUIPU = (sys.executable, "-m", "quipu.cli")
READY_S = 60.0


class Traffic(NamedTuple):
    """Of the cables between peers alone, headers of Ethernet and IP included."""

    sent_bytes: int
    sent_packets: int
    received_bytes: int
    received_packets: int

    def since(self, before: "Traffic") -> "Traffic":
        return Traffic(*(now - then for now, then in zip(self, before, strict=True)))


def traffic(count: int) -> Traffic:
    """What the bridge gets is what nodes send."""
    total = [0, 0, 0, 0]
    for line in Path("/proc/self/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() in {f"peer{number}" for number in range(1, count + 1)}:
            fields = [int(number) for number in numbers.split()]
            for at, field_no in enumerate((0, 1, 8, 9)):
                total[at] += fields[field_no]
    return Traffic(*total)


@dataclass
class Lan:
    """Nodes from n1 on; to be made within a namespace of its own."""

    folder: Path
    count: int
    settings: tuple[str, ...] = ()
    _machines: list[subprocess.Popen[str]] = field(default_factory=list)
    _nodes: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def servers(self) -> list[Answering]:
        return [
            Answering(f"n{number}", node.pid, f"{APPS}.{number}", API_PORT)
            for number, node in enumerate(self._nodes, 1)
        ]

    def begin(self) -> None:
        for bridge, own in (("peers", f"{PEERS}.254/24"), ("apps", f"{APPS}.254/24")):
            kind = ("type", "bridge", "mcast_snooping", "0")  # nobody asks who listens
            _ip("link", "add", bridge, *kind)
            _ip("address", "add", own, "dev", bridge)
            _ip("link", "set", bridge, "up")
        for number in range(1, self.count + 1):
            self._machine(number)
        invitation = self._found()
        for number in range(1, self.count + 1):
            self._start(number, invitation)
        if not until(self._is_linked, READY_S):
            raise SystemExit("the nodes do not find each other")

    def figure(self, number: int, name: str) -> int:
        """Of /metrics."""
        url = f"http://{APPS}.{number}:{OPS_PORT}/metrics"
        with urllib.request.urlopen(url, timeout=READY_S) as answer:
            text = answer.read().decode()
        found = [line for line in text.splitlines() if line.startswith(f"quipu_{name} ")]
        return int(float(found[0].rpartition(" ")[2]))

    def end(self) -> None:
        for process in [*self._nodes, *self._machines]:
            process.kill()
            process.wait()

    # ---------------------------------------------------------------------------------------------
    def _machine(self, number: int) -> None:
        """Whose namespace lasts as long as the process in it."""
        machine = subprocess.Popen(
            ["unshare", "--net", sys.executable, "-c", "print(flush=True); input()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert machine.stdout is not None
        machine.stdout.readline()
        self._machines.append(machine)
        inside = ("nsenter", f"--net=/proc/{machine.pid}/ns/net", "ip")
        _run(*inside, "link", "set", "lo", "up")
        for bridge, cable, net in (("peers", "peer", PEERS), ("apps", "app", APPS)):
            there = ("type", "veth", "peer", "name", cable, "netns", str(machine.pid))
            _ip("link", "add", f"{cable}{number}", *there)
            _ip("link", "set", f"{cable}{number}", "master", bridge, "up")
            _run(*inside, "address", "add", f"{net}.{number}/24", "dev", cable)
            _run(*inside, "link", "set", cable, "up")

    def _found(self) -> Path:
        founders: list[str] = []
        for number in range(2, self.count + 1):
            made = self._quipu("init", number, "--key-only", "--json")
            founders += ["--founder", f"n{number}={json.loads(made)['uri']}"]
        self._quipu("init", 1, *founders)
        invitation = self.folder / "invitation"
        address = f"{PEERS}.1:{P2P_PORT}"
        data = str(self.folder / "n1")
        _run(*QUIPU, "invite", "--data-dir", data, "--address", address, "--out", str(invitation))
        return invitation

    def _quipu(self, command: str, number: int, *more: str) -> str:
        return _run(*QUIPU, command, *self._options(number), *more)

    def _options(self, number: int) -> tuple[str, ...]:
        name, listen = f"n{number}", f"{PEERS}.{number}:{P2P_PORT}"
        return ("--name", name, "--data-dir", str(self.folder / name), "--p2p-listen", listen)

    def _start(self, number: int, invitation: Path) -> None:
        join = () if number == 1 else ("--join", str(invitation))
        chosen = [part for setting in self.settings for part in ("--set", setting)]
        node = subprocess.Popen(
            [
                *("nsenter", f"--net=/proc/{self._machines[number - 1].pid}/ns/net"),
                *(*QUIPU, "run", *self._options(number), *join, *chosen, "--json"),
                *("--api-listen", f"{APPS}.{number}:{API_PORT}", "--insecure"),
                *("--ops-listen", f"{APPS}.{number}:{OPS_PORT}", "--set", "log.level=error"),
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._nodes.append(node)
        assert node.stdout is not None
        if not node.stdout.readline():
            raise SystemExit(f"n{number} does not start")

    def _is_linked(self) -> bool:
        return all(s.ask("/v1/cluster")["members_live"] == self.count for s in self.servers)


@contextmanager
def lan(folder: Path, count: int, *settings: str) -> Iterator[Lan]:
    folder.mkdir(parents=True)
    made = Lan(folder, count, settings)
    try:
        made.begin()
        yield made
    finally:
        made.end()


def _ip(*arguments: str) -> None:
    _run("ip", *arguments)


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr or done.stdout}")
    return done.stdout
