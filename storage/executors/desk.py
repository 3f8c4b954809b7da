"""Who may ask, and whose turn it is: signed requests and the order's items about clients.

What it keeps is in the executor's database and its commits: keys, what is signed for each message
id that the client does not hold yet, requests that wait for the ids before them, access lists.
"""

import hashlib
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from quipu.ledger import limits as ledger_limits
from quipu.ledger import signing
from quipu.ledger.canonical import encode
from quipu.ledger.log.words import Index, Regime
from quipu.ledger.order import clients as orders
from quipu.ledger.order import registry as registries
from quipu.ledger.order.client_items import (
    AccessList,
    ReadResults,
    SigType,
    read_client_item,
    signed_read,
)
from quipu.ledger.order.clients import Clients, Due, Known, Terminated, Waits
from quipu.ledger.refusals import Refused
from quipu.ledger.words import NodeId
from quipu.storage.executors.acl import NOTHING, decode_acl, encode_acl
from quipu.storage.executors.book import Book
from quipu.storage.executors.connection import Connection
from quipu.storage.executors.outcome import Answer, Code, Outcome
from quipu.storage.executors.request import (
    AddClient,
    ClientId,
    Configured,
    Message,
    MessageId,
    Plain,
    Read,
    RemoveClient,
    Request,
    Signed,
    decode_messages,
)

SCHEMA = (
    """CREATE TABLE quipu_registry (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        record BLOB NOT NULL
    ) STRICT""",
    "CREATE TABLE quipu_lists (id BLOB PRIMARY KEY, rules BLOB NOT NULL) STRICT, WITHOUT ROWID",
    """CREATE TABLE quipu_keys (
        client_id INTEGER PRIMARY KEY,
        public BLOB NOT NULL,
        proof BLOB NOT NULL
    ) STRICT""",
    """CREATE TABLE quipu_signed (
        client_id INTEGER NOT NULL,
        message_id INTEGER NOT NULL,
        digest BLOB NOT NULL,
        signature BLOB NOT NULL,
        data BLOB,
        PRIMARY KEY (client_id, message_id)
    ) STRICT, WITHOUT ROWID""",
)
INITIAL = "INSERT INTO quipu_registry VALUES (1, x'')"
UNREADABLE = 0  # kind of the one message that stands for bytes which are no messages


class Standing(NamedTuple):
    """Of a client, as far as this executor has applied."""

    public: bytes
    next_id: int
    have: int
    proof: bytes  # empty: it is not terminated


class Taken(NamedTuple):
    """What a command came to by itself, and the plain commands that are due by it."""

    outcome: Outcome
    due: tuple[Plain, ...] = ()


