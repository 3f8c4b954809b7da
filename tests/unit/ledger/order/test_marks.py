"""Executors that differ are told apart by what most of them say."""

import pytest

from quipu.ledger import limits
from quipu.ledger.order.marks import ExecutorMark, Marks, Verdict, encode_mark, read_mark

A, B = b"a" * 32, b"b" * 32


def said(*digests: bytes, at: int = 7) -> Marks:
    marks = Marks()
    for number, digest in enumerate(digests, start=1):
        marks.take(ExecutorMark(number, at, digest, 10 * number))
    return marks


@pytest.mark.parametrize(
    ("digests", "members", "of_a", "of_b"),
    [
        ((A,), 1, Verdict.AGREES, Verdict.DIFFERS),
        ((A, A), 3, Verdict.AGREES, Verdict.DIFFERS),
        ((A, B), 3, Verdict.UNDECIDED, Verdict.UNDECIDED),
        ((A, B, A), 3, Verdict.AGREES, Verdict.DIFFERS),
        ((A, B), 2, Verdict.DIFFERS, Verdict.DIFFERS),
        ((A, A, B, B), 4, Verdict.DIFFERS, Verdict.DIFFERS),
        ((A, A, A, B), 5, Verdict.AGREES, Verdict.DIFFERS),
    ],
)
def test_who_differs_from_most_is_told(
    digests: tuple[bytes, ...], members: int, of_a: Verdict, of_b: Verdict
) -> None:
    marks = said(*digests)
    assert marks.verdict(7, A, members) is of_a
    assert marks.verdict(7, B, members) is of_b
    assert marks.verdict(8, B, members) is Verdict.AGREES


def test_a_majority_has_executed_so_far() -> None:
    marks = said(A, A, A)
    members: tuple[list[int], ...] = ([1, 2, 3], [1, 2], [3], [2, 3, 4, 5], [4], [])
    assert [marks.reached(numbers) for numbers in members] == [20, 10, 30, 20, None, None]
    marks.take(ExecutorMark(3, 1, A, 5))
    assert marks.reached([3]) == 30


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EXECUTOR_MARKS_MAX", 2)
    marks = Marks()
    for at in (1, 2, 3):
        marks.take(ExecutorMark(1, at, A, at))
    assert list(marks.told) == [2, 3]


def test_items_are_read_as_they_were_written() -> None:
    mark = ExecutorMark(2, 2**64 - 1, A, 7)
    assert read_mark(encode_mark(mark)) == mark
    assert read_mark(b"what nobody reads") is None
