"""Every bound of the pipeline, each with its unit and its reason."""

JAVA_OLDEST = 17  # Spark 4 runs on no older one
SPARK_SERIES = "4.0"  # what the jars were built for
ROWS_PER_PARTITION = 250_000  # of a shuffle: some 30 MiB of ids; 200 partitions kill small graphs
PARTITIONS_MAX = 4_096  # of a shuffle
EXAMPLES_MAX = 20  # of one check in the report; all of them are in violations/*.parquet
SETTLE_S = 60.0  # before the oldest dump: what was final by then has to be in every copy
DRIVER_EDGES_MAX = 200_000  # that the driver joins itself, in half a second and 60 MiB
ROWS_SMALL = 100_000  # below this compiling a plan costs more than running it as it stands
UNREAD_SENT_MAX = 100_000  # ids of one copy's Unread events that are sent to every worker, 5 MiB
LOOP_EDGES_MAX = 200_000  # suspicious edges that the driver looks at itself, 30 MiB
SCC_ROUNDS = 4  # of GraphFrames: each peels off what is in no loop and splits the rest
PAGERANK_ROUNDS = 5  # ranks of some dozens of nodes stand by then
TIMELINE_POINTS = 60  # of one plot
SPREAD_LEVELS = 24  # of depth above one event that are followed: by then every node has built on it
DOWNLOAD_S = 600.0  # for 73 MB
NODE_PAGE_ENTRIES = 500  # of one page that is asked of a node; each of them is one more request
NODE_ANSWER_S = 60.0  # for a page or a proof
