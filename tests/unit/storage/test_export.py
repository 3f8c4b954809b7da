"""Dumps of a real store: what is in them, growing, resuming, refusing."""

import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from quipu.dumps import limits
from quipu.dumps.checking import check_contents, check_files
from quipu.dumps.manifest import (
    NOTES_FILE,
    UNSIGNED_FILE,
    Manifest,
    finish,
    read_manifest,
    to_bytes,
)
from quipu.dumps.tables import TABLES, eid_of
from quipu.ledger.effects import (
    AppendFeed,
    DropEvents,
    DropFeed,
    DropInvs,
    EraseEntry,
    PutBranch,
    PutOwnState,
)
from quipu.ledger.merkle import leaf_hash
from quipu.ledger.words import EpochNo, EventId, InvNumber, Journal, NodeNo, Seq
from quipu.storage import export
from quipu.storage.export import ExportOrder, export_store
from quipu.storage.export_notes import ExportRefused
from quipu.storage.lmdb_store import open_store
from quipu.storage.store import Kept, StoreCorrupt
from tests.dump_making import dumped, grown
from tests.made_events import MadeCluster, branch_of, entry_of, lived_through


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name in read_manifest(folder).names(table):
        found += pq.read_table(folder / name).to_pylist()
    return found


def sound(folder: Path) -> Manifest:
    checked = check_files(folder)
    assert checked.problems == []
    assert check_contents(checked, signatures=True) == []
    assert checked.manifest is not None
    return checked.manifest


def test_everything_that_a_store_holds_is_in_it(tmp_path: Path) -> None:
    cluster, target = MadeCluster(), tmp_path / "dump"
    done = dumped(grown(tmp_path, cluster, 12, entries=3), target, cluster, "with data")
    manifest = sound(target)
    assert (done["events"], done["read"], manifest.read) == (12, 11, 11)
    events = rows(target, "events")
    metas = cluster.metas
    assert {event["id"] for event in events} == set(metas)
    assert [event["feed_pos"] for event in events] == [*range(1, 12), None]
    assert [event["state"] for event in events] == ["read"] * 11 + ["unread"]
    for event in events:
        meta = metas[event["id"]]
        place = (event["author_no"], event["journal"], event["seq"], event["branch"])
        assert place == tuple(meta.slot)
        assert (event["depth"], event["hlc"], event["prev"]) == (meta.depth, meta.hlc, meta.prev)
    edges = {(edge["child"], edge["parent"]) for edge in rows(target, "edges")}
    named = {(i, p) for i, m in metas.items() for p in (m.prev, *m.parents)}
    assert edges == {(i, p) for i, p in named if p in metas}
    entries = rows(target, "entries")
    assert len(entries) == 36
    assert entries[0]["data"] == b"turn 0 entry 0"
    assert {entry["stream"] for entry in entries} == {"default"}
    assert len(rows(target, "invs")) == len(rows(target, "receipts")) == 12
    assert [m["name"] for m in rows(target, "members")] == ["n1", "n2", "n3"]
    assert [m["confirms"] for m in rows(target, "members")] == [1, 1, 1]
    assert manifest.absent == ("clients", "executed", "refused", "results")
    assert rows(target, "journal") == []  # this store has seen no log
    assert {file.table for file in manifest.files} | set(manifest.absent) == {*TABLES, "buckets"}


def test_a_later_dump_adds_and_keeps_what_is_there(tmp_path: Path) -> None:
    cluster, target = MadeCluster(), tmp_path / "dump"
    store = grown(tmp_path, cluster, 8)
    dumped(store, target, cluster)
    first = sound(target)
    kept = {n: (target / n).stat().st_ino for n in first.names("events") if "feed" in n}
    more = grown(tmp_path, cluster, 0)
    opened = open_store(more, cluster.owner())
    opened.commit([cluster.write(2), cluster.inv(2, 900, [])])
    opened.close()
    done = dumped(more, target, cluster)
    second = sound(target)
    assert (second.number, second.previous) == (2, first.hash.hex())
    assert (second.feed_from, done["added"]) == (first.feed_upto + 1, 0)
    assert all((target / n).stat().st_ino == inode for n, inode in kept.items())
    assert next(f for f in first.files if f.table == "invs") in second.files
    assert len(rows(target, "invs")) == 9


def test_an_old_receipt_that_came_late_is_not_left_out(tmp_path: Path) -> None:
    cluster, target = MadeCluster(), tmp_path / "dump"
    store = grown(tmp_path, cluster, 8)
    dumped(store, target, cluster)
    opened = open_store(store, cluster.owner())
    opened.commit([cluster.inv(1, 2, [cluster.head(1) or pytest.fail("no head")])])
    opened.close()
    dumped(store, target, cluster)
    sound(target)
    assert sorted(i["number"] for i in rows(target, "invs") if i["signer_no"] == 1) == [1, 2, 4, 7]


