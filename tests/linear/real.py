"""Real clusters under faults: what apps saw of a sequence, judged by porcupine.

    python -m tests.linear.real --runs 20

A run is a devnet of three. At each node one app publishes numbers of one sequence and reads it as
acknowledged anywhere, while masters are killed with -9, nodes frozen, and the cluster is parted.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from quipu.client import Client, Conflict, NotFound, QuipuError, Unavailable
from quipu.devnet import Devnet
from quipu.devnet.processes import until
from quipu.ledger.order.sequences import next_running
from tests.linear.histories import OK, Seen, build, verdicts

NAME = "judged"
NODES = (1, 2, 3)
FAULT_S = 2.5  # an election takes 1 to 2
CALM_S = 1.0
FAULTS = 3
SETTLED_S = 60.0
US_PER_S = 1_000_000


class Broken(Exception):
    """What was seen fits no order at all: no checker is needed to say so."""


@dataclass(frozen=True)
class Asked:
    """One operation of an app. `number` None: the answer was lost, it may have been ordered."""

    item: bytes | None  # the digest that was published; None: a read
    asked_us: int
    ended_us: int | None
    number: int | None = None
    running: bytes = b""


@dataclass
class App:
    """Asks one node, one operation after the other."""

    api: str
    name: str
    seen: list[Asked] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(daemon=True, target=self._run, name=self.name)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        at = 0
        with Client([self.api], timeout=10.0) as client:
            while not self._stop.is_set():
                at += 1
                try:
                    if at % 3:
                        self._publish(client, f"{self.name}-{at}")
                    else:
                        self._read(client)
                except Exception as error:  # noqa: BLE001 - the test says it, not the thread
                    self.faults.append(repr(error))
                    return

    def _publish(self, client: Client, text: str) -> None:
        item, asked_us = sha256(text.encode()).digest(), _now_us()
        try:
            done = client.sequence_publish(NAME, digest=item.hex())
        except (Unavailable, Conflict) as refused:
            if refused.code == "order-unknown":
                self.seen.append(Asked(item, asked_us, None))
            time.sleep(0.02)  # nothing was done, says the code
            return
        except QuipuError:  # the node is gone, or its answer is
            self.seen.append(Asked(item, asked_us, None))
            time.sleep(0.05)
            return
        number, running = int(done["number"]), bytes.fromhex(done["running_digest"])
        self.seen.append(Asked(item, asked_us, _now_us(), number, running))

    def _read(self, client: Client) -> None:
        asked_us = _now_us()
        try:
            found = client.sequence(NAME, consistency="linear")
        except NotFound:
            self.seen.append(Asked(None, asked_us, _now_us(), 0, bytes(32)))
            return
        except QuipuError:
            time.sleep(0.02)
            return
        running = bytes.fromhex(found["running_digest"])
        self.seen.append(Asked(None, asked_us, _now_us(), int(found["number"]), running))


def _now_us() -> int:
    return int(time.monotonic() * US_PER_S)


# --- faults ---------------------------------------------------------------------------------------
def _master(net: Devnet) -> int:
    """Whom the newest regime names; any node where nobody says so."""
    found: list[tuple[int, int]] = []
    for number in NODES:
        try:
            with Client([net.node(number).api], timeout=2.0) as client:
                journal = client.journal()
        except QuipuError:
            continue
        if journal["role"] == "master":
            found.append((journal["regime"], number))
    return max(found, default=(0, 1))[1]


def _kill(net: Devnet, number: int) -> Callable[[], None]:
    net.kill(number)
    return lambda: net.start(number)


def _pause(net: Devnet, number: int) -> Callable[[], None]:
    net.pause(number)
    return lambda: net.resume(number)


def _part(net: Devnet, number: int) -> Callable[[], None]:
    net.partition([number], [other for other in NODES if other != number])
    return net.heal


HARMS = {"kill": _kill, "pause": _pause, "part": _part}


# --- one run --------------------------------------------------------------------------------------
def live_out(folder: Path, seed: int) -> list[Asked]:
    """Faults drawn from the seed; what they meet is chance. Raises `Broken`."""
    draw = random.Random(seed)
    net = Devnet.make(folder, len(NODES), is_tied=True)
    try:
        apps = [App(net.node(number).api, f"n{number}") for number in NODES]
        with apps[0], apps[1], apps[2]:
            for _ in range(FAULTS):
                time.sleep(CALM_S)
                number = _master(net) if draw.random() < 0.7 else draw.choice(NODES)
                undo = HARMS[draw.choice(sorted(HARMS))](net, number)
                time.sleep(FAULT_S)
                undo()
            time.sleep(CALM_S)
        faults = [fault for app in apps for fault in app.faults]
        if faults:
            raise Broken("; ".join(faults))
        seen = [one for app in apps for one in app.seen]
        return [*seen, _last(net)]
    finally:
        net.kill(*NODES)


def _last(net: Devnet) -> Asked:
    """What is there once all is well again."""
    found: list[Asked] = []

    def is_read() -> bool:
        asked_us = _now_us()
        try:
            with Client([net.node(1).api], timeout=10.0) as client:
                state: dict[str, Any] = client.sequence(NAME, consistency="linear")
        except QuipuError:
            return False
        running = bytes.fromhex(state["running_digest"])
        found.append(Asked(None, asked_us, _now_us(), int(state["number"]), running))
        return True

    if not until(is_read, SETTLED_S):
        raise Broken("nobody could say what is the newest after all was healed")
    return found[-1]


def seen_of(asked: Sequence[Asked]) -> list[Seen]:
    """For the checker. A number whose item nobody was told of is one of those that were never
    answered: the running digests say which. Raises `Broken`."""
    told = {one.number: one for one in asked if one.item and one.number is not None}
    if len(told) != sum(1 for one in asked if one.item and one.number is not None):
        raise Broken("a number was given out twice")
    lost = {one.item: one for one in asked if one.item is not None and one.number is None}
    known = {one.number: one.running for one in asked if one.number}
    items = _chain(told, lost, known, max(known, default=0))
    digests = [bytes(32)]
    for item in items:
        digests.append(sha256(digests[-1] + item.hex().encode()).digest())
    places = {item: at for at, item in enumerate(items)}
    found: list[Seen] = []
    for one in asked:
        if one.item is not None and one.item in places:
            found.append(Seen(one.asked_us, places[one.item], one.ended_us, one.item.hex()))
        elif one.item is None and one.number is not None:
            digest = digests[one.number].hex()
            found.append(Seen(one.asked_us, one.number, one.ended_us, digest=digest))
    return found


def _chain(
    told: dict[int, Asked],
    lost: dict[bytes, Asked],
    known: dict[int, bytes],
    last: int,
) -> list[bytes]:
    """The item of each number, held against every running digest that somebody was told."""
    items: list[bytes] = []
    running, left = bytes(32), list(lost)
    for number in range(1, last + 1):
        here = told.get(number)
        if here is not None and here.item is not None:
            item = here.item
        else:
            found = _fitting(running, number, left, told, known)
            if found is None:
                raise Broken(f"number {number} is of nobody")
            left.remove(found)
            item = found
        running = next_running(running, number, item)
        if known.get(number, running) != running:
            raise Broken(f"the running digest at {number} is another one")
        items.append(item)
    return items


def _fitting(
    running: bytes,
    number: int,
    left: Sequence[bytes],
    told: dict[int, Asked],
    known: dict[int, bytes],
) -> bytes | None:
    """The lost item that leads to the next running digest that somebody was told of."""
    for item in left:
        after = next_running(running, number, item)
        if number in known:
            if known[number] == after:
                return item
            continue
        here = told.get(number + 1)
        if here is None or here.item is None:
            rest = [one for one in left if one != item]
            if _fitting(after, number + 1, rest, told, known) is not None:
                return item
        elif next_running(after, number + 1, here.item) == here.running:
            return item
    return None


def judge(program: Path, asked: Sequence[Asked]) -> str:
    """Raises `Broken`."""
    [verdict] = verdicts(program, [seen_of(asked)])
    return verdict


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.linear.real", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="how many (20)")
    parser.add_argument("--seed", type=int, default=1, help="of the first (1)")
    given = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory(prefix="quipu-linear-") as name:
        program = build(Path(name))
        for seed in range(given.seed, given.seed + given.runs):
            asked = live_out(Path(name) / str(seed), seed)
            try:
                verdict = judge(program, asked)
            except Broken as broken:
                verdict = f"Broken: {broken}"
            published = sum(1 for one in asked if one.item and one.number)
            lost = sum(1 for one in asked if one.number is None)
            print(
                f"seed {seed}: {verdict}; {published} numbers, {lost} answers lost, "
                f"{len(asked) - published - lost} reads",
                flush=True,
            )
            bad += verdict != OK
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
