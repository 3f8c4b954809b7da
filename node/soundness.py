"""What the last scrub of the whole store has found, remembered over restarts."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quipu.node import limits
from quipu.node.service import Check

SCRUB_FILE = "scrub.json"
MS_PER_S = 1_000


@dataclass(slots=True)
class Soundness:
    """Invariant: what it says is of the last scrub that came to its end."""

    folder: Path
    wall_ms: Callable[[], int]
    ended_ms: int | None = None
    events: int = 0
    found: int = 0
    first: str = ""  # of what was found
    failed: str = ""  # why none could be done since
    scrubs: int = 0  # since the start
    failures: int = 0

    @classmethod
    def of(cls, folder: Path, wall_ms: Callable[[], int]) -> "Soundness":
        known = cls(folder, wall_ms)
        with suppress(OSError, ValueError, KeyError, TypeError):  # then it is not known
            kept = json.loads((folder / SCRUB_FILE).read_bytes()[: limits.SCRUB_FILE_BYTES_MAX])
            known.ended_ms, known.events = int(kept["ended_ms"]), int(kept["events"])
            known.found, known.first = int(kept["found"]), str(kept["first"])
        return known

    def noted(self, result: dict[str, Any]) -> None:
        """What a scrub has found. The note is a convenience: it is not synced."""
        self.scrubs += 1
        self.failed = ""
        self.ended_ms, self.events = self.wall_ms(), result["events"]
        self.found, findings = result["found"], result["findings"]
        self.first = ": ".join(map(str, findings[0].values())) if findings else ""
        kept = {
            "ended_ms": self.ended_ms,
            "events": self.events,
            "found": self.found,
            "first": self.first,
        }
        beside = self.folder / f".{SCRUB_FILE}.{os.getpid()}"
        with suppress(OSError):  # a full disk is no reason to fail
            beside.write_text(json.dumps(kept) + "\n", encoding="utf-8")
            beside.replace(self.folder / SCRUB_FILE)

    def not_done(self, why: str) -> None:
        self.failures += 1
        self.failed = why

    def due_in_s(self, interval_s: float) -> float:
        """Of the next one; a clock that was set back does not put it off for ever."""
        if self.ended_ms is None:
            return limits.SCRUB_START_DELAY_S
        since_s = (self.wall_ms() - self.ended_ms) / MS_PER_S
        wanted_s = interval_s - since_s
        return max(limits.SCRUB_START_DELAY_S, min(wanted_s, interval_s))

    def checks(self) -> tuple[Check, ...]:
        if self.failed:
            return (Check("scrub", False, f"could not be done: {self.failed}"),)
        if self.ended_ms is None:
            return (Check("scrub", True, "none has come to its end yet"),)
        if self.found:
            return (Check("scrub", False, f"{self.found:,} wrong, first: {self.first}"),)
        return (Check("scrub", True, f"{self.events:,} events, nothing wrong"),)
