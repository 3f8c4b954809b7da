# %% Before: open the dumps
# Cells of a notebook; as a script: spark-submit docs/questions.py DUMP…
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from quipu.dumps.checking import check_files
from quipu.spark_analytics.engine_dataframe import DataFrameEngine
from quipu.spark_analytics.reading import Ledger, named_copies
from quipu.spark_analytics.rosters import node_names
from quipu.spark_analytics.spread import spread_of

spark = SparkSession.builder.getOrCreate()
checked = [check_files(Path(folder)) for folder in sys.argv[1:]]
assert not any(dump.problems for dump in checked)
ledger = Ledger(spark, named_copies(checked, node_names(checked)))
events, edges, entries = (ledger.table(name) for name in ("events", "edges", "entries"))
receipts = ledger.table("receipts")
once = events.dropDuplicates(["id"]).withColumn("ms", F.shiftrightunsigned("hlc", 16))

# %% 1. How much did each node write?
written = once.groupBy("author_no").agg(
    F.count("*").alias("events"),
    F.sum("entry_count").alias("entries"),
    F.sum("body_bytes").alias("bytes"),
)
written.orderBy("author_no").show()

# %% 2. Which streams are the busiest?
streams = (
    entries.dropDuplicates(["event", "position"])
    .groupBy("stream")
    .agg(F.count("*").alias("entries"), F.sum("data_bytes").alias("bytes"))
)
streams.orderBy(F.desc("entries")).show()

# %% 3. How many entries came in each minute?
minutes = once.groupBy(F.timestamp_millis(F.expr("ms - ms % 60000")).alias("minute")).agg(
    F.sum("entry_count").alias("entries")
)
minutes.orderBy("minute").show()

# %% 4. How long does it take until a node has signed for another's event?
first = receipts.groupBy("signer_no", "event").agg(F.min("number").alias("number"))
signed = first.join(once.withColumnRenamed("id", "event"), "event").where("signer_no != author_no")
took_ms = F.shiftrightunsigned("number", 16) - F.col("ms")
latency = signed.groupBy("signer_no").agg(
    F.count("*").alias("events"),
    F.percentile_approx(took_ms, [0.5, 0.95, 0.99]).alias("p50_p95_p99_ms"),
)
latency.orderBy("signer_no").show()

# %% 5. Which events has one copy and another has not?
every = [copy.name for copy in ledger.copies]
lacking = (
    events.groupBy("id")
    .agg(F.collect_set("copy").alias("holders"))
    .withColumn("lacking", F.array_except(F.array(*[F.lit(name) for name in every]), "holders"))
    .where(F.size("lacking") > 0)
)
lacking.select(F.hex("id"), "lacking").show(truncate=False)

# %% 6. What is not final yet, and since when?
unread = (
    events.where("state = 'unread'")
    .withColumn("since", F.timestamp_millis(F.shiftrightunsigned("hlc", 16)))
    .groupBy("copy", "author_no")
    .agg(F.count("*").alias("events"), F.min("since").alias("oldest"))
)
unread.orderBy("copy", "author_no").show()

# %% 7. Who builds upon whom?
author = once.select("id", "author_no")
builds = (
    edges.where("ordinal > 0")
    .select("child", "parent")
    .distinct()
    .join(author.toDF("child", "above"), "child")
    .join(author.toDF("parent", "below"), "parent")
    .groupBy("above", "below")
    .count()
)
builds.orderBy("above", "below").show()

# %% 8. Did anybody sign two events for one slot?
forks = once.groupBy("author_no", "journal", "prev").count().where("count > 1")
forks.show()

# %% 9. How wide is the graph, and how long its longest chain?
shape = once.agg(
    F.max("depth").alias("longest_chain"),
    (F.count("*") / F.countDistinct("depth")).alias("events_a_level"),
)
shape.show()

# %% 10. What was built upon the first event of all, by whom, after how long?
earliest = once.orderBy("ms", "id").first()
spread = spread_of(ledger, DataFrameEngine(ledger), bytes(earliest.id).hex())
print(spread["events_above"], spread["by_hops"], spread["tree"])
ledger.release()
