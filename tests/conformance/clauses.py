"""`@clause("003-07")` says which clauses of docs/protocols.md a test holds."""

import re
from collections.abc import Callable
from typing import Final, TypeVar

Test = TypeVar("Test", bound=Callable[..., object])

# Seed, then running number: two digits, three from 100 on.
CLAUSE_NUMBER: Final = re.compile(r"\d{3}-(?:\d{2}|[1-9]\d{2})")


class ClauseNumberError(ValueError):
    """A decorator names no clause, or something that is not a clause number."""


def clause(*numbers: str) -> Callable[[Test], Test]:
    # The test is returned as it is: test_clauses.py reads the numbers from the source, so they
    # count for tests that are not collected in a run, and no marker has to be registered.
    if not numbers:
        raise ClauseNumberError("name at least one clause")
    for number in numbers:
        if CLAUSE_NUMBER.fullmatch(number) is None:
            raise ClauseNumberError(f"{number!r} is not like '003-07'")

    def unchanged(test: Test) -> Test:
        return test

    return unchanged
