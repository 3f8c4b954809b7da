"""Copies while writing goes on, stores with a broken structure, and verifying from outside."""

import faulthandler
import json
import os
import random
import signal
import subprocess
import sys
import threading
from mmap import PAGESIZE
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from quipu.ledger.effects import Durable, PutOwnState, StoreEvent
from quipu.ledger.words import Journal
from quipu.storage import __main__ as command
from quipu.storage import keys
from quipu.storage.backup import BackupFailed, copy_store, set_aside
from quipu.storage.environment import CRASH_FILE, DATA_FILE, StoreDamaged, StoreLocked, StoreMissing
from quipu.storage.lmdb_store import open_store
from quipu.storage.ownership import FORMAT_NEWEST, FormatTooNew
from quipu.storage.records import guarded
from quipu.storage.store import StoreError
from quipu.storage.verification import verify_store
from tests.made_events import MadeCluster, entry_of, lived_through, slot
from tests.unit.storage.lmdb_files import flip, overwrite_page, page_numbers, tampering


@pytest.fixture
def cluster() -> MadeCluster:
    return MadeCluster()


def made(path: Path, cluster: MadeCluster, turns: int = 40) -> list[list[Durable]]:
    batches = lived_through(cluster, turns)
    store = open_store(path, cluster.owner())
    for batch in batches:
        store.commit(batch)
    store.commit([PutOwnState(Journal(77), False)])
    store.close()
    return batches


# --- copies -----------------------------------------------------------------------------------
def test_copy_is_whole_and_knows_that_it_is_one(tmp_path: Path, cluster: MadeCluster) -> None:
    batches = made(tmp_path / "store", cluster)
    copy_store(tmp_path / "store", tmp_path / "copies" / "one")
    assert verify_store(tmp_path / "copies" / "one", signatures=True).findings == ()
    assert [path.name for path in (tmp_path / "copies").iterdir()] == ["one"]
    copy = open_store(tmp_path / "copies" / "one", cluster.owner())
    saved = copy.saved()
    assert (saved.recovering, saved.newest_journal_own) == (True, 77)
    assert not copy.created
    assert copy.stats().events == len(batches)
    copy.close()
    original = open_store(tmp_path / "store", cluster.owner())
    assert original.saved().recovering is False
    assert original.saved().branches == saved.branches
    original.close()


def test_copy_under_writes(tmp_path: Path, cluster: MadeCluster) -> None:
    batches = lived_through(cluster, 600, entries=20)
    store = open_store(tmp_path / "store", cluster.owner(), map_bytes=1 << 20)
    for batch in batches[:200]:
        store.commit(batch)
    copied = threading.Event()
    said: list[dict[str, Any]] = []

    def copy() -> None:
        try:
            said.append(beside("backup", store.path, tmp_path / "copy"))
        finally:
            copied.set()

    copying = threading.Thread(daemon=True, target=copy)
    copying.start()
    committed = 200
    while not copied.is_set() and committed < len(batches):
        store.commit(batches[committed])
        committed += 1
    copying.join()
    assert said[0]["result"]["target"] == str(tmp_path / "copy")
    assert committed > 201
    assert store.stats().events == committed
    store.close()
    assert verify_store(tmp_path / "copy").findings == ()
    taken = open_store(tmp_path / "copy", cluster.owner())
    events = taken.stats().events
    assert 200 <= events <= committed
    for batch in batches[:events]:
        effect = batch[0]
        assert isinstance(effect, StoreEvent)
        assert taken.event(effect.event.id) == effect.event
    assert taken.saved().recovering
    taken.close()


def test_copy_never_replaces_anything(tmp_path: Path, cluster: MadeCluster) -> None:
    made(tmp_path / "store", cluster)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for target in (tmp_path / "full", tmp_path / "file", tmp_path / "store"):
        with pytest.raises(BackupFailed):
            copy_store(tmp_path / "store", target)
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    copy_store(tmp_path / "store", tmp_path / "empty")
    assert verify_store(tmp_path / "empty").findings == ()


def test_copy_of_nothing_fails(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing):
        copy_store(tmp_path / "none", tmp_path / "copy")
    said = beside("backup", tmp_path / "none", tmp_path / "copy")
    assert said["error"].startswith("StoreMissing: ")
    assert not (tmp_path / "copy").exists()
    assert not (tmp_path / "copy.partial").exists()


