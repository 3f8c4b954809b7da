"""Where a dump lies: what its checks ask of a file system, whichever it is."""

from pathlib import Path
from typing import Protocol

from quipu.dumps.whole import sha256_of


class Place(Protocol):
    """A directory. What names no file raises `FileNotFoundError`, what cannot be read `OSError`."""

    def __str__(self) -> str:
        """As the caller named it."""

    def file(self, name: str) -> str:
        """The address of a file in it, for people and for Spark."""

    def is_folder(self) -> bool: ...

    def names(self) -> list[str]:
        """Of all files in it and below, sorted."""

    def size(self, name: str) -> int: ...

    def sha256(self, name: str) -> str: ...

    def read(self, name: str) -> bytes: ...


class LocalPlace:
    """On this machine, or mounted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __str__(self) -> str:
        return str(self.folder)

    def file(self, name: str) -> str:
        return str(self.folder / name)

    def is_folder(self) -> bool:
        return self.folder.is_dir()

    def names(self) -> list[str]:
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return sorted(path.relative_to(self.folder).as_posix() for path in found)

    def size(self, name: str) -> int:
        return (self.folder / name).stat().st_size

    def sha256(self, name: str) -> str:
        return sha256_of(self.folder / name)

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()
