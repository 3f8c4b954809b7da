"""Questions to the cluster, and how their answers are counted (seed 004).

The members that count are those of the moment of asking; of each the newest answer counts. An
answer wins with at least half of them, as soon as no other can still come to half. Must not know
links; who signed what was looked at before.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.words import GossipId


class Verdict(StrEnum):
    AGREED = "agreed"
    CONTESTED = "contested"  # two answers have half each
    TIMEOUT = "timeout"  # no answer has half


class Vote(NamedTuple):
    id: GossipId  # of one start and node, the greater is the newer
    answer: bytes
    data: bytes  # the message as its sender signed it


class Outcome(NamedTuple):
    verdict: Verdict
    answer: bytes | None


class Tally:
    def __init__(self, members: Iterable[NodeId]) -> None:
        self.members = tuple(members)
        self.votes: dict[NodeId, Vote] = {}

    def count(self, member: NodeId, vote: Vote) -> bool:
        """False where it changes nothing: no member of that moment, or an older answer."""
        if member not in self.members:
            return False
        known = self.votes.get(member)
        if known is not None and vote.id <= known.id:
            return False
        self.votes[member] = vote
        return True

    def silent(self) -> list[NodeId]:
        return [member for member in self.members if member not in self.votes]

    def outcome(self) -> Outcome | None:
        """None while answers that are missing could change it."""
        at_half = self._at_half()
        if len(at_half) > 1:
            return Outcome(Verdict.CONTESTED, None)
        if not at_half:
            return None
        missing = len(self.members) - len(self.votes)
        rivals = [n for answer, n in self._counts().items() if answer != at_half[0]]
        if 2 * (max(rivals, default=0) + missing) >= len(self.members) and missing:
            return None
        return Outcome(Verdict.AGREED, at_half[0])

    def final(self) -> Outcome:
        """When the time is up."""
        at_half = self._at_half()
        if len(at_half) > 1:
            return Outcome(Verdict.CONTESTED, None)
        if at_half:
            return Outcome(Verdict.AGREED, at_half[0])
        return Outcome(Verdict.TIMEOUT, None)

    def _counts(self) -> dict[bytes, int]:
        counts: dict[bytes, int] = {}
        for vote in self.votes.values():
            counts[vote.answer] = counts.get(vote.answer, 0) + 1
        return counts

    def _at_half(self) -> list[bytes]:
        return [a for a, n in self._counts().items() if 2 * n >= len(self.members)]


# --- asked here ---------------------------------------------------------------------------------
@dataclass(slots=True)
class Asked:
    ticket: int
    question: str
    argument: bytes
    tally: Tally
    end_ms: int
    again_ms: int
    ids: list[GossipId] = field(default_factory=list)


class Ended(NamedTuple):
    asked: Asked
    outcome: Outcome


class Queries:
    def __init__(self) -> None:
        self._asked: dict[int, Asked] = {}
        self._by_id: dict[GossipId, Asked] = {}

    def __len__(self) -> int:
        return len(self._asked)

    def open(self, asked: Asked, identity: GossipId) -> None:
        self._asked[asked.ticket] = asked
        self.name(asked, identity)

    def name(self, asked: Asked, identity: GossipId) -> None:
        """Asked again under another id."""
        asked.ids.append(identity)
        self._by_id[identity] = asked

    def has(self, ticket: int) -> bool:
        return ticket in self._asked

    def answered(self, query: GossipId, member: NodeId, vote: Vote) -> bool:
        """False for an answer to nothing that is asked now, or one that does not count."""
        asked = self._by_id.get(query)
        return asked is not None and asked.tally.count(member, vote)

    def ended(self, now_ms: int) -> list[Ended]:
        found: list[Ended] = []
        for asked in self._asked.values():
            is_over = now_ms >= asked.end_ms
            outcome = asked.tally.final() if is_over else asked.tally.outcome()
            if outcome is not None:
                found.append(Ended(asked, outcome))
        for ended in found:
            del self._asked[ended.asked.ticket]
            for identity in ended.asked.ids:
                del self._by_id[identity]
        return found

    def due_again(self, now_ms: int) -> list[Asked]:
        due = [asked for asked in self._asked.values() if now_ms >= asked.again_ms]
        for asked in due:
            asked.again_ms = now_ms + limits.QUERY_AGAIN_MS
        return due

    def next_deadline(self) -> int | None:
        return min(
            (min(asked.end_ms, asked.again_ms) for asked in self._asked.values()), default=None
        )


# --- asked by others ----------------------------------------------------------------------------
class Open(NamedTuple):
    asker: NodeId
    query: GossipId
    since_ms: int


class Questions:
    """What waits for this node's own answer. The oldest is given up when there are too many."""

    def __init__(self) -> None:
        self._open: dict[int, Open] = {}
        self._number = 0

    def ask(self, asker: NodeId, query: GossipId, now_ms: int) -> int:
        while self._open:
            ticket, oldest = next(iter(self._open.items()))
            is_old = now_ms - oldest.since_ms >= limits.QUESTION_AGE_MS
            if not is_old and len(self._open) < limits.QUESTIONS_OPEN_MAX:
                break
            del self._open[ticket]
        self._number += 1
        self._open[self._number] = Open(asker, query, now_ms)
        return self._number

    def answer(self, ticket: int) -> Open | None:
        return self._open.pop(ticket, None)
