"""The safeguards of peers, store and executors, each taken out in a process of its own.

Those of the core, of the log and of epochs are switches, and the simulator misses them
(`make ablation`). These are single conditions of the code: the code of a function is exchanged for
that of one without it, and the test that is named here has to notice.
`python -m tests.safeguards` tells which test notices what; `--find` looks through whole folders.
"""

import argparse
import importlib
import multiprocessing
import os
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import FunctionType
from typing import Any

import pytest

from quipu.p2p import desk, hello, membership, outbox, queries, sessions, spread
from quipu.p2p.links import Link
from quipu.storage import (
    backup,
    compaction,
    environment,
    event_blob,
    lmdb_store,
    ownership,
    records,
)
from quipu.storage.batch import Batch
from quipu.storage.executors import book, gate, snapshots, sqlite_executor
from quipu.storage.executors import desk as client_desk
from tests import tree
from tests.fuzz.planted import Bug, changed_function

forked = multiprocessing.get_context("fork")
IMPORTED = "ignore::pytest.PytestAssertRewriteWarning"  # what was imported before the fork
PLAIN = ("--tb=no", "--assert=plain")  # nobody reads why
LIMIT_S = 300.0
PEERS, STORE, EXECUTORS = "peers", "store", "executors"
FOLDERS = {
    PEERS: ("tests/unit/p2p",),
    STORE: ("tests/unit/storage", "tests/contract/test_store_contract.py"),
    EXECUTORS: ("tests/unit/storage/executors", "tests/property/test_executors.py"),
}


@dataclass(frozen=True)
class Safeguard:
    """What the product does, and what stands in its place when it does not."""

    what: str
    layer: str
    function: Callable[..., Any]
    old: str
    new: str
    noticed_by: str  # a test