def test_left_over_of_a_copy_that_was_killed_is_no_hindrance(
    tmp_path: Path, cluster: MadeCluster
) -> None:
    made(tmp_path / "store", cluster)
    (tmp_path / "copy.partial").mkdir()
    (tmp_path / "copy.partial" / DATA_FILE).write_bytes(b"half")
    copy_store(tmp_path / "store", tmp_path / "copy")
    assert verify_store(tmp_path / "copy").findings == ()


def test_copy_into_a_place_that_cannot_be_written_fails(
    tmp_path: Path, cluster: MadeCluster
) -> None:
    made(tmp_path / "store", cluster)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(BackupFailed):
        copy_store(tmp_path / "store", tmp_path / "file" / "copy")


# --- broken structure ---------------------------------------------------------------------------
def test_damaged_store_is_set_aside_and_a_new_one_begun(
    tmp_path: Path, cluster: MadeCluster
) -> None:
    path = tmp_path / "store"
    for number in (1, 2):
        made(path, MadeCluster(), turns=300)
        damaged = (path / DATA_FILE).stat().st_size
        for page in page_numbers(path, 1):
            overwrite_page(path, page, bytes(PAGESIZE))
        with pytest.raises(StoreDamaged):
            open_store(path, cluster.owner())
        aside = set_aside(path)
        assert aside == tmp_path / f"store.aside-{number}"
        assert (aside / DATA_FILE).stat().st_size == damaged
        store = open_store(path, cluster.owner(), recovering=True)
        assert store.created
        assert store.saved().recovering
        store.close()
        set_aside(path).rename(tmp_path / f"unused-{number}")


def test_store_in_use_is_not_set_aside(tmp_path: Path, cluster: MadeCluster) -> None:
    store = open_store(tmp_path / "store", cluster.owner())
    with pytest.raises(StoreLocked):
        set_aside(tmp_path / "store")
    store.close()
    assert set_aside(tmp_path / "store").exists()


