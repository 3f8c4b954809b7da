"""Where the history of a pruned copy begins: what lies below is not checked, rather than missing.

Such a copy keeps of each cord the event with which a cut ends it, and all above. What was written
in an epoch before that cut's may rest on events that are gone; what was written later does not.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from quipu.spark_analytics.reading import Copy, Ledger

CORD = ["author_no", "journal"]


def begins(copies: Sequence[Copy]) -> dict[str, int]:
    """Of those that have not all: the epoch whose cut they begin with."""
    return {c.name: c.manifest.history_from for c in copies if c.manifest.history_from}


def feed_first(copies: Sequence[Copy]) -> Column:
    return _of_copy({c.name: c.manifest.feed_first for c in copies}, F.col("copy"), 1)


def may_lack(copies: Sequence[Copy], epoch: str = "epoch") -> Column:
    """Whether what an event of that epoch rests on may be gone from its copy."""
    return F.col(epoch) < _of_copy(begins(copies), F.col("copy"), 0)


def of_copy_may_lack(copies: Sequence[Copy], name: str, epoch: str) -> Column:
    return F.col(epoch) < F.lit(begins(copies).get(name, 0))


def _of_copy(values: dict[str, int], copy: Column, otherwise: int) -> Column:
    found = F.lit(otherwise)
    for name, value in values.items():
        found = F.when(copy == F.lit(name), F.lit(value)).otherwise(found)
    return found


def that_should_be_there(ledger: Ledger, rows: DataFrame) -> DataFrame:
    """Of rows with copy, cord and seq those that no copy has let go."""
    known = begins(ledger.copies)
    if not known:
        return rows
    cuts = ledger.table("cuts").where(F.col("epoch") <= _of_copy(known, F.col("copy"), 0))
    gone = cuts.groupBy("copy", *CORD).agg(F.max("seq").alias("gone_seq"))
    both = rows.join(gone, ["copy", *CORD], "left")
    return both.where(F.col("seq") > F.coalesce("gone_seq", F.lit(0))).drop("gone_seq")