P2P, STORAGE = "tests/unit/p2p/test_", "tests/unit/storage/test_"
SQL = "tests/unit/storage/executors/test_"
SAFEGUARDS = [
    Safeguard("a HELLO is of the key that the link has", PEERS, hello.verify_hello,
              "link_key_of(peer) != key", "False",
              P2P + "guests.py::test_a_stranger_makes_nobody_dial[key]"),
    Safeguard("a HELLO knows the secret of the cluster", PEERS, hello._check_macs,
              "if any(", "if True or any(",
              P2P + "guests.py::test_a_stranger_makes_nobody_dial[secret]"),
    Safeguard("an older start of a peer is refused", PEERS, sessions.Sessions._on_hello,
              "greeting.start < link.start", "False",
              P2P + "peers.py::test_an_older_start_is_refused_also_after_a_restart"),
    Safeguard("the number of peers is bounded", PEERS, sessions.Sessions._on_hello,
              "len(desk.links.by_peer) >= limits.PEERS_MAX", "False",
              P2P + "peers.py::test_peers_are_bounded"),
    Safeguard("frames of a link come once", PEERS, Link.take,
              "missed >= limits.SEQUENCES // 2", "False",
              P2P + "links.py::test_what_was_here_is_not_taken_again"),
    Safeguard("a message of the core is its sender's own", PEERS, sessions._is_plain,
              "message.sender == peer", "True",
              P2P + "casts.py::test_what_is_refused"),
    Safeguard("a multicast proves itself", PEERS, sessions.Sessions.cast,
              "is_of_core and _is_plain(message, peer) and proves_itself(message.body)",
              "is_of_core",
              P2P + "casts.py::test_what_is_refused"),
    Safeguard("a pool hears who is in it", PEERS, sessions.Sessions._on_broadcast,
              "pool not in desk.pools.names", "False",
              P2P + "casts.py::test_a_broadcast_goes_out_once"),
    Safeguard("a gossip is taken once", PEERS, spread.SeenSet.is_new,
              "not seen.window >> behind & 1", "True",
              P2P + "casts.py::test_bad_weather_loses_nothing[1]"),
    Safeguard("gossip of a start before is old", PEERS, spread.SeenSet.is_new,
              "start < seen.start", "False",
              P2P + "spread.py::test_an_older_start_is_a_duplicate_for_ever"),
    Safeguard("an endpoint is signed by its node", PEERS, desk.Desk.learn,
              "check_endpoint(endpoint, self.config.cluster_id, self.config.verify)", "pass",
              P2P + "beacons.py::test_nobody_is_sent_elsewhere_by_another_holder_of_the_secret"),
    Safeguard("members alone are told of", PEERS, desk.Desk.learn_all,
              "endpoint.node_id in self.membership.members", "True",
              P2P + "peers.py::test_of_others_than_members_nobody_is_told_where_they_are"),
    Safeguard("witnesses are members", PEERS, membership.Membership.told,
              "witness in self.members and ", "",
              P2P + "membership.py::test_only_members_are_witnesses"),
    Safeguard("who is missed is missed by others too", PEERS,
              membership.Membership._sign_of_silence,
              "len(standing.witnesses) >= self._needed(peer)", "True",
              P2P + "membership.py::test_silence_alone_makes_suspect_and_dead"),
    Safeguard("a vote is a member's", PEERS, queries.Tally.count,
              "member not in self.members", "False",
              P2P + "queries.py::test_votes_are_those_of_the_members_of_that_moment"),
    Safeguard("a later answer stands for an earlier one", PEERS, queries.Tally.count,
              "known is not None and vote.id <= known.id", "False",
              P2P + "queries.py::test_of_the_answers_of_a_member_the_newest_counts"),
    Safeguard("a split vote is told as contested", PEERS, queries.Tally.final,
              "len(at_half) > 1", "False",
              P2P + "queries.py::test_two_halves_are_contested_at_once"),
    Safeguard("answers that are missing may change it", PEERS, queries.Tally.outcome,
              "and missing:", "and False:",
              P2P + "queries.py::test_two_of_four_are_not_enough_while_two_are_silent"),
    Safeguard("a piece of content is bounded", PEERS, outbox.contents,
              "is_full or ", "",
              P2P + "casts.py::test_faster_than_the_rate_it_goes_over_the_links"),
    Safeguard("a record has its checksum", STORE, records.unguarded,
              "value[: _CHECKSUM.size] != expected", "False",
              STORAGE + "backup.py::test_what_cannot_be_opened_is_a_finding"),
    Safeguard("an event gives its root", STORE, event_blob._checked_entries,
              "(leaves[0] if len(leaves) == 1 else merkle.root_of(leaves)) != root", "False",
              STORAGE + "event_blob.py::test_no_byte_is_sent_that_is_not_what_was_stored"),
    Safeguard("an entry gives its leaf", STORE, event_blob.StoredEvent.entries,
              "(leaf != stored_leaf and leaf_of(entry) != stored_leaf)", "False",
              STORAGE + "event_blob.py::"
              "test_wrong_leaf_hashes_from_outside_never_become_wrong_entries"),
    Safeguard("the header gives the id", STORE, event_blob._checked_parts,
              "event_id(header) != identity", "False",
              STORAGE + "event_blob.py::test_no_byte_is_sent_that_is_not_what_was_stored"),
    Safeguard("a slot has one event", STORE, Batch._heal,
              "stored.id != event.id", "False",
              "tests/contract/test_store_contract.py::test_key_of_a_refused_batch_is_unknown"),
    Safeguard("a store is of one node", STORE, ownership.claim, "found != owner", "False",
              STORAGE + "lmdb_store.py::test_other_cluster_and_other_node_are_refused"),
    Safeguard("a store is open once", STORE, environment.lock_owner,
              "fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)", "pass",
              STORAGE + "lmdb_store.py::test_second_opening_is_refused_in_this_process"),
    Safeguard("after a crash pages are looked at", STORE, environment.refuse_after_crash,
              "if broken:", "if False:",
              STORAGE + "environment.py::"
              "test_what_a_look_at_the_pages_finds_is_told_before_lmdb_meets_it"),
    Safeguard("a file that was cut is not opened", STORE, environment._refuse_cut_file,
              "if broken:", "if False:",
              STORAGE + "environment.py::"
              "test_what_a_look_at_the_pages_finds_is_told_before_lmdb_meets_it"),
    Safeguard("nothing follows a commit of unknown end", STORE, lmdb_store.LmdbStore.commit,
              "self._lost is not None", "False",
              STORAGE + "lmdb_store.py::test_failed_commit_is_named"),
    Safeguard("a copy says that it is one", STORE, backup._mark,
              "replace(state, recovering=True)", "state",
              STORAGE + "backup.py::test_copy_is_whole_and_knows_that_it_is_one"),
    Safeguard("what replaces a store is sound", STORE, compaction._check,
              "found.found", "False",
              STORAGE + "compaction.py::test_a_damaged_store_is_not_replaced"),
    Safeguard("a request is done once", EXECUTORS, book.Book.refusal,
              "request.message_id <= client.last_id", "False",
              SQL + "sqlite_executor.py::test_unknown_clients_and_known_ids_change_nothing"),
    Safeguard("a kept result is what was stored", EXECUTORS, book.Book._stored,
              "outcome.told().digest != digest", "False",
              SQL + "sqlite_executor.py::test_a_stored_result_that_changed_is_not_handed_out"),
    Safeguard("a READ is of its client", EXECUTORS, client_desk.Desk._read,
              "not signing.verify(client.public, text, item.signature) or ", "",
              SQL + "desk.py::test_read_takes_a_signature_and_deletes_what_is_held"),
    Safeguard("functions are deterministic", EXECUTORS, gate.Gate._function,
              "self.any_function or folded(name) in DETERMINISTIC", "True",
              SQL + "sql_allowed.py"),
    Safeguard("a client does what its rights allow", EXECUTORS, gate.Gate._right,
              "None if granted else", "None if True else",
              SQL + "acl.py::test_rights_decide"),
    Safeguard("names of the executor are its own", EXECUTORS, gate._reserved,
              "folded(name).startswith(_RESERVED)", "False",
              SQL + "sql_allowed.py"),
    Safeguard("commands come in their order", EXECUTORS, sqlite_executor._check_order,
              "item.at < last", "False",
              SQL + "sqlite_executor.py::test_commands_out_of_order_are_a_fault_of_the_caller"),
    Safeguard("a torn turn ends an executor", EXECUTORS,
              sqlite_executor.SqliteExecutor._refuse_torn, "if self._torn", "if False",
              SQL + "sqlite_executor.py::"
              "test_after_a_commit_of_unknown_outcome_only_opening_anew_tells"),
    Safeguard("a database is of one cluster", EXECUTORS, sqlite_executor.made_by,
              "cluster != cluster_id", "False",
              SQL + "sqlite_executor.py::test_only_its_owner_opens_it"),
    Safeguard("a snapshot is what was described", EXECUTORS, snapshots.refuse_other,
              "is_ != wanted", "False",
              SQL + "snapshots.py"),
]  # fmt: skip


