"""One node's machine, and a few by hand: refusals, tickets, reads, recovery, changes, liars."""

import msgspec
import pytest

from quipu.ledger import limits
from quipu.ledger.canonical import encode
from quipu.ledger.log.effects import (
    BaseTaken,
    ItemsNotOrdered,
    ItemsOrdered,
    ReadReady,
    SerializerConvicted,
)
from quipu.ledger.log.evidence import Lie, prove
from quipu.ledger.log.inputs import (
    DiskSetBack,
    LogCompacted,
    LogMessageReceived,
    OrderAwaited,
    ReadAsked,
    RecoveryForced,
)
from quipu.ledger.log.messages import (
    Accept,
    AcceptedMessage,
    HandOver,
    LogEvidence,
    LogMessage,
    Prepare,
    PreVote,
    Propose,
    encode_log_message,
)
from quipu.ledger.log.roles import TRANSITIONS, Cause, Role
from quipu.ledger.log.serializers import Stage
from quipu.ledger.log.statements import sign_accepted
from quipu.ledger.log.words import Index, LogTicket, Place, Regime
from quipu.ledger.refusals import Reason
from quipu.ledger.words import EpochNo, NodeNo
from tests.simulation.keys import key_pair
from tests.simulation.log.handmade import CLUSTER_ID, Hand
from tests.unit.ledger.log.made import entry

OTHER = bytes([7]) * 32


def elected(n: int = 3, serializers: int = 3) -> Hand:
    hand = Hand(n, serializers)
    hand.elect(1, *range(2, serializers + 1))
    hand.settle(*range(1, n + 1))
    assert hand.role(1) is Role.MASTER
    return hand


def said(hand: Hand, number: int, kind: type) -> list[object]:
    return [effect for effect in hand.effects[NodeNo(number)] if isinstance(effect, kind)]


def test_every_role_has_its_way_out_and_masters_come_from_candidates_alone() -> None:
    assert {role for role, _ in TRANSITIONS} == set(Role)
    assert {cause for _, cause in TRANSITIONS} == set(Cause)
    into_master = [key for key, role in TRANSITIONS.items() if role is Role.MASTER]
    assert into_master == [(Role.CANDIDATE, Cause.ELECTED)]
    out_of_recovering = {c for (r, c), to in TRANSITIONS.items() if r is Role.RECOVERING != to}
    assert out_of_recovering == {Cause.RECOVERED}


def test_a_proposal_is_answered_with_its_place_wherever_it_was_made() -> None:
    hand = elected()
    own, other = hand.propose(1, b"a", b"b"), hand.propose(2, b"c")
    hand.settle(1, 2, 3)
    assert ItemsOrdered(own, Regime(1), Index(2), 0) in said(hand, 1, ItemsOrdered)
    assert ItemsOrdered(other, Regime(1), Index(3), 0) in said(hand, 2, ItemsOrdered)
    assert len(hand.chosen) == 3


def test_without_a_master_the_answer_is_no_quorum_at_once() -> None:
    hand = Hand(3, 3)
    ticket = hand.propose(2, b"a")
    assert said(hand, 2, ItemsNotOrdered) == [ItemsNotOrdered(ticket, True, "no-quorum")]
    hand.step(2, ReadAsked(LogTicket(9)))
    assert said(hand, 2, ReadReady) == [ReadReady(LogTicket(9), None)]


def test_a_master_that_nobody_answers_steps_down_and_says_no_quorum() -> None:
    hand = elected()
    hand.wait(1, limits.LOG_QUORUM_MS + 1)
    assert hand.role(1) is Role.FOLLOWER
    ticket = hand.propose(1, b"a")
    assert ItemsNotOrdered(ticket, True, "no-quorum") in said(hand, 1, ItemsNotOrdered)


def test_what_another_regime_took_the_place_of_is_said_to_be_lost() -> None:
    hand = elected()
    ticket = hand.propose(1, b"never heard")
    hand.forget()
    hand.elect(2, 3)
    hand.settle(1, 2, 3)
    assert hand.role(2) is Role.MASTER
    assert ItemsNotOrdered(ticket, True, "lost") in said(hand, 1, ItemsNotOrdered)


