"""Ids of clients are given once, in the order; what goes with a base brings all of it back."""

import pytest

from quipu.ledger import limits
from quipu.ledger.log.words import Index, Regime
from quipu.ledger.order.client_items import (
    AccessList,
    AddClient,
    ChangeRights,
    ReadResults,
    RemoveClient,
    acl_id,
    encode_client_item,
    read_client_item,
)
from quipu.ledger.order.clients import ClientId
from quipu.ledger.order.registry import (
    ItemPlace,
    Listed,
    ReadOrdered,
    Registered,
    Registry,
    RegistryRefusal,
    Removed,
    RightsChanged,
)
from quipu.ledger.refusals import Refused
from tests.small_ledger import key_of

PLACE = ItemPlace(Regime(3), Index(9), 1)
ACL = acl_id(*PLACE)
PUBLIC = key_of("client").node_id


def listed() -> Registry:
    registry = Registry()
    assert registry.apply(AccessList(b"rules"), PLACE) == Listed(ACL)
    return registry


def test_access_list_is_named_by_the_full_id_of_its_entry() -> None:
    assert ACL.hex() == "000000030000000000000009000001"


def test_ids_follow_the_order_and_are_never_given_again() -> None:
    registry = listed()
    add = AddClient(ACL, 1, PUBLIC)
    assert registry.apply(add, PLACE) == Registered(ClientId(1), ACL)
    assert registry.apply(RemoveClient(1), PLACE) == Removed(ClientId(1))
    assert registry.apply(RemoveClient(1), PLACE) is RegistryRefusal.REMOVED
    assert registry.apply(RemoveClient(2), PLACE) is RegistryRefusal.UNKNOWN_CLIENT
    assert registry.apply(add, PLACE) == Registered(ClientId(2), ACL)
    assert registry.apply(ReadResults(2, 1, 0, b""), PLACE) == ReadOrdered(ClientId(2))
    assert registry.apply(ReadResults(1, 1, 0, b""), PLACE) is RegistryRefusal.REMOVED


def test_rights_are_those_of_the_newest_change_and_the_number_stays() -> None:
    registry, other = listed(), acl_id(Regime(3), Index(10), 0)
    registry.apply(AddClient(ACL, 1, PUBLIC), PLACE)
    before = registry.record()
    assert registry.apply(ChangeRights(1, other), PLACE) is RegistryRefusal.UNKNOWN_LIST
    assert registry.apply(ChangeRights(2, ACL), PLACE) is RegistryRefusal.UNKNOWN_CLIENT
    assert registry.record() == before
    registry.apply(AccessList(b"others"), ItemPlace(Regime(3), Index(10), 0))
    assert registry.apply(ChangeRights(1, other), PLACE) == RightsChanged(ClientId(1), other)
    assert registry.clients[ClientId(1)].acl == other
    assert Registry.of(registry.record()) == registry
    registry.apply(RemoveClient(1), PLACE)
    assert registry.apply(ChangeRights(1, ACL), PLACE) is RegistryRefusal.REMOVED


@pytest.mark.parametrize(
    ("item", "refusal"),
    [
        (AddClient(bytes(15), 1, PUBLIC), RegistryRefusal.UNKNOWN_LIST),
        (AddClient(ACL, 2, PUBLIC), RegistryRefusal.BAD_KEY),
        (AddClient(ACL, 1, PUBLIC[1:]), RegistryRefusal.BAD_KEY),
    ],
)
def test_what_is_not_taken_changes_nothing(item: AddClient, refusal: RegistryRefusal) -> None:
    registry = listed()
    before = registry.record()
    assert registry.apply(item, PLACE) is refusal
    assert registry.record() == before


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CLIENTS_MAX", 1)
    monkeypatch.setattr(limits, "ACCESS_LISTS_MAX", 1)
    registry = listed()
    registry.apply(AddClient(ACL, 1, PUBLIC), PLACE)
    assert registry.apply(AddClient(ACL, 1, PUBLIC), PLACE) is RegistryRefusal.TOO_MANY
    assert registry.apply(AccessList(b""), PLACE) is RegistryRefusal.TOO_MANY


def test_record_brings_all_of_it_back() -> None:
    registry = listed()
    for _ in range(3):
        registry.apply(AddClient(ACL, 1, PUBLIC), PLACE)
    registry.apply(RemoveClient(2), PLACE)
    assert Registry.of(registry.record()) == registry
    assert Registry.of(b"") == Registry()
    assert Registry().record() == b""
    with pytest.raises(Refused):
        Registry.of(b"\x00")


def test_items_are_read_as_they_were_written_and_nothing_else_is() -> None:
    items = (
        AccessList(b"x"),
        AddClient(ACL, 1, PUBLIC),
        RemoveClient(7),
        ChangeRights(7, ACL),
        ReadResults(1, 5, 2, b""),
    )
    for item in items:
        assert read_client_item(encode_client_item(item)) == item
    for other in (b"", b"\x93\x20", b"what nobody reads"):
        assert read_client_item(other) is None
