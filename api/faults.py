"""From what a decoder says is wrong to a problem with a JSON pointer."""

import re
from collections.abc import Sequence
from typing import NoReturn

import msgspec

from quipu.api.codes import Code
from quipu.api.names import NAME_PATTERN, NAME_RULE
from quipu.api.problems import FieldError, Problem, at

_PLACE = re.compile(r" - at `(.*)`\Z")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`\Z", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`\Z")
_PART = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


def check_utf8(body: bytes, where: str) -> None:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        detail = f"is not UTF-8 (byte {error.start})"
        raise at(Code.MALFORMED_BODY, where, detail) from error


def refuse_undecodable(error: Exception, where: str, fields: Sequence[str] = ()) -> NoReturn:
    """`fields` are those that would have been known."""
    if isinstance(error, RecursionError):
        raise at(Code.MALFORMED_BODY, where, "is nested too deeply") from error
    if isinstance(error, UnicodeDecodeError):  # of a text in msgpack: JSON is looked at before
        raise at(Code.MALFORMED_BODY, where, "has a text that is not UTF-8") from error
    if not isinstance(error, msgspec.ValidationError):
        raise at(Code.MALFORMED_BODY, where, str(error)) from error
    raise validation_problem(error, where, fields) from error


def validation_problem(
    error: msgspec.ValidationError, where: str = "", fields: Sequence[str] = ()
) -> Problem:
    """msgspec names the place as `$.items[3].stream`; people get a JSON pointer."""
    text = str(error)
    found = _PLACE.search(text)
    detail = readable(text[: found.start()] if found else text)
    pointer = where + (pointer_of(found[1]) if found else "")
    unknown, missing = _UNKNOWN.match(detail), _MISSING.match(detail)
    if unknown:
        name = escaped(unknown[1])
        known = f"; there are {', '.join(fields)}" if fields and pointer == where else ""
        return at(Code.UNKNOWN_FIELD, f"{pointer}/{name}", f"is no field here{known}")
    if missing:
        return at(Code.INVALID_FIELD, f"{pointer}/{escaped(missing[1])}", "is missing")
    return Problem(
        Code.INVALID_FIELD, f"{pointer or 'the body'}: {detail}", (FieldError(pointer, detail),)
    )


def readable(detail: str) -> str:
    return NAME_RULE if NAME_PATTERN in detail else detail


def pointer_of(place: str) -> str:
    parts = _PART.findall(place)
    return "".join(f"/{escaped(name or index)}" for name, index in parts)


def escaped(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")
