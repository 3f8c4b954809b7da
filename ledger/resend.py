"""Unread events are sent again (seed 003: Updating UnreadMessages), to those who lack them only.

A mark a branch: what is held of it now. If the mark is not Read when its time comes, members whose
receipt is missing get the events again: from the author, or from any holder when the author is
not connected. Earlier, and once, a holder sends on what a member does not show.
"""

from dataclasses import dataclass
from hashlib import sha256

from quipu.ledger import limits
from quipu.ledger.history import BranchRecord
from quipu.ledger.words import BranchKey, NodeId, NodeNo, Now, Seq


@dataclass(slots=True)
class Mark:
    seq: Seq
    relay_ms: int | None
    due_ms: int
    interval_ms: int = limits.SEND_UNREAD_INTERVAL_MS


class Resend:
    def __init__(self, me: NodeId) -> None:
        self._me = me
        self._marks: dict[BranchKey, Mark] = {}

    def note(self, record: BranchRecord, now: Now) -> None:
        """Something on this branch is held and not Read."""
        if record.key not in self._marks:
            self._marks[record.key] = self._mark(record, now)

    def due(
        self, branches: dict[BranchKey, BranchRecord], now: Now
    ) -> list[tuple[BranchKey, bool]]:
        """The branches to send of now, and whether it is the early sending on."""
        found: list[tuple[BranchKey, bool]] = []
        for key, mark in list(self._marks.items()):
            record = branches[key]
            if record.read_seq >= record.held_seq:
                del self._marks[key]
            elif record.read_seq >= mark.seq:
                self._marks[key] = self._mark(record, now)
            elif now.monotonic_ms >= mark.due_ms:
                mark.interval_ms = min(mark.interval_ms * 2, limits.SEND_UNREAD_INTERVAL_MAX_MS)
                mark.due_ms = now.monotonic_ms + mark.interval_ms + self._jitter(key, mark)
                found.append((key, False))
            elif mark.relay_ms is not None and now.monotonic_ms >= mark.relay_ms:
                mark.relay_ms = None
                found.append((key, True))
        return found

    def is_my_part(self, member: NodeNo, holders: list[tuple[NodeNo, NodeId]], seq: Seq) -> bool:
        """Of all who hold an event, one sends it on to a given member."""
        chosen = min(
            holders, key=lambda h: sha256(b"%d:%d:%d" % (h[0], member, seq)).digest(), default=None
        )
        return chosen is not None and chosen[1] == self._me

    def next_deadline(self) -> int | None:
        return min(
            (
                mark.due_ms if mark.relay_ms is None else min(mark.relay_ms, mark.due_ms)
                for mark in self._marks.values()
            ),
            default=None,
        )

    def _mark(self, record: BranchRecord, now: Now) -> Mark:
        mark = Mark(record.held_seq, now.monotonic_ms + limits.RELAY_AFTER_MS, 0)
        mark.due_ms = now.monotonic_ms + mark.interval_ms + self._jitter(record.key, mark)
        return mark

    def _jitter(self, key: BranchKey, mark: Mark) -> int:
        """Up to an eighth of the interval, other on each node."""
        spread = sha256(self._me + b"%d:%d:%d:%d" % (*key, mark.due_ms)).digest()
        return int.from_bytes(spread[:2]) * (mark.interval_ms // 8) >> 16
