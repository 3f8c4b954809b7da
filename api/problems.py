"""Problems (RFC 9457): the form in which it is said what is wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import msgspec

from quipu.api.codes import KINDS, Code, Kind

CONTENT_TYPE = "application/problem+json"


class FieldError(msgspec.Struct, frozen=True):
    """One thing that is wrong, and where: a JSON pointer into the body, or a parameter's name."""

    pointer: str
    detail: str


class ProblemBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """application/problem+json."""

    type: str
    title: str
    status: int
    code: str
    retryable: bool
    detail: str = ""
    request_id: str = ""
    entry_id: str = ""
    errors: list[FieldError] = []
    oldest: str = ""  # with cursor-gone: the cursor of the oldest that is still there


@dataclass(eq=False)
class Problem(Exception):
    """An answer that is no success. `retry_after_s` becomes the header of that name."""

    code: Code
    detail: str = ""
    errors: Sequence[FieldError] = ()
    entry_id: str = ""
    oldest: str = ""
    retry_after_s: int = 0
    allow: str = ""  # with method-not-allowed

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"

    @property
    def kind(self) -> Kind:
        return KINDS[self.code]

    def body(self, request_id: str) -> ProblemBody:
        kind = self.kind
        return ProblemBody(
            type=f"/problems/{self.code}",
            title=kind.title,
            status=kind.status,
            code=str(self.code),
            retryable=kind.retryable,
            detail=self.detail or kind.meaning,
            request_id=request_id,
            entry_id=self.entry_id,
            errors=list(self.errors),
            oldest=self.oldest,
        )


def problem(code: Code, detail: str = "", *errors: FieldError) -> NoReturn:
    raise Problem(code, detail, errors)


def at(code: Code, pointer: str, detail: str) -> Problem:
    """A problem with one place in the request."""
    return Problem(code, f"{pointer or 'the body'}: {detail}", (FieldError(pointer, detail),))
