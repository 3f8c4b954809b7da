"""What is done in a process that kills itself at a failpoint, and what must hold afterwards.

Each work begins from what `prepare` made, and can be done again after it was cut short. `check`
looks at what lies there in between; `done` at what the repetition came to.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quipu.dumps.checking import check_contents, check_files
from quipu.dumps.manifest import MANIFEST_FILE, finish
from quipu.ledger.effects import (
    AppendFeed,
    DropEvents,
    DropFeed,
    DropInvs,
    EraseEntry,
    PutOverruling,
    PutOwnState,
    StoreEpoch,
    StoreProof,
)
from quipu.ledger.evidence import check_proof, prove_author
from quipu.ledger.log.effects import (
    DropLogFrom,
    ForgetLog,
    PutBase,
    PutChosen,
    PutConfirmed,
    PutLie,
    PutVote,
)
from quipu.ledger.log.words import Index
from quipu.ledger.signing import verify
from quipu.ledger.words import EpochNo, InvNumber, Journal, NodeNo, Seq
from quipu.node import secret_files
from quipu.node.catching_up import put_in_place
from quipu.node.data_directory import open_directory
from quipu.node.founding import RANDOM_BYTES, Asking
from quipu.node.invitation import Invitation
from quipu.node.whole_file import replace_file
from quipu.node.writer import write_turn
from quipu.storage import failpoints
from quipu.storage.backup import copy_store, set_aside
from quipu.storage.compaction import compact_store
from quipu.storage.executors.executor import Mark, Snapshot
from quipu.storage.executors.request import Digest, LogIndex
from quipu.storage.executors.snapshots import describe
from quipu.storage.executors.sqlite_executor import SqliteExecutor
from quipu.storage.export import ExportOrder, export_store
from quipu.storage.lmdb_store import open_store
from quipu.storage.store import Kept
from quipu.storage.verification import verify_store
from tests.contract.test_log_store_contract import base_at, entry_at
from tests.dump_making import grown
from tests.fuzz.ordered import ANOTHER, ONE
from tests.made_events import MadeCluster, branch_of, entry_of
from tests.process import lives
from tests.process.executing_child import CLUSTER, turn
from tests.process.lives import forked
from tests.vectors.refused import pack

TURNS = 12
forked.set_forkserver_preload([lives.__name__, __name__])


@dataclass(frozen=True)
class Work:
    """By the names of module functions: a forked process finds them again."""

    prepare: Callable[[Path], object]
    act: Callable[[Path], object]
    check: Callable[[Path, str], object]
    done: Callable[[Path], object]


def kill_at(site: str, act: Callable[[Path], object], folder: Path) -> int | None:
    """The exit code of a process that does it, armed at that site."""
    process = forked.Process(target=_armed, args=(site, act, folder))
    process.start()
    process.join(60)
    return process.exitcode


def _armed(site: str, act: Callable[[Path], object], folder: Path) -> None:
    failpoints.arm(f"{site}=kill@1")
    act(folder)


# --- a transaction --------------------------------------------------------------------------------
def made_batches() -> tuple[list[Kept], dict[str, list[Kept]]]:
    """What lies in a store, and for each kind of effect a transaction with it."""
    cluster = MadeCluster()
    events = [cluster.write(1, entries=[entry_of("x", f"key {n}")]) for n in range(4)]
    ids = tuple(event.event.id for event in events)
    invs = [cluster.inv(2, number, [events[0].meta]) for number in (3, 5, 8)]
    head = branch_of(events[3].meta, gone_upto=Seq(2), cut_seq=Seq(3))
    held: list[Kept] = [
        *events, *invs, branch_of(events[3].meta), AppendFeed(ids[:3]), entry_at(1), entry_at(2),
        PutVote(b"vote"), PutChosen(Index(1), (b"one",)), PutConfirmed(Index(1), (b"both",)),
    ]  # fmt: skip
    rivals = [cluster.fork(None, 3, 0, text).event for text in ("a", "b")]
    one, other = [(event.header_bytes, event.signature, event.id) for event in rivals]
    proof = check_proof(prove_author(one, other), cluster.cluster_id, verify)
    written = cluster.write(2)
    key = events[0].meta.branch
    return held, {
        "event": [written],
        "branch": [head],
        "feed": [AppendFeed(ids[3:])],
        "receipt": [cluster.inv(2, 9, [events[3].meta])],
        "proof": [StoreProof(proof)],
        "epoch": [StoreEpoch(EpochNo(2), b"document", (b"seal",))],
        "own-state": [PutOwnState(Journal(7), False)],
        "pruned-events": [DropEvents(key, Seq(1), Seq(2)), head],
        "pruned-feed": [DropFeed(2), PutOwnState(Journal(1), False, EpochNo(2))],
        "pruned-receipts": [DropInvs(NodeNo(2), InvNumber(8))],
        "erased": [EraseEntry(events[1].meta.slot, 0)],
        "overruling": [PutOverruling(b"document", (b"seal",))],
        "log-entry": [entry_at(3)],
        "log-dropped": [DropLogFrom(Index(2))],
        "vote": [PutVote(b"another")],
        "chosen": [PutChosen(Index(2), (b"two",))],
        "confirmed": [PutConfirmed(Index(2), (b"two",))],
        "lie": [PutLie(NodeNo(1), pack([pack(ONE), pack(ANOTHER), False]))],
        "log-base": [PutBase(base_at(1), b"state")],
        "log-forgotten": [ForgetLog()],
    }


def write_kind(folder: Path) -> None:
    """The transaction that the folder is named for, as the node's writer does it."""
    _, kinds = made_batches()
    store = open_store(folder / "store", MadeCluster().owner())
    outcome = write_turn(store, kinds[folder.name.partition(".")[2]])
    assert outcome.error is None, outcome.error
    store.close()


