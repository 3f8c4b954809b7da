"""Nodes as real processes that are killed under load, again and again in one data directory.

Each life starts, checks that everything acknowledged in the lives before is there once, writes
until it is killed, and says through a pipe what was acknowledged, the moment it is.
"""

import asyncio
import dataclasses
import io
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import uvloop

from quipu.ledger.entry import data_entry, decode_entry, encode_entry
from quipu.ledger.event import decode_body, event_id
from quipu.ledger.words import EventId
from quipu.node import failpoints
from quipu.node.logs import Log, open_log
from quipu.node.program import Node, open_node
from quipu.node.service import EntryId, Ledger, NotTaken
from quipu.node.settings import LogSettings, NodeSettings, Settings
from quipu.verify import verify

READY_S_MAX = 5.0
WAIT_S = 60.0  # for anything at all; a test that waits so long has failed
WRITERS = 8
LATER = ("turn.", "commit.", "checkpoint.", "drain.")  # sites that a node passes again and again
START_SITES = tuple(site for site in failpoints.SITES if site.startswith("start."))

forked = get_context("forkserver")
forked.set_forkserver_preload([__name__])


@dataclasses.dataclass(frozen=True)
class Life:
    """What one start is told."""

    folder: Path
    number: int
    failpoints: str = ""
    acknowledged: tuple[tuple[str, str], ...] = ()  # (id, text) of all lives before
    is_checked: int = 0  # so many of these were proven by a life before

    @property
    def settings(self) -> Settings:
        return Settings(node=NodeSettings(data_dir=self.folder), log=LogSettings(level="error"))


# --- inside ---------------------------------------------------------------------------------------
def live(life: Life, pipe: Connection) -> None:
    failpoints.arm(life.failpoints)
    log = open_log(life.settings.log, stream=io.StringIO())
    uvloop.run(_live(life, pipe, log))


async def _live(life: Life, pipe: Connection, log: Log) -> None:
    loop = asyncio.get_running_loop()
    node = open_node(life.settings, log, loop)
    loop.add_signal_handler(signal.SIGTERM, node.ask_stop, "SIGTERM")
    pipe.send(("ready", ""))
    pipe.send(("wrong", "\n".join(check(node.ledger, life))))
    writers = [asyncio.create_task(_write(node, life, i, pipe)) for i in range(WRITERS)]
    await node.stopping.wait()
    await node.drain()
    await asyncio.gather(*writers)
    node.close()
    pipe.send(("stopped", ""))


async def _write(node: Node, life: Life, writer: int, pipe: Connection) -> None:
    count = 0
    while True:
        count += 1
        text = f"{life.number}/{writer}/{count}"
        entries = [encode_entry(data_entry(text.encode()))]
        try:
            stored = await node.ledger.submit(entries)
        except NotTaken:
            return  # it drains
        pipe.send(("stored", f"{EntryId(stored.event_id, stored.index)} {text}"))


def check(ledger: Ledger, life: Life) -> list[str]:
    """What is wrong with a ledger of which these entries were acknowledged."""
    texts = Counter(text for _, text in held_texts(ledger))
    wrong = [f"{text} is there {n} times" for text, n in texts.items() if n > 1]
    for place, (name, text) in enumerate(life.acknowledged):
        identity, index = parsed(name)
        data = ledger.entry(identity, index)
        if data is None or decode_entry(data).data.decode() != text:
            wrong.append(f"{name} is not {text}")
        elif place >= life.is_checked and place % 5 == 0:
            wrong += proof_faults(ledger, identity, index)
    return wrong


def proof_faults(ledger: Ledger, identity: EventId, index: int) -> list[str]:
    status = ledger.status(identity)
    assert status is not None
    if status.read_by is None:  # a kill between its commit and its receipt: Read in a moment
        return []
    verified = verify(ledger.proof(identity, index), ledger.genesis)
    return [] if (verified.event_id, verified.index) == (identity, index) else ["a wrong proof"]


def held_texts(ledger: Ledger) -> Iterator[tuple[EntryId, str]]:
    for identity in held_events(ledger):
        event = ledger.event(identity)
        assert event is not None
        assert event_id(event.header_bytes) == identity
        for index, entry in enumerate(decode_body(event.header, event.body)):
            yield EntryId(identity, index), decode_entry(entry).data.decode()


def held_events(ledger: Ledger) -> list[EventId]:
    read = [identity for _, identity in ledger.feed(0, 1_000_000)]
    return read + ledger.unread(1_000_000)


