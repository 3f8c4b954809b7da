"""What this node multicasts: who hears it, by what they report, and what is kept for repair.

Nobody hears it before its first report, nor after two that did not come: then what it had not
settled goes over its link. Must not know what a frame says, nor how it travels.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.bodies import CastReport
from quipu.p2p.cast import Stream
from quipu.p2p.words import PoolName


class Frame(NamedTuple):
    """As it would go over a link, without its head."""

    pool: PoolName | None  # None: ALIVE
    content: bytes


@dataclass(slots=True)
class _Sent:
    frame: Frame | None  # None: an empty one
    owed: dict[NodeId, None]  # who has it from nobody else


@dataclass(slots=True)
class _Hearer:
    told_ms: int | None = None  # its last report
    settled: int = 0
    judged: int = 0  # the newest number when its losses were judged last
    lost: int = 0  # since then
    rest_until_ms: int = 0


@dataclass(slots=True)
class Casting:
    """Invariant: `_window` holds consecutive numbers, the newest is `number`."""

    stream: Stream
    number: int = 0
    sent_ms: int = 0
    repaired: int = 0  # frames
    hearers: dict[NodeId, _Hearer] = field(default_factory=dict)  # who was told the key
    _window: dict[int, _Sent] = field(default_factory=dict)
    _window_bytes: int = 0
    _room_bytes: int = limits.CAST_BURST_BYTES_MAX
    _room_ms: int = 0

    # --- peers ----------------------------------------------------------------------------------
    def told_key(self, peer: NodeId) -> None:
        self.hearers[peer] = _Hearer(settled=self.number, judged=self.number)

    def lose(self, peer: NodeId) -> None:
        self.hearers.pop(peer, None)

    def hears(self, peer: NodeId, now_ms: int) -> bool:
        hearer = self.hearers.get(peer)
        return (
            hearer is not None
            and hearer.told_ms is not None
            and now_ms < hearer.told_ms + limits.CAST_SILENT_MS
            and now_ms >= hearer.rest_until_ms
        )

    def reported(self, peer: NodeId, report: CastReport, now_ms: int) -> list[Frame] | None:
        """What the peer lacks and is owed. None: it was never told this key."""
        hearer = self.hearers.get(peer)
        if hearer is None or report.stream != self.stream.id:
            return None
        hearer.told_ms = now_ms
        hearer.settled = max(hearer.settled, min(report.settled, self.number))
        hearer.lost += len(report.missing)
        self._judge(hearer, now_ms)
        return self._owed(peer, report.missing)

    def fallen_silent(self, now_ms: int) -> dict[NodeId, list[Frame]]:
        """Who has stopped to report, and what it may not have."""
        found: dict[NodeId, list[Frame]] = {}
        for peer, hearer in self.hearers.items():
            if hearer.told_ms is not None and now_ms >= hearer.told_ms + limits.CAST_SILENT_MS:
                hearer.told_ms = None
                found[peer] = self._owed(peer, [n for n in self._window if n > hearer.settled])
        return found

    def silent_ms(self) -> int | None:
        told = [hearer.told_ms for hearer in self.hearers.values()]
        oldest_ms = min((ms for ms in told if ms is not None), default=None)
        return None if oldest_ms is None else oldest_ms + limits.CAST_SILENT_MS

    # --- frames ---------------------------------------------------------------------------------
    def has_room(self, frame_bytes: int, now_ms: int) -> bool:
        """Within the rate. Takes the room."""
        earned = (now_ms - self._room_ms) * limits.CAST_BYTES_MS_MAX
        self._room_ms = now_ms
        self._room_bytes = min(self._room_bytes + earned, limits.CAST_BURST_BYTES_MAX)
        if frame_bytes > self._room_bytes:
            return False
        self._room_bytes -= frame_bytes
        return True

    def next_number(self, frame: Frame | None, receivers: tuple[NodeId, ...], now_ms: int) -> int:
        """Of a frame that leaves now, and is kept for those."""
        self.number += 1
        self.sent_ms = now_ms
        self._window[self.number] = _Sent(frame, dict.fromkeys(receivers))
        self._window_bytes += _size(frame)
        while (
            len(self._window) > limits.CAST_WINDOW or self._window_bytes > limits.CAST_WINDOW_BYTES
        ):
            self._window_bytes -= _size(self._window.pop(next(iter(self._window))).frame)
        return self.number

    def tail_ms(self) -> int:
        """When an empty frame is due: soon after one that was not, then now and then."""
        newest = self._window.get(self.number)
        is_tail = newest is not None and newest.frame is not None
        return self.sent_ms + (limits.CAST_TAIL_MS if is_tail else limits.CAST_REPORT_MS)

    # ---------------------------------------------------------------------------------------------
    def _owed(self, peer: NodeId, numbers: list[int]) -> list[Frame]:
        """Each once, however often it is asked for."""
        found: list[Frame] = []
        for number in numbers:
            sent = self._window.get(number)
            if sent is not None and sent.frame is not None and peer in sent.owed:
                del sent.owed[peer]
                found.append(sent.frame)
        self.repaired += len(found)
        return found

    def _judge(self, hearer: _Hearer, now_ms: int) -> None:
        sent = self.number - hearer.judged
        if sent < limits.CAST_JUDGED_MIN:
            return
        if hearer.lost * limits.CAST_LOST_SHARE > sent:
            hearer.rest_until_ms = now_ms + limits.CAST_REST_MS
        hearer.judged, hearer.lost = self.number, 0


def _size(frame: Frame | None) -> int:
    return 0 if frame is None else len(frame.content)
