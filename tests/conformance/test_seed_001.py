"""Seed 001, clause by clause: so far the cluster journal and its serializers."""

import pytest

from quipu.ledger import limits
from quipu.ledger.canonical import encode
from quipu.ledger.inputs import MessageReceived
from quipu.ledger.log.entry import LogEntry, decode_log_entry
from quipu.ledger.log.messages import Accept
from quipu.ledger.log.roles import Role
from quipu.ledger.log.serializers import SerializerSet, Stage, change_in
from quipu.ledger.log.statements import decode_accepted
from quipu.ledger.log.words import Index
from quipu.ledger.messages import EventMessage, bytes_of, encode_message
from quipu.ledger.order.clients import (
    ClientId,
    ClientRefusal,
    Due,
    Known,
    Terminated,
    Waits,
)
from quipu.ledger.order.extension import JournalGate
from quipu.ledger.order.items import EventReference, encode_item, read_item
from quipu.ledger.refusals import Reason, Refused
from quipu.ledger.words import NodeNo
from tests.conformance.clauses import clause
from tests.simulation.calm import all_held, calm_world, until, write
from tests.simulation.log.handmade import Hand
from tests.simulation.violation import Violation
from tests.unit.ledger.log.made import entry
from tests.unit.ledger.order.test_clients import KEY, ONE, registered, request
from tests.unit.ledger.order.test_clients import run as run_due
from tests.unit.ledger.order.test_extension import Held, admitted

OLD, NEW = (1, 2, 3), (3, 4, 5)


def ruled(n: int = 3) -> Hand:
    hand = Hand(n, 3)
    hand.elect(1, 2, 3)
    hand.settle(*range(1, n + 1))
    return hand


@clause("001-01")
def test_a_cluster_is_all_nodes_of_one_genesis() -> None:
    world, other = calm_world(3), calm_world(1)
    ids = {world.record.cluster_id, other.record.cluster_id}
    assert len(ids) == 2
    (made,) = write(other, other.nodes[0])
    assert made.stored is not None
    foreign = other.record.events[made.stored].event
    said = encode_message(EventMessage(bytes_of(foreign)))
    world.nodes[0].push(MessageReceived(world.nodes[1].key.node_id, said))
    with pytest.raises(Violation, match="n1 refuses n2: wrong-cluster"):
        world.run_ms(500)  # the judge of the world: no honest node brings such a thing


@clause("001-21")
def test_what_an_ingest_node_writes_comes_to_every_member() -> None:
    world = calm_world(9)  # seven of them are serializers, all may be executors
    made = write(world, world.nodes[8], 3)
    until(world, lambda: all_held(made, world.nodes), 5_000)


def log_of(hand: Hand, number: int) -> list[LogEntry]:
    return [held.entry for held in hand.machines[NodeNo(number)].state.log.above(0)]


def stages(hand: Hand, number: int) -> list[tuple[Stage, bool]]:
    found = ((change_in(entry), entry.final) for entry in log_of(hand, number))
    return [(change.stage, final) for change, final in found if change is not None]


@clause("001-03", "001-04")
def test_serializers_count_and_their_signatures_are_the_certificate() -> None:
    hand = ruled(4)
    hand.propose(1, b"x")
    hand.give(Accept, by=1, to=4)  # n4 holds it, and counts for nothing
    hand.settle(1, 4)
    assert 2 not in hand.chosen
    hand.propose(1, b"y")
    hand.settle(1, 2)
    assert 2 in hand.chosen
    signers = {decode_accepted(s).signer for s in hand.machines[NodeNo(1)].state.certificate}
    assert signers >= {1, 2}
    assert 4 not in signers


@clause("001-05", "001-07")
def test_all_nodes_share_the_chosen_part_and_are_told_of_nothing_else() -> None:
    hand = ruled()
    hand.propose(1, b"x")
    hand.forget()
    assert [state.chosen for state in (m.state for m in hand.machines.values())] == [1, 1, 1]
    hand.elect(2, 3)
    hand.settle(1, 2, 3)
    assert log_of(hand, 1) == log_of(hand, 2) == log_of(hand, 3)
    assert all(b"x" not in entry.items for entry in log_of(hand, 1))