def parsed(name: str) -> tuple[EventId, int]:
    event, _, index = name.partition(":")
    return EventId(bytes.fromhex(event)), int(index)


# --- outside --------------------------------------------------------------------------------------
class Wrong(AssertionError):
    """A promise was broken."""


class Lives:
    """One data directory and all that was acknowledged in it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.seed = seed
        self.random = random.Random(seed)
        self.count = 0
        self.acknowledged: list[tuple[str, str]] = []
        self.checked = 0
        self.slowest_start_s = 0.0
        self.kills = 0
        self.fired: Counter[str] = Counter()  # failpoints that ended a life
        self.has_stopped = False  # the last life said that it finished everything

    def live_and_die(self, site: str = "") -> None:
        """One life, killed at the site, or after some acknowledgements."""
        self.count += 1
        at = 1 if site.startswith(("start.", "checkpoint.", "drain.")) else self._some(1, 12)
        armed = f"{site}=kill@{at}" if site else ""
        process, pipe = self._start(armed)
        enough = 2_000 if site.startswith(("turn.", "commit.")) else self._some(1, 60)
        try:
            is_dead = self._listen(process, pipe, enough, site.startswith("drain."))
            self.fired[site] += is_dead and bool(site)
        finally:
            process.kill()
            process.join()
            for kind, text in drained(pipe):
                self._heard(kind, text)
            pipe.close()
        self.kills += 1

    def live_and_stop(self) -> None:
        """One life that ends by SIGTERM, everything finished."""
        self.count += 1
        process, pipe = self._start("")
        self._listen(process, pipe, 20, True)
        process.join(WAIT_S)
        pipe.close()
        if not self.has_stopped or process.exitcode != 0:
            raise Wrong(f"seed {self.seed}: it did not stop cleanly: {process.exitcode}")

    def _start(self, armed: str) -> tuple[BaseProcess, Connection]:
        life = Life(self.folder, self.count, armed, tuple(self.acknowledged), self.checked)
        ours, theirs = forked.Pipe(duplex=False)
        process = forked.Process(target=live, args=(life, theirs), daemon=True)
        self._begun, self.has_stopped = time.monotonic(), False
        process.start()
        theirs.close()
        return process, ours

    def _listen(self, process: BaseProcess, pipe: Connection, enough: int, is_asked: bool) -> bool:
        """Until it is dead (True) or has acknowledged enough; then it may be asked to stop."""
        acknowledged = 0
        while pipe.poll(WAIT_S):
            try:
                kind, text = pipe.recv()
            except (EOFError, ConnectionError):
                return True
            self._heard(kind, text)
            acknowledged += kind == "stored"
            if acknowledged == enough:
                if not is_asked:
                    return False
                assert process.pid is not None
                os.kill(process.pid, signal.SIGTERM)
        raise Wrong(f"seed {self.seed}, life {self.count}: nothing heard for {WAIT_S} s")

    def _heard(self, kind: str, text: str) -> None:
        match kind:
            case "ready":
                took = time.monotonic() - self._begun
                self.slowest_start_s = max(self.slowest_start_s, took)
                if took > READY_S_MAX:
                    raise Wrong(f"seed {self.seed}, life {self.count}: ready after {took:.1f} s")
            case "wrong" if text:
                raise Wrong(f"seed {self.seed}, life {self.count}: {text}")
            case "wrong":
                self.checked = len(self.acknowledged)
            case "stopped":
                self.has_stopped = True
            case "stored":
                name, _, content = text.partition(" ")
                self.acknowledged.append((name, content))

    def _some(self, low: int, high: int) -> int:
        return self.random.randint(low, high)


def drained(pipe: Connection) -> Iterator[tuple[str, str]]:
    """What was written before the process died; the last piece may be cut off."""
    with suppress(EOFError, OSError):
        while pipe.poll(0):
            item: Any = pipe.recv()
            yield item


def killed_lives(folder: Path, seed: int, kills: int) -> Lives:
    """A first start killed at each of its sites, then every site in turn, and random moments."""
    lives = Lives(folder, seed)
    later = [site for site in failpoints.SITES if site.startswith(LATER)]
    order = [*START_SITES]
    while len(order) < kills:
        order += lives.random.sample([*later, "", "", "", ""], len(later) + 4)
    for site in order[:kills]:
        lives.live_and_die(site)
    lives.live_and_stop()
    lives.live_and_stop()
    return lives
