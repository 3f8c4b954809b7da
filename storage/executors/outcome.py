"""What came of a command: results with rows, failures as results, and their digests.

The digest covers what an app may rely on: codes, columns, rows, counts. The words of a failure
are for people and stand outside of it.
"""

import hashlib
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from quipu.storage.executors import limits
from quipu.storage.executors.request import Digest

Value = int | float | str | bytes | None
Row = tuple[Value, ...]


class Code(StrEnum):
    OK = "ok"
    # a message
    ROLLED_BACK = "rolled-back"  # it ran, and a later message of its request failed
    NOT_RUN = "not-run"  # an earlier message of its request failed
    UNKNOWN_KIND = "unknown-kind"
    MALFORMED = "malformed"  # the body is not what its kind asks for
    BAD_SQL = "bad-sql"
    BAD_PARAMETERS = "bad-parameters"
    NOT_ALLOWED = "not-allowed"  # a statement that no client may order
    NOT_DETERMINISTIC = "not-deterministic"
    NO_RIGHT = "no-right"  # the client's access list does not grant it
    NOT_UNIQUE = "not-unique"
    FOREIGN_KEY = "foreign-key"
    NOT_NULL = "not-null"
    CHECK = "check"
    CONSTRAINT = "constraint"  # any other, such as RAISE in a trigger
    WRONG_TYPE = "wrong-type"
    BAD_TEXT = "bad-text"  # a text in the result is no UTF-8
    VALUE_TOO_LARGE = "value-too-large"
    RESULT_TOO_LARGE = "result-too-large"
    STEPS_SPENT = "steps-spent"
    ROWID_EXHAUSTED = "rowid-exhausted"
    APP = "app"  # an interpreter's own refusal
    # a request
    UNKNOWN_CLIENT = "unknown-client"
    REPEATED = "repeated"  # this id of the client, or a later one, has been executed
    RESULTS_UNREAD = "results-unread"  # too many bytes of results wait for the client
    TOO_MANY_MESSAGES = "too-many-messages"
    # a READ
    RELEASED = "released"  # the client has said before that it holds some of these
    AHEAD = "ahead"  # the client says that it holds what was never executed
    BAD_ACL = "bad-acl"
    # a signed request
    WAITS = "waits"  # for those with the ids before it
    BAD_SIGNATURE = "bad-signature"
    BAD_ID = "bad-message-id"
    TOO_FAR_AHEAD = "too-far-ahead"
    TERMINATED = "client-terminated"  # two valid signatures for one id over different bytes
    REMOVED = "client-removed"
    # an item of the order
    CLIENT_NOT_FOUND = "client-not-found"
    ACL_NOT_FOUND = "acl-not-found"
    TOO_MANY_CLIENTS = "too-many-clients"
    BAD_KEY = "bad-key"


class Result(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Of one message."""

    code: Code
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()  # of Row; a decoder knows no str | bytes
    changes: int = 0  # rows inserted, updated, deleted: by triggers and foreign keys as well
    detail: str = ""  # for people; not under the digest


class Told(NamedTuple):
    """Equal wherever outcomes are."""

    digest: Digest
    weight: int  # bytes that count where results are bounded


class Outcome(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Of one request: its code is that of the message that failed, and the results say the rest."""

    code: Code
    results: tuple[Result, ...] = ()
    detail: str = ""

    def told(self) -> Told:
        results = [[str(r.code), r.columns, r.rows, r.changes] for r in self.results]
        return _told(b"quipu outcome\0", [str(self.code), results])


class Kept(msgspec.Struct, array_like=True, frozen=True):
    """A stored outcome."""

    message_id: int
    request: Digest
    outcome: Outcome


class Answer(msgspec.Struct, array_like=True, frozen=True):
    """Of a READ: the outcomes in (have, upto], as far as they are kept and fit one answer."""

    code: Code
    kept: tuple[Kept, ...] = ()
    upto: int = 0  # up to where this answer reaches
    released: int = 0  # results up to here are gone by the client's own word

    def told(self) -> Told:
        kept = [[k.message_id, k.request, k.outcome.told().digest] for k in self.kept]
        return _told(b"quipu answer\0", [str(self.code), kept, self.upto, self.released])


def _told(tag: bytes, parts: list[object]) -> Told:
    encoded = _encode(parts)
    return Told(Digest(hashlib.sha256(tag + encoded).digest()), len(encoded))


class MessageFailed(Exception):
    """A message cannot be done: its request is undone and this is its result."""

    def __init__(self, code: Code, detail: str = "") -> None:
        super().__init__(f"{code}: {detail}" if detail else str(code))
        self.code = code
        self.detail = detail[: limits.DETAIL_CHARACTERS_MAX]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Outcome).decode


def encode_outcome(outcome: Outcome) -> bytes:
    return _encode(outcome)


def decode_outcome(data: bytes) -> Outcome:
    return _decode(data)


def encoded_bytes(row: Row) -> int:
    return len(_encode(row))
