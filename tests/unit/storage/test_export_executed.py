"""What an executor keeps, in a dump."""

from hashlib import sha256
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from quipu.dumps.checking import check_contents, check_files
from quipu.dumps.manifest import finish, read_manifest
from quipu.dumps.outcomes import digest_of
from quipu.storage import limits
from quipu.storage.executors.acl import EVERYTHING, encode_acl
from quipu.storage.executors.request import AddClient, LogIndex, Ordered, Read, Request
from quipu.storage.executors.sqlite_executor import SqliteExecutor
from quipu.storage.export import ExportOrder, export_store
from quipu.storage.export_executed import executed_pieces
from quipu.storage.export_notes import ExportRefused
from tests.dump_making import grown
from tests.executing import spoken
from tests.made_events import MadeCluster

SAID = (
    ("CREATE TABLE stock (item TEXT PRIMARY KEY, n INT)",),
    (("INSERT INTO stock VALUES (?, ?)", "nut", 7), "SELECT n, 1.5, NULL, x'00ff' FROM stock"),
    (("INSERT INTO stock VALUES (?, ?)", "nut", 8),),  # not unique
)


def executed(folder: Path, cluster_id: bytes) -> None:
    """One client, three requests; it holds the first result."""
    executor = SqliteExecutor(folder, cluster_id)
    commands: list[AddClient | Request | Read] = [AddClient(1, encode_acl(EVERYTHING))]
    commands += [Request(1, at, tuple(map(spoken, said))) for at, said in enumerate(SAID, 1)]
    commands.append(Read(1, 1, 1))
    ordered = [Ordered(LogIndex(at), command) for at, command in enumerate(commands, 1)]
    executor.apply(ordered, LogIndex(70))
    executor.close()


def test_clients_results_and_states_are_in_the_dump(tmp_path: Path) -> None:
    cluster, target, folder = MadeCluster(), tmp_path / "dump", tmp_path / "executor"
    executed(folder, cluster.owner().cluster_id)
    store = grown(tmp_path, cluster, 3)
    export_store(ExportOrder(store, target, cluster.genesis, executor=folder))
    finish(target, cluster.keys[0].sign)
    checked = check_files(target)
    assert checked.problems + check_contents(checked, signatures=True) == []
    manifest = read_manifest(target)
    assert manifest.absent == ("refused",)

    def rows(table: str) -> list[dict[str, object]]:
        return [
            r for name in manifest.names(table) for r in pq.read_table(target / name).to_pylist()
        ]

    assert rows("clients") == [
        {"client_id": 1, "key": None, "watermark": 3, "released": 1, "ended": False}
    ]
    results = rows("results")
    assert [(row["client_id"], row["message_id"]) for row in results] == [(1, 2), (1, 3)]
    for row in results:
        assert isinstance(row["result"], bytes)
        assert digest_of(row["result"]) == row["digest"]
    assert [row["log_index"] for row in rows("executed")] == [64, 70]
    assert digest_of(b"\xc0") is digest_of(b"") is None


def test_a_database_of_another_cluster_is_refused(tmp_path: Path) -> None:
    executed(tmp_path, sha256(b"another").digest())
    with pytest.raises(ExportRefused, match="another cluster"):
        list(executed_pieces(tmp_path, bytes(32)))


def test_many_results_go_into_several_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executed(tmp_path, bytes(32))
    monkeypatch.setattr(limits, "EXPORT_RESULTS_BYTES_MAX", 1)
    pieces = [piece for piece in executed_pieces(tmp_path, bytes(32)) if piece.table == "results"]
    assert [(piece.number, len(piece.rows)) for piece in pieces] == [(0, 1), (1, 1), (2, 0)]
