"""The checker of histories bites: each mutation of a good history is found."""

from collections.abc import Callable

import pytest

from tests.simulation.log.history import HistoryError, LogHistory, Operation, Read


def good() -> LogHistory:
    history = LogHistory()
    for index, regime, items in (
        (1, 1, ()),
        (2, 1, (b"a", b"b")),
        (3, 2, ()),
        (4, 2, (b"c",)),
    ):
        history.report(index, regime, b"digest %d" % index, items)
    history.operations = [
        Operation(b"a", 10, 20, (2, 0)),
        Operation(b"b", 10, 20, (2, 1)),
        Operation(b"c", 25, 40, (4, 0)),
        Operation(b"lost", 25, None, None, rejected=True),
        Operation(b"unknown", 26),
    ]
    history.reads = [Read(21, 24, 2), Read(41, 44, 4)]
    return history


def test_a_good_history_passes() -> None:
    good().check()


def test_two_values_at_one_index_are_found() -> None:
    with pytest.raises(HistoryError, match="two values"):
        good().report(4, 3, b"digest 4", (b"d",))


def _set(name: str, at: int, **fields: object) -> Callable[[LogHistory], None]:
    def change(history: LogHistory) -> None:
        for field, value in fields.items():
            setattr(getattr(history, name)[at], field, value)

    return change


MUTATIONS: dict[str, Callable[[LogHistory], object]] = {
    "hole": lambda h: h.chosen.pop(3),
    "regime": lambda h: h.chosen.update({4: (1, b"digest 4", (b"c",))}),
    "ordered twice": lambda h: h.chosen.update({4: (2, b"digest 4", (b"c", b"a"))}),
    "is at": _set("operations", 0, position=(2, 1)),
    "rejected, and ordered": _set("operations", 2, rejected=True),
    "asked after": _set("operations", 0, position=(2, 0), asked_us=45, answered_us=50),
    "a read at": _set("reads", 1, index=2),
}


@pytest.mark.parametrize("message", MUTATIONS)
def test_a_mutated_history_is_found(message: str) -> None:
    history = good()
    MUTATIONS[message](history)
    with pytest.raises(HistoryError, match=message):
        history.check()


def test_a_later_operation_must_lie_above_an_earlier_read() -> None:
    history = good()
    history.reads.append(Read(21, 24, 4))
    with pytest.raises(HistoryError, match="asked after"):
        history.check()
