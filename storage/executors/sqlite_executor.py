"""The executor on SQLite: one transaction a turn, one savepoint a request.

The applied index, results and the apps' tables are in one file and one commit, so after any crash
they speak of the same moment. It is used from one thread at a time; its reader, snapshots and table
digests have connections of their own and may be used from others meanwhile.
"""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from quipu.ledger.refusals import Refused
from quipu.storage import failpoints
from quipu.storage.environment import lock_owner, sync_directory
from quipu.storage.executors import limits
from quipu.storage.executors.acl import EVERYTHING, decode_acl
from quipu.storage.executors.book import FORMAT_VERSION, SCHEMA, Book
from quipu.storage.executors.connection import (
    Connection,
    Passing,
    connect,
    engine,
    modules_of,
    raise_named,
)
from quipu.storage.executors.database import Database, TurnLost, steps_spent
from quipu.storage.executors.desk import INITIAL, Desk, Standing
from quipu.storage.executors.desk import SCHEMA as DESK_SCHEMA
from quipu.storage.executors.executor import (
    NO_DIGEST,
    Mark,
    OtherEngine,
    OutOfOrder,
    Position,
    Released,
    Snapshot,
    next_digest,
)
from quipu.storage.executors.gate import Gate
from quipu.storage.executors.guards import guard_rowids
from quipu.storage.executors.interpreter import Interpreter, SqlInterpreter
from quipu.storage.executors.outcome import Answer, Code, Kept, MessageFailed, Outcome, Result
from quipu.storage.executors.reader import Reader
from quipu.storage.executors.request import (
    CHECKPOINT,
    AddClient,
    ClientId,
    Configured,
    Digest,
    LogIndex,
    Message,
    MessageId,
    Ordered,
    Plain,
    Read,
    RemoveClient,
    Request,
    Signed,
    digest_of,
)
from quipu.storage.executors.snapshots import DATABASE_FILE, digest_tables, take_snapshot
from quipu.storage.store import OutcomeUnknown, StoreClosed, StoreError

# Places of a turn, in their order; what has happened by then.
SITES = tuple(site for site in failpoints.SITES if site.startswith("executor."))


class OtherFormat(StoreError):
    """The database was written by a program of another version."""


class WrongCluster(StoreError):
    """The database belongs to another cluster."""