def test_an_answer_that_never_comes_leaves_the_outcome_unknown() -> None:
    hand = elected()
    ticket = hand.propose(2, b"a")
    hand.forget()
    hand.wait(2, limits.LOG_TICKET_MS + 1)
    assert said(hand, 2, ItemsNotOrdered) == [ItemsNotOrdered(ticket, False, "timeout")]


def test_a_copy_of_a_proposal_is_not_written_again() -> None:
    hand = elected()
    copy = encode_log_message(Propose(7, 1, [b"once"]))
    for _ in range(2):
        hand.step(1, LogMessageReceived(NodeNo(2), copy))
    late = encode_log_message(Propose(8, 9, [b"of another regime"]))
    hand.step(1, LogMessageReceived(NodeNo(2), late))
    items = [i for held in hand.machines[NodeNo(1)].state.log.above(0) for i in held.entry.items]
    assert items == [b"once"]


def test_a_read_waits_for_a_majority_and_for_all_that_was_written() -> None:
    hand = elected()
    hand.propose(1, b"a")
    hand.step(2, ReadAsked(LogTicket(5)))
    assert said(hand, 2, ReadReady) == []
    hand.settle(1, 2, 3)
    hand.wait(1, limits.LOG_HEARTBEAT_MS)
    hand.settle(1, 2, 3)
    assert said(hand, 2, ReadReady) == [ReadReady(LogTicket(5), Index(2))]


def refusals(hand: Hand, message: LogMessage | bytes, peer: int = 2) -> list[Reason]:
    """What node 1 makes of it; its state must stay what it was."""
    state = hand.machines[NodeNo(1)].state
    before = (state.vote_record(), state.log.last_place, state.chosen, state.role)
    data = message if isinstance(message, bytes) else encode_log_message(message)
    hand.step(1, LogMessageReceived(NodeNo(peer), data))
    assert (state.vote_record(), state.log.last_place, state.chosen, state.role) == before
    found = [refused.reason for refused in hand.refused]
    hand.refused.clear()
    return found


def accept(hand: Hand, regime: int, *entries: bytes, prev: int = 1) -> Accept:
    digest = hand.machines[NodeNo(1)].state.log.digest_at(prev)
    assert digest is not None
    return Accept(regime, 1, prev, digest, list(entries), [], [])


def test_what_no_honest_node_sends_is_refused_and_changes_nothing() -> None:
    hand = elected()
    assert refusals(hand, b"\xc1") == [Reason.MALFORMED]
    assert refusals(hand, encode([99])) == [Reason.UNKNOWN_KIND]
    assert refusals(hand, PreVote(5, 0), peer=9) == [Reason.NOT_A_MEMBER]
    assert refusals(hand, accept(hand, 1)) == [Reason.BAD_REGIME]  # of its own regime
    assert refusals(hand, accept(hand, 2, b"x")) == [Reason.MALFORMED]
    assert refusals(hand, accept(hand, 2, entry(2, 3))) == [Reason.BAD_INDEX]
    assert refusals(hand, accept(hand, 2, entry(3, 2))) == [Reason.BAD_REGIME]
    changed = entry(2, 1, b"another first entry")
    assert refusals(hand, accept(hand, 2, changed, prev=0)) == [Reason.CHOSEN_DIFFERS]
    assert refusals(hand, HandOver(1)) == [Reason.NOT_A_VOTER]
    assert refusals(hand, LogEvidence(b"\x90")) == [Reason.MALFORMED]


def test_a_regime_is_promised_to_one_node_only() -> None:
    hand = elected()
    for peer in (2, 3):
        hand.step(1, LogMessageReceived(NodeNo(peer), encode_log_message(Prepare(2, 0))))
    assert hand.machines[NodeNo(1)].state.promised_to == 2
    assert hand.role(1) is Role.FOLLOWER


