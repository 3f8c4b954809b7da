"""Named cursors that programs keep with this node: how far each has come, over restarts.

A file each, replaced whole: the format of the store stays as it is, what one costs does not depend
on how many there are, and kill -9 leaves the one before or the new one.
"""

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from quipu.node import limits
from quipu.node.service import Consumer, ConsumerWish, TooManyConsumers
from quipu.node.whole_file import disk_errors, replace_file
from quipu.storage.environment import sync_directory

CONSUMERS_FOLDER = "consumers"
ETAG_BYTES = 8
_SUFFIX = ".json"
_files = msgspec.json.Decoder(Consumer)


@dataclass(slots=True)
class KeptConsumers:
    """Invariant: what it knows is what the folder holds, but while one is being changed."""

    folder: Path
    wall_ms: Callable[[], int]
    unreadable: list[str] = field(default_factory=list)  # files found at the start, left alone
    _known: dict[str, Consumer] = field(default_factory=dict)
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    def of(cls, data_dir: Path, wall_ms: Callable[[], int]) -> "KeptConsumers":
        found = cls(data_dir / CONSUMERS_FOLDER, wall_ms)
        with suppress(FileNotFoundError):
            for path in sorted(found.folder.iterdir()):
                if path.name.startswith("."):
                    path.unlink()  # a crash cut its writing short
                else:
                    found._read(path)
        return found

    def _read(self, path: Path) -> None:
        try:
            one = _files.decode(path.read_bytes())
        except (OSError, msgspec.DecodeError):
            self.unreadable.append(path.name)
            return
        if path == self._path(one.name):
            self._known[one.name] = one
        else:
            self.unreadable.append(path.name)

    # --- reading --------------------------------------------------------------------------------
    def find(self, name: str) -> Consumer | None:
        found = self._known.get(name)
        return None if found is None or self._is_over(found) else found

    def all(self) -> list[Consumer]:
        return [one for _, one in sorted(self._known.items()) if not self._is_over(one)]

    def _is_over(self, one: Consumer) -> bool:
        return one.expires_ms <= self.wall_ms()

    # --- changing -------------------------------------------------------------------------------
    async def change(
        self, name: str, wished: Callable[[Consumer | None], ConsumerWish | None]
    ) -> Consumer | None:
        # A caller who goes away must not let the next one in while the file is being written.
        return await asyncio.shield(self._change(name, wished))

    async def _change(
        self, name: str, wished: Callable[[Consumer | None], ConsumerWish | None]
    ) -> Consumer | None:
        async with self._changing:
            wish = wished(self.find(name))
            expired = [one.name for one in self._known.values() if self._is_over(one)]
            if wish is None:
                await self._forget([*dict.fromkeys([*expired, name])])
                return None
            await self._forget([other for other in expired if other != name])
            if name not in self._known and len(self._known) >= limits.CONSUMERS_MAX:
                raise TooManyConsumers(f"{limits.CONSUMERS_MAX} consumers are kept here")
            etag = secrets.token_hex(ETAG_BYTES)
            made = Consumer(name=name, wish=wish, stored_ms=self.wall_ms(), etag=etag)
            with disk_errors():
                await asyncio.to_thread(self._write, made)
            self._known[name] = made
            return made

    def _write(self, one: Consumer) -> None:
        if not self.folder.exists():
            self.folder.mkdir(mode=0o700, exist_ok=True)
            sync_directory(self.folder.parent)
        replace_file(self._path(one.name), msgspec.json.encode(one))

    async def _forget(self, names: list[str]) -> None:
        if names:
            with disk_errors():
                await asyncio.to_thread(self._unlink, names)
            for name in names:
                self._known.pop(name, None)

    def _unlink(self, names: list[str]) -> None:
        if self.folder.exists():
            for name in names:
                self._path(name).unlink(missing_ok=True)
            sync_directory(self.folder)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}{_SUFFIX}"
