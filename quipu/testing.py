"""A real node inside the process of a test: own thread and loop, store on disk, HTTP on free ports;
and a real cluster, a process for each node.

Nothing in it is made up. The pytest plugin makes fixtures of it; it needs no pytest itself.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from tempfile import gettempdir
from threading import Thread, current_thread
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import uvloop

from quipu.cli.faces import HttpFaces, start_faces
from quipu.client import Client
from quipu.devnet import Devnet
from quipu.node import limits
from quipu.node.config import Value, load
from quipu.node.founding import GENESIS_FILE
from quipu.node.logs import open_log
from quipu.node.program import Node, open_node
from quipu.node.settings import Address, Settings

LOG_FILE = "node.log"
DATA_FOLDER = "data"
ADMIN_SOCKET = "admin.sock"
OF_A_TEST = {
    "api.listen": "127.0.0.1:0",
    "ops.listen": "127.0.0.1:0",
    "log.format": "json",
}


class NodeBroke(Exception):
    """The node stopped by itself; its log says more."""


@dataclass(slots=True)
class _Life:
    """One start of a node, up to its end."""

    thread: Thread
    loop: asyncio.AbstractEventLoop
    node: Node
    faces: HttpFaces
    is_killed: bool = False


class LocalNode:
    """A cluster of one. Its address stays the same from one start to the next."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        """`settings` by their names in docs/settings.md. Raises `BadSetting`."""
        data_dir = folder.absolute() / DATA_FOLDER
        given = OF_A_TEST | {"node.data_dir": str(data_dir)} | _short_socket(data_dir)
        given |= settings or {}
        flags = {key: Value(text, "this test") for key, text in given.items()}
        self._settings = load(None, {}, flags).settings
        self._client: Client | None = None
        self._life: _Life | None = None
        self.log_path = folder / LOG_FILE
        self.url = self.ops_url = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._client is not None:
            self._client.close()
        self.stop()

    # --- what a test asks -------------------------------------------------------------------------
    @property
    def client(self) -> Client:
        """For this node; it stays usable over restarts. With tokens, make one of your own."""
        if self._client is None:
            self._client = Client(self.url)
        return self._client

    @property
    def data_dir(self) -> Path:
        return self._settings.node.data_dir

    @property
    def genesis(self) -> bytes:
        """To pin the cluster: `quipu.verify.verify(proof, node.genesis)`."""
        return (self.data_dir / GENESIS_FILE).read_bytes()

    @property
    def is_running(self) -> bool:
        return self._life is not None

    # --- what a test does with it -----------------------------------------------------------------
    def start(self) -> None:
        """Raises `CannotStart`, with the reason that `quipu run` would give."""
        if self._life is not None:
            return
        self.data_dir.parent.mkdir(parents=True, exist_ok=True)
        began: Future[_Life] = Future()
        name = f"quipu-{self._settings.node.name}"
        thread = Thread(target=self._run, args=(began,), name=name, daemon=True)
        thread.start()
        try:
            self._life = began.result()
        except BaseException:
            thread.join()
            raise
        urls = self._life.faces.urls
        self.url, self.ops_url = urls["api"], urls["ops"]
        self._settings = _listening_at(self._settings, self.url, self.ops_url)

    def stop(self) -> None:
        """Drains, as SIGTERM would. Raises `NodeBroke` where it had given up before."""
        life = self._life
        if life is not None:
            life.loop.call_soon_threadsafe(life.node.ask_stop, "the test is done with it")
            self._wait_for_the_end(life)

    def kill(self) -> None:
        """As near to kill -9 as one process allows: connections break, nothing is drained, what
        waits is lost. A commit under way is waited for; the disk keeps its pages."""
        life = self._life
        if life is not None:
            life.is_killed = True
            life.loop.call_soon_threadsafe(_strike, life)
            self._wait_for_the_end(life)

    def restart(self) -> None:
        """The same directory, a new journal, the same address."""
        self.stop()
        self.start()

    def _wait_for_the_end(self, life: _Life) -> None:
        life.thread.join()
        self._life = None
        if life.node.failure:
            raise NodeBroke(f"{life.node.failure} ({self.log_path})")

    # --- its thread -------------------------------------------------------------------------------
    def _run(self, began: "Future[_Life]") -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._live(began))
        except BaseException as error:
            if began.done():
                raise
            began.set_exception(error)

    async def _live(self, began: "Future[_Life]") -> None:
        loop = asyncio.get_running_loop()
        with self.log_path.open("a", encoding="utf-8") as stream:
            node = open_node(self._settings, open_log(self._settings.log, stream), loop)
            try:
                faces = await start_faces(node.ledger, self._settings, node.administration)
                life = _Life(current_thread(), loop, node, faces)
                began.set_result(life)
                await node.stopping.wait()
                if life.is_killed:
                    await node.administration.close()  # ends its processes
                else:
                    await node.drain()
                await faces.stop(0.0 if life.is_killed else limits.STOP_S)
            finally:
                node.close()


class LocalCluster:
    """Several nodes as one ledger, each a process of its own; counted from 1."""

    def __init__(
        self,
        folder: Path,
        members: int = 3,
        observers: int = 0,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = folder
        self._wanted = (members, observers, [f"{k}={v}" for k, v in (settings or {}).items()])
        self._clients: dict[int, Client] = {}

    def __enter__(self) -> Self:
        """Started, ready, and linked with each other."""
        self.net = Devnet.make(self._folder, *self._wanted, is_tied=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for client in self._clients.values():
            client.close()
        self.net.kill(*range(1, len(self.urls) + 1))

    # --- what a test asks -------------------------------------------------------------------------
    @property
    def urls(self) -> list[str]:
        """For a client that goes on where a node fails: `quipu.Client(cluster.urls)`."""
        return [node.api for node in self.net.nodes]

    def client(self, number: int) -> Client:
        """For that node alone; it stays usable over restarts."""
        if number not in self._clients:
            self._clients[number] = Client(self.net.node(number).api)
        return self._clients[number]

    @property
    def genesis(self) -> bytes:
        return (self.net.data_of(self.net.node(1)) / GENESIS_FILE).read_bytes()

    def log_path(self, number: int) -> Path:
        return self.net.log_of(self.net.node(number))

    # --- what a test does with it -----------------------------------------------------------------
    def start(self, *numbers: int) -> None:
        """Returns when they are linked."""
        self.net.start(*numbers)

    def stop(self, *numbers: int) -> None:
        self.net.stop(*numbers)

    def kill(self, *numbers: int) -> None:
        """By SIGKILL."""
        self.net.kill(*numbers)

    def pause(self, number: int) -> None:
        self.net.pause(number)

    def resume(self, number: int) -> None:
        self.net.resume(number)

    def partition(self, *groups: Sequence[int]) -> None:
        """Nodes of different groups do not hear each other."""
        self.net.partition(*groups)

    def heal(self) -> None:
        """Returns when they are linked again."""
        self.net.heal()


def _strike(life: _Life) -> None:
    """On the node's own loop: from here on nobody is answered."""
    life.node.ledger.turns.stop()
    life.faces.running.abort()
    life.node.stopping.set()


def _short_socket(data_dir: Path) -> dict[str, str]:
    """Temporary folders of tests can lie deeper than the name of a socket may be long."""
    if len(os.fsencode(data_dir / ADMIN_SOCKET)) <= limits.SOCKET_PATH_BYTES_MAX:
        return {}
    return {"admin.socket": f"{gettempdir()}/quipu-{token_hex(8)}.sock"}


def _listening_at(settings: Settings, url: str, ops_url: str) -> Settings:
    return replace(
        settings,
        api=replace(settings.api, listen=_address_of(url)),
        ops=replace(settings.ops, listen=_address_of(ops_url)),
    )


def _address_of(url: str) -> Address:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return Address(parts.hostname, parts.port)
