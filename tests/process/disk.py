"""Disks that lose power, are slow or full, clocks that jump: libraries preloaded into a node."""

import mmap
import random
import shutil
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

HEAD = struct.Struct("=QQ")
CONTROL = struct.Struct("=6q")
COMPILER = shutil.which("cc")
NS_PER_S = 1_000_000_000
US_PER_S = 1_000_000


class Libraries(NamedTuple):
    power: Path
    harm: Path


def build(folder: Path) -> Libraries:
    """Needs a C compiler."""
    return Libraries(build_one(folder, "power"), build_one(folder, "harm"))


def build_one(folder: Path, name: str) -> Path:
    assert COMPILER is not None
    library = folder / f"{name}.so"
    source = Path(__file__).with_name(f"{name}.c")
    command = [COMPILER, "-shared", "-fPIC", "-O1", "-o", str(library), str(source)]
    subprocess.run([*command, "-ldl"], check=True)
    return library


def lose_power(data: Path, undo: Path, chance: float, seed: int) -> int:
    """Puts back what unsynced writes replaced, newest first, each with that chance."""
    dice, records, noted = random.Random(seed), [], undo.read_bytes()
    while len(noted) >= HEAD.size:
        offset, length = HEAD.unpack_from(noted)
        records.append((offset, noted[HEAD.size : HEAD.size + length]))
        noted = noted[HEAD.size + length :]
    with data.open("r+b") as file:
        for offset, old in reversed(records):
            if dice.random() < chance:
                file.seek(offset)
                file.write(old)
    undo.unlink()
    return len(records)


class Counted(NamedTuple):
    """Over all lives of a node."""

    syncs_slowed: int
    writes_refused: int
    clock_reads_wrong: int


class Harm:
    """Steers the disk and the clock of one node, whether it runs or not."""

    def __init__(self, folder: Path, libraries: Libraries) -> None:
        self._libraries = libraries
        self._control = folder / "harm"
        self._control.write_bytes(bytes(CONTROL.size))
        self.undo = folder / "undo"
        with self._control.open("r+b") as file:
            self._words = mmap.mmap(file.fileno(), CONTROL.size)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": f"{self._libraries.harm}:{self._libraries.power}",
            "HARM_CONTROL": str(self._control),
            "POWER_UNDO": str(self.undo),
        }

    def slow(self, seconds: float) -> None:
        self._set(0, int(seconds * US_PER_S))

    def full(self, is_full: bool) -> None:
        self._set(1, int(is_full))

    def clock(self, off_s: float) -> None:
        self._set(2, int(off_s * NS_PER_S))

    def counted(self) -> Counted:
        return Counted(*CONTROL.unpack(self._words[: CONTROL.size])[3:])

    def clear(self) -> None:
        for word in range(3):
            self._set(word, 0)

    def close(self) -> None:
        self._words.close()

    def _set(self, word: int, value: int) -> None:
        struct.pack_into("=q", self._words, 8 * word, value)