class SqliteExecutor:
    def __init__(
        self,
        directory: Path,
        cluster_id: bytes,
        interpreter: Interpreter | None = None,
        passing: Passing = failpoints.passing,
        *,
        adopt: bool = False,
    ) -> None:
        """Opens what is there, or begins at index 0. The directory is this executor's own.
        `adopt`: what another engine made is gone on with; the digests tell whether it may be."""
        self._interpreter = interpreter or SqlInterpreter()
        self._passing = passing
        self._file = directory / DATABASE_FILE
        self._closed = self._torn = False
        # Messages of the turn at hand that are known to spend their request's steps.
        self._spent: dict[tuple[int, int], int] = {}
        self._digests: dict[int, Digest] = {}  # by the indexes of commands, in their order
        self.executed: list[tuple[ClientId, MessageId, Outcome]] = []  # by the last turn
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._owner = lock_owner(directory)
        try:
            self._connection = self._open(cluster_id, adopt=adopt)
            self.reader = Reader(self._file, self._interpreter)
        except BaseException:
            os.close(self._owner)
            raise

    def _open(self, cluster_id: bytes, *, adopt: bool) -> Connection:
        connection = connect(self._file)
        try:
            self._gate = Gate(modules_of(connection))
            self._database = Database(connection, self._gate)
            self._book = Book(connection)
            self._desk = Desk(connection, cluster_id, self._book)
            self._database.attach()
            self._engine = engine_of(self._interpreter)
            if not is_begun(connection):
                self._begin(connection, cluster_id)
            theirs = made_by(connection, self._file, cluster_id)
            if theirs != self._engine and not adopt:
                raise OtherEngine(f"{self._file}: made by {theirs}, this is {self._engine}")
            if theirs != self._engine:
                connection.execute("UPDATE quipu_state SET engine = ?", (self._engine,))
            self._book.load()
            self._desk.load()
            self._digests[self._book.applied.at] = self._book.applied.digest
            self._database.load_names()
            guard_rowids(connection)
        except sqlite3.Error as error:
            connection.close()
            raise_named(error, self._file)
        except BaseException:
            connection.close()
            raise
        return connection

    def _begin(self, connection: Connection, cluster_id: bytes) -> None:
        connection.execute("BEGIN IMMEDIATE")
        for statement in (*SCHEMA, *DESK_SCHEMA, INITIAL):
            connection.execute(statement)
        connection.execute(
            "INSERT INTO quipu_state VALUES (1, ?, ?, ?, 0, ?)",
            (FORMAT_VERSION, cluster_id, self._engine, NO_DIGEST),
        )
        self._database.load_names()
        self._interpreter.prepare(self._database)
        connection.execute("COMMIT")
        self._file.chmod(0o600)
        sync_directory(self._file.parent)

    def position(self) -> Position:
        return Position(self._book.applied, self._engine)

    def digest_at(self, index: LogIndex) -> Digest | None:
        self._refuse_torn()
        return self._book.digest_at(index)

    def digest_as_of(self, index: LogIndex) -> Digest | None:
        """Of all commands up to an index; None where that is too long ago, or to come."""
        self._refuse_torn()
        known = [at for at in self._digests if at <= index]
        return self._digests[known[-1]] if known and index <= self._book.applied.at else None

    @property
    def last_command(self) -> Mark:
        """Where the last command was; after a start, where the last turn ended."""
        self._refuse_torn()
        at, digest = list(self._digests.items())[-1]
        return Mark(LogIndex(at), digest)

    def result(self, client: ClientId, message: MessageId) -> Kept | Released | None:
        self._refuse_torn()
        return self._book.find(client, message)

    def standing(self, client: ClientId) -> Standing | None:
        """Of a client that signs; None: there is none of that id."""
        self._refuse_torn()
        return self._desk.standing(client)

    def signed_digest(self, client: ClientId, message: MessageId) -> bytes | None:
        """Of what is executed or waits under that id."""
        self._refuse_torn()
        return self._desk.signed_digest(client, message)

    def rules(self, client: ClientId) -> bytes:
        """The access list of a client that there is."""
        self._refuse_torn()
        return self._book.clients[client].acl

    def watermarks(self) -> dict[int, int]:
        """The last message id that was executed, of each client."""
        self._refuse_torn()
        return {number: client.last_id for number, client in self._book.clients.items()}

    def terminated(self) -> frozenset[int]:
        """The clients of which there is a proof."""
        self._refuse_torn()
        return frozenset(self._desk.terminated())

    def validate(self, request: Request) -> None:
        self.reader.validate(request)

    def apply(self, ordered: Sequence[Ordered], upto: LogIndex) -> list[Outcome | Answer]:
        self._refuse_torn()
        _check_order(self._book.applied.at, ordered, upto)
        self._torn = True  # until the end is known, nothing else may be asked of it
        self._spent.clear()
        while (outcomes := self._turn(ordered, upto)) is None:
            pass
        self._torn = False
        self._passing("executor.durable")
        return outcomes

    def _turn(self, ordered: Sequence[Ordered], upto: LogIndex) -> list[Outcome | Answer] | None:
        """None: it was lost to a message that is known now, and is to be run again."""
        committing = False
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._passing("executor.begun")
            self.executed.clear()
            outcomes = [self._step(item) for item in ordered]
            self._desk.write()
            self._book.write(upto)
            self._passing("executor.written")
            committing = True
            self._connection.execute("COMMIT")
        except TurnLost:
            self._reload()
            return None
        except BaseException as error:
            self._forget(error, committing=committing)
            raise
        return outcomes

    def table_digest(self) -> Digest:
        self._refuse_closed()
        return digest_tables(self._file)

    def snapshot(self, target: Path) -> Snapshot:
        self._refuse_closed()
        return take_snapshot(self._file, target)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.reader.close()
        self._connection.close()
        os.close(self._owner)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreClosed(f"{self._file}: open it anew")

    def _refuse_torn(self) -> None:
        self._refuse_closed()
        if self._torn:
            raise StoreClosed(f"{self._file}: how its last turn ended is unknown, open it anew")

    def _forget(self, error: BaseException, *, committing: bool) -> None:
        """Nothing of the turn is kept; whether a failed COMMIT is, only opening anew tells."""
        self._gate.open()
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
        if committing and getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_FULL:
            raise OutcomeUnknown(f"{self._file}: {error}") from error
        self._reload()
        self._torn = False
        if isinstance(error, sqlite3.Error):
            raise_named(error, self._file)

    def _reload(self) -> None:
        """As of the last commit, guards included: they are dropped and made within turns."""
        self._book.load()
        self._desk.load()
        for at in [at for at in self._digests if at > self._book.applied.at]:
            del self._digests[at]
        self._database.load_names()
        guard_rowids(self._connection, anew=True)

    def _step(self, item: Ordered) -> Outcome | Answer:
        """What a command came to; where plain ones are due by it, what the first of them did."""
        match item.command:
            case Signed() as signed:
                taken = self._desk.take(signed)
            case Configured() as configured:
                taken = self._desk.configured(configured)
            case plain:
                return self._step_plain(item.at, plain)
        self._running(item.at, digest_of(item.command), taken.outcome.told().digest)
        done = [self._step_plain(item.at, due) for due in taken.due]
        return done[0] if done else taken.outcome

    def _step_plain(self, at: LogIndex, plain: Plain) -> Outcome | Answer:
        command = digest_of(plain)
        outcome = self._done(plain)
        told = outcome.told()
        match plain, outcome:
            case Request() as request, Outcome() if self._book.refusal(request) is None:
                self._book.keep(request, command, outcome, told)
                self._desk.executed(request)
                place = (ClientId(request.client_id), MessageId(request.message_id))
                self.executed.append((*place, outcome))
            case Read() as read, Answer() as answer:
                self._desk.answered(read, answer)
        self._running(at, command, told.digest)
        return outcome

    def _running(self, at: LogIndex, command: Digest, outcome: Digest) -> None:
        before = self._book.applied.digest
        self._book.step(Mark(at, next_digest(before, at, command, outcome)))
        self._digests[at] = self._book.applied.digest
        if len(self._digests) > limits.DIGESTS_RECENT_MAX:
            del self._digests[next(iter(self._digests))]
        self._passing("executor.executed")

    def _done(self, command: Plain) -> Outcome | Answer:
        match command:
            case Request():
                return self._request(command)
            case Read():
                return self._book.read(command)
            case AddClient():
                try:
                    self._book.add(command, decode_acl(command.acl))
                except Refused as error:
                    return Outcome(Code.BAD_ACL, detail=str(error))
                return Outcome(Code.OK)
            case RemoveClient():
                known = self._book.remove(command.client_id)
                return Outcome(Code.OK if known else Code.UNKNOWN_CLIENT)

    def _request(self, request: Request) -> Outcome:
        if (refusal := self._book.refusal(request)) is not None:
            return Outcome(refusal)
        if len(request.messages) > limits.MESSAGES_PER_REQUEST_MAX:
            return Outcome(Code.TOO_MANY_MESSAGES)
        client = self._book.clients[request.client_id]
        if client.kept_bytes > limits.KEPT_BYTES_PER_CLIENT_MAX:
            return Outcome(Code.RESULTS_UNREAD)
        self._database.begin(client.rights if self._interpreter.as_client else EVERYTHING)
        return self._run(request)

    def _run(self, request: Request) -> Outcome:
        """All messages, or those before the last checkpoint that was reached."""
        self._connection.execute("SAVEPOINT quipu_request")
        results: list[Result] = []
        standing = 0  # results that nothing undoes any more
        for message in request.messages:
            if message.kind == CHECKPOINT:
                results.append(Result(Code.OK))
                self._connection.execute("RELEASE quipu_request")
                self._connection.execute("SAVEPOINT quipu_request")
                standing = len(results)
                continue
            try:
                results.append(self._message(request, len(results), message))
            except MessageFailed as failed:
                return self._undone(request, results[:standing], len(results), failed)
        self._connection.execute("RELEASE quipu_request")
        return Outcome(Code.OK, tuple(results))

    def _message(self, request: Request, number: int, message: Message) -> Result:
        place = (request.client_id, request.message_id)
        if self._spent.get(place) == number:
            raise steps_spent()
        try:
            return self._interpreter.execute(request, message, self._database)
        finally:
            if not self._connection.in_transaction:
                self._spent[place] = number
                raise TurnLost

    def _undone(
        self, request: Request, standing: list[Result], at: int, failed: MessageFailed
    ) -> Outcome:
        self._connection.execute("ROLLBACK TO quipu_request")
        self._connection.execute("RELEASE quipu_request")
        self._database.rolled_back()
        results = [
            *standing,
            *[Result(Code.ROLLED_BACK)] * (at - len(standing)),
            Result(failed.code, detail=failed.detail),
            *[Result(Code.NOT_RUN)] * (len(request.messages) - at - 1),
        ]
        return Outcome(failed.code, tuple(results))


