"""The words of a statement: what the authorizer is never asked about is seen here.

SQLite's tokens, as far as they tell keywords from texts, quoted names, variables and comments.
"""

import re
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from quipu.storage.executors import limits
from quipu.storage.executors.functions import UNSTEADY
from quipu.storage.executors.outcome import Code, MessageFailed

_TOKEN = re.compile(
    r"""
    (?P<blank> [ \t\n\f\r]+ | --[^\n]* | /\*.*?(?:\*/|\Z) )
    | (?P<quoted> '(?:[^']|'')*'? | "(?:[^"]|"")*"? | `(?:[^`]|``)*`? | \[[^\]]*\]? )
    | (?P<named> [?@:#$][\w$\x80-\U0010ffff]+ )
    | (?P<word> [A-Za-z_0-9\x80-\U0010ffff][\w$\x80-\U0010ffff]* )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
VERBS = frozenset(
    ["SELECT", "VALUES", "WITH", "INSERT", "REPLACE", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP"]
)
_TRANSACTION_VERBS = ["BEGIN", "COMMIT", "END", "RELEASE", "ROLLBACK", "SAVEPOINT"]
_CARE_VERBS = ["ANALYZE", "ATTACH", "DETACH", "EXPLAIN", "PRAGMA", "REINDEX", "VACUUM"]
_OTHER_VERBS = frozenset([*_TRANSACTION_VERBS, *_CARE_VERBS])
_UNFIT = frozenset(["TEMP", "TEMPORARY", "VIRTUAL"])
SCHEMA_VERBS = frozenset(["CREATE", "ALTER", "DROP"])
_NOW = frozenset(["CURRENT_TIME", "CURRENT_DATE", "CURRENT_TIMESTAMP"])


class Words(NamedTuple):
    first: str
    second: str
    refused: tuple[Code, str] | None


def words_of(sql: str) -> Words:
    if "\0" in sql:
        return Words("", "", (Code.BAD_SQL, "a null character in the statement"))
    if len(sql.encode()) > limits.SQL_BYTES_MAX:
        return Words("", "", (Code.BAD_SQL, f"over {limits.SQL_BYTES_MAX} bytes of text"))
    words = _words(sql)
    first = words[0][0] if words else ""
    second = words[1][0] if len(words) > 1 else ""
    return Words(first, second, _refusal(first, second, words))


_words_kept = lru_cache(maxsize=limits.STATEMENTS_PARSED_MAX)(words_of)


def checked(sql: str) -> Words:
    """Raises MessageFailed."""
    words = (_words_kept if len(sql) <= limits.STATEMENT_KEPT_CHARACTERS_MAX else words_of)(sql)
    if words.refused is not None:
        raise MessageFailed(*words.refused)
    return words


def _words(sql: str) -> list[tuple[str, bool]]:
    """Each unquoted word in capitals, and whether a parenthesis follows; a named parameter as it
    is."""
    words: list[tuple[str, bool]] = []
    fresh = False  # the last token that is not blank is a word
    for token in _TOKEN.finditer(sql):
        match token.lastgroup:
            case "blank":
                continue
            case "named":
                words.append((token.group(), False))
            case "word":
                words.append((token.group().upper(), False))
                fresh = True
                continue
            case "other" if fresh and token.group() == "(":
                words[-1] = (words[-1][0], True)
        fresh = False
    return words


def _refusal(first: str, second: str, words: list[tuple[str, bool]]) -> tuple[Code, str] | None:
    if not first:
        return Code.BAD_SQL, "an empty statement"
    if first not in VERBS:
        known = first in _OTHER_VERBS
        return (Code.NOT_ALLOWED if known else Code.BAD_SQL), f"{first} is not executed"
    if first == "CREATE" and second in _UNFIT:
        return Code.NOT_ALLOWED, f"CREATE {second} is not executed"
    plain = [word for word, _ in words]
    if any(word[0] in "?@:#$" for word in plain):
        return Code.BAD_PARAMETERS, "parameters are plain ?, in their order"
    if "ROLLBACK" in plain:
        return Code.NOT_ALLOWED, "ROLLBACK would undo the requests of others"
    if ("INITIALLY", "DEFERRED") in pairwise(plain):
        return Code.NOT_ALLOWED, "a deferred foreign key would fail others' requests"
    if first in SCHEMA_VERBS:
        return _refusal_in_schema(words)
    return None


def _refusal_in_schema(words: list[tuple[str, bool]]) -> tuple[Code, str] | None:
    """SQLite asks about a default or the body of a view when it is used: too late to tell whoever
    wrote it."""
    for word, called in words:
        if word in _NOW or (called and word.lower() in UNSTEADY):
            return Code.NOT_DETERMINISTIC, f"{word.lower()} has another value on each executor"
    return None
