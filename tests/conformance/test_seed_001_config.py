"""Seed 001, clause by clause: the config stream, and the acks of who is no serializer."""

import pytest

from quipu.ledger.canonical import encode
from quipu.ledger.inv import InvRow
from quipu.ledger.log.entry import decode_log_entry
from quipu.ledger.log.words import Index
from quipu.ledger.order.config import ROLES, ConfigStream, Configured, NodeRole
from quipu.ledger.order.config_items import (
    FIRST_STAGES,
    LAST_STAGES,
    ConfigChange,
    ConfigKind,
    ConfigStage,
    encode_change,
    read_config,
)
from quipu.ledger.order.items import EventReference, encode_item, read_item
from quipu.ledger.order.journal import Journal
from quipu.ledger.words import NodeNo
from tests.conformance.clauses import clause
from tests.conformance.test_seed_001 import NEW, ruled
from tests.unit.ledger.log.made import entry
from tests.unit.ledger.order.test_journal import Held

LARGE = 2**32 - 1  # a node number is u32
ONE = NodeNo(1)


def change(kind: ConfigKind, stage: ConfigStage, node: int = 1) -> ConfigChange:
    found = read_config(encode_change(kind, stage, (node,)))
    assert found is not None
    return found


@clause("001-62", "001-65", "001-67", "001-70", "001-73")
@pytest.mark.parametrize("kind", list(ROLES))
def test_a_change_of_roles_names_one_node(kind: ConfigKind) -> None:
    found = change(kind, FIRST_STAGES[kind], LARGE)
    assert (found.kind, found.nodes) == (kind, [LARGE])
    assert encode(found) == encode_change(kind, FIRST_STAGES[kind], (LARGE,))
    assert read_config(encode_change(kind, FIRST_STAGES[kind], (1, 2))) is None


@clause("001-63", "001-64", "001-68", "001-69", "001-71", "001-72")
@pytest.mark.parametrize(
    "kind", [ConfigKind.ADD_EXECUTOR, ConfigKind.ADD_INGEST, ConfigKind.ADD_CONFIG]
)
def test_a_node_that_catches_up_has_the_role_from_live_on(kind: ConfigKind) -> None:
    assert (FIRST_STAGES[kind], LAST_STAGES[FIRST_STAGES[kind]]) == (
        ConfigStage.CATCHUP,
        ConfigStage.LIVE,
    )
    stream, role = ConfigStream(), ROLES[kind]
    if stream.has(ONE, role):
        removing = ConfigKind(kind + 1)
        for stage in (FIRST_STAGES[removing], LAST_STAGES.get(FIRST_STAGES[removing])):
            if stage is not None:
                stream.apply(change(removing, stage), Index(1))
    stream.apply(change(kind, ConfigStage.CATCHUP), Index(3))
    assert not stream.has(ONE, role)
    stream.apply(change(kind, ConfigStage.LIVE), Index(4))
    assert stream.has(ONE, role)


@clause("001-66")
def test_an_executor_is_none_from_implement_on() -> None:
    stream = ConfigStream()
    assert stream.has(ONE, NodeRole.EXECUTOR)
    done = stream.apply(change(ConfigKind.REMOVE_EXECUTOR, ConfigStage.IMPLEMENT), Index(3))
    assert isinstance(done, Configured)
    assert done.change.ended
    assert not stream.has(ONE, NodeRole.EXECUTOR)


@clause("001-74", "001-75")
def test_a_blocked_node_takes_no_writes_and_is_dropped_afterwards() -> None:
    stream = ConfigStream()
    stream.apply(change(ConfigKind.REMOVE_INGEST, ConfigStage.BLOCK), Index(1))
    assert not stream.takes_entries(ONE)
    assert stream.has(ONE, NodeRole.INGEST)  # what it wrote is still finished
    stream.apply(change(ConfigKind.REMOVE_INGEST, ConfigStage.DROP), Index(2))
    assert not stream.has(ONE, NodeRole.INGEST)


@clause("001-08", "001-09", "001-23")
def test_config_entries_stand_in_the_log_beside_references_and_wait_for_no_event() -> None:
    journal = Journal(Held())
    unknown = encode_item(EventReference(1, 1, 1, bytes(32)))
    blocking = encode_change(ConfigKind.REMOVE_INGEST, ConfigStage.BLOCK, (2,))
    journal.choose(decode_log_entry(entry(1, 1, blocking)))
    journal.choose(decode_log_entry(entry(2, 1, unknown)))
    done = list(journal.advance())
    assert [one.entry.index for one in done] == [1]  # the reference waits for its event
    assert journal.config.in_flight is not None
    assert read_item(blocking) is None


@clause("001-22")
def test_config_is_a_role_of_its_own() -> None:
    stream = ConfigStream()
    assert stream.has(ONE, NodeRole.CONFIG)
    stream.apply(change(ConfigKind.REMOVE_CONFIG, ConfigStage.IMPLEMENT), Index(1))
    assert not stream.has(ONE, NodeRole.CONFIG)
    assert stream.has(ONE, NodeRole.INGEST)


@clause("001-77")
def test_readers_hear_the_new_serializers_as_they_hear_the_old() -> None:
    hand = ruled(5)
    hand.change(1, *NEW)
    for _ in range(4):
        hand.settle(1, 2, 3, 4, 5)
        for number in range(1, 6):
            hand.wait(number, 600)
    hand.settle(1, 2, 3, 4, 5)
    [master] = hand.masters_now()
    assert master in NEW
    hand.propose(master, b"of the new set")
    hand.settle(1, 2, 3, 4, 5)
    last = [machine.state.log.last_place for machine in hand.machines.values()]
    assert len(set(last)) == 1  # n1 and n2, which vote no more, hear it too


@clause("001-96", "001-97", "001-98")
def test_the_ack_of_a_member_names_author_journal_and_index_with_the_id() -> None:
    assert InvRow.__struct_fields__ == ("author_no", "journal", "seq", "id")
