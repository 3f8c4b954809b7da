"""What the format `quipu` reads, and what it refuses before it parses. No Spark begins."""

from pathlib import Path

import pyarrow as pa
import pytest

from quipu.spark_analytics.source import (
    DumpFilePart,
    DumpReader,
    NodeReader,
    NotBelieved,
    QuipuDataSource,
)
from quipu.testing import LocalNode
from quipu.verify.values import VerificationFailed, tagged
from tests.dump_making import dumped, grown
from tests.made_events import MadeCluster


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    cluster = MadeCluster()
    dumped(grown(tmp_path, cluster, 7), tmp_path / "dump", cluster)
    return tmp_path / "dump"


def rows_of(reader: DumpReader) -> list[dict[str, object]]:
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    return list(pa.Table.from_batches(batches).to_pylist())


def test_a_dump_is_read_table_by_table(dump: Path) -> None:
    events = rows_of(DumpReader(dump, "events"))
    assert len(events) == 7
    named = {row["child"] for row in rows_of(DumpReader(dump, "edges"))}
    assert named <= {row["id"] for row in events}
    empty = DumpReader(dump, "evidence")
    assert [list(empty.read(part)) for part in empty.partitions()] == [[]]
    assert list(DumpReader(dump, "journal").read(None)) == []


def test_a_changed_file_is_not_parsed(dump: Path) -> None:
    reader = DumpReader(dump, "events")
    first, *_ = reader.partitions()
    assert isinstance(first, DumpFilePart)
    path = dump / first.name
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(NotBelieved, match="is not the file that was signed"):
        list(reader.read(first))
    with pytest.raises(NotBelieved, match="file-changed"):
        reader.partitions()
    (dump / "manifest.json").unlink()
    with pytest.raises(NotBelieved, match="there is no manifest"):
        reader.partitions()


def test_options_are_checked(dump: Path) -> None:
    with pytest.raises(ValueError, match="no table 'event'"):
        QuipuDataSource({"path": str(dump), "table": "event"}).schema()
    node = {"path": "http://127.0.0.1:1/"}
    source = QuipuDataSource(node)
    with pytest.raises(ValueError, match="which cluster"):
        source.reader(source.schema())
    source = QuipuDataSource({**node, "table": "edges"})
    with pytest.raises(ValueError, match="a node gives entries"):
        source.reader(source.schema())


class Liar(NodeReader):
    """Gives for every entry the proof of one."""

    def _get(self, target: str) -> bytes:
        if target.endswith("/proof"):
            target = f"/v1/entries/{self.other}/proof"
        return super()._get(target)

    other = ""


def test_a_node_is_believed_by_its_proofs(quipu_node: LocalNode) -> None:
    client = quipu_node.client
    receipts = [client.submit({"order": number}, stream="orders", wait="read") for number in (1, 2)]
    cluster_id = tagged("genesis", quipu_node.genesis)
    rows = list(NodeReader(quipu_node.url, cluster_id).read(None))
    assert [f"{row[0].hex()}:{row[2]}" for row in rows] == [receipt.id for receipt in receipts]
    assert [(row[3], row[-1]) for row in rows] == [
        ("orders", b'{"order":1}'),
        ("orders", b'{"order":2}'),
    ]
    with pytest.raises(VerificationFailed):
        list(NodeReader(quipu_node.url, bytes(32)).read(None))
    liar = Liar(quipu_node.url, cluster_id)
    liar.other = receipts[0].id
    with pytest.raises(NotBelieved, match="another entry's proof"):
        list(liar.read(None))
