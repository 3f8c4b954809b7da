"""What one sender multicasts, as it comes in: frames from parts, gaps, and what to ask for.

A frame is handed on once and as soon as it is whole, in whatever order. What is missing for a while
is asked for once, over the link, and taken from there alone. Must not know what a frame says.
"""

from dataclasses import dataclass, field

from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.cast import Piece, Stream
from quipu.p2p.refusals import Cause, refuse


@dataclass(slots=True)
class _Parts:
    """Of one frame."""

    parts: int
    found: dict[int, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class Ear:
    """`settled`: of every number up to it the frame came or was asked for; of those above it the
    ones in `_ahead`. Nothing else of the numbers up to `top` has come whole."""

    peer: NodeId
    stream: Stream
    settled: int
    top: int = field(init=False)
    heard: bool = False  # since the last report
    report_ms: int | None = None  # when the last one was made
    missed: int = 0  # frames that nobody can be asked for any more
    _ahead: dict[int, None] = field(default_factory=dict)
    _unfinished: dict[int, _Parts] = field(default_factory=dict)
    _gap_ms: int | None = None  # since when something is missing

    def __post_init__(self) -> None:
        self.top = self.settled

    def take(self, piece: Piece, now_ms: int) -> bytes | None:
        """The frame, when this was the last part of it that was missing."""
        number = piece.number
        if number <= self.settled or number in self._ahead:
            refuse(Cause.REPEATED_CAST, f"{number}, settled up to {self.settled}")
        unfinished = self._unfinished.get(number) or _Parts(piece.parts)
        if unfinished.parts != piece.parts:
            refuse(Cause.MALFORMED, f"{piece.parts} parts, and {unfinished.parts} before")
        if piece.part in unfinished.found:
            refuse(Cause.REPEATED_CAST, f"part {piece.part} of {number}")
        self.heard = True
        before, self.top = self.settled, max(self.top, number)
        self._let_go(number - limits.CAST_WINDOW)
        unfinished.found[piece.part] = piece.data
        is_whole = len(unfinished.found) == piece.parts
        if is_whole:
            self._unfinished.pop(number, None)
            self._settle(number)
        else:
            self._unfinished[number] = unfinished
        self._watch_gap(before, now_ms)
        if not is_whole:
            return None
        return b"".join(unfinished.found[part] for part in range(piece.parts))

    def due_ms(self) -> int | None:
        """When a report is due."""
        due: list[int] = []
        if self._gap_ms is not None:
            due.append(self._gap_ms + limits.CAST_GAP_MS)
        if self.heard:
            due.append(0 if self.report_ms is None else self.report_ms + limits.CAST_REPORT_MS)
        return min(due, default=None)

    def report(self, now_ms: int) -> list[int]:
        """What is asked for with the report that is due now."""
        self.heard, self.report_ms = False, now_ms
        if self._gap_ms is None or now_ms < self._gap_ms + limits.CAST_GAP_MS:
            return []
        before, missing = self.settled, list[int]()
        for number in range(self.settled + 1, self.top + 1):
            if len(missing) == limits.CAST_ASKED_MAX:
                break
            if number not in self._ahead:
                missing.append(number)
        for number in missing:
            self._unfinished.pop(number, None)
            self._settle(number)
        self._watch_gap(before, now_ms)
        return missing

    # ---------------------------------------------------------------------------------------------
    def _settle(self, number: int) -> None:
        self._ahead[number] = None
        self._advance()

    def _advance(self) -> None:
        while self.settled + 1 in self._ahead:
            self.settled += 1
            del self._ahead[self.settled]

    def _let_go(self, floor: int) -> None:
        """What lies so far behind its sender has no more, nor parts of too many frames."""
        if floor > self.settled:
            came = sum(number <= floor for number in self._ahead)
            self.missed += floor - self.settled - came
            self._ahead = {number: None for number in self._ahead if number > floor}
            self._unfinished = {n: u for n, u in self._unfinished.items() if n > floor}
            self.settled = floor
            self._advance()
        while len(self._unfinished) >= limits.CAST_UNFINISHED_MAX:
            del self._unfinished[min(self._unfinished)]  # it is asked for as a gap

    def _watch_gap(self, settled_before: int, now_ms: int) -> None:
        """Of the oldest number that is missing."""
        if self.settled == self.top:
            self._gap_ms = None
        elif self._gap_ms is None or self.settled > settled_before:
            self._gap_ms = now_ms
