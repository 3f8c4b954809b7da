"""Seed 001, clause by clause: so far the cluster journal and its serializers."""

import pytest

from quipu.ledger import limits
from quipu.ledger.canonical import encode
from quipu.ledger.log.entry import LogEntry, decode_log_entry
from quipu.ledger.log.messages import Accept
from quipu.ledger.log.roles import Role
from quipu.ledger.log.serializers import SerializerSet, Stage, change_in
from quipu.ledger.log.statements import decode_accepted
from quipu.ledger.log.words import Index
from quipu.ledger.order.extension import JournalGate
from quipu.ledger.order.items import EventReference, encode_item, read_item
from quipu.ledger.refusals import Reason, Refused
from quipu.ledger.words import NodeNo
from tests.conformance.clauses import clause
from tests.simulation.log.handmade import Hand
from tests.unit.ledger.log.made import entry
from tests.unit.ledger.order.test_extension import Held, admitted

OLD, NEW = (1, 2, 3), (3, 4, 5)


def ruled(n: int = 3) -> Hand:
    hand = Hand(n, 3)
    hand.elect(1, 2, 3)
    hand.settle(*range(1, n + 1))
    return hand


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
