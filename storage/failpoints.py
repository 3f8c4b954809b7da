"""Named places where a test makes a node fail; off unless `QUIPU_FAILPOINTS` names them.

`QUIPU_FAILPOINTS="commit.durable=kill@17;commit.begin=full"`: at the 17th passing of the first
the process kills itself as SIGKILL would; every passing of the second finds the disk full.
"""

import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from quipu.ledger import effects
from quipu.ledger.log import effects as log_effects
from quipu.storage.store import DiskFailed, Kept, OutcomeUnknown, StoreFull

# What a transaction stores, and how the two sites around it name that.
KINDS: dict[type[Kept], str] = {
    effects.StoreEvent: "event",
    effects.PutBranch: "branch",
    effects.AppendFeed: "feed",
    effects.StoreInv: "receipt",
    effects.StoreProof: "proof",
    effects.StoreEpoch: "epoch",
    effects.PutOwnState: "own-state",
    effects.DropEvents: "pruned-events",
    effects.DropFeed: "pruned-feed",
    effects.DropInvs: "pruned-receipts",
    effects.EraseEntry: "erased",
    effects.PutOverruling: "overruling",
    log_effects.StoreLogEntry: "log-entry",
    log_effects.DropLogFrom: "log-dropped",
    log_effects.PutVote: "vote",
    log_effects.PutChosen: "chosen",
    log_effects.PutConfirmed: "confirmed",
    log_effects.PutLie: "lie",
    log_effects.PutBase: "log-base",
    log_effects.ForgetLog: "log-forgotten",
}
# Every site, and what has happened when it is passed.
SITES = {
    "start.key": "the node key is on disk, the genesis is not",
    "start.genesis": "the genesis is on disk, the store is not",
    "start.store": "the store is open, no turn has run",
    "join.asked": "an invitation was fetched, nothing of it is on disk",
    "turn.collected": "inputs are taken from the inbox, nothing is decided",
    "turn.decided": "the core has stepped, nothing is written",
    "commit.begin": "in the writer, before the transaction",
    "commit.durable": "in the writer, the transaction is synced, nobody knows",
    "turn.committed": "back in the loop, nothing is spoken",
    "turn.spoken": "answers are given, the next turn has not begun",
    "checkpoint.sealed": "a seal is durable, its epoch is not open",
    "checkpoint.opened": "a checkpoint is durable",
    "drain.begun": "the node was asked to stop",
    "file.written": "a file that takes the place of another is written, not synced",
    "file.synced": "it is synced, and has not its name yet",
    "file.replaced": "it has its name, the directory is not synced",
    "secret.written": "a new file with a secret is written and synced, and has no name",
    "secret.linked": "it has its name, the directory is not synced",
    "backup.copied": "the pages of a copy are there, it does not say that it is one",
    "backup.marked": "the copy says that it is one, and has not its name yet",
    "backup.named": "the copy has its name",
    "aside.renamed": "a store lies aside, nothing is in its place",
    "compact.copied": "a copy without free pages is there, and unchecked",
    "compact.checked": "the copy is sound, the store has not changed",
    "compact.replaced": "the copy has taken the place of the store",
    "export.begun": "a dump has begun, it holds nothing",
    "export.segment": "files of events are whole, and noted",
    "export.tables": "all tables are written, there is no manifest",
    "export.unsigned": "the manifest is written, and unsigned",
    "snapshot.copied": "an executor's database is copied, and has not its name yet",
    "snapshot.named": "the copy has its name",
    "snapshot.aside": "an executor's database lies aside, nothing is in its place",
    "snapshot.checked": "a fetched snapshot is checked, and has not its name yet",
    "snapshot.restored": "the snapshot is in place, what was there is still aside",
    "executor.begun": "a turn's transaction is open, nothing is executed",
    "executor.executed": "a command is executed, its turn is not committed",
    "executor.written": "applied index and results are written, not committed",
    "executor.durable": "the turn is committed, nobody knows",
    **{f"store.{kind}": f"before a transaction with `{kind}`" for kind in KINDS.values()},
    **{f"stored.{kind}": f"after a transaction with `{kind}`" for kind in KINDS.values()},
}
ACTIONS = ("kill", "fail", "full", "unknown")


class NoFailpoint(ValueError):
    """The text names none, or asks what none does."""


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
            raise NoFailpoint(item)
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


def passing_kinds(when: str, durable: Iterable[Kept]) -> None:
    """The sites of what a transaction stores, each once."""
    if _armed:
        for kind in dict.fromkeys(KINDS[type(effect)] for effect in durable):
            passing(f"{when}.{kind}")


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