def begin_store(folder: Path) -> None:
    store = open_store(folder / "store", MadeCluster().owner())
    store.commit(made_batches()[0])
    store.close()


def content_of(folder: Path) -> list[Any]:
    """All that a node reads there when it starts, and what it serves."""
    store = open_store(folder / "store", MadeCluster().owner())
    feed = store.feed(0, 100)
    found = [
        store.saved(), store.saved_log(), feed, list(store.invs_from(NodeNo(2), InvNumber(0))),
        [store.event(identity) for _, identity in feed], store.stats()[:7],
    ]  # fmt: skip
    store.close()
    return found


# --- copies of a store ----------------------------------------------------------------------------
def begin_ledger(folder: Path) -> None:
    grown(folder, MadeCluster(), TURNS)


def is_sound(store: Path) -> None:
    found = verify_store(store, lambda progress: None)
    assert (found.found, found.events) == (0, TURNS)


def back_up(folder: Path) -> None:
    copy_store(folder / "store", folder / "copy")


def check_backup(folder: Path, site: str) -> None:
    is_sound(folder / "store")
    assert (folder / "copy").exists() is (site == "backup.named")
    if site == "backup.named":
        done_backup(folder)
        (folder / "copy").rename(folder / "first copy")


def done_backup(folder: Path) -> None:
    is_sound(folder / "copy")
    store = open_store(folder / "copy", MadeCluster().owner())
    assert store.saved().recovering, "who starts from a copy asks first"
    store.close()


def restore(folder: Path) -> None:
    if (folder / "store").exists():
        set_aside(folder / "store")
    copy_store(folder / "store.aside-1", folder / "store")


def check_restore(folder: Path, site: str) -> None:
    assert site == "aside.renamed"
    assert not (folder / "store").exists()
    is_sound(folder / "store.aside-1")


def done_restore(folder: Path) -> None:
    is_sound(folder / "store")
    is_sound(folder / "store.aside-1")


def compact(folder: Path) -> None:
    compact_store(folder / "store")


def check_store(folder: Path, site: str) -> None:
    is_sound(folder / "store")


def done_compact(folder: Path) -> None:
    is_sound(folder / "store")
    assert not (folder / "store" / "compact.partial").exists()


# --- dumps ----------------------------------------------------------------------------------------
def dump(folder: Path) -> None:
    export_store(ExportOrder(folder / "store", folder / "dump", MadeCluster().genesis, "with data"))


def check_dump(folder: Path, site: str) -> None:
    """Nobody takes it for one: what makes it a dump is the signed manifest."""
    assert not (folder / "dump" / MANIFEST_FILE).exists()
    assert check_files(folder / "dump").manifest is None


def done_dump(folder: Path) -> None:
    finish(folder / "dump", MadeCluster().keys[0].sign)
    checked = check_files(folder / "dump")
    assert checked.problems == []
    assert check_contents(checked, signatures=True) == []
    assert checked.manifest is not None
    assert checked.manifest.events == TURNS


# --- executors ------------------------------------------------------------------------------------
def begin_executor(folder: Path) -> None:
    executor = SqliteExecutor(folder / "executor", CLUSTER)
    executor.apply(turn(1), LogIndex(1))
    executor.apply(turn(2), LogIndex(2))
    executor.close()


def applied_to(folder: Path) -> int:
    executor = SqliteExecutor(folder / "executor", CLUSTER)
    try:
        at = executor.position().applied.at
        rows = executor.reader.query("SELECT request, times FROM counted ORDER BY request").rows
        requests = range(2, 2 + 3 * (at - 1))
        assert rows == tuple((n, 1) for n in requests if n % 5), "each request done once, or not"
        return at
    finally:
        executor.close()


def execute(folder: Path) -> None:
    executor = SqliteExecutor(folder / "executor", CLUSTER)
    for number in range(executor.position().applied.at + 1, 4):
        executor.apply(turn(number), LogIndex(number))
    executor.close()


def check_executor(folder: Path, site: str) -> None:
    assert applied_to(folder) == (3 if site == "executor.durable" else 2)


