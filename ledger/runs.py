"""Which signatures a range of events may be spared (design, Reconciliation).

In a run of one cord the newest event's signature signs all before it, through prev. That holds
only if the newest will be held as well: so a run is what continues the cord without a gap and of
which everything else is right already, and only of such a run are signatures spared. With that
everything is known that admission would ask of its events.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from quipu.ledger.event import (
    EventMeta,
    Header,
    SignedEvent,
    has_valid_signature,
    meta_of,
)
from quipu.ledger.known import Known
from quipu.ledger.words import Cord, EpochNo, EventId, Hlc, Journal, NodeId, NodeNo

Place = tuple[int, ...]  # author and journal of a cord; a slot begins with them


class Granted(NamedTuple):
    """Events that may be held as they are, where all before them in the answer are."""

    metas: dict[EventId, EventMeta]
    spared: set[EventId]  # those of them whose signature nobody has looked at


@dataclass(slots=True)
class _Run:
    """Invariant: `newest` is what is held of the cord, or the last event of the run."""

    number: int  # of the branch
    newest: EventMeta | None
    last: SignedEvent | None = None
    metas: list[EventMeta] = field(default_factory=list)
    rests_on: dict[Place, None] = field(default_factory=dict)  # other runs of the same answer


@dataclass(slots=True)
class Runs:
    """Invariant: `ready` events would all be admitted if their runs' newest signatures are good."""

    known: Known
    due_until: Hlc
    _ready: dict[EventId, EventMeta] = field(default_factory=dict)
    _runs: dict[Place, _Run | None] = field(default_factory=dict)  # None: nothing continues it
    _authors: dict[tuple[bytes, int], NodeNo | None] = field(default_factory=dict)

    def granted(self, events: list[SignedEvent]) -> Granted:
        """Of events in causal order, as far as the rule has a say."""
        for event in events:
            self._consider(event)
        runs = {place: run for place, run in self._runs.items() if run and run.last}
        failed = [
            place
            for place, run in runs.items()
            if run.last and not has_valid_signature(run.last, self.known.verify)
        ]
        for place in failed:  # grows while it is walked: what rests on a failed run
            failed += [
                other
                for other, run in runs.items()
                if place in run.rests_on and other not in failed
            ]
        found = Granted({}, set())
        for place, run in runs.items():
            if place not in failed:
                ids = [meta.id for meta in run.metas]
                found.metas.update(zip(ids, run.metas, strict=True))
                found.spared.update(ids[:-1])
        return found

    def _consider(self, event: SignedEvent) -> None:
        """Written flat, as all that runs for each event of an answer."""
        header = event.header
        place = self._place_of(header)
        run = self._runs[place] if place is not None else None
        if run is None or place is None:
            return
        newest = run.newest
        epoch = hlc = depth = seq = 0
        if newest is not None:
            if newest.id != header.prev:
                return
            seq, epoch, hlc, depth = newest.slot[2], newest.epoch, newest.hlc, newest.depth
        if header.seq != seq + 1:
            return
        rests_on: list[Place] = []
        for identity in header.parents:
            parent = self._ready.get(identity)  # type: ignore[call-overload]
            if parent is not None:
                rests_on.append(parent.slot[:2])
            else:
                parent = self.known.past.meta(EventId(identity))
            if parent is None or parent.slot[:2] == place:
                return
            epoch, hlc = max(epoch, parent.epoch), max(hlc, parent.hlc)
            depth = max(depth, parent.depth)
        if epoch > header.epoch or hlc >= header.hlc or depth + 1 != header.depth:
            return
        run.last = event
        run.newest = self._ready[event.id] = meta = meta_of(event, NodeNo(place[0]), run.number)
        run.metas.append(meta)
        run.rests_on.update(dict.fromkeys(rests_on))

    def _place_of(self, header: Header) -> Place | None:
        """Its cord, of which `_runs` knows then; None: nothing can be said about this event."""
        author = (header.author, header.epoch)
        if author not in self._authors:
            self._authors[author] = self._author_no(header)
        author_no = self._authors[author]
        if (
            author_no is None
            or header.hlc > self.due_until
            or header.cluster_id != self.known.epochs.cluster_id
        ):
            return None
        place = (author_no, header.journal)
        if place not in self._runs:
            self._runs[place] = self._begun(Cord(author_no, Journal(header.journal)))
        return place

    def _author_no(self, header: Header) -> NodeNo | None:
        """None: there is more to be said about this author than a run can."""
        epochs = self.known.epochs
        epoch = epochs.by_number.get(EpochNo(header.epoch))
        author = NodeId(header.author)
        if (
            epoch is None
            or author not in epochs.newest.numbers
            or self.known.convictions.of_author(author) is not None
        ):
            return None
        return epoch.numbers.get(author)

    def _begun(self, cord: Cord) -> _Run | None:
        """Only what has one branch is continued without more ado."""
        branches = self.known.dag.cords.get(cord, ())
        if len(branches) > 1:
            return None
        if not branches:
            return _Run(0, None)
        return _Run(branches[0].key.number, self.known.past.held(branches[0].held_id))
