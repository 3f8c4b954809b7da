"""`quipu demo`: three real nodes that write, lose one, are cut apart and heal, to be looked at.

All of it lives in a temporary folder and ends with this process, whatever ends it.
"""

import json
import random
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quipu.devnet import limits
from quipu.devnet.devnet import Devnet
from quipu.devnet.processes import until

NODES = 3
GOODS = ("wool", "cotton", "maize", "salt", "copper", "cochineal")
STREAMS = ("orders", "stock", "journeys")
_NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))
Say = Callable[[str], None]


def ask(url: str, body: object = None) -> Any:
    """Raises `OSError` where the node does not answer, or says no."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310
    with _NO_PROXY.open(request, timeout=limits.ANSWER_S_MAX) as answer:
        return json.loads(answer.read())


@dataclass(slots=True)
class Traders:
    """Who writes: one for each node, some small orders and now and then a caravan of many."""

    bases: list[str]
    written: dict[str, int] = field(default_factory=dict)  # acknowledged, by node
    _ends: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        for base in self.bases:
            thread = threading.Thread(target=self._trade, args=(base,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _trade(self, base: str) -> None:
        chance = random.Random(base)  # noqa: S311 - goods and pauses
        while not self._ends.wait(chance.expovariate(limits.DEMO_EVENTS_PER_S)):
            count = chance.choice((1, 1, 1, 2, 3, 8, 40))
            items = [
                {
                    "stream": chance.choice(STREAMS),
                    "data": {"item": chance.choice(GOODS), "bales": chance.randint(1, 60)},
                }
                for _ in range(count)
            ]
            try:
                ask(f"{base}/v1/entries:batch?atomic=true", items)
            except OSError:
                continue  # it is dead at the moment, which is what the demo is about
            self.written[base] = self.written.get(base, 0) + count

    def end(self) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join(limits.ANSWER_S_MAX)


@dataclass(slots=True)
class Demo:
    net: Devnet
    say: Say
    seconds: float

    def run(self) -> bool:
        """Whether in the end all nodes held the same."""
        traders = Traders([node.api for node in self.net.nodes])
        traders.start()
        try:
            self._story()
        finally:
            traders.end()
        return self._settled(sum(traders.written.values()))

    def _story(self) -> None:
        act_s, net, say = self.seconds / 6, self.net, self.say
        say("All three write; each entry is final once one other node has signed that it holds it.")
        time.sleep(act_s)
        net.kill(3)
        say("n3 was killed (-9). Its cord stands still; n1 and n2 go on and stay final.")
        time.sleep(act_s)
        net.start(3)
        say("n3 is back, fetches what it missed, and writes on.")
        time.sleep(act_s)
        net.partition([1, 2], [3])
        say("The network is cut: n3 alone. It still takes entries, as open loops: nobody signs.")
        time.sleep(act_s)
        net.heal()
        say("The cut is healed: what n3 took meanwhile becomes final, nothing is lost.")
        time.sleep(2 * act_s)

    def _settled(self, written: int) -> bool:
        """Nobody writes any more: all nodes come to hold the same."""
        bases = [node.api for node in self.net.nodes]

        def is_equal() -> bool:
            try:
                rows = [ask(f"{base}/v1/dag/frontier")["rows"] for base in bases]
            except OSError:
                return False
            read = all(row["held_seq"] == row["read_seq"] for row in rows[0])
            return read and all(other == rows[0] for other in rows)

        equal = until(is_equal, limits.APPLIED_S_MAX)
        self.say(
            f"{written:,} entries were acknowledged; all three nodes hold the same, all final."
            if equal
            else "The nodes did not come to hold the same: look into their logs."
        )
        return equal


@contextmanager
def demo(say: Say, seconds: float) -> Iterator[Demo]:
    """Three nodes in a folder that is gone afterwards. Raises `CannotStart`."""
    with tempfile.TemporaryDirectory(prefix="quipu-demo-") as folder:
        net = Devnet.make(Path(folder) / "net", NODES, is_tied=True)
        try:
            yield Demo(net, say, seconds)
        finally:
            net.down()
