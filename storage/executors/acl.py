"""What a client may do: rules over table names, a value of the order like any other.

Names are compared as SQLite does, without regard to the case of ASCII letters. A rule that ends in
`*` covers all names that begin so. Rights of all rules that cover a name add up.
"""

from enum import IntFlag
from functools import lru_cache
from typing import Annotated

import msgspec

from quipu.ledger.canonical import Canonical, encode
from quipu.storage.executors import limits


class Right(IntFlag):
    READ = 1
    WRITE = 2  # insert, update, delete
    SCHEMA = 4  # create, alter and drop tables, their indexes and triggers, and views


ALL = Right.READ | Right.WRITE | Right.SCHEMA


class Rule(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    tables: Annotated[str, msgspec.Meta(min_length=1, max_length=limits.TABLE_NAME_BYTES_MAX)]
    rights: Annotated[int, msgspec.Meta(ge=0, le=int(ALL))]


class Acl(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    rules: Annotated[tuple[Rule, ...], msgspec.Meta(max_length=limits.RULES_PER_CLIENT_MAX)] = ()

    def grants(self, table: str, right: Right) -> bool:
        name = folded(table)
        rights = 0
        for rule in self.rules:
            if _covers(folded(rule.tables), name):
                rights |= rule.rights
        return rights & right == right


NOTHING = Acl()
EVERYTHING = Acl((Rule("*", int(ALL)),))

_codec = Canonical(Acl, limits.ACL_BYTES_MAX)


def encode_acl(acl: Acl) -> bytes:
    return encode(acl)


@lru_cache(limits.LISTS_DECODED_MAX)
def decode_acl(data: bytes) -> Acl:
    """Refused: anything but the canonical bytes of a list within its limits. Clients with equal
    lists share one, so that what was granted is not asked again for each of them."""
    return _codec.decode(data)


def folded(name: str) -> str:
    """SQLite folds ASCII and nothing else."""
    return name.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")


def _covers(pattern: str, name: str) -> bool:
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    return name == pattern
