"""The nodes of a devnet, started, stopped, frozen and parted from each other.

Nothing is remembered here that the file of the plan does not say: each command of the command
line opens it anew. What a call starts and cannot bring up it also ends.
"""

import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir

from quipu.devnet import faces, limits, processes
from quipu.devnet.failures import DevnetFailed, DevnetTaken, WrongNode
from quipu.devnet.founding import INVITATION_FILE, PORTS_PER_NODE, found
from quipu.devnet.plan import (
    BLOCKED_FILE,
    DATA_FOLDER,
    LOG_FILE,
    NodePlan,
    Plan,
    Running,
    folder_of,
    read_plan,
    write_plan,
    write_whole,
)
from quipu.devnet.ports import HOST, HeldPorts
from quipu.devnet.processes import ProcessState, state_of
from quipu.ledger.limits import ATTACHMENTS
from quipu.node.limits import SOCKET_PATH_BYTES_MAX
from quipu.node.settings import ADMIN_SOCKET
from quipu.p2p.transports import screen


class Devnet:
    """Invariant: the file of the plan names every process that runs."""

    def __init__(self, folder: Path, plan: Plan, *, is_tied: bool = False) -> None:
        self.folder = folder
        self.plan = plan
        self._is_tied = is_tied  # what it starts ends with this process

    @classmethod
    def open(cls, folder: Path) -> "Devnet":
        """Raises `NoDevnet`."""
        return cls(folder.absolute(), read_plan(folder.absolute()))

    @classmethod
    def make(
        cls,
        folder: Path,
        members: int,
        observers: int = 0,
        settings: Sequence[str] = (),
        *,
        is_tied: bool = False,
    ) -> "Devnet":
        """In a folder that is empty or not there, and started. Raises `CannotStart`."""
        folder = folder.absolute()
        count = members + observers
        if members < 1 or count > limits.NODES_MAX:
            raise WrongNode(
                f"{members} members and {observers} observers",
                f"At least one member, at most {limits.NODES_MAX} nodes.",
            )
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise DevnetTaken(
                f"{folder} is not an empty folder", "Name an empty or a new one with --data-dir."
            )
        with HeldPorts(count * PORTS_PER_NODE) as ports:
            folder.mkdir(parents=True, exist_ok=True)
            try:
                plan = found(folder, members, observers, ports.numbers, settings)
                write_plan(folder, plan)
            except BaseException:
                for left in folder.iterdir():
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
                raise
            net = cls(folder, plan, is_tied=is_tied)
            net.up()
        return net

    # --- the nodes ------------------------------------------------------------------------------
    @property
    def nodes(self) -> list[NodePlan]:
        return self.plan.nodes

    @property
    def invitation(self) -> Path:
        """With it another node joins as an observer."""
        return self.folder / INVITATION_FILE

    def node(self, number: int) -> NodePlan:
        """Counted from 1. Raises `WrongNode`."""
        if not 1 <= number <= len(self.nodes):
            raise WrongNode(f"there is no node {number}", f"Name one of 1 to {len(self.nodes)}.")
        return self.nodes[number - 1]

    def data_of(self, node: NodePlan) -> Path:
        return folder_of(self.folder, node) / DATA_FOLDER

    def socket_setting(self, node: NodePlan) -> list[str]:
        """Where the socket of an operator is; empty: in its data directory, as ever."""
        if len(os.fsencode(self.data_of(node) / ADMIN_SOCKET)) <= SOCKET_PATH_BYTES_MAX:
            return []
        return [f"admin.socket={self._near_socket(node)}"]

    def _near_socket(self, node: NodePlan) -> Path:
        """Of a folder whose path is longer than the name of a socket may be."""
        mark = sha256(os.fsencode(self.folder)).hexdigest()[:16]
        return Path(gettempdir()) / f"quipu-devnet-{mark}-{node.name}.sock"

    def log_of(self, node: NodePlan) -> Path:
        return folder_of(self.folder, node) / LOG_FILE

    def state(self, number: int) -> ProcessState:
        return state_of(self.node(number).running)

    def rows(self) -> list[dict[str, object]]:
        """For programs: one for each node."""
        return [
            {
                "name": node.name,
                "node_id": node.node_id,
                "role": "member" if node.is_member else "observer",
                "state": str(state_of(node.running)),
                "pid": None if node.running is None else node.running.pid,
                "api": node.api,
                "p2p": node.uri,
                "ops": node.ops,
                "data_dir": str(self.data_of(node)),
                "log": str(self.log_of(node)),
            }
            for node in self.nodes
        ]

    def check_same(
        self, members: int | None, observers: int | None, settings: Sequence[str] | None
    ) -> None:
        """What is asked for is what is there. Raises `DevnetTaken`."""
        found = sum(node.is_member for node in self.nodes)
        others = len(self.nodes) - found
        if members not in (None, found) or observers not in (None, others) or settings:
            raise DevnetTaken(
                f"{self.folder} holds a devnet of {found} members and {others} observers",
                "Leave -n, --observers and --set out to start it again, or name another folder.",
            )

    # --- starting -------------------------------------------------------------------------------
    def up(self) -> None:
        """Starts what does not run; waits until all are ready and linked."""
        self.start(*(n for n in self._numbers() if self.state(n) is ProcessState.STOPPED))

    def start(self, *numbers: int, environment: Mapping[str, str] | None = None) -> None:
        """Raises `DevnetFailed`; then none of these runs."""
        begun = [self.node(number) for number in numbers]
        for node in begun:
            if state_of(node.running) is not ProcessState.STOPPED:
                raise DevnetTaken(f"{node.name} runs already", "`quipu devnet ps` lists them.")
        try:
            for node in begun:
                node.running = self._spawn(node, environment or {})
                write_plan(self.folder, self.plan)
            self.wait_linked(begun)
        except BaseException:
            self._end(begun, signal.SIGKILL)
            raise

    def _spawn(self, node: NodePlan, environment: Mapping[str, str]) -> Running:
        arguments = ["run", "--json", "--data-dir", str(self.data_of(node)), "--name", node.name]
        listen = node.listen_port or node.p2p_port
        for name, port in (("p2p", listen), ("api", node.api_port), ("ops", node.ops_port)):
            arguments += [f"--{name}-listen", f"{HOST}:{port}"]
        for setting in self.socket_setting(node):
            arguments += ["--set", setting]
        if node.listen_port is not None:
            arguments += ["--set", f"p2p.advertise={HOST}:{node.p2p_port}"]
        for setting in self.plan.settings:
            arguments += ["--set", setting]
        blocked = str(folder_of(self.folder, node) / BLOCKED_FILE)
        return processes.spawn(
            arguments,
            self.log_of(node),
            {screen.VARIABLE: blocked, **environment},
            is_tied=self._is_tied,
        )

    def wait_linked(self, watched: Sequence[NodePlan] = ()) -> None:
        """Each running node takes entries and sees the running members on its side."""
        late: list[str] = []

        def is_done() -> bool:
            for node in watched:
                if state_of(node.running) is ProcessState.STOPPED:
                    raise self._ended_early(node)
            late[:] = [node.name for node in self._running() if not self._is_linked(node)]
            return not late

        if not processes.until(is_done, limits.READY_S_MAX):
            raise DevnetFailed(
                f"not ready and linked within {limits.READY_S_MAX:g} s: {', '.join(late)}",
                f"Each writes its log to its folder in {self.folder}.",
            )

    def _is_linked(self, node: NodePlan) -> bool:
        group = self._group_of(node)
        near = sum(other.is_member and self._group_of(other) == group for other in self._running())
        wanted = near if node.is_member else min(near, ATTACHMENTS)
        seen, members = (faces.figure(node, name) for name in ("members_live", "members"))
        if seen is None or members is None:
            return False
        return seen >= min(wanted, members) and faces.is_ready(node)  # the roster may be another

    def _ended_early(self, node: NodePlan) -> DevnetFailed:
        log = self.log_of(node)
        said = log.read_text(errors="replace").splitlines()[-limits.LOG_TAIL_LINES :]
        return DevnetFailed(
            f"{node.name} ended while it started; the end of its log:\n    " + "\n    ".join(said),
            f"All of it is in {log}.",
        )

    # --- ending and freezing --------------------------------------------------------------------
    def stop(self, *numbers: int) -> None:
        """By SIGTERM: it finishes what it has taken. Raises `DevnetFailed`; then it runs on."""
        asked = [self.node(number) for number in numbers]
        self._signal(asked, signal.SIGTERM)
        self._signal(asked, signal.SIGCONT)  # one that is paused has to hear it
        self._await_end(asked)

    def kill(self, *numbers: int) -> None:
        """By SIGKILL: it finishes nothing."""
        self._end([self.node(number) for number in numbers], signal.SIGKILL)

    def pause(self, number: int) -> None:
        """By SIGSTOP: its connections stay, it says nothing."""
        self._freeze(number, signal.SIGSTOP, ProcessState.PAUSED)

    def resume(self, number: int) -> None:
        self._freeze(number, signal.SIGCONT, ProcessState.RUNNING)

    def down(self) -> None:
        """Stops all; kills what does not end. The data stays."""
        try:
            self.stop(*self._numbers())
        except DevnetFailed:
            self._end(self.nodes, signal.SIGKILL)

    def _freeze(self, number: int, by: signal.Signals, wanted: ProcessState) -> None:
        node = self.node(number)
        if state_of(node.running) is ProcessState.STOPPED:
            raise WrongNode(f"{node.name} does not run", f"`quipu devnet start {number}` does it.")
        self._signal([node], by)
        if not processes.until(lambda: state_of(node.running) is wanted, limits.APPLIED_S_MAX):
            raise DevnetFailed(f"{node.name} is not {wanted}", "`quipu devnet ps` says what it is.")

    def _end(self, nodes: Sequence[NodePlan], by: signal.Signals) -> None:
        self._signal(nodes, by)
        self._await_end(nodes)

    def _signal(self, nodes: Sequence[NodePlan], by: signal.Signals) -> None:
        for node in nodes:
            processes.send(node.running, by)

    def _await_end(self, nodes: Sequence[NodePlan]) -> None:
        for node in nodes:
            if not processes.ended(node.running, limits.END_S_MAX):
                raise DevnetFailed(
                    f"{node.name} does not end", "`quipu devnet kill` ends it, whatever it does."
                )
            node.running = None
        write_plan(self.folder, self.plan)

    # --- partitions -----------------------------------------------------------------------------
    def partition(self, *groups: Sequence[int]) -> None:
        """Nodes of different groups do not hear each other; who is in none is with the others
        that are in none. It lasts over restarts."""
        named = [number for group in groups for number in group]
        if len(set(named)) < len(named):
            raise WrongNode("a node stands in two groups", "Write it as '1,2|3': each node once.")
        for number in named:
            self.node(number)
        rest = [number for number in self._numbers() if number not in named]
        parted = [sorted(group) for group in (*groups, rest) if group]
        if len(parted) < 2:
            raise WrongNode("all nodes are in one group", "Write two at least, as '1,2|3'.")
        self._part(parted)

    def heal(self, wait: bool = True) -> None:
        """All hear each other again; `wait`: until they are linked."""
        self._part([])
        if wait:
            self.wait_linked()

    def _part(self, groups: list[list[int]]) -> None:
        self.plan.groups = groups
        write_plan(self.folder, self.plan)
        wanted = {}
        for node in self.nodes:
            far = [o.node_id for o in self.nodes if self._group_of(o) != self._group_of(node)]
            wanted[node.name] = len(far)
            text = "".join(f"{node_id}\n" for node_id in far)
            write_whole(folder_of(self.folder, node) / BLOCKED_FILE, text.encode())

        def is_applied() -> bool:
            return all(
                faces.figure(node, "peers_blocked") == wanted[node.name] for node in self._running()
            )

        if not processes.until(is_applied, limits.APPLIED_S_MAX):
            raise DevnetFailed(
                "not every node has taken the new partition", "`quipu devnet ps` shows who runs."
            )

    def _group_of(self, node: NodePlan) -> list[int]:
        number = self.nodes.index(node) + 1
        return next((group for group in self.plan.groups if number in group), [])

    # ---------------------------------------------------------------------------------------------
    def _numbers(self) -> range:
        return range(1, len(self.nodes) + 1)

    def _running(self) -> list[NodePlan]:
        return [n for n in self.nodes if state_of(n.running) is ProcessState.RUNNING]
