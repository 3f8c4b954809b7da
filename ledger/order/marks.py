"""How far executors are, and whether they agree: what each says of itself in the order.

A pure function of the order, the same on every node. It is no part of the state that goes with a
base: who begins there waits for the next marks.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, assert_never

import msgspec

from quipu.ledger import limits
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.event import U64, Bytes32
from quipu.ledger.messages import Number32
from quipu.ledger.refusals import Refused


class ExecutorMark(
    msgspec.Struct, array_like=True, frozen=True, tag=36, forbid_unknown_fields=True
):
    """The executor of this node has the digest `digest` as of index `at`, and has made durable
    what it executed up to `executed`."""

    node_no: Number32
    at: U64
    digest: Bytes32
    executed: U64


class SnapshotWanted(
    msgspec.Struct, array_like=True, frozen=True, tag=37, forbid_unknown_fields=True
):
    """The executor of this node lacks log entries that nobody holds: all others make a snapshot
    as of this very index."""

    node_no: Number32


class SnapshotMade(
    msgspec.Struct, array_like=True, frozen=True, tag=38, forbid_unknown_fields=True
):
    """What this node has as of index `at`: tables and results by their digest, the file by its."""

    node_no: Number32
    at: U64
    digest: Bytes32
    tables: Bytes32
    engine: Annotated[str, msgspec.Meta(max_length=limits.ENGINE_CHARACTERS_MAX)]
    file_bytes: U64
    file_digest: Bytes32

    @property
    def content(self) -> tuple[bytes, bytes, str]:
        """Equal wherever executors agree; files need not be."""
        return self.digest, self.tables, self.engine


ExecutorItem = ExecutorMark | SnapshotWanted | SnapshotMade

_codec: Canonical[ExecutorItem] = Canonical(ExecutorItem, limits.ORDER_ITEM_BYTES_MAX)  # type: ignore[arg-type]


def encode_mark(mark: ExecutorItem) -> bytes:
    return encode(mark)


def read_mark(data: bytes) -> ExecutorItem | None:
    """None for what is none."""
    try:
        return _codec.decode(data)
    except Refused:
        return None


class Verdict(StrEnum):
    AGREES = "agrees"  # or nobody has said anything else
    UNDECIDED = "undecided"  # somebody differs, and too few have spoken
    DIFFERS = "differs"  # more than half have another one, or nobody can come to have more


@dataclass(slots=True)
class Marks:
    """Invariant: of the newest indexes that somebody spoke of, what each node said of them."""

    told: dict[int, dict[int, bytes]] = field(default_factory=dict)
    executed: dict[int, int] = field(default_factory=dict)
    snapshots: dict[int, dict[int, SnapshotMade]] = field(default_factory=dict)

    def take(self, mark: ExecutorItem) -> None:
        match mark:
            case ExecutorMark():
                self._take_mark(mark)
            case SnapshotMade():
                self.snapshots.setdefault(mark.at, {})[mark.node_no] = mark
                while len(self.snapshots) > limits.SNAPSHOTS_TOLD_MAX:
                    del self.snapshots[next(iter(self.snapshots))]
            case SnapshotWanted():
                pass  # it speaks to executors
            case _:
                assert_never(mark)

    def _take_mark(self, mark: ExecutorMark) -> None:
        self.told.setdefault(mark.at, {})[mark.node_no] = mark.digest
        self.executed[mark.node_no] = max(mark.executed, self.executed.get(mark.node_no, 0))
        while len(self.told) > limits.EXECUTOR_MARKS_MAX:
            del self.told[next(iter(self.told))]

    def verdict(self, at: int, digest: bytes, members: int) -> Verdict:
        """Of an executor that has this digest there, among so many that may have one."""
        others = [said for said in self.told.get(at, {}).values() if said != digest]
        if not others:
            return Verdict.AGREES
        mine = len(self.told[at]) - len(others)
        most = max(others.count(one) for one in dict.fromkeys(others))
        silent = max(members - len(self.told[at]), 0)
        if 2 * mine > members:
            return Verdict.AGREES
        if 2 * most > members or 2 * (mine + silent) <= members:
            return Verdict.DIFFERS
        return Verdict.UNDECIDED

    def agreed(self, at: int, members: int) -> list[SnapshotMade]:
        """Snapshots as of an index that enough others made, all of one content; none where too few
        have spoken, or two differ."""
        found = list(self.snapshots.get(at, {}).values())
        is_enough = len(found) >= max(1, members // 2)
        contents = dict.fromkeys(one.content for one in found)
        return found if is_enough and len(contents) == 1 else []

    def reached(self, members: Iterable[int]) -> int | None:
        """What a majority of those members that speak has made durable; None: none speaks."""
        spoken = [self.executed[number] for number in members if number in self.executed]
        return sorted(spoken, reverse=True)[len(spoken) // 2] if spoken else None
