"""One real cluster under faults, judged by porcupine; `make linear-test` has twenty and more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from quipu.ledger.order.sequences import next_running
from tests.linear.histories import ILLEGAL, OK
from tests.linear.real import Asked, Broken, judge, live_out, seen_of


def test_a_real_cluster_under_faults_is_linear(porcupine: Path, tmp_path: Path) -> None:
    asked = live_out(tmp_path / "net", seed=1)
    assert sum(1 for one in asked if one.item and one.number) > 10
    assert judge(porcupine, asked) == OK


def told() -> list[Asked]:
    """Three numbers, the second of which nobody was told of, and a read."""
    found, running = [], bytes(32)
    for number in (1, 2, 3):
        item = bytes([number]) * 32
        running = next_running(running, number, item)
        begun = number * 10
        found.append(Asked(item, begun, begun + 5, number, running))
    found[1] = Asked(found[1].item, 20, None)
    return [*found, Asked(None, 50, 55, 3, running)]


def test_what_was_lost_is_found_by_the_running_digests(porcupine: Path) -> None:
    assert [one.count for one in seen_of(told())] == [0, 1, 2, 3]
    assert judge(porcupine, told()) == OK


def test_a_read_of_the_past_is_found(porcupine: Path) -> None:
    first, *others = told()
    late = Asked(None, 60, 65, 1, first.running)
    assert judge(porcupine, [first, *others, late]) == ILLEGAL


@pytest.mark.parametrize(
    ("at", "change"),
    [
        (2, {"running": bytes(32)}),  # another history than that of the others
        (2, {"number": 1}),  # a number that another was given
    ],
)
def test_what_fits_no_order_is_broken(at: int, change: dict[str, object]) -> None:
    asked = told()
    asked[at] = replace(asked[at], **change)  # type: ignore[arg-type]
    with pytest.raises(Broken):
        seen_of(asked)
