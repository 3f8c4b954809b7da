"""Streams and how much is in them."""

from dataclasses import dataclass, field

from quipu.api import limits
from quipu.ledger.entry import decode_entry
from quipu.ledger.event import decode_body
from quipu.ledger.holes import is_hole
from quipu.ledger.words import HLC_SHIFT
from quipu.node.service import Ledger


@dataclass(slots=True)
class _Tally:
    entries: int = 0
    first_ms: int = 0
    last_ms: int = 0


@dataclass(slots=True)
class StreamTallies:
    """Counts of the streams, made from the feed and kept up to date with it.

    Invariant: it counts exactly the events up to feed number `upto`.
    """

    upto: int = 0
    by_name: dict[str, _Tally] = field(default_factory=dict)

    def advance(self, ledger: Ledger, events_max: int) -> bool:
        """Counts on, at most that many events; True: all are counted."""
        for number, identity in ledger.feed(self.upto, events_max):
            event = ledger.event(identity)
            assert event is not None
            for data in decode_body(event.header, event.body):
                if is_hole(data):
                    continue
                self._add(decode_entry(data).stream, event.header.hlc >> HLC_SHIFT)
            self.upto = number
        return self.upto >= ledger.feed_number

    def _add(self, stream: str, time_ms: int) -> None:
        tally = self.by_name.get(stream)
        if tally is None:
            if len(self.by_name) >= limits.STREAMS_COUNTED_MAX:
                return
            tally = self.by_name[stream] = _Tally(0, time_ms, time_ms)
        tally.entries += 1
        tally.first_ms = min(tally.first_ms, time_ms)
        tally.last_ms = max(tally.last_ms, time_ms)
