"""What `quipu store`, `quipu drain` and `quipu keys` do."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import typer

from quipu.cli.admin_socket import LOOK_INTERVAL_S, AdminSocket, running_node
from quipu.cli.progress import Bar
from quipu.cli.remote import Output, Remote, fail
from quipu.node import damage
from quipu.node.clock import wall_ms
from quipu.node.data_directory import STORE_FOLDER, open_directory
from quipu.node.doctor import holder_of
from quipu.node.exits import Exit
from quipu.node.founding import GENESIS_FILE
from quipu.node.key_list import KeyRow, key_rows
from quipu.node.pruned_store import PruneOrder, prune_directory
from quipu.node.pruning import retention_of
from quipu.node.restoring import Places
from quipu.node.restoring import restore as restore_store
from quipu.node.settings import Settings
from quipu.node.soundness import Soundness
from quipu.storage.backup import BackupFailed, copy_store, refuse_taken, set_aside
from quipu.storage.compaction import compact_store
from quipu.storage.counting import read_stats
from quipu.storage.environment import StoreMissing
from quipu.storage.scrub import ScrubProgress
from quipu.storage.store import StoreError
from quipu.storage.verification import Report, verify_store

CHANGE_ANSWER_S = 150.0  # a node waits 120 s for the end of a change at most

WAITING = {
    "finality": "It goes once enough members have confirmed the entry that asks for it.",
    "checkpoint": "It goes with the next checkpoint, in ten minutes at most, or now: "
    "`quipu members checkpoint`.",
    "entry": "It goes as soon as this node holds it.",
    "commit": "It goes as soon as the disk takes it.",
}


class Wanted(NamedTuple):
    """What `quipu store verify` is asked for."""

    path: Path | None
    signatures: bool
    records_only: bool


def show_stats(settings: Settings, as_json: bool) -> None:
    with named_errors():
        found = read_stats(_store(settings))
    known = Soundness.of(_folder(settings), wall_ms)
    show(found._asdict() | {"scrub_ended_ms": known.ended_ms, "scrub_found": known.found}, as_json)


def verify(settings: Settings, wanted: Wanted, as_json: bool) -> Exit:
    with named_errors(), bar() as report:
        found = verify_store(
            wanted.path or _store(settings),
            report,
            signatures=wanted.signatures,
            structure=not wanted.records_only,
        )
    return _say_findings(found.facts(), as_json)


def scrub(settings: Settings, signatures: bool, as_json: bool) -> Exit:
    node = running_node(settings)
    if node is not None:
        query = "?signatures=true" if signatures else ""
        return _say_findings(node.finish(node.ask("POST", f"/v1/admin/scrub{query}")), as_json)
    with named_errors(), bar() as report:
        found = verify_store(_store(settings), report, signatures=signatures).facts()
    Soundness.of(_folder(settings), wall_ms).noted(found)
    return _say_findings(found, as_json)


def backup(settings: Settings, target: Path, as_json: bool) -> None:
    target = target.absolute()
    try:
        refuse_taken(target)
    except BackupFailed as error:
        fail(f"{error}\n  Name a directory that is empty or not there.", Exit.CONFLICT)
    node = running_node(settings)
    if node is not None:
        done = node.finish(node.ask("POST", "/v1/admin/backup", {"target": str(target)}))
    else:
        with named_errors(), bar() as report:
            genesis = _folder(settings) / GENESIS_FILE
            of_executor = settings.executor_dir
            done = copy_store(_store(settings), target, report, [genesis], of_executor)
    show(done, as_json)


def restore(settings: Settings, source: Path, is_set_aside: bool, as_json: bool) -> None:
    with named_errors(), bar() as report:
        places = Places(_folder(settings), settings.executor_dir)
        done = restore_store(source, places, is_set_aside, report)
    show(done, as_json)


def compact(settings: Settings, as_json: bool) -> None:
    directory = open_directory(_folder(settings), None)
    try:
        with named_errors(), bar() as report:
            done = compact_store(directory.store_path, report)
    finally:
        directory.close()
    show(done, as_json)


class PruneWish(NamedTuple):
    """What `quipu store prune` is asked for. None: as the settings say."""

    keep: str | None
    keep_mib: int | None
    dry_run: bool


def prune(settings: Settings, wish: PruneWish, as_json: bool) -> None:
    try:
        retention = retention_of(settings.store, wish.keep, wish.keep_mib)
    except ValueError as error:
        fail(str(error), Exit.USAGE)
    if not retention.prunes:
        fail(
            "nothing says what is to be kept\n"
            "  Name --keep 30d or --keep-mib 1024, or set store.keep_days or store.keep_mib.",
            Exit.USAGE,
        )
    node = running_node(settings)
    if node is not None:
        query = {"dry_run": "true" if wish.dry_run else "false"}
        query |= {"keep": wish.keep} if wish.keep is not None else {}
        query |= {"keep_mib": str(wish.keep_mib)} if wish.keep_mib is not None else {}
        begun = node.ask("POST", f"/v1/admin/prune?{urlencode(query)}")
        show(node.finish(begun), as_json)
        return
    directory = open_directory(_folder(settings), None)
    try:
        with named_errors(), bar() as report:
            order = PruneOrder(retention, settings.store.prune_archived_only, wish.dry_run)
            done = prune_directory(directory, order, report)
    finally:
        directory.close()
    show(done, as_json)


def erase(settings: Settings, identity: str, timeout: str, as_json: bool) -> Exit:
    query = urlencode({"timeout": timeout})
    path = f"/v1/entries/{quote(identity, safe='')}?{query}"
    done = _running(settings).ask("DELETE", path, None, CHANGE_ANSWER_S)
    show(done, as_json)
    if done["erased"]:
        return Exit.OK
    print(WAITING[done["waits_for"]], file=sys.stderr)
    return Exit.WAITED


def drain(settings: Settings, timeout_s: float, as_json: bool) -> Exit:
    told = _running(settings).ask("POST", "/v1/admin/drain")
    ends_s = time.monotonic() + timeout_s
    while holder_of(_folder(settings)) is not None:
        if time.monotonic() > ends_s:
            fail(f"process {told['pid']} has not ended yet", Exit.WAITED)
        time.sleep(LOOK_INTERVAL_S)
    show({"pid": told["pid"], "ended": True}, as_json)
    return Exit.OK


def reload(settings: Settings, as_json: bool) -> Exit:
    told = _running(settings).ask("POST", "/v1/admin/reload")
    show({"read": not told["faults"], "faults": "; ".join(told["faults"])}, as_json)
    return Exit.FAILURE if told["faults"] else Exit.OK


def set_log_level(settings: Settings, level: str, as_json: bool) -> None:
    show(_running(settings).ask("PUT", "/v1/admin/log-level", {"level": level}), as_json)


def repair(settings: Settings, as_json: bool) -> None:
    directory = open_directory(_folder(settings), None)  # refused while a process uses it
    try:
        if not damage.has_others(directory):
            raise damage.refused(StoreError("only this node is known to hold it"))
        with named_errors():
            aside = set_aside(directory.store_path)
    finally:
        directory.close()
    show({"aside": str(aside)}, as_json)
    print(
        "Start the node: it fetches what the other members hold. When `quipu check` finds nothing "
        "wrong any more, the folder that was set aside can go.",
        file=sys.stderr,
    )


def _running(settings: Settings) -> AdminSocket:
    node = running_node(settings)
    if node is None:
        fail(f"no node runs in {_folder(settings)}", Exit.UNREACHABLE)
    return node


def show_keys(settings: Settings, as_json: bool) -> None:
    node = running_node(settings)
    rows: list[dict[str, Any]]
    if node is not None:
        rows = node.ask("GET", "/v1/admin/keys")["items"]
    else:
        directory = open_directory(_folder(settings), None)
        found = key_rows(settings, directory)
        directory.close()
        rows = [row._asdict() for row in found]
    _as(as_json).show_all(rows, KeyRow._fields)


def recover_journal(settings: Settings, as_json: bool) -> None:
    node = running_node(settings)
    if node is None:
        fail(
            "no node is running on this data directory: it has to be told itself", Exit.UNREACHABLE
        )
    show(node.ask("POST", "/v1/admin/journal/recover"), as_json)


def propose_change(settings: Settings, wanted: tuple[str, list[str], str], as_json: bool) -> None:
    node = running_node(settings)
    if node is None:
        fail("no node runs on this data directory: it has to be asked itself", Exit.UNREACHABLE)
    kind, nodes, timeout = wanted
    path = f"/v1/journal/config:propose?{urlencode({'timeout': timeout})}"
    change = node.ask("POST", path, {"kind": kind, "nodes": nodes}, CHANGE_ANSWER_S)
    if not as_json:
        change["nodes"] = ", ".join(member["name"] for member in change["nodes"])
    show(change, as_json)
    if not change["ended"]:
        raise typer.Exit(Exit.WAITED)


def _folder(settings: Settings) -> Path:
    return settings.node.data_dir.absolute()


def _store(settings: Settings) -> Path:
    return _folder(settings) / STORE_FOLDER


# --- showing --------------------------------------------------------------------------------------
@contextmanager
def bar() -> Iterator[Report]:
    shown = Bar()

    def report(progress: ScrubProgress) -> None:
        shown.show(progress.phase, progress.done, progress.total)

    try:
        yield report
    finally:
        shown.end()


@contextmanager
def named_errors() -> Iterator[None]:
    try:
        yield
    except StoreMissing as error:
        fail(f"{error}\n  Name the node's --data-dir; `quipu run` makes one.", Exit.NOT_FOUND)
    except (StoreError, OSError) as error:
        fail(str(error), Exit.FAILURE)


def _say_findings(found: dict[str, Any], as_json: bool) -> Exit:
    if as_json:
        show(found, as_json)
    else:
        for finding in found["findings"]:
            print(f"{finding['table']}: {finding['place']}: {finding['what']}")
        left_out = found["found"] - len(found["findings"])
        if left_out:
            print(f"… and {left_out:,} more")
        verdict = f"{found['found']:,} wrong" if found["found"] else "fine"
        print(f"{found['path']}: {found['events']:,} events, {verdict}, {found['seconds']:.1f} s")
    return Exit.NOT_VERIFIED if found["found"] else Exit.OK


def show(facts: dict[str, Any], as_json: bool) -> None:
    _as(as_json).show(facts)


def _as(as_json: bool) -> Remote:
    return Remote((), None, None, Output.JSON if as_json else Output.TABLE)