# --- in a process of its own ----------------------------------------------------------------------
class _Names:
    """Which tests have failed."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def _judge(safeguard: Safeguard, tests: tuple[str, ...], is_out: bool, pipe: Connection) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.chdir(tree.ROOT)
    if is_out:
        take_out(safeguard)
    names = _Names()
    chosen = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-W", IMPORTED, *PLAIN]
    code = pytest.main([*chosen, *tests], plugins=[names])
    pipe.send((int(code), names.failed[0] if names.failed else ""))
    os._exit(0)


def take_out(safeguard: Safeguard) -> None:
    """In place, so that whoever has the function has the one without it."""
    bug = Bug(safeguard.what, safeguard.function, safeguard.old, safeguard.new)
    old, new = safeguard.function, changed_function(bug)
    assert isinstance(old, FunctionType)
    assert isinstance(new, FunctionType)
    old.__code__ = new.__code__


def judged(safeguard: Safeguard, tests: tuple[str, ...], *, is_out: bool = True) -> tuple[int, str]:
    """The exit code of pytest, and the first test that failed."""
    ours, theirs = forked.Pipe(duplex=False)
    process = forked.Process(target=_judge, args=(safeguard, tests, is_out, theirs))
    process.start()
    theirs.close()
    try:
        code, failed = ours.recv() if ours.poll(LIMIT_S) else (-1, "it does not end")
    except EOFError:
        code, failed = -1, "it died"
    process.kill()
    process.join()
    return code, failed


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.safeguards", description=__doc__)
    parser.add_argument("--find", action="store_true", help="by the tests of the whole layer")
    parser.add_argument("--only", default="", help="part of a name")
    chosen = parser.parse_args()
    importlib.import_module("tests.conftest")
    missed = 0
    named = tuple(dict.fromkeys(one.noticed_by for one in SAFEGUARDS))
    assert judged(SAFEGUARDS[0], named, is_out=False) == (0, ""), "the tests pass with all of them"
    for one in SAFEGUARDS:
        if chosen.only not in one.what:
            continue
        tests = FOLDERS[one.layer] if chosen.find else (one.noticed_by,)
        code, failed = judged(one, tests)
        missed += code != 1
        print(
            f"{one.layer:10} {one.what:46} {failed if code == 1 else 'NOBODY NOTICES'}", flush=True
        )
    print(f"{missed} are not missed when they are out")
    return missed


if __name__ == "__main__":
    raise SystemExit(main())
