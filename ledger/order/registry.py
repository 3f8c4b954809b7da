"""Who is a client (seed 001: add and remove client): ids 1, 2, 3 ..., each given once.

A pure function of the order, the same on every node; executors keep one of their own, as of the
index that they have applied. What a client may do and what it did is theirs alone.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, NamedTuple, assert_never

import msgspec

from quipu.ledger import limits, signing
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.log.words import Index, Regime
from quipu.ledger.order.client_items import (
    AccessList,
    AclId,
    AddClient,
    ChangeRights,
    ClientItem,
    ReadResults,
    RemoveClient,
    SigType,
    acl_id,
)
from quipu.ledger.order.clients import ClientId


class RegistryRefusal(StrEnum):
    """Why an item changes nothing: the same on every node."""

    UNKNOWN_CLIENT = "client-not-found"
    REMOVED = "client-removed"
    UNKNOWN_LIST = "acl-not-found"
    TOO_MANY = "too-many-clients"
    BAD_KEY = "bad-key"


class ItemPlace(NamedTuple):
    """Where an item stands: the entry's own regime and index, and its number there."""

    regime: Regime
    log_index: Index
    number: int


@dataclass(frozen=True, slots=True)
class Listed:
    """An access list has its id."""

    acl: bytes


@dataclass(frozen=True, slots=True)
class Registered:
    """A client has its id."""

    client: ClientId
    acl: bytes


@dataclass(frozen=True, slots=True)
class Removed:
    client: ClientId


@dataclass(frozen=True, slots=True)
class RightsChanged:
    client: ClientId
    acl: bytes


@dataclass(frozen=True, slots=True)
class ReadOrdered:
    """Of a client that there is: executors answer it."""

    client: ClientId


RegistryOutcome = Listed | Registered | Removed | RightsChanged | ReadOrdered | RegistryRefusal


@dataclass(frozen=True, slots=True)
class Registration:
    acl: bytes
    sig_type: int
    public: bytes
    removed: bool = False


class RegistrationRow(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """One client in the state that goes with a base; its id is its place."""

    acl: AclId
    sig_type: Annotated[int, msgspec.Meta(ge=0, le=255)]
    public: bytes
    removed: bool


class RegistryRecord(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    lists: Annotated[list[AclId], msgspec.Meta(max_length=limits.ACCESS_LISTS_MAX)]
    clients: Annotated[list[RegistrationRow], msgspec.Meta(max_length=limits.CLIENTS_MAX)]


_record = Canonical(RegistryRecord, limits.LOG_STATE_BYTES_MAX)


@dataclass(slots=True)
class Registry:
    """Invariant: `clients` has the ids 1 to its length."""

    lists: dict[bytes, None] = field(default_factory=dict)
    clients: dict[ClientId, Registration] = field(default_factory=dict)

    @classmethod
    def of(cls, record: bytes) -> "Registry":
        """Refused: anything but the bytes that `record` gave."""
        if not record:
            return cls()
        found = _record.decode(record)
        rows = enumerate(found.clients, start=1)
        clients = {
            ClientId(n): Registration(row.acl, row.sig_type, row.public, row.removed)
            for n, row in rows
        }
        return cls(dict.fromkeys(found.lists), clients)

    def record(self) -> bytes:
        """Empty while there was never anything."""
        if not self.lists:
            return b""
        rows = [
            RegistrationRow(one.acl, one.sig_type, one.public, one.removed)
            for one in self.clients.values()
        ]
        return encode(RegistryRecord(list(self.lists), rows))

    def apply(self, item: ClientItem, place: ItemPlace) -> RegistryOutcome:
        """As it stands in the order."""
        match item:
            case AccessList():
                return self._list(place)
            case AddClient():
                return self._add(item)
            case RemoveClient():
                return self._remove(ClientId(item.client_id))
            case ChangeRights():
                return self._change(ClientId(item.client_id), item.acl)
            case ReadResults():
                number = ClientId(item.client_id)
                return self.refusal(number) or ReadOrdered(number)
            case _:
                assert_never(item)

    def refusal(self, number: ClientId) -> RegistryRefusal | None:
        known = self.clients.get(number)
        if known is None:
            return RegistryRefusal.UNKNOWN_CLIENT
        return RegistryRefusal.REMOVED if known.removed else None

    def _list(self, place: ItemPlace) -> RegistryOutcome:
        if len(self.lists) >= limits.ACCESS_LISTS_MAX:
            return RegistryRefusal.TOO_MANY
        identity = acl_id(*place)
        self.lists[identity] = None
        return Listed(identity)

    def _add(self, item: AddClient) -> RegistryOutcome:
        if item.acl not in self.lists:
            return RegistryRefusal.UNKNOWN_LIST
        if item.sig_type != SigType.ED25519 or len(item.public) != signing.KEY_BYTES:
            return RegistryRefusal.BAD_KEY
        if len(self.clients) >= limits.CLIENTS_MAX:
            return RegistryRefusal.TOO_MANY
        number = ClientId(len(self.clients) + 1)
        self.clients[number] = Registration(item.acl, item.sig_type, item.public)
        return Registered(number, item.acl)

    def _remove(self, number: ClientId) -> RegistryOutcome:
        refusal = self.refusal(number)
        if refusal is not None:
            return refusal
        self.clients[number] = replace(self.clients[number], removed=True)
        return Removed(number)

    def _change(self, number: ClientId, acl: bytes) -> RegistryOutcome:
        refusal = self.refusal(number)
        if refusal is not None:
            return refusal
        if acl not in self.lists:
            return RegistryRefusal.UNKNOWN_LIST
        self.clients[number] = replace(self.clients[number], acl=acl)
        return RightsChanged(number, acl)
