"""The documents of each copy, followed by the offline verifier: small, so without Spark."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from quipu.dumps.checking import CheckedDump
from quipu.spark_analytics.findings import Finding
from quipu.spark_analytics.reading import Copy
from quipu.verify.rosters import FORCED_VERSION, Lineage, read_genesis
from quipu.verify.values import (
    DOCUMENT_BYTES_MAX,
    MEMBERS_MAX,
    VerificationFailed,
    array_of,
    decoded,
    list_of,
    need,
)

Row = dict[str, object]
GENESIS_EPOCH = 1


def node_names(dumps: Sequence[CheckedDump]) -> dict[str, str]:
    """Node id -> name, as far as the dumps can be read."""
    names: dict[str, str] = {}
    for dump in dumps:
        for row in _rows(dump, "members"):
            node_id, name = row["node_id"], row["name"]
            assert isinstance(node_id, bytes)
            names[node_id.hex()] = str(name)
    return names


def names_by_number(dumps: Sequence[CheckedDump]) -> dict[int, str]:
    return {
        int(str(row["node_no"])): str(row["name"])
        for dump in dumps
        for row in _rows(dump, "members")
    }


def _rows(dump: CheckedDump, table: str) -> list[Row]:
    broken = {problem.file for problem in dump.problems}
    files = dump.manifest.names(table) if dump.manifest else []
    rows: list[Row] = []
    for name in files:
        if dump.place.file(name) not in broken:
            rows += pq.read_table(pa.BufferReader(dump.place.read(name))).to_pylist()
    return rows


def epochs(dumps: Sequence[CheckedDump]) -> list[Row]:
    """Every epoch that a document tells of, in order; what is wrong with one is for `check`."""
    said: dict[int, Row] = {}
    for dump in dumps:
        for row in _rows(dump, "config"):
            number, document, seals = row["epoch"], row["document"], row["seals"]
            assert isinstance(number, int)
            assert isinstance(document, bytes)
            assert isinstance(seals, list)
            try:
                said.setdefault(number, _epoch(number, document, len(seals)))
            except VerificationFailed:
                continue
    return [said[number] for number in sorted(said)]


def _epoch(number: int, document: bytes, seals: int) -> Row:
    value = decoded(document, DOCUMENT_BYTES_MAX, "document")
    if number == GENESIS_EPOCH:
        policy, members = array_of(value, 7, "genesis")[3:5]
        named = [array_of(row, 3, "member")[1] for row in list_of(members, MEMBERS_MAX, "members")]
        is_forced = False
    else:
        version, *_, policy, members, _, _, _ = array_of(value, 10, "epoch document")
        named = [array_of(row, 4, "member")[2] for row in list_of(members, MEMBERS_MAX, "members")]
        is_forced = version == FORCED_VERSION
    return {
        "epoch": number,
        "members": " ".join(map(str, named)),
        "policy": str(policy),
        "seals": seals,
        "forced": is_forced,
    }


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
