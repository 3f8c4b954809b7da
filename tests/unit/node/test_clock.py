"""A clock that a test set wrong."""

import time
from collections.abc import Iterator

import pytest

from quipu.node.clock import MS_PER_S, clock, is_wrong, set_wrong
from quipu.node.exits import BadSetting


@pytest.fixture(autouse=True)
def _right_again() -> Iterator[None]:
    yield
    set_wrong("")


def test_only_the_wall_clock_is_moved() -> None:
    before = clock()
    set_wrong("-3600")
    after = clock()
    assert is_wrong()
    assert after.wall_ms < before.wall_ms - 3_500 * MS_PER_S
    assert after.monotonic_ms >= before.monotonic_ms
    set_wrong("")
    assert not is_wrong()
    assert clock().wall_ms >= int((time.time() - 1) * MS_PER_S)


def test_it_has_to_be_a_number() -> None:
    with pytest.raises(BadSetting, match="QUIPU_CLOCK_OFFSET_S"):
        set_wrong("an hour")
