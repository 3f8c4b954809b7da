"""Which signatures a range of events may be spared (design, Reconciliation).

In a run of one cord the newest event's signature signs all before it, through prev. That holds
only if the newest will be held as well: so a run is what continues the cord without a gap and of
which everything else is right already, and only of such a run are signatures spared.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from quipu.ledger.event import Header, SignedEvent, Standing, has_valid_signature
from quipu.ledger.known import Known
from quipu.ledger.words import Cord, EpochNo, EventId, Hlc, Journal, NodeId, NodeNo


class _Ready(NamedTuple):
    """What an event's children are measured by."""

    cord: Cord
    epoch: int
    hlc: int
    depth: int


@dataclass(slots=True)
class _Run:
    events: list[SignedEvent] = field(default_factory=list)
    rests_on: dict[Cord, None] = field(default_factory=dict)  # other runs of the same answer


@dataclass(slots=True)
class Runs:
    """Invariant: `ready` events would all be admitted if their runs' newest signatures are good."""

    known: Known
    due_until: Hlc
    _ready: dict[EventId, _Ready] = field(default_factory=dict)
    _runs: dict[Cord, _Run] = field(default_factory=dict)

    def standings(self, events: list[SignedEvent]) -> dict[EventId, Standing]:
        """Of events in causal order, as far as the rule has a say; the others are unchecked."""
        for event in events:
            self._consider(event)
        failed = [
            cord
            for cord, run in self._runs.items()
            if not has_valid_signature(run.events[-1], self.known.verify)
        ]
        for cord in failed:  # grows while it is walked: what rests on a failed run
            failed += [
                other
                for other, run in self._runs.items()
                if cord in run.rests_on and other not in failed
            ]
        found: dict[EventId, Standing] = {}
        for cord, run in self._runs.items():
            if cord not in failed:
                found.update(dict.fromkeys((e.id for e in run.events), Standing.SPARED))
                found[run.events[-1].id] = Standing.GOOD
        return found

    def _consider(self, event: SignedEvent) -> None:
        header = event.header
        author_no = self._author_no(header)
        if author_no is None or header.hlc > self.due_until:
            return
        cord = Cord(author_no, Journal(header.journal))
        if not self._continues(header, cord):
            return
        rests_on: dict[Cord, None] = {}
        epoch, hlc, depth = 0, 0, 0
        ancestors = header.parents if header.seq == 1 else (header.prev, *header.parents)
        for identity in ancestors:
            found = self._ready.get(EventId(identity)) or self._held(EventId(identity))
            if found is None or (found.cord == cord and identity != header.prev):
                return
            if found.cord != cord and identity in self._ready:
                rests_on[found.cord] = None
            epoch, hlc = max(epoch, found.epoch), max(hlc, found.hlc)
            depth = max(depth, found.depth)
        if epoch > header.epoch or hlc >= header.hlc or depth + 1 != header.depth:
            return
        run = self._runs.setdefault(cord, _Run())
        run.events.append(event)
        run.rests_on.update(rests_on)
        self._ready[event.id] = _Ready(cord, header.epoch, header.hlc, header.depth)

    def _author_no(self, header: Header) -> NodeNo | None:
        """None: there is more to be said about this author than a run can."""
        epochs = self.known.epochs
        epoch = epochs.by_number.get(EpochNo(header.epoch))
        author = NodeId(header.author)
        if (
            epoch is None
            or header.cluster_id != epochs.cluster_id
            or author not in epochs.newest.numbers
            or self.known.convictions.of_author(author) is not None
        ):
            return None
        return epoch.numbers.get(author)

    def _continues(self, header: Header, cord: Cord) -> bool:
        run, branches = self._runs.get(cord), self.known.dag.cords.get(cord, ())
        if run is not None:
            newest = run.events[-1]
            return header.prev == newest.id and header.seq == newest.header.seq + 1
        if header.seq == 1:
            return not branches
        return (
            len(branches) == 1
            and branches[0].held_id == header.prev
            and branches[0].held_seq == header.seq - 1
        )

    def _held(self, identity: EventId) -> _Ready | None:
        meta = self.known.past.meta(identity)
        return meta and _Ready(meta.branch.cord, meta.epoch, meta.hlc, meta.depth)
