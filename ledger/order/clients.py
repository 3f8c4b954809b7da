"""Clients (seed 001): ids 1, 2, 3 ..., each request once for all, and the end of one that lied.

A pure function of the order: every executor holds the same. What a request does is decided
elsewhere; here is decided only whether it is its turn, and what is kept of its result.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, NewType

from quipu.ledger import limits, signing
from quipu.ledger.canonical import encode
from quipu.ledger.words import NodeId

ClientId = NewType("ClientId", int)  # u32, given when the entry is applied, never again


class ClientRefusal(StrEnum):
    """Why a request is not taken: the same on every executor."""

    UNKNOWN = "unknown-client"
    REMOVED = "client-removed"
    TERMINATED = "client-terminated"
    BAD_SIGNATURE = "bad-signature"  # refused, and closes nobody's log
    TOO_FAR_AHEAD = "too-far-ahead"
    RELEASED = "released"  # the client has said that it holds this result
    BAD_ID = "bad-message-id"
    RESULTS_UNREAD = "results-unread"  # too many of them wait to be read


class Request(NamedTuple):
    """`digest` is over the messages; the signature covers cluster, client, id and digest."""

    client: ClientId
    message_id: int
    digest: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class Due:
    """To be executed now, in this order: the request and what waited for it."""

    requests: tuple[Request, ...]


@dataclass(frozen=True, slots=True)
class Waits:
    """For the ids before it."""


@dataclass(frozen=True, slots=True)
class Known:
    """The same request again: its stored result; None while it waits."""

    result: bytes | None


@dataclass(frozen=True, slots=True)
class Terminated:
    """Two valid signatures for one id over different bytes: this is the proof."""

    one: Request
    other: Request


Verdict = Due | Waits | Known | Terminated | ClientRefusal


@dataclass(slots=True)
class Client:
    """Kept is every id above `have`: a request below `next_id` is executed, one above waits."""

    public: NodeId
    next_id: int = 1
    have: int = 0
    requests: dict[int, Request] = field(default_factory=dict)
    results: dict[int, bytes] = field(default_factory=dict)
    proof: Terminated | None = None
    removed: bool = False


def signed_request(cluster_id: bytes, request: Request) -> bytes:
    fields = [cluster_id, request.client, request.message_id, request.digest]
    return signing.TAG_SIG_REQUEST + encode(fields)


class Clients:
    def __init__(self, cluster_id: bytes, verify: signing.Verifier = signing.verify) -> None:
        self._cluster_id = cluster_id
        self._verify = verify
        self._clients: dict[ClientId, Client] = {}

    # --- config entries -------------------------------------------------------------------------
    def add(self, public: NodeId) -> ClientId:
        number = ClientId(len(self._clients) + 1)
        assert number <= limits.CLIENT_ID_MAX
        self._clients[number] = Client(public)
        return number

    def remove(self, number: ClientId) -> None:
        """Its later requests are refused; its number is never given again."""
        client = self._clients.get(number)
        if client is not None:
            client.removed = True

    def put(self, number: ClientId, client: Client) -> None:
        """As it was kept, or with an id that was given elsewhere."""
        self._clients[number] = client

    def forget(self, number: ClientId) -> None:
        """As if it had never been: its later requests are of an unknown client."""
        self._clients.pop(number, None)

    def all(self) -> Iterable[tuple[ClientId, Client]]:
        return self._clients.items()

    def of(self, number: ClientId) -> Client | None:
        return self._clients.get(number)

    # --- requests -------------------------------------------------------------------------------
    def take(self, request: Request) -> Verdict:
        client = self._clients.get(request.client)
        if client is None:
            return ClientRefusal.UNKNOWN
        if client.proof is not None:
            return ClientRefusal.TERMINATED
        if client.removed:
            return ClientRefusal.REMOVED
        message = signed_request(self._cluster_id, request)
        if not self._verify(client.public, message, request.signature):
            return ClientRefusal.BAD_SIGNATURE
        if request.message_id < 1:
            return ClientRefusal.BAD_ID
        if request.message_id <= client.have:
            return ClientRefusal.RELEASED
        if request.message_id >= client.next_id + limits.CLIENT_AHEAD_MAX:
            return ClientRefusal.TOO_FAR_AHEAD
        before = client.requests.get(request.message_id)
        if before is None:
            if len(client.requests) >= limits.CLIENT_KEPT_MAX:
                return ClientRefusal.RESULTS_UNREAD
            return _taken(client, request)
        if before.digest == request.digest:
            return Known(client.results.get(request.message_id))
        client.proof = Terminated(before, request)
        return client.proof

    def executed(self, request: Request, result: bytes) -> None:
        """Of a request that was due."""
        client = self._clients[request.client]
        assert client.have < request.message_id < client.next_id
        client.results[request.message_id] = result

    def read(self, number: ClientId, upto: int, have: int) -> list[tuple[int, bytes]]:
        """READ(upto, have): what lies in (have, upto]. What the client says it holds goes; a read
        that stands earlier in the order and comes again brings nothing back."""
        client = self._clients.get(number)
        if client is None:
            return []
        held = min(have, client.next_id - 1)
        for message_id in range(client.have + 1, held + 1):
            client.requests.pop(message_id, None)
            client.results.pop(message_id, None)
        client.have = max(client.have, held)
        end = min(upto, client.next_id - 1)
        found = range(client.have + 1, end + 1)
        return [(i, client.results[i]) for i in found if i in client.results]


def _taken(client: Client, request: Request) -> Due | Waits:
    client.requests[request.message_id] = request
    due: list[Request] = []
    while (following := client.requests.get(client.next_id)) is not None:
        due.append(following)
        client.next_id += 1
    return Due(tuple(due)) if due else Waits()
