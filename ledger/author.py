"""One's own events (seed 003: sending an Event): packs what waits into signed, hash-linked ones.

Every start opens a new journal, with its first event; so does a fork proof against this node, or
a cord of its own that has run ahead of the cluster's clock. So a crashed, restored, rolled-back
or cloned node never writes into an old one.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from quipu.ledger import limits
from quipu.ledger.event import EventMeta, Place, SignedEvent, build_event
from quipu.ledger.inputs import EntriesSubmitted
from quipu.ledger.known import Known
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.words import (
    HLC_SHIFT,
    BranchKey,
    Cord,
    EpochNo,
    EventId,
    Hlc,
    Journal,
    NodeNo,
    Seq,
)

RANDOM_MASK = (1 << limits.JOURNAL_RANDOM_BITS) - 1


@dataclass(slots=True)
class Author:
    """Invariant: the journal written to was opened in this life of the program."""

    known: Known
    entropy: int
    newest_journal: Journal  # the greatest that this node knows of itself
    journal: Journal | None = None
    unread_entries: int = 0
    unread_bytes: int = 0
    _queue: deque[tuple[EntriesSubmitted, int]] = field(default_factory=deque)  # with its bytes
    _journals: dict[Journal, None] = field(default_factory=dict)  # opened in this life
    _named: dict[EventId, Seq] = field(default_factory=dict)  # leaves named by own Unread events

    def submit(self, submission: EntriesSubmitted) -> None:
        """Takes entries that the caller has found well-formed; refuses what no event can hold."""
        size = self.check_size(submission.entries)
        if self.is_backlogged():
            refuse(Reason.UNREAD_BACKLOG)
        self._queue.append((submission, size))

    def check_size(self, entries: Sequence[bytes]) -> int:
        if not 1 <= len(entries) <= limits.EVENT_ENTRIES_MAX:
            refuse(Reason.BAD_BODY, f"{len(entries)} entries; one event holds 1 to 10,000")
        size = sum(map(len, entries)) + limits.ENTRY_OVERHEAD_BYTES * (len(entries) + 1)
        if size > limits.EVENT_BYTES_MAX:
            refuse(Reason.TOO_LARGE, f"{size} bytes; one event holds 4 MiB")
        return size

    def is_backlogged(self) -> bool:
        return (
            self.unread_entries >= limits.UNREAD_ENTRIES_OWN_MAX
            or self.unread_bytes >= limits.UNREAD_BYTES_OWN_MAX
        )

    def take_batch(self) -> list[EntriesSubmitted]:
        """The submissions of the next event: as many as fit, none divided."""
        batch: list[EntriesSubmitted] = []
        count = size = 0
        while self._queue:
            submission, submission_bytes = self._queue[0]
            size += submission_bytes
            count += len(submission.entries)
            if batch and (count > limits.EVENT_ENTRIES_MAX or size > limits.EVENT_BYTES_MAX):
                break
            batch.append(submission)
            self._queue.popleft()
        return batch

    def close_journal(self) -> None:
        """The next event opens a new one."""
        self.journal = None

    def write(
        self,
        me: NodeNo,
        epoch: EpochNo,
        now_hlc: Hlc,
        due_until: Hlc,
        batch: list[EntriesSubmitted],
    ) -> SignedEvent:
        tip = self._tip(me, due_until)
        if tip is None:
            self.journal = self._open_journal(me, now_hlc)
        assert self.journal is not None
        cord = Cord(me, self.journal)
        parents = self._choose_parents(cord, epoch)
        ancestors = [*parents, tip] if tip else parents
        newest_hlc = max((meta.hlc for meta in ancestors), default=0)
        place = Place(
            cluster_id=self.known.cluster_id,
            epoch=epoch,
            cord=cord,
            seq=Seq(tip.seq + 1 if tip else 1),
            prev=tip.id if tip else EventId(self.known.cluster_id),
            parents=tuple(sorted(meta.id for meta in parents)),
            hlc=Hlc(max(now_hlc, newest_hlc + 1)),
            depth=1 + max((meta.depth for meta in ancestors), default=0),
        )
        event = build_event(self.known.key, place, [e for item in batch for e in item.entries])
        self._named.update((meta.id, place.seq) for meta in parents)
        self.unread_entries += event.header.entry_count
        self.unread_bytes += event.size
        return event

    def became_read(self, meta: EventMeta) -> None:
        if meta.slot.journal not in self._journals:
            return
        self.unread_entries -= meta.entry_count
        self.unread_bytes -= meta.size
        if meta.slot.journal != self.journal:
            return
        for named in [i for i, seq in self._named.items() if seq <= meta.seq]:
            del self._named[named]

    def _tip(self, me: NodeNo, due_until: Hlc) -> EventMeta | None:
        """The last event of the journal that goes on; None where a new one must begin."""
        if self.journal is None and not self.known.guards.new_journal_at_start:
            self.journal = self.known.dag.newest_journal.get(me)
        if self.journal is None:
            return None
        branch = self.known.dag.branches.get(BranchKey(me, self.journal, 0))
        if branch is None or branch.held_hlc > due_until:
            return None  # it would wait for receipts with all that is written above it
        return self.known.past.held(branch.held_id)

    def _open_journal(self, me: NodeNo, now_hlc: Hlc) -> Journal:
        # Above every older one also where the clock was set back, and random there as well: the
        # clone of a directory knows the same older ones.
        newest = max(self.newest_journal, self.known.dag.newest_journal.get(me, Journal(0)))
        begun_ms = max(now_hlc >> HLC_SHIFT, (newest >> limits.JOURNAL_RANDOM_BITS) + 1)
        random_bits = self.entropy & RANDOM_MASK
        self.newest_journal = Journal((begun_ms << limits.JOURNAL_RANDOM_BITS) | random_bits)
        self._journals[self.newest_journal] = None
        self._named.clear()
        return self.newest_journal

    def _choose_parents(self, cord: Cord, epoch: EpochNo) -> list[EventMeta]:
        """Leaves of other cords not named yet, oldest first; none of an epoch whose cut is not in
        the Model yet, for the epoch never falls along an edge."""
        parents: list[EventMeta] = []
        for identity, _ in sorted(
            self.known.dag.leaves.items(), key=lambda item: (item[1], item[0])
        ):
            if identity in self._named:
                continue
            meta = self.known.past.held(identity)
            if meta.branch.cord == cord or meta.epoch > epoch:
                continue
            parents.append(meta)
            if len(parents) == limits.PARENTS_MAX:
                break
        return parents
