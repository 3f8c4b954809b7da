"""The messages of seed 000 between machines: who becomes WRK when, and who ERR."""

import pytest

from quipu.ledger.canonical import encode
from quipu.ledger.order.discovering import (
    Discovering,
    DscReq,
    DscRes,
    Mark,
    Neighbour,
    Seq,
    SeqRes,
    StateNo,
    decode_discovery,
    is_discovery,
)
from quipu.ledger.order.discovery import NodeState
from quipu.ledger.refusals import Refused
from quipu.ledger.words import NodeNo
from tests.simulation.log.handmade import Hand


class Talk:
    """A discovery beside each machine of a hand; what is said is heard at once."""

    def __init__(self, hand: Hand) -> None:
        self.hand = hand
        self.parts = {
            number: Discovering(hand.keys[number], machine.state)
            for number, machine in hand.machines.items()
        }
        self.said: list[tuple[NodeNo, NodeNo, bytes]] = []

    def meet(self, *numbers: int) -> None:
        for number in numbers:
            self.parts[NodeNo(number)].meet(self.hand.keys)

    def tick(self, number: int, now_ms: int = 0) -> None:
        node = NodeNo(number)
        waiting = [(node, peer, data) for peer, data in self.parts[node].tick(now_ms)]
        while waiting:
            sender, receiver, data = waiting.pop(0)
            self.said.append((sender, receiver, data))
            answers = self.parts[receiver].hear(sender, data)
            waiting += [(receiver, peer, answer) for peer, answer in answers]

    def state(self, number: int) -> NodeState:
        return self.parts[NodeNo(number)].state

    def apply(self, *numbers: int) -> None:
        for number in numbers:
            part = self.parts[NodeNo(number)]
            part.has_applied(part.log.chosen, None)


def talking(n: int = 3) -> Talk:
    hand = Hand(n, n)
    hand.elect(1, *range(2, n + 1))
    hand.settle(*range(1, n + 1))
    return Talk(hand)


def test_a_node_asks_hears_and_is_at_work_once_it_has_taken_over_the_number() -> None:
    talk = talking()
    talk.meet(1, 2, 3)
    assert talk.state(1) is NodeState.DSC
    talk.apply(2, 3)
    talk.tick(1)
    kinds = [type(decode_discovery(data)) for _, _, data in talk.said]
    assert [kinds.count(kind) for kind in (DscReq, DscRes, SeqRes, Seq)] == [2, 2, 2, 2]
    assert talk.state(1) is NodeState.DSC  # it knows the number, and has not applied so far
    talk.apply(1)
    assert talk.state(1) is NodeState.WRK
    assert talk.parts[NodeNo(2)].noted[NodeNo(1)].state is NodeState.WRK


def test_lists_of_neighbours_pass_on() -> None:
    talk = talking()
    one, two = talk.parts[NodeNo(1)], talk.parts[NodeNo(2)]
    one.known = {NodeNo(2): talk.hand.keys[NodeNo(2)]}
    talk.meet(2)
    talk.tick(1)
    assert NodeNo(3) in one.known  # n2 named it
    assert NodeNo(1) in two.known
    assert one.node_id not in one.known.values()


def test_a_node_that_is_alone_is_at_work_at_once_and_one_without_neighbours_is_not() -> None:
    alone = talking(1)
    alone.meet(1)
    assert alone.state(1) is NodeState.WRK
    lonely = talking(3)
    lonely.tick(1)
    assert lonely.state(1) is NodeState.DSC


def test_no_majority_no_work() -> None:
    talk = talking(5)
    talk.meet(1)
    talk.apply(1)
    talk.parts[NodeNo(1)].hear(NodeNo(2), encode(talk.parts[NodeNo(2)].seq()))
    assert talk.state(1) is NodeState.DSC
    talk.parts[NodeNo(1)].hear(NodeNo(3), encode(talk.parts[NodeNo(3)].seq()))
    assert talk.state(1) is NodeState.WRK


def test_a_number_without_its_proof_counts_for_nothing() -> None:
    talk = talking()
    one, true = talk.parts[NodeNo(1)], talk.parts[NodeNo(2)].seq()
    one.has_applied(true.number, None)
    for false in (
        Seq(true.number + 5, true.digest, true.certificate, 0, []),
        Seq(true.number, bytes(32), true.certificate, 0, []),
        Seq(true.number, true.digest, [], 0, []),
        Seq(true.number, true.digest, [b"no statement"], 0, []),
    ):
        one.hear(NodeNo(2), encode(false))
        assert one.noted[NodeNo(2)].number is None
        assert one.state is NodeState.DSC
    one.hear(NodeNo(2), encode(true))
    assert one.state is NodeState.WRK


def test_who_differs_from_a_majority_errs_and_stays_so() -> None:
    talk = talking()
    one = talk.parts[NodeNo(1)]
    one.has_applied(256, b"\x01" * 32)
    other = [Mark(256, b"\x02" * 32)]
    seq = talk.parts[NodeNo(2)].seq()
    said = encode(Seq(seq.number, seq.digest, seq.certificate, 256, other))
    one.hear(NodeNo(2), said)
    assert talk.state(1) is not NodeState.ERR  # one of three is no majority
    one.hear(NodeNo(3), said)
    assert talk.state(1) is NodeState.ERR
    one.hear(NodeNo(3), encode(seq))
    one.has_applied(257, None)
    assert talk.state(1) is NodeState.ERR
    two = talk.parts[NodeNo(2)]
    two.hear(NodeNo(1), encode(SeqRes(StateNo.ERR)))
    assert two.noted[NodeNo(1)].state is NodeState.ERR


def test_answers_are_asked_for_again_and_seldom_once_at_work() -> None:
    talk = talking()
    talk.meet(1, 2, 3)
    one = talk.parts[NodeNo(1)]
    assert one.next_deadline(5) == 5
    assert len(one.tick(5)) == 2
    assert one.tick(6) == []
    assert one.next_deadline(6) == 305
    talk.apply(1, 2, 3)
    talk.tick(1, 305)
    assert talk.state(1) is NodeState.WRK
    assert one.next_deadline(306) == 10_305


@pytest.mark.parametrize(
    "message",
    [
        DscReq(1, bytes(32), StateNo.DSC),
        DscRes(StateNo.WRK, [Neighbour(2, bytes(32))]),
        SeqRes(StateNo.ERR),
        Seq(7, bytes(32), [b"x"], 6, [Mark(4, bytes(32))]),
    ],
)
def test_messages_come_back_from_their_bytes(message: DscReq | DscRes | SeqRes | Seq) -> None:
    data = encode(message)
    assert is_discovery(data)
    assert decode_discovery(data) == message
    with pytest.raises(Refused):
        decode_discovery(data + b"\0")


@pytest.mark.parametrize("data", [b"", b"\x92", b"\x92\x11\x01", b"\xa2\x12\x01"])
def test_what_is_of_the_log_is_not_taken(data: bytes) -> None:
    assert not is_discovery(data)