def pruned(store: Path, cluster: MadeCluster, feed_upto: int) -> None:
    """The first event of each cord goes; the second one stays, as the tip of a cut."""
    opened = open_store(store, cluster.owner())
    durable: list[Kept] = []
    for record in opened.saved().branches:
        record.cut_seq, record.gone_upto = Seq(2), Seq(1)
        durable += [DropEvents(record.key, Seq(1), Seq(1)), PutBranch(record)]
    durable += [DropFeed(feed_upto), PutOwnState(Journal(0), False, EpochNo(2))]
    durable.append(DropInvs(NodeNo(1), InvNumber(4)))
    opened.commit(durable)
    opened.close()


def test_a_pruned_store_gives_what_it_has_and_says_where_it_begins(tmp_path: Path) -> None:
    cluster, target = MadeCluster(), tmp_path / "dump"
    store = grown(tmp_path, cluster, 12)
    pruned(store, cluster, 6)
    done = dumped(store, target, cluster)
    manifest = sound(target)
    assert (manifest.history_from, manifest.feed_first, manifest.feed_from) == (2, 7, 7)
    assert (done["read"], done["events"], done["added"]) == (8, 9, 5)
    events = rows(target, "events")
    assert sorted(e["seq"] for e in events if e["feed_pos"] is None) == [2, 2, 2, 4]
    assert {e["state"] for e in events if e["seq"] == 2} == {"read"}
    assert len({e["id"] for e in events}) == 9
    opened = open_store(store, cluster.owner())
    waiting = next(e for e in events if e["state"] == "unread")
    opened.commit([AppendFeed((EventId(waiting["id"]),))])
    (record,) = (r for r in opened.saved().branches if r.key.author_no == waiting["author_no"])
    record.read_seq, record.read_id = Seq(waiting["seq"]), EventId(waiting["id"])
    opened.commit([PutBranch(record)])
    opened.close()
    assert dumped(store, target, cluster)["added"] == 1
    assert (sound(target).read, sound(target).feed_first) == (9, 7)


def test_an_archive_keeps_what_its_node_lets_go(tmp_path: Path) -> None:
    cluster, target = MadeCluster(), tmp_path / "dump"
    store = grown(tmp_path, cluster, 12)
    dumped(store, target, cluster)
    pruned(store, cluster, 6)
    dumped(store, target, cluster)
    manifest = sound(target)
    assert (manifest.number, manifest.history_from, manifest.read) == (2, 0, 11)
    assert "history_from" not in (target / "manifest.json").read_text()
    assert len(rows(target, "invs")) == 12
    early = tmp_path / "early"
    shutil.copytree(target, early)
    manifest = read_manifest(target)
    behind = replace(manifest, feed_upto=3, signature="")
    (early / UNSIGNED_FILE).write_bytes(to_bytes(behind))
    finish(early, cluster.keys[0].sign)
    with pytest.raises(ExportRefused, match="was pruned"):
        dumped(store, early, cluster)


def test_of_an_erased_entry_the_leaf_hash_is_in_it(tmp_path: Path) -> None:
    cluster, target = MadeCluster(), tmp_path / "dump"
    store = grown(tmp_path, cluster, 3, entries=2)
    opened = open_store(store, cluster.owner())
    slot = next(iter(cluster.metas.values())).slot
    opened.commit([EraseEntry(slot, 1)])
    opened.close()
    dumped(store, target, cluster, "with data")
    sound(target)
    first, erased = rows(target, "entries")[:2]
    assert (first["data"], first["stream"]) == (b"turn 0 entry 0", "default")
    assert (erased["data"], erased["stream"], erased["data_bytes"]) == (b"", "", 0)
    assert erased["leaf_hash"] == leaf_hash(entry_of("turn 0 entry 1"))


def test_an_interrupted_one_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SEGMENT_EVENTS_MAX", 4)
    cluster, target = MadeCluster(), tmp_path / "dump"
    store = grown(tmp_path, cluster, 15)
    with monkeypatch.context() as broken:
        broken.setattr(export, "write_buckets", _no_room)
        with pytest.raises(OSError, match="no room"):
            export_store(ExportOrder(store, target, cluster.genesis))
    finished = {p.name: p.stat().st_ino for p in (target / "events").glob("feed-*")}
    assert len(finished) == 4
    (target / "events" / "feed-000000000009-000000000012.parquet").write_bytes(b"torn")
    with (target / NOTES_FILE).open("a") as notes:
        notes.write('{"upto": 99, "fi')
    assert check_files(target).problems[0].flaw == "unfinished"
    dumped(store, target, cluster)
    sound(target)
    again = {p.name: p.stat().st_ino for p in (target / "events").glob("feed-*")}
    assert {n for n in again if finished.get(n) == again[n]} >= {
        "feed-000000000001-000000000004.parquet",
        "feed-000000000005-000000000008.parquet",
    }
    assert not (target / NOTES_FILE).exists()
    assert not (target / UNSIGNED_FILE).exists()


