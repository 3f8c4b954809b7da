"""Plots as inline SVG: what is seen stands in words, too, for who cannot see it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

WIDTH, HEIGHT = 640.0, 170.0
LEFT, BOTTOM, TOP = 44.0, 24.0, 14.0
ROOM = HEIGHT - BOTTOM - TOP
LATEST_MS = 253_402_300_799_000  # the last second of the year 9999: no date is later
LEAST_WIDTH = 1.5  # of a bar, so that a moment is seen


class Axis(NamedTuple):
    """Time from left to right: a part without events has no row, and keeps its place."""

    from_ms: int
    upto_ms: int
    part_ms: int

    @classmethod
    def of(cls, rows: Sequence[dict[str, Any]]) -> "Axis":
        starts = [row["from_ms"] for row in rows]
        part = min((b - a for a, b in pairwise(starts)), default=1_000)
        return cls(starts[0], starts[-1] + part, part)

    def x(self, time_ms: float) -> float:
        span = max(1, self.upto_ms - self.from_ms)
        return LEFT + (WIDTH - LEFT) * (time_ms - self.from_ms) / span


def stamp(time_ms: int) -> str:
    if not 0 <= time_ms <= LATEST_MS:  # events may claim any time
        return f"{time_ms:,} ms"
    return f"{datetime.fromtimestamp(time_ms / 1_000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def bars(rows: Sequence[dict[str, Any]], name: str) -> str:
    if not rows:
        return ""
    most, axis = max(row[name] for row in rows) or 1, Axis.of(rows)
    wide = max(axis.x(axis.from_ms + axis.part_ms) - LEFT - 1, LEAST_WIDTH)
    drawn = "".join(
        f'<rect class="bar" x="{axis.x(row["from_ms"]):.1f}" width="{wide:.1f}" '
        f'y="{_y(row[name] / most):.1f}" height="{ROOM * row[name] / most:.1f}">'
        f"<title>{stamp(row['from_ms'])}: {row[name]:g}</title></rect>"
        for row in rows
    )
    return _frame(drawn, most, axis, f"{name} over time, at most {most:g} in a part")


def steps(rows: Sequence[dict[str, Any]], name: str, label: str) -> str:
    """A level for each part of time; nothing where nothing was written."""
    if not rows:
        return ""
    most, axis = max(row[name] for row in rows) or 1, Axis.of(rows)
    drawn = "".join(
        f'<path class="curve" d="M{axis.x(row["from_ms"]):.1f} {_y(row[name] / most):.1f}'
        f'H{axis.x(row["from_ms"] + axis.part_ms):.1f}">'
        f"<title>{stamp(row['from_ms'])}: {row[name]:g}</title></path>"
        for row in rows
    )
    return _frame(drawn, most, axis, f"{label}, at most {most:g}")


def _y(share: float) -> float:
    return TOP + ROOM * (1 - share)


def _frame(content: str, most: float, axis: Axis, label: str) -> str:
    floor = _y(0)
    return (
        f'<svg viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" aria-label="{escape(label)}">'
        f'<line class="axis" x1="{LEFT}" y1="{floor}" x2="{WIDTH}" y2="{floor}"/>'
        f'<line class="axis" x1="{LEFT}" y1="{TOP}" x2="{WIDTH}" y2="{TOP}"/>'
        f'<text x="{LEFT - 6}" y="{TOP + 4}" text-anchor="end">{most:g}</text>'
        f'<text x="{LEFT - 6}" y="{floor + 4}" text-anchor="end">0</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 6}">{stamp(axis.from_ms)}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT - 6}" text-anchor="end">{stamp(axis.upto_ms)}</text>'
        f"{content}</svg>"
    )
