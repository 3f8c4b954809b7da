"""A soak in a few seconds: nothing is left open, and what an entry costs is bounded."""

from pathlib import Path

import pytest

from tests.process.soak import Bounds, Line, Sample, lines_of, slope, soak

SECONDS = 15.0
SAMPLES = 12
# Caches still fill, and a store takes its room in steps: a leak of whole entries or events shows.
SHORT = Bounds(memory=40_000.0, disk=60_000.0, descriptors=12.0, threads=6.0, latency=1_000.0)


def test_nothing_is_left_open_and_growth_has_a_bound(tmp_path: Path) -> None:
    made = soak(tmp_path / "net", SECONDS, SAMPLES)
    assert made.entries > 0
    assert all(len(samples) >= 3 for samples in made.samples.values())
    assert [str(line) for line in made.lines(SHORT) if not line.holds] == []


def samples(memory: int, descriptors: float) -> list[Sample]:
    """Ten samples of a node that keeps so many bytes of each entry, and so many descriptors."""
    return [
        Sample(10.0 * n, 100 * n, 2**20 + memory * 100 * n, 40 + int(descriptors * n), 9, n, 2.0)
        for n in range(10)
    ]


def grown(found: list[Line]) -> list[str]:
    return [line.what for line in found if not line.holds]


def test_what_grows_is_told() -> None:
    assert grown(lines_of(1, samples(0, 0), Bounds())) == []
    assert grown(lines_of(1, samples(200, 0), Bounds())) == ["memory, bytes an entry"]
    assert grown(lines_of(1, samples(0, 3), Bounds())) == ["descriptors over the run"]
    assert "GROWS" in str(lines_of(2, samples(200, 0), Bounds())[0])


@pytest.mark.parametrize(
    ("xs", "ys", "expected"),
    [([0, 1, 2], [1, 3, 5], 2.0), ([1, 2, 3, 4], [6, 5, 7, 10], 1.4), ([3, 3], [1, 2], 0.0)],
)
def test_a_slope_by_least_squares(xs: list[float], ys: list[float], expected: float) -> None:
    assert slope(xs, ys) == pytest.approx(expected)