@clause("001-24")
def test_who_is_master_is_settled_by_fields_of_messages() -> None:
    hand = ruled()
    assert hand.masters_now() == [1]
    hand.elect(2, 3)
    hand.settle(1, 2, 3)
    assert hand.masters_now() == [2]
    assert {regime: int(number) for regime, number in hand.masters.items()} == {1: 1, 2: 2}


@clause("001-45", "001-46", "001-47", "001-48", "001-49", "001-50")
def test_a_data_entry_names_node_journal_index_and_one_content() -> None:
    item = EventReference(2**32 - 1, 2**64 - 1, 2**64 - 1, bytes(range(32)))
    data = encode_item(item)
    assert read_item(data) == item
    assert data[:2] == b"\x95\x02"  # five fields, the first one is the kind
    place = encode_item(EventReference(1, 7, 2, bytes(32)))  # right place, another content
    assert not JournalGate(Held()).after([]).admits([place])
    assert decode_log_entry(entry(1, 1, data)).version == 1


@clause("001-118", "001-119")
def test_a_voter_orders_only_what_it_holds_and_all_below_it_first() -> None:
    assert not admitted("x")
    assert not admitted("b")
    assert admitted("ab")


@clause("001-51", "001-52", "001-53", "001-54", "001-76")
def test_a_config_entry_has_kind_stage_and_its_data_by_value() -> None:
    data = encode(SerializerSet(Stage.IMPLEMENT, [3, 2**32 - 1]))
    assert data == encode([1, 3, [3, 2**32 - 1]])
    change = change_in(decode_log_entry(entry(1, 1, data)))
    assert change is not None
    assert (change.stage, change.nodes) == (Stage.IMPLEMENT, (3, 2**32 - 1))


@clause("001-55", "001-56", "001-57", "001-58", "001-59", "001-60")
def test_a_journal_message_has_its_fields() -> None:
    value = LogEntry(1, 2**32 - 1, 2**64 - 1, 2**32 - 1, True, [b"one", b"two"])
    assert decode_log_entry(encode(value)) == value
    for wrong in (
        LogEntry(2, 1, 1, 1, False, []),
        LogEntry(1, 2**32, 1, 1, False, []),
        LogEntry(1, 1, 1, 2**32, False, []),
    ):
        with pytest.raises(Refused) as caught:
            decode_log_entry(encode(wrong))
        assert caught.value.reason in {Reason.UNKNOWN_VERSION, Reason.MALFORMED}


@clause("001-78")
def test_nominees_learn_and_are_not_counted() -> None:
    hand = ruled(5)
    asleep = hand.change(1, *NEW)
    hand.give(Accept, by=1, to=(4, 5))
    hand.settle(1, 4, 5)
    assert asleep
    assert hand.machines[NodeNo(4)].state.log.last_index == 2
    assert hand.machines[NodeNo(1)].state.chosen == 1  # n2 and n3 have not answered


@clause("001-81", "001-82", "001-85")
def test_implement_ends_the_old_master_and_a_new_one_needs_both_sets() -> None:
    hand = ruled(6)
    hand.change(1, 4, 5, 6)
    hand.settle(1, 2, 3, 4, 5, 6)
    found = stages(hand, 1)
    assert found == [(Stage.NOMINATE, False), (Stage.IMPLEMENT, True), (Stage.CONFIRM, False)]
    (master,) = hand.masters_now()
    assert master in (4, 5, 6)
    regimes = [entry.regime for entry in log_of(hand, master)]
    assert regimes == [1, 1, 1, 2, 2]  # opening, Nominate, Implement; opening, Confirm
    hand.propose(master, b"by the new master")
    hand.settle(4, 5, 6)
    assert 6 in hand.chosen


@clause("001-83", "001-84")
def test_after_confirm_the_old_set_counts_no_more_and_still_answers() -> None:
    hand = ruled(6)
    hand.change(1, 4, 5, 6)
    hand.settle(1, 2, 3, 4, 5, 6)
    (master,) = hand.masters_now()
    before = max(hand.chosen)
    hand.propose(master, b"x")
    hand.settle(master, 1, 2, 3)  # all of the old set, and the master alone of the new
    assert max(hand.chosen) == before
    state = hand.machines[NodeNo(2)].state
    hand.settle(1, 2, 3, 4, 5, 6)
    assert not state.votes
    assert state.log.last_index == before + 1


