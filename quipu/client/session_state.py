"""What a session must not forget: its key, its ids, each request until its result is dealt with.

One SQLite file, synced at each change, held by one process at a time: two that gave out the same
ids would sign two requests under one, and that ends the client for ever.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from nacl.bindings import crypto_sign_seed_keypair

SEED_BYTES = 32
PRIVATE = 0o600
_SCHEMA = """
CREATE TABLE IF NOT EXISTS session (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL,
    seed BLOB NOT NULL,
    cluster BLOB,
    client INTEGER,
    next_id INTEGER NOT NULL,
    have INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS requests (
    message_id INTEGER PRIMARY KEY,
    messages BLOB NOT NULL,
    doubtful INTEGER NOT NULL,
    answered INTEGER NOT NULL
);
"""
_VERSION = 1


class SessionInUse(Exception):
    """Another process holds the state file, or it is none."""


class Pending(NamedTuple):
    """A request whose result is not dealt with. `doubtful`: a node may have it."""

    message_id: int
    messages: bytes
    doubtful: bool


class SessionState:
    """Used from one thread at a time."""

    def __init__(self, path: Path) -> None:
        """Raises `SessionInUse`. Made where it is not there, with a key of its own."""
        self.path = path
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, PRIVATE))
        self._connection = sqlite3.connect(
            path, timeout=0, isolation_level=None, check_same_thread=False
        )
        try:
            self._begin()
        except sqlite3.Error as error:
            self._connection.close()
            raise SessionInUse(f"{path}: {error}") from error

    def _begin(self) -> None:
        for setting in ("locking_mode = EXCLUSIVE", "synchronous = EXTRA", "fullfsync = ON"):
            self._connection.execute(f"PRAGMA {setting}")
        with self._written():
            for statement in filter(None, map(str.strip, _SCHEMA.split(";"))):
                self._connection.execute(statement)
            self._connection.execute(
                "INSERT OR IGNORE INTO session VALUES (1, ?, ?, NULL, NULL, 1, 0)",
                (_VERSION, os.urandom(SEED_BYTES)),
            )
        row = self._connection.execute(
            "SELECT version, seed, cluster, client, next_id, have FROM session"
        ).fetchone()
        version, seed, *rest = row
        self.cluster: bytes | None
        self.client: int | None
        self.next_id: int
        self.have: int
        self.cluster, self.client, self.next_id, self.have = rest
        if version != _VERSION:
            raise SessionInUse(f"{self.path}: version {version}, this program has {_VERSION}")
        self.public, self.secret = crypto_sign_seed_keypair(seed)

    @contextmanager
    def _written(self) -> Iterator[None]:
        """All of it on the disk, or nothing."""
        self._connection.execute("BEGIN EXCLUSIVE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def bind(self, cluster: bytes, client: int) -> None:
        """Once: a key is for one client of one cluster."""
        if self.client is not None and (self.cluster, self.client) != (cluster, client):
            raise ValueError(f"{self.path} belongs to client {self.client}")
        with self._written():
            self._connection.execute(
                "UPDATE session SET cluster = ?, client = ?", (cluster, client)
            )
        self.cluster, self.client = cluster, client

    def add(self, messages: bytes) -> int:
        """The next id, for these messages; what was answered before is dealt with by now."""
        message_id = self.next_id
        with self._written():
            have = self._dealt_with()
            self._connection.execute(
                "INSERT INTO requests VALUES (?, ?, 0, 0)", (message_id, messages)
            )
            self._connection.execute("UPDATE session SET next_id = ?", (message_id + 1,))
        self.next_id, self.have = message_id + 1, have
        return message_id

    def _dealt_with(self) -> int:
        """Up to where all is answered."""
        first = self._connection.execute(
            "SELECT min(message_id) FROM requests WHERE NOT answered"
        ).fetchone()[0]
        have: int = (self.next_id if first is None else first) - 1
        if have > self.have:
            self._connection.execute("DELETE FROM requests WHERE message_id <= ?", (have,))
            self._connection.execute("UPDATE session SET have = ?", (have,))
        return max(have, self.have)

    def settle(self) -> int:
        """What is answered is dealt with."""
        with self._written():
            have = self._dealt_with()
        self.have = have
        return have

    def doubt(self, message_id: int) -> None:
        """From now on a node may have it."""
        with self._written():
            self._connection.execute(
                "UPDATE requests SET doubtful = 1 WHERE message_id = ?", (message_id,)
            )

    def answered(self, message_id: int) -> None:
        with self._written():
            self._connection.execute(
                "UPDATE requests SET answered = 1 WHERE message_id = ?", (message_id,)
            )

    def take_back(self, message_id: int) -> bool:
        """Of the last id alone, and where no node has it: it is free again."""
        if message_id != self.next_id - 1:
            return False
        with self._written():
            done = self._connection.execute(
                "DELETE FROM requests WHERE message_id = ? AND NOT doubtful", (message_id,)
            )
            if done.rowcount:
                self._connection.execute("UPDATE session SET next_id = ?", (message_id,))
        if done.rowcount:
            self.next_id = message_id
        return bool(done.rowcount)

    def pending(self) -> list[Pending]:
        rows = self._connection.execute(
            "SELECT message_id, messages, doubtful FROM requests ORDER BY message_id"
        )
        return [Pending(number, messages, bool(doubtful)) for number, messages, doubtful in rows]

    def close(self) -> None:
        self._connection.close()