@dataclass(slots=True)
class Desk:
    """Invariant: between two turns memory and database hold the same."""

    connection: Connection
    cluster_id: bytes
    book: Book
    registry: registries.Registry = field(default_factory=registries.Registry)
    clients: Clients = field(init=False)
    _waiting: dict[tuple[int, int], bytes] = field(default_factory=dict)
    _rows: list[tuple[int, int, bytes, bytes, bytes | None]] = field(default_factory=list)
    _registry_changed: bool = False

    def __post_init__(self) -> None:
        self.clients = Clients(self.cluster_id)

    def load(self) -> None:
        """As of the last commit."""
        self._rows.clear()
        self._waiting.clear()
        self._registry_changed = False
        self.clients = Clients(self.cluster_id)
        (record,) = self.connection.execute("SELECT record FROM quipu_registry").fetchone()
        self.registry = registries.Registry.of(record)
        found = self.connection.execute("SELECT client_id, public, proof FROM quipu_keys")
        for number, public, proof in found:
            booked = self.book.clients[number]
            client = orders.Client(NodeId(public), booked.last_id + 1, booked.released)
            client.proof = _proof_of(number, proof) if proof else None
            self.clients.put(orders.ClientId(number), client)
        signed = self.connection.execute(
            "SELECT client_id, message_id, digest, signature, data FROM quipu_signed"
        )
        for number, message_id, digest, signature, data in signed:
            known = self.clients.of(orders.ClientId(number))
            assert known is not None  # both go together
            known.requests[message_id] = orders.Request(
                orders.ClientId(number), message_id, digest, signature
            )
            if data is not None:
                self._waiting[number, message_id] = data
            else:
                known.results[message_id] = b""

    # --- what the order says --------------------------------------------------------------------
    def take(self, signed: Signed) -> Taken:
        """A request, if it is one of a client and its turn has come."""
        number = orders.ClientId(signed.client_id)
        if signed.sig_type != SigType.ED25519 or len(signed.signature) != signing.SIGNATURE_BYTES:
            return Taken(Outcome(Code.BAD_SIGNATURE))
        request = orders.Request(
            number, signed.message_id, content_digest(signed.data), signed.signature
        )
        verdict = self.clients.take(request)
        match verdict:
            case Due(requests):
                self._keep(request, None)
                return Taken(Outcome(Code.OK), tuple(self._due(r, signed) for r in requests))
            case Waits():
                self._waiting[number, signed.message_id] = signed.data
                self._keep(request, signed.data)
                return Taken(Outcome(Code.WAITS))
            case Known():
                waits = (number, signed.message_id) in self._waiting
                return Taken(Outcome(Code.WAITS if waits else Code.REPEATED))
            case Terminated():
                self._terminate(verdict)
                return Taken(Outcome(Code.TERMINATED))
            case refusal:
                return Taken(Outcome(Code(str(refusal))))

    def configured(self, command: Configured) -> Taken:
        """An item of the order about clients."""
        item = read_client_item(command.item)
        if item is None:
            return Taken(Outcome(Code.MALFORMED))
        regime, index = Regime(command.regime), Index(command.log_index)
        outcome = self.registry.apply(item, registries.ItemPlace(regime, index, command.number))
        match outcome:
            case registries.RegistryRefusal():
                return Taken(Outcome(Code(outcome.value)))
            case registries.Listed(acl):
                assert isinstance(item, AccessList)
                self._registry_changed = True
                self.connection.execute("INSERT INTO quipu_lists VALUES (?, ?)", (acl, item.rules))
                return Taken(Outcome(Code.OK))
            case registries.Registered(client, acl):
                return self._added(client, acl)
            case registries.RightsChanged(client, acl):
                self._registry_changed = True
                return Taken(Outcome(Code.OK), (AddClient(client, self._rules(acl)),))
            case registries.Removed(client):
                self._removed(client)
                return Taken(Outcome(Code.OK), (RemoveClient(client),))
            case registries.ReadOrdered():
                assert isinstance(item, ReadResults)
                return self._read(item)

    def _added(self, client: orders.ClientId, acl: bytes) -> Taken:
        self._registry_changed = True
        public = self.registry.clients[client].public
        self.clients.put(client, orders.Client(NodeId(public)))
        self.connection.execute("INSERT INTO quipu_keys VALUES (?, ?, x'')", (client, public))
        return Taken(Outcome(Code.OK), (AddClient(client, self._rules(acl)),))

    def _rules(self, acl: bytes) -> bytes:
        (rules,) = self.connection.execute(
            "SELECT rules FROM quipu_lists WHERE id = ?", (acl,)
        ).fetchone()
        return _readable(rules)

    def _removed(self, client: orders.ClientId) -> None:
        self._registry_changed = True
        self.clients.forget(client)
        self._write_rows()
        for place in [place for place in self._waiting if place[0] == client]:
            del self._waiting[place]
        self.connection.execute("DELETE FROM quipu_keys WHERE client_id = ?", (client,))
        self.connection.execute("DELETE FROM quipu_signed WHERE client_id = ?", (client,))

    def _read(self, item: ReadResults) -> Taken:
        client = self.clients.of(orders.ClientId(item.client_id))
        assert client is not None  # the registry has it
        text = signed_read(self.cluster_id, item.client_id, item.upto, item.have)
        most = ledger_limits.SEQUENCE_NUMBER_MAX - 1
        if not signing.verify(client.public, text, item.signature) or item.upto > most:
            return Taken(Outcome(Code.BAD_SIGNATURE))
        return Taken(Outcome(Code.OK), (Read(item.client_id, item.upto, min(item.have, most)),))

    # --- what became of it ----------------------------------------------------------------------
    def executed(self, request: Request) -> None:
        """A request that was due is done; what is kept of it the book has."""
        client = self.clients.of(orders.ClientId(request.client_id))
        if client is not None and request.message_id in client.requests:
            client.results[request.message_id] = b""

    def answered(self, command: Read, answer: Answer) -> None:
        """What the client holds now it is not asked for again."""
        number = orders.ClientId(command.client_id)
        client = self.clients.of(number)
        if client is None or answer.code is Code.AHEAD or answer.released <= client.have:
            return
        self.clients.read(number, 0, answer.released)
        self._write_rows()
        self.connection.execute(
            "DELETE FROM quipu_signed WHERE client_id = ? AND message_id <= ?",
            (command.client_id, answer.released),
        )

    def write(self) -> None:
        """All of the turn, in the transaction that ends it."""
        self._write_rows()
        if self._registry_changed:
            record = self.registry.record()
            self.connection.execute("UPDATE quipu_registry SET record = ?", (record,))
            self._registry_changed = False

    def standing(self, client: ClientId) -> Standing | None:
        known = self.clients.of(orders.ClientId(client))
        if known is None:
            return None
        proof = b"" if known.proof is None else _proof_bytes(known.proof)
        return Standing(known.public, known.next_id, known.have, proof)

    def terminated(self) -> list[int]:
        return [number for number, client in self.clients.all() if client.proof is not None]

    def signed_digest(self, client: ClientId, message: MessageId) -> bytes | None:
        """Of what the client has signed for that id; None where nothing is kept of it."""
        known = self.clients.of(orders.ClientId(client))
        request = None if known is None else known.requests.get(message)
        return None if request is None else request.digest

    def _due(self, request: orders.Request, signed: Signed) -> Request:
        place = (request.client, request.message_id)
        data = self._waiting.pop(place, signed.data)
        if request.message_id != signed.message_id:
            self._keep(request, None)
        return Request(*place, messages_of(data))

    def _keep(self, request: orders.Request, data: bytes | None) -> None:
        place = (request.client, request.message_id)
        self._rows.append((*place, request.digest, request.signature, data))

    def _terminate(self, proof: Terminated) -> None:
        self.connection.execute(
            "UPDATE quipu_keys SET proof = ? WHERE client_id = ?",
            (_proof_bytes(proof), proof.one.client),
        )

    def _write_rows(self) -> None:
        self.connection.executemany(
            "INSERT OR REPLACE INTO quipu_signed VALUES (?, ?, ?, ?, ?)", self._rows
        )
        self._rows.clear()


def _readable(rules: bytes) -> bytes:
    """A list that nobody can read grants nothing; its client is there all the same."""
    try:
        decode_acl(rules)
    except Refused:
        return encode_acl(NOTHING)
    return rules


def content_digest(data: bytes) -> bytes:
    """Of the messages of a request: what its client signs, with its ids."""
    return hashlib.sha256(data).digest()


def messages_of(data: bytes) -> tuple[Message, ...]:
    """What is no messages is one of a kind that nobody executes: its id is used up all the same."""
    try:
        return decode_messages(data)
    except Refused:
        return (Message(UNREADABLE, b""),)


def _proof_bytes(proof: Terminated) -> bytes:
    one, other = proof.one, proof.other
    return encode([one.message_id, [one.digest, one.signature], [other.digest, other.signature]])


def _proof_of(number: int, proof: bytes) -> Terminated:
    message_id, *signed = msgspec.msgpack.decode(proof)
    one, other = (
        orders.Request(orders.ClientId(number), message_id, digest, signature)
        for digest, signature in signed
    )
    return Terminated(one, other)
