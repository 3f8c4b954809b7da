"""What a graph engine has to answer; two of them answer alike, which a test holds.

Vertices and edges go by `eid`, never by text. Edges lead from child to parent; one whose end is
missing is never given: graph algorithms drop such edges without a word.
"""

from typing import Protocol

from pyspark.sql import DataFrame

ROOT_EID = -1  # stands for the genesis, on which every cord begins: eids are not negative


class Engine(Protocol):
    name: str

    def components(self, vertices: DataFrame, edges: DataFrame) -> DataFrame:
        """eid -> component. `vertices` have eid; the root is added to them."""

    def forks(self, events: DataFrame) -> DataFrame:
        """Those of one cord that have the same prev and are not the same event."""

    def loops(self, edges: DataFrame) -> DataFrame:
        """copy, eid, loop_events: what lies on a loop, of edges (copy, ceid, peid)."""

    def children(self, edges: DataFrame) -> DataFrame:
        """eid, children: how many events name it, of edges (ceid, peid); none: left out."""

    def ranks(self, ties: DataFrame) -> DataFrame:
        """author_no, rank: PageRank over ties (above, below, times) between authors."""

    def communities(self, authors: DataFrame, ties: DataFrame) -> DataFrame:
        """author_no, community: which authors are held together by ties (above, below)."""

    def spread(self, edges: DataFrame, start: int, levels: int) -> DataFrame:
        """eid, hops: what is above this event, and over how many of these edges (ceid, peid) at
        least; itself with 0. No way is longer than `levels`."""