def test_only_so_many_are_set_aside(
    tmp_path: Path, cluster: MadeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quipu.storage.limits.SET_ASIDE_MAX", 1)
    for _ in range(2):
        open_store(tmp_path / "store", cluster.owner()).close()
        if not (tmp_path / "store.aside-1").exists():
            set_aside(tmp_path / "store")
    with pytest.raises(StoreError, match="1 stores lie"):
        set_aside(tmp_path / "store")
    assert (tmp_path / "store" / DATA_FILE).exists()


@pytest.mark.parametrize("size", [0, 1, 4096, 5000, 8192, 12_288, 40_000])
def test_cut_file_is_damage(tmp_path: Path, cluster: MadeCluster, size: int) -> None:
    """Never a SIGBUS: so in a process of its own."""
    made(tmp_path / "store", cluster)
    os.truncate(tmp_path / "store" / DATA_FILE, size)
    program = (
        "import sys; from pathlib import Path\n"
        "from quipu.storage.environment import StoreDamaged\n"
        "from quipu.storage.lmdb_store import open_store\n"
        "from tests.made_events import MadeCluster\n"
        "try: store = open_store(Path(sys.argv[1]), MadeCluster().owner())\n"
        "except StoreDamaged: sys.exit(7)\n"
        "sys.exit(8 if store.created else 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "store")], check=False)
    # An empty file is what a start leaves that was killed at once.
    assert done.returncode == (8 if size == 0 else 7)


LIVING = """
import sys
from pathlib import Path
from quipu.storage.environment import StoreDamaged
from quipu.storage.lmdb_store import open_store
from quipu.storage.store import StoreError
from tests.made_events import MadeCluster, lived_through
path, cluster = Path(sys.argv[1]), MadeCluster()
batches = lived_through(cluster, 300)
complaints = 0
try:
    store = open_store(path, cluster.owner(), notes_crashes=True)
    for batch in batches:
        event = batch[0].event
        try:
            held = store.event(event.id)
            assert held is None or held == event, "wrong bytes"
            complaints += held is None
        except StoreError:
            complaints += 1
    for number, identity in store.feed(0, 1000):
        assert identity == batches[number - 1][0].event.id, "wrong feed"
    store.commit([cluster.write(1)])
    for progress in store.scrub():
        complaints += progress.found
    store.close()
except StoreDamaged as error:
    sys.exit(7)
except StoreError as error:
    complaints += 1
sys.exit(8 if complaints else 0)
"""
FATAL_SIGNALS = (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS)


@pytest.mark.parametrize("seed", range(12))
def test_flipped_bits_in_pages_are_found(tmp_path: Path, seed: int) -> None:
    """By the walk over pages, always; by a node at work it may be with its life, but once only."""
    path = tmp_path / "store"
    made(path, MadeCluster(), turns=300)
    rng = random.Random(seed)
    data = bytearray((path / DATA_FILE).read_bytes())
    for page in page_numbers(path, 1 + seed % 2):
        at = page * PAGESIZE + rng.randrange(8, 80)
        data[at] ^= 1 << rng.randrange(8)
    (path / DATA_FILE).write_bytes(data)
    assert beside("scrub", path)["result"]["found"] > 0
    living = [sys.executable, "-c", LIVING, str(path)]
    done = subprocess.run(living, check=False, capture_output=True, text=True)
    if done.returncode in FATAL_SIGNALS:
        done = subprocess.run(living, check=False, capture_output=True, text=True)
        assert done.returncode == 7, done.stderr
    assert done.returncode in (7, 8), done.stderr


def test_crash_for_another_reason_costs_one_look(tmp_path: Path, cluster: MadeCluster) -> None:
    made(tmp_path, cluster)
    program = (
        "import os, sys; from pathlib import Path\n"
        "from quipu.storage.lmdb_store import open_store\n"
        "from tests.made_events import MadeCluster\n"
        "open_store(Path(sys.argv[1]), MadeCluster().owner(), notes_crashes=True)\n"
        "os.abort()\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGABRT
    assert (tmp_path / CRASH_FILE).stat().st_size > 0
    open_store(tmp_path, cluster.owner()).close()
    assert not (tmp_path / CRASH_FILE).exists()
    assert b"Abort" in (tmp_path / f"{CRASH_FILE}.last").read_bytes()


def test_notes_of_crashes_end_with_the_store(tmp_path: Path, cluster: MadeCluster) -> None:
    enabled = faulthandler.is_enabled()
    store = open_store(tmp_path, cluster.owner(), notes_crashes=True)
    assert faulthandler.is_enabled()
    store.close()
    assert (tmp_path / CRASH_FILE).stat().st_size == 0
    if enabled:  # pytest has it on
        faulthandler.enable(sys.__stderr__ or 2)


# --- verifying ------------------------------------------------------------------------------------
def test_sound_directory_is_fine(tmp_path: Path, cluster: MadeCluster) -> None:
    made(tmp_path / "store", cluster)
    before = {
        p.name: p.read_bytes() for p in (tmp_path / "store").iterdir() if p.name != "lock.mdb"
    }
    phases: list[str] = []
    result = verify_store(
        tmp_path / "store", lambda progress: phases.append(progress.phase), signatures=True
    )
    assert result.found == 0
    assert result.owner == cluster.owner()
    assert result.events == 40
    assert phases[0] == "pages"
    assert phases[-1] == "feed"
    after = {p.name: p.read_bytes() for p in (tmp_path / "store").iterdir() if p.name != "lock.mdb"}
    assert after == before


def test_directory_in_use_is_verified(tmp_path: Path, cluster: MadeCluster) -> None:
    batches = lived_through(cluster, 400, entries=10)
    store = open_store(tmp_path / "store", cluster.owner(), map_bytes=1 << 20)
    for batch in batches[:50]:
        store.commit(batch)
    line = [sys.executable, "-m", "quipu.storage", "scrub", str(tmp_path / "store")]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as verifying:
        committed = 50
        while verifying.poll() is None and committed < len(batches):
            store.commit(batches[committed])
            committed += 1
        assert verifying.stdout is not None
        told = json.loads(verifying.stdout.read().splitlines()[-1])["result"]
    store.close()
    assert verifying.returncode == 0, told
    assert told["found"] == 0
    assert told["events"] >= 50
    assert told["node_id"] == cluster.owner().node_id.hex()


# --- in a process of its own ----------------------------------------------------------------------
def beside(*arguments: str | Path) -> dict[str, Any]:
    """The last line of one that does this."""
    line = [sys.executable, "-m", "quipu.storage", *map(str, arguments)]
    done = subprocess.run(line, check=False, capture_output=True, text=True)
    last: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == ("error" in last), done.stderr
    return last


def test_process_says_how_far_it_is_and_what_it_found(
    tmp_path: Path,
    cluster: MadeCluster,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("quipu.storage.limits.REPORT_INTERVAL_S", 0)
    monkeypatch.setattr("quipu.storage.limits.BESIDE_NICE", 0)
    made(tmp_path / "store", cluster)
    flip(tmp_path / "store", "events", keys.slot_key(slot(1, 3)), -1)
    assert command.main(["scrub", "--signatures", str(tmp_path / "store")]) == 0
    *steps, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert {"phase": "events", "done": 40, "total": 40, "found": 1} in steps
    assert last["result"]["findings"][0]["place"] == "author 1 journal 1 seq 3"
    with pytest.raises(SystemExit) as usage:
        command.main(["scrub"])
    assert usage.value.code == 2


def test_no_more_findings_are_said_than_fit(
    tmp_path: Path, cluster: MadeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quipu.storage.limits.FINDINGS_SAID_MAX", 2)
    made(tmp_path, cluster)
    with tampering(tmp_path) as (txn, tables):
        txn.drop(tables.ids, delete=False)
    facts = verify_store(tmp_path).facts()
    assert (len(facts["findings"]), facts["found"] > 2) == (2, True)


def test_process_on_a_leash_ends_by_itself_and_with_who_holds_it(
    tmp_path: Path, cluster: MadeCluster
) -> None:
    made(tmp_path / "store", cluster)
    line = [sys.executable, "-m", "quipu.storage", "--leash", "scrub", str(tmp_path / "store")]
    with subprocess.Popen(line, stdin=PIPE, stdout=PIPE, stderr=PIPE) as working:
        assert working.stdout is not None
        assert working.stderr is not None
        assert b"result" in working.stdout.readlines()[-1]
        assert (working.wait(60), working.stderr.read()) == (0, b"")
    os.mkfifo(tmp_path / "store.fifo")  # opening it waits for ever
    program = (
        "import sys, quipu.storage.__main__ as work\n"
        "work.verify_store = lambda *given, **named: open(sys.argv[-1])\n"
        "work.main(sys.argv[1:])\n"
    )
    line = [sys.executable, "-c", program, "--leash", "scrub", str(tmp_path / "store.fifo")]
    with subprocess.Popen(line, stdin=PIPE) as waiting:
        assert waiting.stdin is not None
        assert waiting.poll() is None
        waiting.stdin.close()
        assert waiting.wait(60) == 1


def test_what_cannot_be_opened_is_a_finding(tmp_path: Path, cluster: MadeCluster) -> None:
    made(tmp_path, cluster)
    flip(tmp_path, "meta", b"node", -1)
    assert [finding.table for finding in verify_store(tmp_path).findings] == ["meta"]
    overwrite_page(tmp_path, 0, bytes(PAGESIZE))
    overwrite_page(tmp_path, 1, bytes(PAGESIZE))
    result = verify_store(tmp_path)
    assert [finding.table for finding in result.findings] == ["pages"]
    assert result.owner is None


def test_unknown_format_is_an_error_and_no_finding(tmp_path: Path, cluster: MadeCluster) -> None:
    made(tmp_path, cluster)
    newer = (FORMAT_NEWEST + 1).to_bytes(4, "big")
    with tampering(tmp_path) as (txn, tables):
        txn.put(b"format", guarded(b"format", newer), db=tables.meta)
    with pytest.raises(FormatTooNew):
        verify_store(tmp_path)


def test_directory_of_another_program_holds_no_store(tmp_path: Path) -> None:
    import lmdb

    lmdb.Environment(str(tmp_path)).close()
    with pytest.raises(StoreMissing):
        verify_store(tmp_path)


def test_store_that_was_never_claimed_is_none(tmp_path: Path, cluster: MadeCluster) -> None:
    made(tmp_path, cluster)
    with tampering(tmp_path) as (txn, tables):
        txn.drop(tables.meta, delete=False)
    with pytest.raises(StoreMissing):
        verify_store(tmp_path)
    with pytest.raises(StoreMissing):
        copy_store(tmp_path, tmp_path.with_name("copy"))


def test_large_events_are_verified(tmp_path: Path, cluster: MadeCluster) -> None:
    store = open_store(tmp_path, cluster.owner())
    store.commit([cluster.write(1, (), [entry_of("x" * 900_000)] * 4) for _ in range(3)])
    store.close()
    assert verify_store(tmp_path).findings == ()
