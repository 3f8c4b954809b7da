"""One event in every dump, and two dumps beside each other: without Spark, a file at a time."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quipu.dumps import limits
from quipu.dumps.buckets import bucket_of, differing
from quipu.dumps.manifest import BUCKETS_TABLE, Manifest, read_manifest

Row = dict[str, Any]


class Difference(NamedTuple):
    """What two dumps do not say alike of one event: "missing" where one of them lacks it."""

    event: str
    one: str
    other: str


def _matching(folder: Path, found: Manifest, table: str, name: str, wanted: Any) -> list[Row]:
    rows: list[Row] = []
    for file in found.names(table):
        for batch in pq.ParquetFile(folder / file).iter_batches(limits.READ_ROWS):
            column = batch.column(name)
            if isinstance(wanted, bytes) and len(wanted) < column.type.byte_width:
                texts = pc.binary_slice(column.cast(pa.binary()), 0, len(wanted))
                rows += batch.filter(pc.equal(texts, wanted)).to_pylist()
            else:
                rows += batch.filter(pc.equal(column, wanted)).to_pylist()
    return rows


def explain(start: bytes, folders: Sequence[Path]) -> Iterator[str]:
    """Lines about the events whose ids begin so; of each dump where it is, who names it, and who
    has signed for it or for what is above it. Raises what `read_manifest` does."""
    for folder in folders:
        found = read_manifest(folder)
        events = _matching(folder, found, "events", "id", start)
        if not events:
            yield f"{folder}: does not hold it"
        for event in events:
            yield from _lines(folder, found, event)


def _lines(folder: Path, found: Manifest, event: Row) -> Iterator[str]:
    slot = f"author {event['author_no']} journal {event['journal']} seq {event['seq']}"
    position = f" at {event['feed_pos']}" if event["feed_pos"] is not None else ""
    yield f"{folder}: {event['id'].hex()} {slot}, {event['state']}{position}"
    for name, far, near in (("names", "parent", "child"), ("is named by", "child", "parent")):
        for edge in _matching(folder, found, "edges", near, event["id"]):
            yield f"  {name} {edge[far].hex()}{' (prev)' if edge['ordinal'] == 0 else ''}"
    signers: dict[int, int] = {}
    for row in _matching(folder, found, "receipts", "journal", event["journal"]):
        if row["author_no"] == event["author_no"] and row["seq"] >= event["seq"]:
            first = signers.get(row["signer_no"])
            signers[row["signer_no"]] = (
                row["number"] if first is None else min(first, row["number"])
            )
    for signer_no, number in sorted(signers.items()):
        yield f"  signed for by node {signer_no}, first with receipt {number}"


def diff(one: Path, other: Path) -> list[Difference]:
    """Events that one of them lacks, or that are not Read in both. Where the digests of a part are
    alike, that part is Read alike and is not looked at, but for what is Unread."""
    manifests = [read_manifest(folder) for folder in (one, other)]
    digests = [
        (folder / name).read_bytes()
        for folder, found in zip((one, other), manifests, strict=True)
        for name in found.names(BUCKETS_TABLE)
    ]
    parts = set(differing(digests))
    states = [
        _states(folder, found, parts) for folder, found in zip((one, other), manifests, strict=True)
    ]
    said = [
        Difference(i.hex(), *(s.get(i, "missing") for s in states))
        for i in {*states[0], *states[1]}
    ]
    return sorted(found for found in said if found.one != found.other)


def _states(folder: Path, found: Manifest, parts: set[int]) -> dict[bytes, str]:
    states: dict[bytes, str] = {}
    for file in found.names("events"):
        rows = pq.read_table(folder / file, columns=["id", "state"])
        pairs = zip(*[column.to_pylist() for column in rows.columns], strict=True)
        states.update((i, state) for i, state in pairs if state != "read" or bucket_of(i) in parts)
    return states