def test_a_node_far_behind_is_given_a_base_and_its_state() -> None:
    hand = elected(4)
    hand.propose(1, b"a")
    hand.settle(1, 2, 3)
    hand.step(1, LogCompacted(Index(2), b"state at 2"))
    hand.wipe(4)
    hand.wait(1, limits.LOG_HEARTBEAT_MS)
    hand.settle(1, 4)
    hand.wait(1, limits.LOG_HEARTBEAT_MS)
    hand.settle(1, 4)
    assert BaseTaken(Index(2), b"state at 2") in said(hand, 4, BaseTaken)
    assert hand.machines[NodeNo(4)].state.chosen == 2


def test_a_lone_serializer_that_lost_its_disk_waits_for_a_word() -> None:
    hand = Hand(1, 1)
    hand.wipe(1)
    hand.wait(1, 10_000)
    assert hand.role(1) is Role.RECOVERING
    hand.step(1, RecoveryForced())
    hand.wait(1, 5_000)
    assert hand.role(1) is Role.MASTER
    hand.restart(1)
    assert hand.role(1) is Role.FOLLOWER


def test_a_node_that_is_shown_what_it_forgot_goes_into_recovery() -> None:
    hand = elected()
    image = hand.disks[NodeNo(2)].image()
    hand.propose(1, b"a")
    hand.settle(1, 2, 3)
    hand.disks[NodeNo(2)].restore(image)
    hand.disks[NodeNo(2)].recovering = False  # nobody knows that it was set back
    hand.restart(2)
    hand.wait(1, limits.LOG_HEARTBEAT_MS)
    hand.give(Accept, by=1, to=2)
    assert hand.role(2) is Role.RECOVERING


@pytest.mark.parametrize("number", [1, 2])
def test_a_node_whose_core_has_forgotten_votes_again_when_others_have_answered(
    number: int,
) -> None:
    hand = elected()
    hand.step(number, DiskSetBack())
    assert hand.role(number) is Role.RECOVERING
    life = hand.machines[NodeNo(number)].state.life
    hand.step(number, DiskSetBack())
    assert hand.machines[NodeNo(number)].state.life == life
    for _ in range(40):  # ten seconds, in which another master is found where this was one
        for one in (1, 2, 3):
            hand.wait(one, limits.LOG_HEARTBEAT_MS)
            hand.settle(1, 2, 3)
    assert hand.role(number) is Role.FOLLOWER
    assert not hand.machines[NodeNo(number)].state.recovering


def stages(hand: Hand, number: int) -> list[Stage]:
    log = hand.machines[NodeNo(number)].state.log
    return [change.stage for change in log._changes]


def test_a_new_set_goes_through_its_stages() -> None:
    hand = elected(5)
    hand.change(1, 1, 4, 5)
    hand.settle(1, 2, 3, 4, 5)
    assert stages(hand, 4) == [Stage.NOMINATE, Stage.IMPLEMENT, Stage.CONFIRM]
    assert hand.machines[NodeNo(4)].state.log.voters.old == (1, 4, 5)
    assert hand.role(1) is Role.MASTER


def test_a_master_outside_of_the_new_set_writes_final_and_hands_over() -> None:
    hand = elected(5)
    hand.change(1, 3, 4, 5)
    hand.settle(1, 2, 3, 4, 5)
    log = hand.machines[NodeNo(1)].state.log
    finals = [held.entry for held in log.above(0) if held.entry.final]
    assert len(finals) == 1
    assert stages(hand, 1) == [Stage.NOMINATE, Stage.IMPLEMENT, Stage.CONFIRM]
    (master,) = hand.masters_now()
    assert master in (3, 4, 5)
    assert log.last_place.regime == 2


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [((), "bad-set"), ((2, 1), "bad-set"), ((1, 9), "not-a-member")],
)
def test_a_set_that_cannot_be_is_not_nominated(nodes: tuple[int, ...], reason: str) -> None:
    hand = elected()
    ticket = hand.change(1, *nodes)
    assert ItemsNotOrdered(ticket, True, reason) in said(hand, 1, ItemsNotOrdered)


