"""Linear reads at the master: where its log ended, once a majority still answers it.

Whatever was acknowledged before the question stands at or below that index; who asked waits until
all up to it is chosen.
"""

from typing import NamedTuple

from quipu.ledger import limits
from quipu.ledger.log.master import Master
from quipu.ledger.log.state import LogState
from quipu.ledger.log.words import Index, LogTicket
from quipu.ledger.words import NodeNo


class Question(NamedTuple):
    peer: NodeNo | None  # None: of this node
    ticket: LogTicket
    limit: Index  # to be read up to here
    round: int  # answered by a majority in this round or later


class Reads:
    def __init__(self, state: LogState, master: Master) -> None:
        self._state = state
        self._master = master
        self._questions: list[Question] = []

    def ask(self, peer: NodeNo | None, ticket: LogTicket) -> None:
        """As master."""
        reign = self._master.current
        if len(self._questions) >= limits.LOG_TICKETS_MAX:
            return  # who asked will hear nothing and ask again
        # A voter that counts may know of a choice before its master does: all that was written
        # may have been acknowledged somewhere.
        limit = self._state.log.last_index
        self._questions.append(Question(peer, ticket, limit, reign.round + 1))
        reign.urgent = True

    def ready(self) -> list[tuple[NodeNo | None, LogTicket, Index]]:
        done: list[tuple[NodeNo | None, LogTicket, Index]] = []
        confirms = self._state.guards.reads_confirmed
        left: list[Question] = []
        for question in self._questions:
            if not confirms or self._master.confirmed(question.round, self._state.log.voters):
                done.append((question.peer, question.ticket, question.limit))
            else:
                left.append(question)
        self._questions = left
        return done

    def close(self) -> list[tuple[NodeNo | None, LogTicket]]:
        """Nobody is master here any more."""
        questions, self._questions = self._questions, []
        return [(question.peer, question.ticket) for question in questions]
