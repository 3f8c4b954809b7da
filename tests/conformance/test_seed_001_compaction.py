"""Seed 001: the log is shortened by way of the executors, and they check each other."""

from pathlib import Path

from quipu.ledger.log.words import Index, Regime
from quipu.ledger.order.client_items import AccessList
from quipu.ledger.order.marks import ExecutorMark, Marks, SnapshotMade, Verdict, encode_mark
from quipu.ledger.order.registry import ItemPlace, Registry
from quipu.storage.executors.request import LogIndex
from tests.conformance.clauses import clause
from tests.small_node import running, small_node

A, B = b"a" * 32, b"b" * 32


@clause("001-16")
def test_the_log_is_kept_until_executors_have_it(tmp_path: Path) -> None:
    async def test() -> None:
        async with small_node(tmp_path) as node:
            execution, journal = node.ledger.execution, node.ledger.machine.ordering.journal
            assert execution.kept_to() is None  # nobody is a client
            journal.registry.apply(AccessList(b""), ItemPlace(Regime(1), Index(1), 0))
            assert execution.kept_to() == execution.applied.at
            execution.applied = execution.applied._replace(at=LogIndex(8))
            assert execution.kept_to() == 8
            journal.marks.take(ExecutorMark(1, 1, A, 7))
            assert execution.kept_to() == 7
            execution.state = "off"
            assert execution.kept_to() == 7  # others here and there may still need it
            for number, executed in ((2, 9), (3, 0)):
                journal.marks.take(ExecutorMark(number, 1, A, executed))
            assert journal.marks.reached([1, 2, 3]) == 7  # two of three have it
            journal.registry = Registry()

    running(test)


@clause("001-114")
def test_executors_that_differ_find_out() -> None:
    marks = Marks()
    for number, digest in ((1, A), (2, A), (3, B)):
        marks.take(ExecutorMark(number, 64, digest, 64))
    assert marks.verdict(64, A, 3) is Verdict.AGREES
    assert marks.verdict(64, B, 3) is Verdict.DIFFERS


@clause("001-16")
def test_a_snapshot_counts_where_enough_agree_on_what_is_in_it() -> None:
    def made(number: int, tables: bytes) -> SnapshotMade:
        return SnapshotMade(number, 9, A, tables, "sqlite", 4_096, bytes([number]) * 32)

    marks = Marks()
    assert marks.agreed(9, 3) == []
    marks.take(made(1, A))
    assert marks.agreed(9, 3) == [made(1, A)]
    assert marks.agreed(9, 5) == []
    marks.take(made(2, A))
    assert [one.node_no for one in marks.agreed(9, 5)] == [1, 2]  # files may differ
    marks.take(made(4, B))
    assert marks.agreed(9, 5) == []
    assert len(encode_mark(made(1, A))) < 256
