"""What can go wrong, one exception for each family of codes."""

from typing import Any

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """What the node said (RFC 9457). `code` is of a closed list: see /problems/{code}."""

    code: str
    status: int
    title: str = ""
    detail: str = ""
    retryable: bool = False
    request_id: str = ""
    entry_id: str = ""
    oldest: str = ""
    errors: list[dict[str, Any]] = []

    def __str__(self) -> str:
        return f"{self.code}: {self.detail or self.title}"


class QuipuError(Exception):
    """Any of these. `problem` is what the node said; None: it said nothing."""

    def __init__(self, what: str, problem: Problem | None = None) -> None:
        super().__init__(what)
        self.problem = problem

    @property
    def code(self) -> str | None:
        return None if self.problem is None else self.problem.code


class Rejected(QuipuError):
    """The request is wrong and will stay so."""


class Unauthorized(QuipuError):
    """A token is missing, not known, or does not allow this."""


class NotFound(QuipuError):
    """It is not there, or not any more."""


class Conflict(QuipuError):
    """The state of things does not allow it: a key was used, an entry is not final, a consumer
    has moved."""


class Unavailable(QuipuError):
    """The node takes nothing now; nothing was stored."""

    def __init__(self, what: str, problem: Problem | None = None, retry_after_s: float = 0) -> None:
        super().__init__(what, problem)
        self.retry_after_s = retry_after_s


class Unreachable(QuipuError):
    """No node answered; nothing was stored."""


class Undecided(QuipuError):
    """It may be stored or not. `list(idempotency_key=key, stream=stream)` on that node tells. Of a
    sequence `stream` is the name, and `sequence(name, consistency="linear")` tells."""

    def __init__(self, what: str, key: str, stream: str, node: str) -> None:
        super().__init__(what)
        self.key = key
        self.stream = stream
        self.node = node


_FAMILIES: dict[int, type[QuipuError]] = {
    401: Unauthorized,
    403: Unauthorized,
    404: NotFound,
    409: Conflict,
    410: NotFound,
    412: Conflict,
    422: Conflict,
}
UNDECIDED_CODES = ("outcome-unknown", "order-unknown")


def error_of(problem: Problem, retry_after_s: float) -> QuipuError:
    family = _FAMILIES.get(problem.status)
    if family is not None:
        return family(str(problem), problem)
    if problem.status >= 500 or problem.status in {408, 429}:
        return Unavailable(str(problem), problem, retry_after_s)
    return Rejected(str(problem), problem)
