"""One event over several dumps, and what two dumps do not hold alike."""

import shutil
from pathlib import Path

from quipu.dumps.tracing import diff, explain
from quipu.storage.lmdb_store import open_store
from tests.dump_making import dumped, grown
from tests.made_events import MadeCluster, branch_of


def test_explain_tells_what_each_dump_says(tmp_path: Path) -> None:
    cluster = MadeCluster()
    store = grown(tmp_path, cluster, 6)
    dumped(store, tmp_path / "a", cluster)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    head = cluster.head(1)
    assert head is not None
    lines = list(explain(head.id[:4], [tmp_path / "a", tmp_path / "b"]))
    (first,) = [line for line in lines if line.startswith(f"{tmp_path / 'a'}: ")]
    assert f"{head.id.hex()} author 1 journal 1 seq {head.seq}, read at " in first
    assert f"  names {head.prev.hex()} (prev)" in lines
    assert any(line.startswith("  signed for by node 1, first with receipt ") for line in lines)
    assert any(line.startswith("  is named by ") for line in lines)
    (lost,) = explain(bytes(4), [tmp_path / "a"])
    assert lost.endswith("does not hold it")


def test_diff_names_what_one_lacks(tmp_path: Path) -> None:
    cluster = MadeCluster()
    store = grown(tmp_path, cluster, 7)
    dumped(store, tmp_path / "older", cluster)
    more = cluster.write(2)
    opened = open_store(store, cluster.owner())
    head = cluster.head(2)
    assert head is not None
    opened.commit([more, branch_of(more.meta, read_seq=head.seq - 1)])
    opened.close()
    dumped(store, tmp_path / "newer", cluster)
    assert diff(tmp_path / "older", tmp_path / "older") == []
    assert diff(tmp_path / "older", tmp_path / "newer") == [
        (more.event.id.hex(), "missing", "unread")
    ]
