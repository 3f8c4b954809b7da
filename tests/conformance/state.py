"""All that a core has in mind, as a value to compare: refused input leaves it as it was."""

from collections import deque
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from quipu.ledger.core import Core
from quipu.storage.memory_store import MemoryStore

PLAIN = (bytes, str, int, float, bool, type(None), Enum)


def state_of(core: Core) -> dict[str, object]:
    """By part, so that a difference says where it lies."""
    return {name: _value(part, {}) for name, part in sorted(vars(core).items())}


def differing(before: dict[str, object], after: dict[str, object]) -> list[str]:
    return [name for name in before if before[name] != after[name]]


def _value(thing: Any, seen: dict[int, int]) -> object:
    if isinstance(thing, PLAIN):
        return thing
    if id(thing) in seen:
        return ("seen", seen[id(thing)])
    seen[id(thing)] = len(seen)
    if isinstance(thing, dict):
        return [(_value(key, seen), _value(value, seen)) for key, value in thing.items()]
    if isinstance(thing, set | frozenset):
        return sorted(map(repr, thing))
    if isinstance(thing, list | tuple | deque):
        return [_value(item, seen) for item in thing]
    if callable(thing) or isinstance(thing, MemoryStore):
        return type(thing).__name__  # what is in the store, the durable effects say
    return [(name, _value(getattr(thing, name), seen)) for name in _names(thing)]


def _names(thing: Any) -> list[str]:
    if is_dataclass(thing):
        return [field.name for field in fields(thing)]
    if hasattr(thing, "__struct_fields__"):
        return list(thing.__struct_fields__)
    return list(vars(thing))