def done_executor(folder: Path) -> None:
    assert applied_to(folder) == 3


def snapshot(folder: Path) -> None:
    executor = SqliteExecutor(folder / "executor", CLUSTER)
    executor.snapshot(folder / "snapshot")
    executor.close()


def check_snapshot(folder: Path, site: str) -> None:
    assert applied_to(folder) == 2
    assert (folder / "snapshot").exists() is (site == "snapshot.named")
    if site == "snapshot.named":
        done_snapshot(folder)
        (folder / "snapshot").unlink()


def done_snapshot(folder: Path) -> None:
    assert describe(folder / "snapshot").applied.at == 2


def begin_replaced(folder: Path) -> None:
    """An executor that is behind, and what it fetched."""
    begin_executor(folder)
    (folder / "ahead").mkdir()
    ahead = SqliteExecutor(folder / "ahead" / "executor", CLUSTER)
    for number in range(1, 6):
        ahead.apply(turn(number), LogIndex(number))
    made = ahead.snapshot(folder / "fetched")
    ahead.close()
    told = [made.applied.at, *(part.hex() for part in (made.applied.digest, made.tables))]
    more = [made.engine, made.file_bytes, made.file_digest.hex()]
    (folder / "described").write_text(json.dumps([*told, *more]))


def replace_executor(folder: Path) -> None:
    at, digest, tables, engine, size, file = json.loads((folder / "described").read_text())
    applied = Mark(LogIndex(at), Digest(bytes.fromhex(digest)))
    wanted = Snapshot(
        applied, Digest(bytes.fromhex(tables)), engine, size, Digest(bytes.fromhex(file))
    )
    put_in_place(folder / "fetched", folder / "executor", wanted)


def check_replaced(folder: Path, site: str) -> None:
    """What was fetched is there still: the node goes on from it, or asks again."""
    assert (folder / "fetched").exists()
    if site == "snapshot.restored":
        assert applied_to(folder) == 5


def done_replaced(folder: Path) -> None:
    assert applied_to(folder) == 5


# --- files ----------------------------------------------------------------------------------------
def begin_file(folder: Path) -> None:
    (folder / "file").write_bytes(b"before")


def change_file(folder: Path) -> None:
    replace_file(folder / "file", b"after")


def check_file(folder: Path, site: str) -> None:
    expected = b"after" if site == "file.replaced" else b"before"
    assert (folder / "file").read_bytes() == expected


def done_file(folder: Path) -> None:
    assert (folder / "file").read_bytes() == b"after"


def write_secret(folder: Path) -> None:
    if not (folder / "secret").exists():
        secret_files.write_secret(folder / "secret", "label", bytes(32))


def check_secret(folder: Path, site: str) -> None:
    assert (folder / "secret").exists() is (site == "secret.linked")


def done_secret(folder: Path) -> None:
    assert secret_files.read_secret(folder / "secret", "label", 32) == bytes(32)


def nothing(folder: Path) -> None:
    folder.mkdir(exist_ok=True)


def join(folder: Path) -> None:
    """As `quipu run --join URI` does: the invitation is asked for anew at each try."""
    invited = Invitation(MadeCluster().genesis, (), bytes(range(32)))
    first = Asking(lambda key: invited, bytes(RANDOM_BYTES))
    open_directory(folder / "data", first).close()


def check_joining(folder: Path, site: str) -> None:
    """The key that was made is the one that joins."""
    key = next((folder / "data").glob("node.key"))
    (folder / "key").write_bytes(key.read_bytes())


def done_joining(folder: Path) -> None:
    directory = open_directory(folder / "data", None)
    assert directory.cluster_id == MadeCluster().cluster_id
    assert directory.cluster_secrets == (bytes(range(32)),)
    directory.close()
    assert (folder / "key").read_bytes() == next((folder / "data").glob("node.key")).read_bytes()


WORKS = {
    "backup.": Work(begin_ledger, back_up, check_backup, done_backup),
    "aside.": Work(begin_ledger, restore, check_restore, done_restore),
    "compact.": Work(begin_ledger, compact, check_store, done_compact),
    "export.": Work(begin_ledger, dump, check_dump, done_dump),
    "executor.": Work(begin_executor, execute, check_executor, done_executor),
    "snapshot.copied": Work(begin_executor, snapshot, check_snapshot, done_snapshot),
    "snapshot.named": Work(begin_executor, snapshot, check_snapshot, done_snapshot),
    "snapshot.": Work(begin_replaced, replace_executor, check_replaced, done_replaced),
    "file.": Work(begin_file, change_file, check_file, done_file),
    "secret.": Work(nothing, write_secret, check_secret, done_secret),
    "join.": Work(nothing, join, check_joining, done_joining),
    "start.key": Work(nothing, join, check_joining, done_joining),
    "start.genesis": Work(nothing, join, check_joining, done_joining),
}


def work_at(site: str) -> Work | None:
    return next((work for begins, work in WORKS.items() if site.startswith(begins)), None)
