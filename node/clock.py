"""The two clocks of a node. A test may set the first one wrong, as an operator might.

`QUIPU_CLOCK_OFFSET_S="-3600"`: the wall clock of this process is an hour late.
"""

import time

from quipu.ledger.words import Now
from quipu.node.exits import BadSetting

VARIABLE = "QUIPU_CLOCK_OFFSET_S"
NS_PER_MS = 1_000_000
MS_PER_S = 1_000

_offset_ms = 0


def set_wrong(text: str) -> None:
    """By so many seconds, as the variable says it. Raises `BadSetting`."""
    global _offset_ms  # noqa: PLW0603 - the clock of a process is one
    try:
        _offset_ms = int(text or "0") * MS_PER_S
    except ValueError as error:
        raise BadSetting(
            f"{VARIABLE}: {text!r} is no number of seconds",
            "It is a variable for tests; leave it out.",
        ) from error


def is_wrong() -> bool:
    return _offset_ms != 0


def clock() -> Now:
    return Now(wall_ms(), monotonic_ms())


def monotonic_ms() -> int:
    return time.monotonic_ns() // NS_PER_MS


def wall_ms() -> int:
    return time.time_ns() // NS_PER_MS + _offset_ms
