"""Stream ingest into a real node that is killed or stopped under full load."""

import signal
import threading
import time
from concurrent.futures import Future
from functools import partial
from pathlib import Path

from quipu.client import Client, QuipuError, Receipt
from quipu.node.limits import STOP_S
from tests.process.command import WAIT_S, RunningCommand

ENOUGH = 5_000


class Producer:
    """Submits over one connection, without keys, until there is no node any more."""

    def __init__(self, url: str, life: str) -> None:
        self.acknowledged: dict[str, bytes] = {}
        self.enough = threading.Event()
        self._url = url
        self._life = life
        self._thread = threading.Thread(daemon=True, target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        try:
            with Client([self._url]) as ledger, ledger.ingest() as feed:
                while True:
                    number += 1
                    text = f"{self._life}/{number}".encode()
                    feed.submit(text).add_done_callback(partial(self._settled, text))
        except QuipuError:
            return

    def _settled(self, text: bytes, future: "Future[Receipt]") -> None:
        if future.exception() is None:
            self.acknowledged[future.result().id] = text
            if len(self.acknowledged) >= ENOUGH:
                self.enough.set()

    def end(self) -> None:
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()


def held(url: str) -> dict[str, bytes]:
    """All of it by id, as soon as it is final."""
    with Client([url]) as ledger:
        while ledger.list(state="stored", limit=1).items:
            pass
        return {entry.id: entry.raw for entry in ledger.pages(limit=1_000)}


def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    acknowledged: dict[str, bytes] = {}
    for life, site in enumerate(("", "commit.durable=kill@9", "turn.committed=kill@9")):
        with RunningCommand(tmp_path / "data", QUIPU_FAILPOINTS=site) as node:
            producer = Producer(node.facts["api"], str(life))
            if not site:
                assert producer.enough.wait(WAIT_S)
                node.process.kill()
            assert node.process.wait(WAIT_S) == -signal.SIGKILL
            producer.end()
            assert producer.acknowledged
            acknowledged |= producer.acknowledged
    with RunningCommand(tmp_path / "data") as node:
        found = held(node.facts["api"])
    assert acknowledged.items() <= found.items()
    assert len(set(found.values())) == len(found), "nothing is there twice"


def test_a_stop_answers_exactly_what_it_has_stored(tmp_path: Path) -> None:
    with RunningCommand(tmp_path / "data") as node:
        producer = Producer(node.facts["api"], "0")
        assert producer.enough.wait(WAIT_S)
        begun = time.monotonic()
        code, _ = node.stop()
        assert (code, time.monotonic() - begun < STOP_S) == (0, True)
        producer.end()
    with RunningCommand(tmp_path / "data") as node:
        assert held(node.facts["api"]) == producer.acknowledged
