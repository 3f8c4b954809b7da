"""What apps saw, as operations on a growing list, for a checker that knows nothing of us."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from tests.simulation.log.history import LogHistory

SOURCE = Path(__file__).parent / "checker"
BUILD_S_MAX = 300
CHECK_S_MAX = 300
OK, ILLEGAL = "Ok", "Illegal"


class Seen(msgspec.Struct, omit_defaults=True):
    """An append where it has an item, else a read."""

    asked: int
    count: int  # of items before an append; of all that a read saw
    ended: int | None = None  # never answered: it may have happened at any time since
    item: str | None = None
    digest: str = ""  # of what a read saw
    list: str = ""


def build(folder: Path) -> Path:
    """The checker's program. Its modules are pinned by hashes."""
    program = folder / "linear"
    subprocess.run(
        ["go", "build", "-mod=readonly", "-o", str(program), "."],
        cwd=SOURCE,
        check=True,
        timeout=BUILD_S_MAX,
    )
    return program


def verdicts(program: Path, histories: Sequence[Sequence[Seen]]) -> list[str]:
    told = b"\n".join(msgspec.json.encode(history) for history in histories)
    done = subprocess.run(
        [str(program)], input=told, capture_output=True, check=True, timeout=CHECK_S_MAX
    )
    return done.stdout.decode().splitlines()


def seen_of(history: LogHistory) -> list[Seen]:
    """Of a log, with what was never answered but is there. The list is what its entries hold; where
    an item of it stands is what the app was told, not what is there."""
    digests, starts = [bytes(32)], {0: 0}
    places: dict[bytes, tuple[int, int]] = {}
    for index in sorted(history.chosen):
        for number, item in enumerate(history.chosen[index][2]):
            places[item] = (index, number)
            digests.append(sha256(digests[-1] + item.hex().encode()).digest())
        starts[index] = len(digests) - 1
    found: list[Seen] = []
    for operation in history.operations:
        place = operation.position or places.get(operation.item)
        if place is not None:
            ended = None if operation.position is None else operation.answered_us
            before = starts[place[0] - 1] + place[1]
            found.append(Seen(operation.asked_us, before, ended, operation.item.hex()))
    for read in history.reads:
        count = starts[read.index]
        digest = digests[count].hex()
        found.append(Seen(read.asked_us, count, read.answered_us, digest=digest))
    return found