@clause("001-86", "001-87", "001-88")
def test_where_the_old_set_gives_no_quorum_for_implement_another_master_goes_on() -> None:
    hand = ruled(6)
    hand.change(1, 4, 5, 6)
    while not any(s is Stage.IMPLEMENT for s, _ in stages(hand, 1)):
        assert hand.give(by=(1, 2, 3, 4, 5, 6))
    hand.forget()  # nobody but n1 has Implement
    hand.elect(2, 3)
    hand.settle(2, 3)
    assert hand.role(2) is Role.MASTER
    hand.propose(2, b"an entry of any kind")
    hand.settle(2, 3)
    last = log_of(hand, 2)[-1]
    assert last.items == [b"an entry of any kind"]
    assert [s for s, _ in stages(hand, 2)] == [Stage.NOMINATE]
    hand.wait(2, limits.LOG_HEARTBEAT_MS)
    hand.settle(1, 2, 3, 4, 5, 6)
    assert stages(hand, 2)[-2:] == [(Stage.IMPLEMENT, True), (Stage.CONFIRM, False)]
    assert log_of(hand, 1) == log_of(hand, 2)  # the first Implement is gone everywhere


@clause("001-89")
def test_an_equal_set_is_refused_and_so_is_a_change_while_one_is_in_flight() -> None:
    hand = ruled(4)
    hand.change(1, *OLD)
    hand.settle(1, 2, 3, 4)
    assert stages(hand, 1) == [(Stage.REFUSE, False)]


@clause("001-90", "001-79", "001-80")
def test_a_nominee_that_does_not_come_near_is_refused_after_a_while() -> None:
    hand = ruled(4)
    hand.wait(1, limits.LOG_HEARTBEAT_MS)
    for _ in range(9):
        hand.settle(1, 2, 3)
        hand.forget()
        hand.wait(1, limits.LOG_HEARTBEAT_MS)
    hand.change(1, 1, 2, 4)
    for _ in range(limits.LOG_CATCH_UP_MS // limits.LOG_HEARTBEAT_MS + 2):
        hand.settle(1, 2, 3)
        hand.forget()
        hand.wait(1, limits.LOG_HEARTBEAT_MS)
    assert [s for s, _ in stages(hand, 1)] == [Stage.NOMINATE, Stage.REFUSE]
    log = hand.machines[NodeNo(1)].state.log
    assert log.voters.old == OLD
    assert Index(log.last_index) == 3


@clause("001-91", "001-93", "001-94", "001-95")
def test_a_client_has_a_number_and_a_key_and_loses_neither_to_another() -> None:
    clients = registered()
    assert clients.add(KEY.node_id) == 2
    clients.remove(ONE)
    assert clients.take(request(1)) is ClientRefusal.REMOVED
    assert clients.add(KEY.node_id) == 3
    found = clients.of(ONE)
    assert found is not None
    assert found.public == KEY.node_id
    assert clients.take(request(1, client=ClientId(2))) == Due((request(1, client=ClientId(2)),))


@clause("001-26", "001-108", "001-109")
def test_results_stay_until_the_client_says_that_it_holds_them() -> None:
    clients = registered()
    for number in (1, 2, 3):
        run_due(clients, clients.take(request(number)))
    for _ in range(2):
        assert clients.take(request(1)) == Known(b"1")
        assert clients.read(ONE, 2, 0) == [(1, b"1"), (2, b"2")]
    assert clients.read(ONE, 3, 2) == [(3, b"3")]
    assert clients.take(request(1)) is ClientRefusal.RELEASED


@clause("001-111")
def test_ids_are_strict_and_a_gap_waits() -> None:
    clients = registered()
    assert clients.take(request(2)) == Waits()
    assert run_due(clients, clients.take(request(1))) == [1, 2]
    assert clients.take(request(3 + limits.CLIENT_AHEAD_MAX)) is ClientRefusal.TOO_FAR_AHEAD


@clause("001-112", "001-113")
def test_only_two_valid_signatures_end_the_log_of_a_client() -> None:
    clients = registered()
    run_due(clients, clients.take(request(1)))
    forged = request(1, content=9)._replace(signature=bytes(64))
    assert clients.take(forged) is ClientRefusal.BAD_SIGNATURE
    assert clients.take(request(1, content=9)) == Terminated(request(1), request(1, content=9))
    assert clients.take(request(2)) is ClientRefusal.TERMINATED
