"""Values of SQL in JSON and msgpack, and back: JSON has no bytes and no infinity."""

import base64
import binascii
import math
from collections.abc import Sequence
from typing import Any

from quipu.api.client_models import ResultBody
from quipu.api.codes import Code
from quipu.api.problems import at
from quipu.storage.executors.outcome import Outcome, Value

BASE64, FLOAT = "base64", "float"


def result_bodies(outcome: Outcome, *, packed: bool) -> list[ResultBody]:
    return [
        ResultBody(
            str(r.code), list(r.columns), rows_of(r.rows, packed=packed), r.changes, r.detail
        )
        for r in outcome.results
    ]


def rows_of(rows: Sequence[Sequence[Any]], *, packed: bool) -> list[list[Any]]:
    return [list(row) if packed else [_plain(value) for value in row] for row in rows]


def _plain(value: Any) -> Any:
    match value:
        case bytes():
            return {BASE64: base64.b64encode(value).decode()}
        case float() if not math.isfinite(value):
            return {FLOAT: str(value)}
    return value


def value_of(given: object, pointer: str) -> Value:
    """A parameter of a query."""
    match given:
        case bool():
            raise at(Code.INVALID_FIELD, pointer, "is a boolean: SQL has 0 and 1")
        case None | int() | float() | str() | bytes():
            return given
        case {"base64": str(text), **others} if not others:
            try:
                return base64.b64decode(text, validate=True)
            except binascii.Error as error:
                raise at(Code.INVALID_FIELD, pointer, str(error)) from error
    raise at(Code.INVALID_FIELD, pointer, 'is null, a number, a text or {"base64": "..."}')
