"""What was published under each number of a sequence, as far as the log entries are held.

A sequence itself keeps its newest number and a running digest, no more: payloads are the apps' own.
"""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from quipu.ledger.order.items import LockAndPublish, Publish, read_item
from quipu.ledger.order.journal import Applied
from quipu.ledger.order.sequences import Published
from quipu.ledger.words import NodeNo


class NumberHeld(NamedTuple):
    """One number that stands for ever."""

    number: int
    digest: bytes  # of what was published
    running: bytes  # over all up to this number
    publisher: NodeNo
    log_index: int


class Numbers:
    """Invariant: of each sequence a run without a gap, up to the newest number that is applied."""

    def __init__(self) -> None:
        self._held: dict[str, deque[NumberHeld]] = {}

    def take(self, applied: Iterable[Applied], base: int) -> None:
        """`base`: entries up to it are held no more."""
        for one in applied:
            for place, outcome in one.outcomes:
                if isinstance(outcome, Published):
                    item = read_item(one.entry.items[place])
                    assert isinstance(item, Publish | LockAndPublish)
                    self._add(outcome, item, one.entry.index)
        for name in [name for name, held in self._held.items() if held[0].log_index <= base]:
            held = self._held[name]
            while held and held[0].log_index <= base:
                held.popleft()
            if not held:
                del self._held[name]

    def _add(self, found: Published, item: Publish | LockAndPublish, index: int) -> None:
        held = self._held.setdefault(found.name, deque())
        if held and held[-1].number != found.number - 1:
            held.clear()  # a base came in place of what lies between
        publisher = NodeNo(item.holder)
        held.append(NumberHeld(found.number, item.digest, found.running, publisher, index))

    def find(self, name: str, number: int) -> NumberHeld | None:
        held = self._held.get(name)
        if not held or not held[0].number <= number <= held[-1].number:
            return None
        return held[number - held[0].number]

    def oldest(self, name: str) -> int | None:
        """The lowest number that is held; None: none is."""
        held = self._held.get(name)
        return held[0].number if held else None
