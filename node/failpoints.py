"""Named places where a test makes a node fail; off unless `QUIPU_FAILPOINTS` names them.

`QUIPU_FAILPOINTS="commit.durable=kill@17;commit.begin=full"`: at the 17th passing of the first
the process kills itself as SIGKILL would; every passing of the second finds the disk full.
"""

import os
import signal
from dataclasses import dataclass
from typing import NoReturn

from quipu.node.exits import BadSetting
from quipu.storage.store import DiskFailed, OutcomeUnknown, StoreFull

VARIABLE = "QUIPU_FAILPOINTS"

# Every site, and what has happened when it is passed.
SITES = {
    "start.key": "the node key is on disk, the genesis is not",
    "start.genesis": "the genesis is on disk, the store is not",
    "start.store": "the store is open, no turn has run",
    "turn.collected": "inputs are taken from the inbox, nothing is decided",
    "turn.decided": "the core has stepped, nothing is written",
    "commit.begin": "in the writer, before the transaction",
    "commit.durable": "in the writer, the transaction is synced, nobody knows",
    "turn.committed": "back in the loop, nothing is spoken",
    "turn.spoken": "answers are given, the next turn has not begun",
    "checkpoint.sealed": "a seal is durable, its epoch is not open",
    "checkpoint.opened": "a checkpoint is durable",
    "drain.begun": "the node was asked to stop",
}
ACTIONS = ("kill", "fail", "full", "unknown")


@dataclass(slots=True)
class _Armed:
    action: str
    at: int  # 0: at each passing
    passed: int = 0


_armed: dict[str, _Armed] = {}


def arm(text: str) -> None:
    """Takes the sites from the text of the variable; empty turns all off."""
    _armed.clear()
    for item in filter(None, (part.strip() for part in text.split(";"))):
        site, _, rest = item.partition("=")
        action, _, count = rest.partition("@")
        if site not in SITES or action not in ACTIONS or not (count.isdigit() or not count):
            raise BadSetting(
                f"{VARIABLE}: {item!r} is no failpoint",
                f"It is a variable for tests. Sites: {', '.join(SITES)}; "
                f"actions: {', '.join(ACTIONS)}.",
            )
        _armed[site] = _Armed(action, int(count or 0))


def is_armed() -> bool:
    return bool(_armed)


def passing(site: str) -> None:
    """Does nothing, or what the test wants. Cheap while nothing is armed."""
    if not _armed:
        return
    assert site in SITES, site
    armed = _armed.get(site)
    if armed is None:
        return
    armed.passed += 1
    if armed.at in (0, armed.passed):
        _act(armed.action, site)


def _act(action: str, site: str) -> None:
    match action:
        case "kill":
            _die()
        case "full":
            raise StoreFull(f"failpoint {site}")
        case "unknown":
            raise OutcomeUnknown(f"failpoint {site}")
        case _:
            raise DiskFailed(f"failpoint {site}")


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")
