"""What the messages of a request mean: SQL, unless an app brings its own interpreter.

An app's interpreter is Python that runs on every executor: from equal data it must do equal things.
All it keeps it keeps in the database it is given, so that it is committed with the applied index.
"""

import math
from typing import Annotated, Any, Protocol

import msgspec

from quipu.storage.executors import limits
from quipu.storage.executors.database import Database
from quipu.storage.executors.outcome import Code, MessageFailed, Result, Value
from quipu.storage.executors.request import STATEMENT, Message, Request


class Interpreter(Protocol):
    name: str  # with a version: part of the engine, for other meanings are other outcomes
    as_client: bool  # statements are held to the client's rights, else they may do all

    def prepare(self, database: Database) -> None:
        """Once, when the database is new: its tables."""

    def validate(self, request: Request, message: Message, database: Database) -> None:
        """Raises MessageFailed for what could never be done. `database` only checks."""

    def execute(self, request: Request, message: Message, database: Database) -> Result:
        """Raises MessageFailed: then the request is undone. Anything else it raises stops the
        executor, and nothing of the turn is kept."""


class Statement(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The body of a message of kind STATEMENT, as msgpack."""

    sql: str
    parameters: Annotated[tuple[Any, ...], msgspec.Meta(max_length=limits.PARAMETERS_MAX)] = ()


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Statement).decode


def statement(sql: str, *parameters: Value) -> Message:
    return Message(STATEMENT, _encode(Statement(sql, parameters)))


def decode_statement(message: Message) -> Statement:
    if message.kind != STATEMENT:
        raise MessageFailed(Code.UNKNOWN_KIND, f"kind {message.kind}")
    try:
        decoded = _decode(message.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MessageFailed(Code.MALFORMED, str(error)) from error
    for number, value in enumerate(decoded.parameters, 1):
        _refuse_unfit(number, value)
    return decoded


def _refuse_unfit(number: int, value: object) -> None:
    match value:
        case bool():
            problem = "a boolean: SQLite has 0 and 1"
        case None | str() | bytes():
            return
        case int() if -limits.INTEGER_MAX - 1 <= value <= limits.INTEGER_MAX:
            return
        case int():
            problem = "an integer of over 64 bits"
        case float() if not math.isnan(value):
            return
        case float():
            problem = "NaN: SQLite would store NULL"
        case _:
            problem = f"of type {type(value).__name__}"
    raise MessageFailed(Code.BAD_PARAMETERS, f"parameter {number} is {problem}")


class SqlInterpreter:
    name = "sql/1"
    as_client = True

    def prepare(self, database: Database) -> None:
        """Clients make their own tables."""

    def validate(self, request: Request, message: Message, database: Database) -> None:
        asked = decode_statement(message)
        database.check(asked.sql, asked.parameters)

    def execute(self, request: Request, message: Message, database: Database) -> Result:
        asked = decode_statement(message)
        return database.execute(asked.sql, asked.parameters)
