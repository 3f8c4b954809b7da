"""What this node answers when somebody asks the cluster: a closed list, each answer a short text.

Nodes that agree answer the same bytes, for the tally counts equal answers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

import msgspec

from quipu import __version__
from quipu.ledger.canonical import encode
from quipu.ledger.words import Now
from quipu.node import limits
from quipu.node.service import Ledger
from quipu.p2p.words import PeerState

UNKNOWN_QUESTION = "unknown-question"
BAD_ARGUMENT = "bad-argument"
SNAPSHOT_QUESTION = "executor-snapshot"  # one node asks one other: nobody counts the answers


DIGEST_SHOWN = 16  # digits of the digest of an executor: enough to see two apart


class Question(StrEnum):
    VERSION = "version"
    TIME = "time"
    FRONTIER = "frontier"
    READ_COUNT = "read-count"
    EPOCH = "epoch"
    HEALTH = "health"
    CORDS = "cords"
    MEMBERS = "members"
    JOURNAL = "journal"


MEANINGS = {
    Question.VERSION: "the version of the program",
    Question.TIME: "its wall clock in milliseconds since 1970, rounded down to a multiple of the "
    "argument (milliseconds; a minute where none is given)",
    Question.FRONTIER: "SHA-256 of how far each cord is Read: equal on nodes with equal Models",
    Question.READ_COUNT: "how many events are Read",
    Question.EPOCH: "number of the newest epoch, its policy and its members",
    Question.HEALTH: "ok, or the names of the checks that fail",
    Question.CORDS: "how far it holds each cord, as JSON; the newest journals first, 400 at most",
    Question.MEMBERS: "what it holds each other member for, as JSON: `[number, state, it hears "
    "them, they hear it]`",
    Question.JOURNAL: "where it stands in the order, as JSON: role, regime, number of the master, "
    "applied, chosen; of its executor: state, executed, digest",
}


@dataclass(frozen=True, slots=True)
class Answers:
    """Asked by members over the network: it never raises, and reads a bounded amount."""

    ledger: Ledger
    clock: Callable[[], Now]
    chunk: Callable[[bytes], bytes] = lambda argument: b""  # of a snapshot of the executor here

    def answer(self, question: str, argument: bytes) -> bytes:
        """A question of a later version, or an argument that makes no sense, is answered too."""
        if question == SNAPSHOT_QUESTION:
            return self.chunk(argument)
        try:
            known = Question(question)
        except ValueError:
            return UNKNOWN_QUESTION.encode()
        if argument and known is not Question.TIME:
            return BAD_ARGUMENT.encode()
        return self._answer(known, argument).encode()

    def _answer(self, question: Question, argument: bytes) -> str:
        ledger = self.ledger
        match question:
            case Question.VERSION:
                return __version__
            case Question.TIME:
                return self._time(argument)
            case Question.FRONTIER:
                return model_digest(ledger)
            case Question.READ_COUNT:
                return str(ledger.feed_number)
            case Question.EPOCH:
                members = ",".join(
                    f"{number}:{node_id.hex()}"
                    for number, node_id in sorted(ledger.epoch.members.items())
                )
                return f"{ledger.epoch.number} {ledger.epoch.policy} {members}"
            case Question.CORDS:
                return msgspec.json.encode(cords_of(ledger)).decode()
            case Question.MEMBERS:
                return msgspec.json.encode(members_seen(ledger)).decode()
            case Question.JOURNAL:
                return msgspec.json.encode(journal_place(ledger)).decode()
            case Question.HEALTH:
                health = ledger.health()
                checks = health.live + health.ready + health.read
                return ",".join(c.name for c in checks if not c.passes) or "ok"

    def _time(self, argument: bytes) -> str:
        step_ms = limits.QUESTION_TIME_STEP_MS
        if argument:
            if not argument.isdigit() or len(argument) > limits.QUESTION_TIME_DIGITS_MAX:
                return BAD_ARGUMENT
            step_ms = int(argument)
        if step_ms == 0:
            return BAD_ARGUMENT
        wall_ms = self.clock().wall_ms
        return str(wall_ms - wall_ms % step_ms)


class CordRow(msgspec.Struct, array_like=True, frozen=True, order=True):
    """One branch of one cord. Its bytes up to `read_seq` are Read."""

    author_no: int
    journal: int
    held_seq: int
    held_id: str
    read_seq: int


class Cords(msgspec.Struct, frozen=True):
    """`from_journal`: cords of older journals are left out; 0: none is."""

    from_journal: int
    rows: list[CordRow]


def cords_of(ledger: Ledger) -> Cords:
    held = [
        CordRow(row.author_no, row.journal, row.held_seq, row.held_id.hex(), row.read_seq)
        for row in ledger.frontier()
    ]
    held.sort(key=lambda row: (-row.journal, row))
    most = limits.CORDS_ANSWERED_MAX
    if len(held) <= most:
        return Cords(0, held)
    start = held[most].journal + 1  # of a journal all cords or none
    return Cords(start, [row for row in held[:most] if row.journal >= start])


def members_seen(ledger: Ledger) -> list[tuple[int, str, bool, bool]]:
    """The other members as this node sees them, by number."""
    views = {view.peer: view for view in ledger.peers()}
    others = [row for row in ledger.members() if row.node_id != ledger.node_id]
    seen = [(row.number, views.get(row.node_id)) for row in others]
    return [
        (number, str(view.state), view.linked_in, view.linked_out)
        if view is not None
        else (number, str(PeerState.UNKNOWN), False, False)
        for number, view in seen
    ]


class JournalPlace(msgspec.Struct, frozen=True):
    """Where a node stands in the order."""

    role: str
    regime: int
    master: int | None
    applied: int
    chosen: int
    executor: str  # running, off, waiting, failed
    executed: int  # of the log
    digest: str  # over all commands up to there, how it begins


def journal_place(ledger: Ledger) -> JournalPlace:
    found = ledger.order.status()
    executor = ledger.clients.status()
    return JournalPlace(
        *(found.role, found.regime, found.master, found.applied, found.chosen),
        *(executor.state, executor.applied, executor.digest.hex()[:DIGEST_SHOWN]),
    )


def model_digest(ledger: Ledger) -> str:
    """Of the Read end of every cord, whatever the numbers of branches are called here."""
    rows = sorted(
        [row.author_no, row.journal, row.read_seq, row.read_id]
        for row in ledger.frontier()
        if row.read_seq
    )
    return sha256(encode([ledger.cluster_id, rows])).hexdigest()
