"""Dumps of three nodes with the same large ledger, made fast.

One store is filled with events that nobody signed, each on the newest of another author, so that
the DAG is as deep as it has events; the node's own exporter dumps it. The other copies are the same
files under manifests of their own; where they are to differ the last lacks the newest hundredth.
What this skips: signatures, signed receipts (they are rows alone), feeds in different orders.
"""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.store_start import AUTHORS, START_MS, fill
from quipu.dumps.buckets import bucket_digests
from quipu.dumps.manifest import (
    BUCKETS_TABLE,
    MANIFEST_FILE,
    DumpFile,
    Manifest,
    finish,
    signed,
    to_bytes,
)
from quipu.dumps.segments import write_buckets, write_rows, write_table
from quipu.dumps.tables import eid_of
from quipu.ledger import epochs, signing
from quipu.ledger.canonical import encode
from quipu.storage.export import ExportOrder, export_store
from quipu.storage.store import Owner

NODES = 3
KEYS = tuple(signing.KeyPair.from_seed(bytes([number]) * 32) for number in range(1, NODES + 1))
GENESIS = encode(
    epochs.Genesis(
        1,
        "bench",
        START_MS,
        "majority",
        [epochs.Founder(key.node_id, f"n{no}", ["member"]) for no, key in enumerate(KEYS, 1)],
        bytes(16),
        [],
    )
)
OWNER = Owner(epochs.cluster_id_of(GENESIS), KEYS[0].node_id)
RECEIPT_EVERY = 1_000  # events of a cord
TAIL_SHARE = 100  # a hundredth of the ledger has not come to the third copy where they differ
BY_EVENT = {"events": "eid", "edges": "ceid", "entries": "eid", "receipts": "eid"}


class Exported(NamedTuple):
    folder: Path
    manifest: Manifest
    seconds: float
    cpu_s: float


def exported(folder: Path, events: int, entries: int = 1) -> Exported:
    """One dump of one store, signed, and what the export took."""
    store, target = folder / f"store-{events}-{entries}", folder / f"dump-{events}-{entries}"
    fill(store, events - events % AUTHORS, OWNER, entries)
    began, cpu = time.monotonic(), time.process_time()
    export_store(ExportOrder(store, target, GENESIS))
    manifest = finish(target, KEYS[0].sign)
    return Exported(target, manifest, time.monotonic() - began, time.process_time() - cpu)


def three_dumps(one: Exported, folder: Path, *, alike: bool) -> list[Path]:
    """All with receipts of all nodes."""
    receipts = _with_receipts(one, folder / "receipts")
    paths = []
    for number, key in enumerate(KEYS, start=1):
        target = folder / f"n{number}"
        files = [_linked(one.folder, target, f) for f in one.manifest.files if f.rows]
        files = [f for f in files if f.table not in {"invs", "receipts"}]
        files.append(_linked(folder / "receipts", target, receipts))
        made = replace(one.manifest, node_id=key.node_id.hex(), files=tuple(files))
        if number == NODES and not alike:
            made = _without_tail(made, target)
        (target / MANIFEST_FILE).write_bytes(to_bytes(signed(made, key.sign)))
        paths.append(target)
    return paths


def _linked(source: Path, target: Path, file: DumpFile) -> DumpFile:
    (target / file.name).parent.mkdir(parents=True, exist_ok=True)
    os.link(source / file.name, target / file.name)
    return file


def _with_receipts(one: Exported, folder: Path) -> DumpFile:
    """Every node names every thousandth event of each cord, the last events, and the last of those
    that the third copy has. Of the tail it speaks a moment before the dump."""
    rows: list[tuple[Any, ...]] = []
    read = one.manifest.read
    ends = [last - back for last in (read, _without(read)) for back in range(NODES)]
    names = ("author_no", "journal", "seq", "id", "feed_pos")
    for name in one.manifest.names("events"):
        table = pq.read_table(one.folder / name, columns=list(names))
        is_named = pc.or_(
            pc.equal(pc.modulo(table["seq"], RECEIPT_EVERY), 0),
            pc.is_in(table["feed_pos"], value_set=pa.array(ends, pa.int64())),
        )
        for row in table.filter(is_named).select(names).to_pylist():
            in_tail = row["feed_pos"] > _without(read)
            stamp_ms = one.manifest.as_of_ms if in_tail else START_MS
            number = (stamp_ms << 16) + row["seq"]
            place = (row["author_no"], row["journal"], row["seq"], row["id"], eid_of(row["id"]))
            rows += [(signer, number, 1, *place) for signer in range(1, NODES + 1)]
    folder.mkdir()
    return write_rows(folder, "receipts", "made", rows)


def _without(read: int) -> int:
    return read - read // TAIL_SHARE


def _without_tail(manifest: Manifest, target: Path) -> Manifest:
    """A link is replaced, never written into: the other copies keep theirs."""
    kept = _without(manifest.read)
    lost: list[int] = []
    read: list[bytes] = []
    for name in manifest.names("events"):
        table = pq.read_table(target / name, columns=["id", "eid", "feed_pos"])
        is_kept = pc.less_equal(table["feed_pos"], kept)
        read += table["id"].filter(is_kept).to_pylist()
        lost += table["eid"].filter(pc.invert(is_kept)).to_pylist()
    gone = pa.array(lost, pa.int64())
    files = []
    for file in manifest.files:
        if file.table in BY_EVENT:
            table = pq.read_table(target / file.name)
            is_gone = pc.is_in(table[BY_EVENT[file.table]], value_set=gone)
            if pc.any(is_gone).as_py():
                (target / file.name).unlink()
                rest = table.filter(pc.invert(is_gone))
                file = write_table(target, file.table, Path(file.name).stem, rest)
        elif file.table == BUCKETS_TABLE:
            (target / file.name).unlink()
            file = write_buckets(target, Path(file.name).stem, bucket_digests(sorted(read)))
        files.append(file)
    return replace(manifest, files=tuple(files), events=kept, read=kept, feed_upto=kept)