def test_one_change_is_in_flight_at_a_time_and_an_equal_set_is_refused_in_the_log() -> None:
    hand = elected(4)
    hand.change(1, 1, 2, 3)
    hand.settle(1, 2, 3)
    assert stages(hand, 1) == [Stage.REFUSE]
    for _ in range(9):  # n4 has not answered for two seconds
        hand.wait(1, limits.LOG_HEARTBEAT_MS)
        hand.settle(1, 2, 3)
        hand.forget()
    hand.change(1, 1, 2, 4)
    hand.settle(1, 2, 3)
    ticket = hand.change(1, 1, 3, 4)
    assert ItemsNotOrdered(ticket, True, "change-in-flight") in said(hand, 1, ItemsNotOrdered)
    hand.forget()
    for _ in range(limits.LOG_CATCH_UP_MS // limits.LOG_HEARTBEAT_MS + 2):
        hand.wait(1, limits.LOG_HEARTBEAT_MS)
        hand.settle(1, 2, 3)
        hand.forget()
    assert stages(hand, 1) == [Stage.REFUSE, Stage.NOMINATE, Stage.REFUSE]


def test_a_serializer_that_signs_two_digests_is_found_by_whoever_sees_both() -> None:
    hand = elected()
    at = (Place(Regime(1), Index(1)), OTHER)
    lie = sign_accepted(key_pair("n3"), CLUSTER_ID, EpochNo(1), NodeNo(3), at)
    state = hand.machines[NodeNo(1)].state
    message = msgspec.structs.replace(accept(hand, 2), certificate=[encode(lie)])
    hand.step(1, LogMessageReceived(NodeNo(2), encode_log_message(message)))
    assert state.convictions[NodeNo(3)].lie is Lie.TWO_DIGESTS
    hand.settle(1, 2)
    assert len(said(hand, 2, SerializerConvicted)) == 1
    truth = sign_accepted(key_pair("n3"), CLUSTER_ID, EpochNo(1), NodeNo(3), (at[0], bytes(32)))
    proof = encode_log_message(LogEvidence(prove(lie, truth)))
    hand.step(1, LogMessageReceived(NodeNo(2), proof))  # known already
    assert len(said(hand, 1, SerializerConvicted)) == 1
    hand.restart(1)
    assert hand.machines[NodeNo(1)].state.convictions[NodeNo(3)] == state.convictions[NodeNo(3)]


# --- pace ---------------------------------------------------------------------------------------
def test_a_master_hears_at_once_that_somebody_waits_elsewhere() -> None:
    hand = elected()
    master = hand.machines[NodeNo(1)]
    assert not master.is_awaited
    hand.step(2, OrderAwaited())
    [(sender, receiver, message, _)] = hand.waiting
    assert (sender, receiver) == (2, 1)
    assert isinstance(message, AcceptedMessage)
    assert (message.round, message.statement) == (0, None)
    hand.step(2, OrderAwaited())
    assert len(hand.waiting) == 1  # it has been told
    hand.settle(1, 2, 3)
    assert master.is_awaited
    hand.propose(1, b"x")  # the answer to it says that nobody waits any more
    hand.settle(1, 2, 3)
    assert not master.is_awaited


def test_that_somebody_waits_confirms_no_read() -> None:
    hand = elected()
    hand.step(1, ReadAsked(LogTicket(77)))
    hand.forget()
    hand.step(2, OrderAwaited())
    hand.settle(1, 2)
    assert said(hand, 1, ReadReady) == []


def test_the_gate_is_told_of_what_was_chosen_in_the_same_step() -> None:
    """It has applied nothing of it yet."""
    hand = elected()
    state = hand.machines[NodeNo(1)].state
    chosen = state.chosen
    assert state.unapplied() == []
    state.settings.gate.applied = Index(0)  # type: ignore[misc]
    assert [entry.index for entry in state.unapplied()] == list(range(1, chosen + 1))
