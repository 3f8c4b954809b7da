"""Seed 000, clause by clause: discovery and heartbeats between machines."""

from typing import cast

from quipu.ledger.canonical import encode
from quipu.ledger.order.discovering import (
    DscReq,
    DscRes,
    Neighbour,
    Seq,
    SeqRes,
    StateNo,
    decode_discovery,
)
from quipu.ledger.order.discovery import NodeState
from quipu.ledger.words import NodeNo
from tests.conformance.clauses import clause
from tests.unit.ledger.order.test_discovering import talking
from tests.unit.p2p import test_links
from tests.unit.p2p.test_membership import SUSPECT, S, heard_at, passed

ONE, TWO, THREE = NodeNo(1), NodeNo(2), NodeNo(3)


@clause("000-12", "000-13")
def test_a_starting_node_is_in_dsc_and_asks_every_neighbour_of_its_list() -> None:
    talk = talking()
    one = talk.parts[ONE]
    one.meet(talk.hand.keys)
    assert one.state is NodeState.DSC
    asked = one.tick(0)
    assert [peer for peer, _ in asked] == [TWO, THREE]
    assert {type(decode_discovery(data)) for _, data in asked} == {DscReq}


@clause("000-14")
def test_dscreq_says_who_its_sender_is() -> None:
    talk = talking()
    one = talk.parts[ONE]
    one.meet(talk.hand.keys)
    own = talk.hand.keys[ONE]
    assert one.tick(0)[0][1] == encode([18, 1, own, 1])


@clause("000-15", "000-16", "000-17")
def test_dscres_lists_neighbours_and_the_state_and_the_asker_is_noted() -> None:
    talk = talking()
    two = talk.parts[TWO]
    two.meet({number: key for number, key in talk.hand.keys.items() if number != ONE})
    assert ONE not in two.known
    own = talk.hand.keys[ONE]
    [(peer, data)] = two.hear(ONE, encode(DscReq(1, own, StateNo.DSC)))
    answer = decode_discovery(data)
    assert peer == ONE
    assert isinstance(answer, DscRes)
    assert answer.state is StateNo.DSC
    assert [row.number for row in answer.neighbours] == [3]
    assert two.known[ONE] == own


@clause("000-18", "000-19")
def test_the_asker_notes_every_host_it_is_told_of_and_asks_for_the_number() -> None:
    talk = talking()
    one = talk.parts[ONE]
    three = Neighbour(3, talk.hand.keys[THREE])
    [(peer, data)] = one.hear(TWO, encode(DscRes(StateNo.WRK, [three])))
    assert THREE in one.known
    assert (peer, type(decode_discovery(data))) == (TWO, SeqRes)


@clause("000-20", "000-22")
def test_a_neighbour_replies_with_its_number_and_notes_the_asker_as_at_work() -> None:
    talk = talking()
    two = talk.parts[TWO]
    [(_, data)] = two.hear(ONE, encode(SeqRes(StateNo.DSC)))
    answer = cast(Seq, decode_discovery(data))
    assert (answer.number, answer.digest) == (two.log.chosen, two.log.log.digest_at(two.log.chosen))
    assert answer.certificate == list(two.log.certificate)
    assert two.noted[ONE].state is NodeState.WRK


@clause("000-21", "000-23")
def test_the_highest_proven_number_is_taken_over_before_a_node_is_at_work() -> None:
    talk = talking()
    behind = encode(talk.parts[TWO].seq())
    talk.hand.propose(1, b"x")
    talk.hand.settle(1, 2, 3)
    ahead = encode(talk.parts[THREE].seq())
    late = talking()
    late.parts[ONE].hear(TWO, behind)
    late.parts[ONE].hear(THREE, ahead)
    late.parts[ONE].has_applied(1, None)
    assert late.state(1) is NodeState.DSC
    late.parts[ONE].has_applied(2, None)
    assert late.state(1) is NodeState.WRK


@clause("000-24")
def test_without_neighbours_only_the_one_member_of_a_genesis_is_at_work() -> None:
    alone, lost = talking(1), talking(3)
    alone.meet(1)
    lost.tick(1)
    assert (alone.state(1), lost.state(1)) == (NodeState.WRK, NodeState.DSC)


@clause("000-25", "000-26")
def test_a_heartbeat_goes_each_second_to_whom_nothing_else_went() -> None:
    test_links.test_a_heartbeat_only_where_nothing_else_went_out()


@clause("000-27")
def test_who_is_silent_for_five_seconds_leaves_the_live_view() -> None:
    assert SUSPECT == 5_000
    assert passed(heard_at(0), 0, SUSPECT + 100) == [(SUSPECT, S.SUSPECT)]


@clause("000-34")
def test_the_types_that_the_text_names_exist() -> None:
    kinds = (DscReq, DscRes, SeqRes, Seq)
    assert [kind.__struct_config__.tag for kind in kinds] == [18, 19, 20, 21]
