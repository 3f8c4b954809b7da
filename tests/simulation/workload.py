"""Apps: bursts of submissions at random nodes, and the history of what they were told."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quipu.ledger.entry import data_entry, encode_entry
from quipu.ledger.event import decode_body
from quipu.ledger.inputs import EntriesSubmitted
from quipu.ledger.refusals import Reason
from quipu.ledger.words import EventId, Ticket
from tests.simulation.violation import Property, Violation

if TYPE_CHECKING:
    from tests.simulation.node import SimNode
    from tests.simulation.record import Record
    from tests.simulation.world import World

ENTRIES_MAX = 20
DATA_BYTES_MIN = 10
DATA_BYTES_MAX = 300


@dataclass(slots=True)
class Submission:
    ticket: Ticket
    node: SimNode
    boot: int
    entries: tuple[bytes, ...]
    at_us: int
    stored: EventId | None = None
    lineage: int = 0  # of the disk that acknowledged it
    refused: Reason | None = None


class History:
    """Invariant: every ticket is told at most one thing, and that thing is true."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self.submissions: dict[Ticket, Submission] = {}
        self.read_us: dict[EventId, int] = {}  # when it was Read first, anywhere

    def on_stored(self, node: SimNode, ticket: Ticket, place: tuple[EventId, int]) -> None:
        submission = self.submissions[ticket]
        event_id, index = place
        if submission.stored is not None or submission.refused is not None:
            raise Violation(Property.ANSWER_TRUE, f"{node} answers ticket {ticket} twice")
        event = self._record.events[event_id].event
        entries = decode_body(event.header, event.body)
        if tuple(entries[index : index + len(submission.entries)]) != submission.entries:
            raise Violation(Property.ANSWER_TRUE, f"{node}: ticket {ticket} is not in that event")
        submission.stored, submission.lineage = event_id, node.lineage

    def on_refused(self, ticket: Ticket, reason: Reason) -> None:
        submission = self.submissions[ticket]
        if submission.stored is not None or submission.refused is not None:
            raise Violation(Property.ANSWER_TRUE, f"ticket {ticket} is answered twice")
        submission.refused = reason

    def on_read(self, identity: EventId, now_us: int) -> None:
        self.read_us.setdefault(identity, now_us)


class Workload:
    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = random.Random(f"{world.seed}/workload")
        self._tickets = 0

    def burst(self, count: int) -> None:
        """Some submissions at one or a few of the nodes that are up."""
        alive = [node for node in self._world.members_up() if node.honest]
        if not alive:
            return
        for _ in range(count):
            self.submit(self._rng.choice(alive), self._rng.randint(1, ENTRIES_MAX))

    def submit(self, node: SimNode, count: int, data_bytes: int | None = None) -> Submission:
        entries = tuple(self._entry(data_bytes) for _ in range(count))
        self._tickets += 1
        ticket = Ticket(self._tickets)
        now_us = self._world.scheduler.now_us
        submission = Submission(ticket, node, node.boot, entries, now_us)
        self._world.history.submissions[ticket] = submission
        node.push(EntriesSubmitted(ticket, entries))
        return submission

    def _entry(self, data_bytes: int | None) -> bytes:
        size = data_bytes or self._rng.randint(DATA_BYTES_MIN, DATA_BYTES_MAX)
        return encode_entry(data_entry(self._rng.randbytes(size)))
