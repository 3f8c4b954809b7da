"""A bar for long work, on a terminal alone."""

import sys

BAR_CELLS = 30


class Bar:
    """Invariant: on anything but a terminal it says nothing."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()
        self._width = 0

    def show(self, phase: str, done: int, total: int) -> None:
        if not self._is_shown:
            return
        cells = BAR_CELLS * min(done, total) // total if total else 0
        share = f"{100 * min(done, total) // total:3d} %" if total else ""
        line = f"{phase:<8} [{'#' * cells:<{BAR_CELLS}}] {share}"
        self._width = max(self._width, len(line))
        print(f"\r{line:<{self._width}}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._is_shown and self._width:
            print(file=sys.stderr)
