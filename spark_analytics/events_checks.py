"""B: every event and receipt by itself: its hash, its columns, its signature, its entries."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, BooleanType, StringType

from quipu.dumps.headers import FROM_HEADER, decode, edges_of
from quipu.dumps.invs import rows_of
from quipu.dumps.merkle import root_of
from quipu.spark_analytics.findings import found, hex_of
from quipu.spark_analytics.reading import Ledger
from quipu.verify.values import is_signed

EVENT_TAG = b"quipu/event/1\0"
_SEQ, _PREV = (list(FROM_HEADER).index(name) for name in ("seq", "prev"))


def checks(ledger: Ledger) -> Iterator[DataFrame]:
    events = ledger.table("events")
    yield ids(events)
    yield from _columns(ledger, events)
    yield _signatures(events)
    yield _authors(ledger)
    if all(copy.manifest.entries != "none" for copy in ledger.copies):
        yield _roots(ledger, events)
    yield from _receipts(ledger)


def ids(events: DataFrame) -> DataFrame:
    """Recomputed in the JVM."""
    made = F.unhex(F.sha2(F.concat(F.lit(EVENT_TAG), F.col("header")), 256))
    eid = F.shiftrightunsigned(F.conv(F.hex(F.substring("id", 1, 8)), 16, -10).cast("long"), 1)
    wrong = (made != F.col("id")) | (eid != F.col("eid"))
    return found(events.where(wrong), "events.id", hex_of("id"), "")


def _of_header(header: bytes, *columns: object) -> str | None:
    """Which column is not what the header says."""
    decoded = decode(header)
    if decoded is None:
        return "the header does not decode"
    for name, said, held in zip(FROM_HEADER, decoded.columns, columns[1:], strict=True):
        if said != (bytes(held) if isinstance(held, bytearray) else held):
            return name
    return None if decoded.cluster_id == columns[0] else "cluster"


def _edges_of_header(header: bytes) -> list[bytes]:
    decoded = decode(header)
    if decoded is None:
        return []
    prev, seq = decoded.columns[_PREV], decoded.columns[_SEQ]
    return [parent for parent, _ in edges_of(prev, seq, decoded.parents)]


def _columns(ledger: Ledger, events: DataFrame) -> Iterator[DataFrame]:
    differing = F.udf(_of_header, StringType())
    what = differing("header", F.lit(ledger.cluster_id), *FROM_HEADER)
    wrong = events.select("copy", "id", what.alias("what")).where(F.col("what").isNotNull())
    yield found(wrong, "events.columns", hex_of("id"), F.col("what"))
    named = F.udf(_edges_of_header, ArrayType(BinaryType()))
    of_header = events.select("copy", "id", named("header").alias("said"))
    ordered = F.transform(
        F.sort_array(F.collect_list(F.struct("ordinal", "parent"))), lambda edge: edge["parent"]
    )
    held = ledger.table("edges").groupBy("copy", F.col("child").alias("id"))
    both = of_header.join(held.agg(ordered.alias("held")), ["copy", "id"], "left")
    wrong = both.where(F.col("said") != F.coalesce("held", F.array().cast("array<binary>")))
    yield found(wrong, "events.columns", hex_of("id"), "edges")


def _signatures(events: DataFrame) -> DataFrame:
    """Each pair of id and signature once; then named in every copy that has it."""
    valid = F.udf(lambda a, i, s: is_signed(bytes(a), "event", bytes(i), bytes(s)), BooleanType())
    once = events.select("author", "id", "signature").distinct()
    bad = once.where(~valid("author", "id", "signature"))
    return found(
        events.select("copy", "id", "author", "signature").join(
            bad, ["id", "author", "signature"], "left_semi"
        ),
        "events.signature",
        hex_of("id"),
        "",
    )


def _authors(ledger: Ledger) -> DataFrame:
    members = ledger.table("members").select(
        "copy", "epoch", F.col("node_id").alias("author"), F.col("node_no").alias("author_no")
    )
    strangers = ledger.slim.join(members, ["copy", "epoch", "author", "author_no"], "left_anti")
    return found(strangers, "events.author", hex_of("id"), hex_of("author"))


def _root_of_leaves(leaves: list[bytes] | None) -> bytes:
    return root_of([bytes(leaf) for leaf in leaves or ()])


def _roots(ledger: Ledger, events: DataFrame) -> DataFrame:
    root = F.udf(_root_of_leaves, BinaryType())
    ordered = F.sort_array(F.collect_list(F.struct("position", "leaf_hash")))
    made = (
        ledger.table("entries")
        .groupBy("copy", F.col("event").alias("id"))
        .agg(ordered.alias("ordered"), F.count("*").alias("entries"))
        .withColumn("leaves", F.transform("ordered", lambda entry: entry["leaf_hash"]))
    )
    placed = F.transform("ordered", lambda entry, at: entry["position"] == at)
    both = events.select("copy", "id", "entries_root", "entry_count").join(
        made, ["copy", "id"], "full_outer"
    )
    right = (
        F.forall(placed, lambda holds: holds)
        & (F.col("entries") == F.col("entry_count"))
        & (root("leaves") == F.col("entries_root"))
    )
    wrong = both.where(~F.coalesce(right, F.lit(False)))
    return found(wrong, "events.root", hex_of("id"), F.col("entries"))


# --- receipts -------------------------------------------------------------------------------------
def _inv_flaw(preimage: bytes | None, *held: Any) -> str | None:
    if preimage is None:
        return "no receipt has these rows"
    signer, number, epoch, cluster_id, inv_id, signature, rows = held
    said = rows_of(bytes(preimage))
    if said is None:
        return "the signed bytes do not decode"
    columns = (bytes(signer), number, epoch, bytes(cluster_id), bytes(inv_id))
    if said.columns != columns:
        return "columns"
    kept = sorted((r[0], r[1], r[2], bytes(r[3])) for r in rows or ())
    if kept != sorted(said.rows):
        return "rows"
    if not is_signed(columns[0], "inv", columns[4], bytes(signature)):
        return "signature"
    return None


def _receipts(ledger: Ledger) -> Iterator[DataFrame]:
    keys = ["copy", "signer_no", "number", "epoch"]
    row = F.struct("author_no", "journal", "seq", "event")
    rows = ledger.table("receipts").groupBy(*keys).agg(F.collect_list(row).alias("rows"))
    invs = ledger.table("invs").join(rows, keys, "full_outer")
    flaw = F.udf(_inv_flaw, StringType())
    columns = ("signer", "number", "epoch", F.lit(ledger.cluster_id), "inv_id", "signature", "rows")
    judged = invs.withColumn("flaw", flaw("preimage", *columns)).where(F.col("flaw").isNotNull())
    subject = F.concat_ws("/", "signer_no", "number")
    is_signature = F.col("flaw") == "signature"
    yield found(judged.where(~is_signature), "receipts.columns", subject, F.col("flaw"))
    yield found(judged.where(is_signature), "receipts.signature", subject, "signature")
    members = ledger.table("members").select(
        "copy", "epoch", F.col("node_id").alias("signer"), F.col("node_no").alias("signer_no")
    )
    strangers = ledger.table("invs").join(
        members, ["copy", "epoch", "signer", "signer_no"], "left_anti"
    )
    yield found(strangers, "receipts.signature", subject, "not a member")
