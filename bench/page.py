"""An hour's worth of entries under the eyes of a page: heap, growth, frames, input.

    python -m bench.page [--entries 300000] [--note]

Three real nodes and Debian's Chromium with the Quipu view open. Frames are taken from a trace while
500 entries a second arrive, before all the others and after them; in between the entries come as
fast as three nodes take them, and the heap is read after a collection each tenth of the way.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, CDPSession, Page

from bench.figures import note_figure
from bench.lock import one_benchmark_at_a_time
from quipu.devnet import Devnet
from tests.browser.browsing import Tab, context, launched
from tests.browser.test_speed import frames_of
from tests.browser.writing import Writer, stored, writing

COMMAND = "bench-page"
MIB = 1 << 20
HOUR_ENTRIES = 300_000
TRACED_S = 15.0
EVENTS_FILLED = 4_000  # the page keeps 3,000 knots: from here on nothing may grow with the entries
SAMPLES = 10
SETTLE_MS = 300
EVENT_ENTRIES = 5
EVENTS_S = 900.0  # as fast as they are taken
ANSWER = """() => new Promise((resolve) => {
    const begun = performance.now(), done = () => resolve(performance.now() - begun);
    document.querySelector('[aria-label="Zoom in"]').click();
    requestAnimationFrame(() => requestAnimationFrame(done)); })"""
FED = "async () => (await (await fetch('../v1/figures')).json()).gauges.feed_number"
GOALS = {
    "frame at 500 entries/s, p95 ms": 12.0,
    "frame at 500 entries/s at the end, p95 ms": 12.0,
    "input answered, ms": 100.0,
    "first paint, ms": 500.0,
    "heap at the end, MiB": 150.0,
    "heap growth, MiB per 10,000 entries": 1.0,
}


class Sample(NamedTuple):
    entries: int
    heap: int


class Watched:
    """The page, and what is measured of it."""

    def __init__(self, browser: Browser, base: str, is_noted: bool) -> None:
        self.browser, self.is_noted = browser, is_noted
        self.tab = Tab(context(browser).new_page(), base)
        self.page: Page = self.tab.open("quipu")
        self.tab.until("() => Number(document.querySelector('canvas').dataset.knots) > 0")
        self.session: CDPSession = self.page.context.new_cdp_session(self.page)

    def tell(self, figure: str, value: float) -> None:
        most = GOALS.get(figure)
        said = "" if most is None else f"{'met' if value <= most else 'MISSED'}: at most {most:g}"
        print(f"{figure:<52} {value:>12,.2f}  {said}", flush=True)
        if self.is_noted:
            note_figure(COMMAND, figure, value)

    def heap(self) -> int:
        self.session.send("HeapProfiler.collectGarbage")
        self.page.wait_for_timeout(SETTLE_MS)
        return int(self.session.send("Runtime.getHeapUsage")["usedSize"])

    def frames(self, bases: list[str], figure: str) -> None:
        with (
            writing(bases, per_s=100, entries=5) as writer,
            tempfile.TemporaryDirectory() as folder,
        ):
            begun, before = time.monotonic(), writer.written
            trace = Path(folder) / "trace.json"
            self.browser.start_tracing(page=self.page, path=trace)
            self.page.wait_for_timeout(TRACED_S * 1_000)
            self.browser.stop_tracing()
            rate = (writer.written - before) / (time.monotonic() - begun)
            answered_ms = self.page.evaluate(ANSWER)
            took = frames_of(json.loads(trace.read_text())["traceEvents"])
        self.tell(f"{figure}: entries/s that came", rate)
        self.tell(f"{figure}: frames", len(took))
        self.tell(f"{figure}, p95 ms", took[len(took) * 95 // 100])
        self.tell("input answered, ms", answered_ms)

    def hour(self, bases: list[str], entries: int) -> None:
        samples: list[Sample] = []
        begun = time.monotonic()
        with writing(bases, per_s=EVENTS_S, entries=EVENT_ENTRIES) as writer:
            for written in self._milestones(writer, entries):
                samples.append(Sample(written, self.heap()))
                print(
                    f"  {written:>9,} entries, heap {samples[-1].heap / MIB:6.1f} MiB", flush=True
                )
        took_s = time.monotonic() - begun
        first, last = samples[0], samples[-1]
        self.tell("entries in a row", last.entries)
        self.tell("entries/s in a row", last.entries / took_s)
        self.tell("heap at the end, MiB", last.heap / MIB)
        rise = (last.heap - first.heap) / MIB
        self.tell(
            "heap growth, MiB per 10,000 entries", rise * 10_000 / (last.entries - first.entries)
        )

    def _milestones(self, writer: Writer, entries: int) -> Iterator[int]:
        """First when the picture is full, then each tenth of what is left."""
        while self.page.evaluate(FED) < EVENTS_FILLED:
            self.page.wait_for_timeout(SETTLE_MS)
        first = writer.written
        yield first
        for part in range(1, SAMPLES + 1):
            while writer.written < first + (entries - first) * part // SAMPLES:
                self.page.wait_for_timeout(SETTLE_MS)
            yield writer.written


@contextmanager
def three_nodes() -> Iterator[list[str]]:
    with tempfile.TemporaryDirectory(prefix=".quipu-bench-") as folder:
        net = Devnet.make(Path(folder) / "net", 3, is_tied=True)
        try:
            bases = [node.api for node in net.nodes]
            for base in bases:
                stored(base, {"order": 1}, stream="orders")
            yield bases
        finally:
            net.down()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.page", description=__doc__)
    parser.add_argument("--entries", type=int, default=HOUR_ENTRIES, help="in a row (300000)")
    parser.add_argument("--note", action="store_true", help="append to docs/figures.csv")
    given = parser.parse_args()
    least = EVENTS_FILLED * EVENT_ENTRIES
    if given.entries <= least:
        parser.error(f"--entries {given.entries}: the picture alone takes {least:,}; give more")
    with one_benchmark_at_a_time(), three_nodes() as bases, launched() as browser:
        watched = Watched(browser, bases[0], given.note)
        painted = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        watched.tell("first paint, ms", watched.page.evaluate(painted))
        watched.frames(bases, "frame at 500 entries/s")
        watched.hour(bases, given.entries)
        watched.frames(bases, "frame at 500 entries/s at the end")
        watched.page.context.close()
        watched.tell("troubles in the console", len(watched.tab.troubles))
        print("\n".join(watched.tab.troubles))
    return 1 if watched.tab.troubles else 0


if __name__ == "__main__":
    sys.exit(main())
