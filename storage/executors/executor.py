"""The contract of an executor: what a node asks of it, whatever it keeps its data in.

It is told what the order says, in the order, each thing once. It promises that `apply` is all or
nothing and durable on return together with the applied index, and that from equal commands come
equal outcomes and equal digests on every machine.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from quipu.storage.executors.outcome import Answer, Code, Kept, Outcome
from quipu.storage.executors.request import ClientId, Digest, LogIndex, MessageId, Ordered, Request
from quipu.storage.store import StoreError

NO_DIGEST = Digest(bytes(32))


class Mark(NamedTuple):
    """How far an executor is, and the digest of all that brought it there."""

    at: LogIndex
    digest: Digest


class Position(NamedTuple):
    applied: Mark
    engine: str  # outcomes are comparable between equal engines alone


class Snapshot(NamedTuple):
    """What a file must be equal to when somebody begins from it."""

    applied: Mark
    tables: Digest
    engine: str
    file_bytes: int
    file_digest: Digest


class Released(NamedTuple):
    """The client has said that it holds the results up to here."""

    upto: int


class OutOfOrder(StoreError):
    """The commands do not follow what is applied. Nothing was done."""


class Diverged(StoreError):
    """Another executor has another digest at the same index: one of the two must stop serving."""

    def __init__(self, index: int, mine: bytes, theirs: bytes) -> None:
        super().__init__(f"index {index}: {mine.hex()[:16]} here, {theirs.hex()[:16]} there")
        self.index = index
        self.mine = mine
        self.theirs = theirs


class SnapshotMismatch(StoreError):
    """A snapshot is not what its description says. Nothing was begun from it."""


class OtherEngine(StoreError):
    """What is here was made by another engine, whose outcomes need not be ours."""


class RequestRefused(Exception):
    """A request that could never be done, told before it is ordered: which message, and why."""

    def __init__(self, message: int, code: Code, detail: str) -> None:
        super().__init__(f"message {message}: {code}: {detail}")
        self.message = message
        self.code = code
        self.detail = detail


class Executor(Protocol):
    def position(self) -> Position: ...

    def digest_at(self, index: LogIndex) -> Digest | None:
        """The digest of all up to an index, for those that are kept: see `check_mark`."""

    def validate(self, request: Request) -> None:
        """Raises RequestRefused for what no executor would do. Changes nothing."""

    def apply(self, ordered: Sequence[Ordered], upto: LogIndex) -> list[Outcome | Answer]:
        """One turn: all of the log above the applied index and up to `upto`, made durable at once;
        one outcome a command."""

    def result(self, client: ClientId, message: MessageId) -> Kept | Released | None:
        """What is stored for a request; None where none has been executed."""

    def table_digest(self) -> Digest:
        """Of all that apps and clients can see, whatever its layout in the file."""

    def snapshot(self, target: Path) -> Snapshot:
        """A file from which another executor begins; there whole or not at all."""

    def close(self) -> None:
        """Once or more than once."""


def next_digest(before: Digest, index: LogIndex, command: Digest, outcome: Digest) -> Digest:
    """The running digest: one step a command, so that it does not know of turns."""
    place = index.to_bytes(8, "big")
    return Digest(hashlib.sha256(b"quipu run\0" + before + place + command + outcome).digest())


def check_mark(executor: Executor, theirs: Mark) -> bool:
    """Raises Diverged; False where this executor no longer or not yet knows that index."""
    mine = executor.digest_at(theirs.at)
    if mine is None:
        return False
    if mine != theirs.digest:
        raise Diverged(theirs.at, mine, theirs.digest)
    return True