def engine_of(interpreter: Interpreter) -> str:
    return f"{engine()} {interpreter.name}"


def is_begun(connection: Connection) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'quipu_state'")
    return found.fetchone() is not None


def made_by(connection: Connection, file: Path, cluster_id: bytes) -> str:
    """The engine of what is there; refused where it is not this cluster's, or of another format."""
    form, cluster, made = connection.execute(
        "SELECT format, cluster, engine FROM quipu_state"
    ).fetchone()
    if form != FORMAT_VERSION:
        raise OtherFormat(f"{file}: format {form}, this program has {FORMAT_VERSION}")
    if cluster != cluster_id:
        raise WrongCluster(f"{file} belongs to cluster {cluster.hex()[:16]}")
    return str(made)


def _check_order(applied: LogIndex, ordered: Sequence[Ordered], upto: LogIndex) -> None:
    last = applied + 1
    for item in ordered:
        if item.at < last:
            raise OutOfOrder(f"index {item.at} comes where {last} is the least")
        last = item.at
    if upto < max(last, applied + 1) and not (not ordered and upto == applied):
        raise OutOfOrder(f"a turn up to {upto}, with {applied} applied and commands up to {last}")
    if upto > limits.INTEGER_MAX:
        raise OutOfOrder(f"index {upto} is beyond the log's greatest")
