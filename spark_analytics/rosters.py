"""The documents of each copy, followed by the offline verifier: small, so without Spark."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from quipu.dumps.checking import CheckedDump
from quipu.spark_analytics.findings import Finding
from quipu.spark_analytics.reading import Copy
from quipu.verify.rosters import FORCED_VERSION, Lineage, read_genesis
from quipu.verify.values import VerificationFailed, need

Row = dict[str, object]


def node_names(dumps: Sequence[CheckedDump]) -> dict[str, str]:
    """Node id -> name, as far as the dumps can be read."""
    names: dict[str, str] = {}
    for dump in dumps:
        for row in _rows(dump, "members"):
            node_id, name = row["node_id"], row["name"]
            assert isinstance(node_id, bytes)
            names[node_id.hex()] = str(name)
    return names


def _rows(dump: CheckedDump, table: str) -> list[Row]:
    broken = {problem.file for problem in dump.problems}
    files = dump.manifest.names(table) if dump.manifest else []
    rows: list[Row] = []
    for name in files:
        if dump.place.file(name) not in broken:
            rows += pq.read_table(pa.BufferReader(dump.place.read(name))).to_pylist()
    return rows


def forced_epochs(dumps: Sequence[CheckedDump]) -> list[int]:
    """Opened by an operator's word, as any copy says: it is no fault, and it stays on record."""
    found: dict[int, None] = {}
    for dump in dumps:
        for row in _rows(dump, "config"):
            epoch, document = row["epoch"], row["document"]
            assert isinstance(epoch, int)
            assert isinstance(document, bytes)
            if epoch > 1 and document[1:2] == bytes([FORCED_VERSION]):
                found[epoch] = None
    return sorted(found)


def check(copies: Sequence[Copy], dumps: Sequence[CheckedDump]) -> Iterator[Finding]:
    of_place = {dump.place: dump for dump in dumps}
    documents: dict[object, object] = {}
    for copy in copies:
        dump = of_place[copy.place]
        config = sorted(_rows(dump, "config"), key=lambda row: str(row["epoch"]))
        for row in config:
            if documents.setdefault(row["epoch"], row["document"]) != row["document"]:
                yield Finding("config.chain", copy.name, str(row["epoch"]), "differs among copies")
        try:
            expected = _followed(config, copy.manifest.cluster_id)
        except VerificationFailed as failure:
            yield Finding("config.chain", copy.name, "documents", str(failure))
            continue
        members = {
            (row["epoch"], row["node_no"], row["node_id"], row["confirms"])
            for row in _rows(dump, "members")
        }
        for epoch, number, _, _ in sorted(members ^ expected, key=str):
            yield Finding(
                "config.members", copy.name, f"{epoch}/{number}", "is not in the document"
            )


def _followed(config: list[Row], cluster_id: str) -> set[tuple[object, ...]]:
    """The members that the documents name."""
    need(bool(config), "there is no genesis")
    ordered = sorted(config, key=lambda row: int(str(row["epoch"])))
    genesis = ordered[0]["document"]
    assert isinstance(genesis, bytes)
    found, _, first = read_genesis(genesis)
    need(found.hex() == cluster_id, "the genesis is of another cluster")
    lineage = Lineage(found, first)
    for row in ordered[1:]:
        lineage.follow([row["document"], row["seals"]])
    return {
        (number, member.number, member.node_id, epoch.confirms)
        for number, epoch in lineage.epochs.items()
        for member in epoch.members.values()
    }
