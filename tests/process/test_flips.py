"""A few flips of each kind; `make flip-test` does a thousand."""

from pathlib import Path

from tests.process.flips import run

FLIPS = 60
SEED = 11


def test_flipped_bits_are_found_or_harmless_and_never_served(tmp_path: Path) -> None:
    found = run(FLIPS, SEED, tmp_path)
    assert found["stopped, found"] > 0
    assert found["stopped, found"] + found["stopped, harmless"] == FLIPS // 2
