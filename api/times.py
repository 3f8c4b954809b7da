"""Times as RFC 3339 in UTC, durations with their unit."""

import re
from datetime import UTC, datetime
from functools import lru_cache

HLC_SHIFT = 16
_DURATION = re.compile(r"(\d{1,9})(ms|s|m|h|d)\Z", re.ASCII)
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)\Z", re.ASCII
)
_YEAR_9999_MS = 253_402_300_799_999


class NotATime(ValueError):
    """The text is not an RFC 3339 time."""


class NotADuration(ValueError):
    """The text is not a number with a unit."""


def time_text(wall_ms: int) -> str:
    """Milliseconds since 1970 as RFC 3339; what no calendar holds shows as its last moment."""
    seconds, ms = divmod(min(max(wall_ms, 0), _YEAR_9999_MS), 1_000)
    return f"{_second_text(seconds)}.{ms:03d}Z"


@lru_cache(maxsize=1_024)
def _second_text(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def hlc_text(hlc: int) -> str:
    return time_text(hlc >> HLC_SHIFT)


def time_ms(text: str) -> int:
    if _TIME.match(text) is None:
        raise NotATime("an RFC 3339 time is needed, such as 2026-01-31T12:00:00Z")
    try:
        moment = datetime.fromisoformat(text.upper().replace(" ", "T"))
        ms = round(moment.timestamp() * 1_000)
    except (ValueError, OverflowError) as error:
        raise NotATime(f"no such time: {error}") from error
    if not 0 <= ms <= _YEAR_9999_MS:
        raise NotATime("times before 1970 are not taken")
    return ms


def duration_ms(text: str) -> int:
    found = _DURATION.match(text)
    if found is None:
        raise NotADuration("a number with its unit is needed: 500ms, 30s, 2m, 1h or 7d")
    return int(found[1]) * _UNIT_MS[found[2]]


def duration_text(ms: int) -> str:
    for unit in ("d", "h", "m", "s"):
        if ms and ms % _UNIT_MS[unit] == 0:
            return f"{ms // _UNIT_MS[unit]}{unit}"
    return f"{ms}ms"
