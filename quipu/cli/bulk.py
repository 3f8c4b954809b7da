"""`quipu submit - --lines`: each line of the input is an entry, all of them over one connection."""

import sys
import uuid
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from quipu.cli.remote import Remote, fail, progress, progress_ends
from quipu.node.exits import Exit

if TYPE_CHECKING:
    from concurrent.futures import Future

    from quipu.client import Receipt

PROGRESS_LINES = 1_000


@dataclass(slots=True)
class _Told:
    """What is said of single lines."""

    wanted: str
    not_json: int = 0
    not_reached: int = 0

    def is_json(self, number: int, raw: bytes) -> bool:
        import msgspec

        try:
            msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self.not_json += 1
            self.fault(number, f"is not JSON: {error}")
            return False
        return True

    def fault(self, number: int, error: object) -> None:
        print(f"quipu: line {number}: {error}", file=sys.stderr)

    def settled(self, number: int, future: "Future[Receipt]") -> None:
        if future.cancelled():
            return
        from quipu.client.asynchronous import reached

        error = future.exception()
        if error is not None:
            self.fault(number, error)
        elif not reached(future.result().state, self.wanted):
            self.not_reached += 1


def submit_lines(to: Remote, source: str, options: dict[str, Any], key: str | None) -> None:
    """Each has a key: after a broken connection it is sent again, and stored once."""
    import msgspec

    if source != "-":
        fail("--lines reads standard input: write - for the data", Exit.USAGE)
    stream, prefix = options.pop("stream"), key or uuid.uuid4().hex
    told = _Told(options["wait"])
    with to.client() as client:
        with client.ingest(**options) as feed:
            for number, line in enumerate(sys.stdin.buffer, 1):
                raw = line.strip()
                if not raw or not told.is_json(number, raw):
                    continue
                future = feed.submit(msgspec.Raw(raw), stream=stream, key=f"{prefix}/{number}")
                future.add_done_callback(partial(told.settled, number))
                if number % PROGRESS_LINES == 0:
                    progress(feed.counts.stored + feed.counts.duplicates, "entries")
        counts = feed.counts
        progress(counts.stored + counts.duplicates, "entries")
    progress_ends()
    refused = counts.refused + told.not_json
    to.show(
        {
            "stored": counts.stored,
            "duplicates": counts.duplicates,
            "refused": refused,
            "undecided": counts.undecided,
        }
    )
    if refused or counts.undecided:
        raise typer.Exit(int(Exit.PARTLY))
    if told.not_reached:
        raise typer.Exit(int(Exit.WAITED))
