"""What an executor keeps beside the apps' tables, in the same database and the same commit.

The applied index and the running digest; each client's rights, last message id and released
watermark; its results until it says that it holds them. Changes of a turn are gathered in memory
and written with its end.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from quipu.storage.executors import limits
from quipu.storage.executors.acl import Acl, decode_acl
from quipu.storage.executors.connection import Connection
from quipu.storage.executors.executor import NO_DIGEST, Mark, Released
from quipu.storage.executors.outcome import (
    Answer,
    Code,
    Kept,
    Outcome,
    Told,
    decode_outcome,
    encode_outcome,
)
from quipu.storage.executors.request import (
    AddClient,
    Digest,
    LogIndex,
    Read,
    Request,
)
from quipu.storage.store import StoreCorrupt

FORMAT_VERSION = 2

SCHEMA = (
    """CREATE TABLE quipu_state (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        format INTEGER NOT NULL,
        cluster BLOB NOT NULL,
        engine TEXT NOT NULL,
        applied INTEGER NOT NULL,
        digest BLOB NOT NULL
    ) STRICT""",
    """CREATE TABLE quipu_clients (
        client_id INTEGER PRIMARY KEY,
        acl BLOB NOT NULL,
        last_id INTEGER NOT NULL,
        released INTEGER NOT NULL,
        kept_bytes INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE quipu_results (
        client_id INTEGER NOT NULL,
        message_id INTEGER NOT NULL,
        request BLOB NOT NULL,
        digest BLOB NOT NULL,
        weight INTEGER NOT NULL,
        content BLOB NOT NULL,
        PRIMARY KEY (client_id, message_id)
    ) STRICT, WITHOUT ROWID""",
    "CREATE TABLE quipu_marks (position INTEGER PRIMARY KEY, digest BLOB NOT NULL) STRICT",
)


@dataclass(slots=True)
class Client:
    acl: bytes
    rights: Acl
    last_id: int = 0  # the greatest message id that was executed
    released: int = 0  # results up to here are held by the client
    kept_bytes: int = 0


@dataclass(slots=True)
class Book:
    connection: Connection
    applied: Mark = Mark(LogIndex(0), NO_DIGEST)
    clients: dict[int, Client] = field(default_factory=dict)
    _dirty: dict[int, None] = field(default_factory=dict)
    _results: list[tuple[int, int, bytes, bytes, int, bytes]] = field(default_factory=list)

    def load(self) -> None:
        """As of the last commit; what a turn had gathered is forgotten."""
        self._dirty.clear()
        self._results.clear()
        index, digest = self.connection.execute(
            "SELECT applied, digest FROM quipu_state"
        ).fetchone()
        self.applied = Mark(LogIndex(index), Digest(digest))
        self.clients = {
            row[0]: Client(row[1], decode_acl(row[1]), *row[2:])
            for row in self.connection.execute(
                "SELECT client_id, acl, last_id, released, kept_bytes FROM quipu_clients"
            )
        }

    def refusal(self, request: Request) -> Code | None:
        """Why a request is not executed and no result of it is kept."""
        client = self.clients.get(request.client_id)
        if client is None:
            return Code.UNKNOWN_CLIENT
        return Code.REPEATED if request.message_id <= client.last_id else None

    def add(self, command: AddClient, rights: Acl) -> None:
        known = self.clients.get(command.client_id)
        if known is None:
            self.clients[command.client_id] = Client(command.acl, rights)
        else:
            known.acl, known.rights = command.acl, rights
        self._dirty[command.client_id] = None

    def remove(self, client_id: int) -> bool:
        if self.clients.pop(client_id, None) is None:
            return False
        self._write_results()
        self._dirty.pop(client_id, None)
        for table in ("quipu_results", "quipu_clients"):
            self.connection.execute(f"DELETE FROM {table} WHERE client_id = ?", (client_id,))  # noqa: S608
        return True

    def keep(self, request: Request, digest: Digest, outcome: Outcome, told: Told) -> None:
        client = self.clients[request.client_id]
        client.last_id = request.message_id
        client.kept_bytes += told.weight
        self._dirty[request.client_id] = None
        place = (request.client_id, request.message_id)
        content = encode_outcome(outcome)
        self._results.append((*place, digest, told.digest, told.weight, content))

    def read(self, command: Read) -> Answer:
        """Drops what the client holds and hands out what follows, as much as fits one answer."""
        client = self.clients.get(command.client_id)
        if client is None:
            return Answer(Code.UNKNOWN_CLIENT)
        if command.have > client.last_id:
            return Answer(Code.AHEAD, upto=client.last_id, released=client.released)
        self._write_results()
        code = Code.RELEASED if command.have < client.released else Code.OK
        self._release(command.client_id, client, command.have)
        asked = min(command.upto, client.last_id)
        kept: list[Kept] = []
        size = 0
        for item in self._stored(command.client_id, client.released, asked):
            size += item.outcome.told().weight
            if kept and size > limits.READ_BYTES_MAX:
                break
            kept.append(item)
        else:
            return Answer(code, tuple(kept), max(asked, client.released), client.released)
        return Answer(code, tuple(kept), kept[-1].message_id, client.released)

    def find(self, client_id: int, message_id: int) -> Kept | Released | None:
        client = self.clients.get(client_id)
        if client is None:
            return None
        if message_id <= client.released:
            return Released(client.released)
        return next(self._stored(client_id, message_id - 1, message_id), None)

    def step(self, mark: Mark) -> None:
        """Digests between two strides are kept at the stride's end."""
        self._stride(mark.at)
        self.applied = mark

    def write(self, upto: LogIndex) -> None:
        """All of the turn, in the transaction that ends it."""
        self._stride(LogIndex(upto + 1))
        self.applied = self.applied._replace(at=upto)
        self._write_results()
        self.connection.executemany(
            "INSERT OR REPLACE INTO quipu_clients VALUES (?, ?, ?, ?, ?)",
            [
                (number, c.acl, c.last_id, c.released, c.kept_bytes)
                for number, c in ((n, self.clients[n]) for n in self._dirty)
            ],
        )
        self._dirty.clear()
        self.connection.execute("UPDATE quipu_state SET applied = ?, digest = ?", self.applied)
        oldest = (upto // limits.MARK_STRIDE - limits.MARKS_KEPT) * limits.MARK_STRIDE
        self.connection.execute("DELETE FROM quipu_marks WHERE position <= ?", (oldest,))

    def digest_at(self, index: LogIndex) -> Digest | None:
        if index == self.applied.at:
            return self.applied.digest
        row = self.connection.execute(
            "SELECT digest FROM quipu_marks WHERE position = ?", (index,)
        ).fetchone()
        return None if row is None else Digest(row[0])

    def _stride(self, before: LogIndex) -> None:
        """Nothing changes the digest up to the index before the next command's."""
        stride = limits.MARK_STRIDE
        first = max(stride, -(-self.applied.at // stride) * stride)
        if first < before:
            self.connection.executemany(
                "INSERT OR REPLACE INTO quipu_marks VALUES (?, ?)",
                [
                    (position, self.applied.digest)
                    for position in range(first, before, stride)[-limits.MARKS_KEPT :]
                ],
            )

    def _release(self, client_id: int, client: Client, have: int) -> None:
        if have <= client.released:
            return
        span = (client_id, have)
        held = "FROM quipu_results WHERE client_id = ? AND message_id <= ?"
        (size,) = self.connection.execute(
            f"SELECT coalesce(sum(weight), 0) {held}",
            span,
        ).fetchone()
        self.connection.execute(f"DELETE {held}", span)
        client.kept_bytes -= size
        client.released = have
        self._dirty[client_id] = None

    def _stored(self, client_id: int, after: int, upto: int) -> Iterator[Kept]:
        rows = self.connection.execute(
            "SELECT message_id, request, digest, content FROM quipu_results"
            " WHERE client_id = ? AND message_id > ? AND message_id <= ? ORDER BY message_id",
            (client_id, after, upto),
        )
        for message_id, request, digest, content in rows:
            outcome = decode_outcome(content)
            if outcome.told().digest != digest:
                place = f"client {client_id}, message {message_id}"
                raise StoreCorrupt("results", place, "not what was stored")
            yield Kept(message_id, Digest(request), outcome)

    def _write_results(self) -> None:
        self.connection.executemany(
            "INSERT INTO quipu_results VALUES (?, ?, ?, ?, ?, ?)", self._results
        )
        self._results.clear()