def _no_room(*_: object) -> None:
    raise OSError("no room")


def test_a_killed_process_leaves_nothing_that_counts(tmp_path: Path) -> None:
    cluster, target = MadeCluster(), tmp_path / "dump"
    store = grown(tmp_path, cluster, 600)
    (tmp_path / "genesis").write_bytes(cluster.genesis)
    command = [sys.executable, "-m", "quipu.storage", "export", str(store), str(target)]
    process = subprocess.Popen([*command, "--genesis", str(tmp_path / "genesis")])
    while not target.exists() and process.poll() is None:
        time.sleep(0)
    process.kill()
    process.wait()
    assert check_files(target).manifest is None
    dumped(store, target, cluster)
    assert sound(target).read == 599


def test_beside_a_writer_it_shows_one_commit(tmp_path: Path) -> None:
    cluster, target = MadeCluster(), tmp_path / "dump"
    store = open_store(tmp_path / "store", cluster.owner())
    batches = lived_through(cluster, 40)
    for batch in batches[:20]:
        store.commit(batch)
    (tmp_path / "genesis").write_bytes(cluster.genesis)
    command = [sys.executable, "-m", "quipu.storage", "export", str(tmp_path / "store")]
    process = subprocess.Popen([*command, str(target), "--genesis", str(tmp_path / "genesis")])
    for batch in batches[20:]:
        store.commit(batch)
    assert process.wait() == 0
    store.close()
    finish(target, cluster.keys[0].sign)
    manifest = sound(target)
    assert 20 <= manifest.events <= 40
    assert manifest.events == manifest.read + 1


def test_what_is_no_dump_of_this_node_is_left_alone(tmp_path: Path) -> None:
    cluster = MadeCluster()
    store = grown(tmp_path, cluster, 4)
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "letters.txt").write_text("mine")
    with pytest.raises(ExportRefused, match="no dump"):
        dumped(store, taken, cluster)
    dumped(store, tmp_path / "dump", cluster)
    with pytest.raises(ExportRefused, match="entries 'described'"):
        dumped(store, tmp_path / "dump", cluster, "none")
    other = MadeCluster(salt=bytes([1]) * 16)
    foreign = grown(tmp_path / "other", other, 4)
    with pytest.raises(ExportRefused, match="dump of node"):
        dumped(foreign, tmp_path / "dump", other)
    with pytest.raises(ExportRefused, match="genesis"):
        export_store(ExportOrder(store, tmp_path / "new", other.genesis))
    shutil.copytree(tmp_path / "dump", tmp_path / "changed")
    file = tmp_path / "changed" / "manifest.json"
    file.write_bytes(file.read_bytes().replace(b'"read":3', b'"read":4'))
    with pytest.raises(ExportRefused, match="not signed"):
        dumped(store, tmp_path / "changed", cluster)


def test_an_unfinished_one_of_another_node_is_left_alone(tmp_path: Path) -> None:
    cluster, other = MadeCluster(), MadeCluster(salt=bytes([1]) * 16)
    export_store(ExportOrder(grown(tmp_path, cluster, 3), tmp_path / "dump", cluster.genesis))
    foreign = grown(tmp_path / "other", other, 3)
    with pytest.raises(ExportRefused, match="unfinished"):
        export_store(ExportOrder(foreign, tmp_path / "dump", other.genesis))


def test_damage_ends_it_by_name(tmp_path: Path) -> None:
    cluster = MadeCluster()
    store = grown(tmp_path, cluster, 6)
    data = (store / "data.mdb").read_bytes()
    (store / "data.mdb").write_bytes(data.replace(b"turn 3 entry 0", b"turn 3 entry X"))
    with pytest.raises(StoreCorrupt, match="events: author"):
        dumped(store, tmp_path / "dump", cluster)


def test_a_fork_is_in_it_with_its_branch(tmp_path: Path) -> None:
    cluster, target = MadeCluster(), tmp_path / "dump"
    store = open_store(tmp_path / "store", cluster.owner())
    first = cluster.write(1)
    one, two = cluster.write(1), cluster.fork(first.meta, 1, 1, "other")
    store.commit([first, one, two, branch_of(one.meta)])
    store.commit([branch_of(two.meta, base_seq=1)])
    store.close()
    dumped(tmp_path / "store", target, cluster)
    sound(target)
    assert [(e["seq"], e["branch"]) for e in rows(target, "events")] == [(1, 0), (2, 0), (2, 1)]


def test_eid_is_the_first_63_bits() -> None:
    assert eid_of(b"\xff" * 32) == 2**63 - 1
    assert eid_of(bytes(7) + b"\x02" + bytes(24)) == 1
