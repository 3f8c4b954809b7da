"""Seed 000, clause by clause: the header of a message, states, locks (docs/protocols.md)."""

import pytest

from quipu.ledger.log.effects import EntryChosen
from quipu.ledger.log.words import Index
from quipu.ledger.order.discovery import STATES, Happening, NodeState, NotInThisState, next_state
from quipu.ledger.order.items import Lock, Publish, SequenceItem, encode_item, read_item
from quipu.ledger.order.sequences import Granted, Outcome, Published, SequenceRefusal, Sequences
from quipu.ledger.words import NOT_A_MEMBER, NodeNo
from quipu.p2p.decen import Alive, decode_command, encode_command
from quipu.p2p.frame import HEADER_BYTES, Head, decode_head, encode_head
from quipu.p2p.gossip import decode_content, encode_gossip, join_content
from quipu.p2p.refusals import Cause, FrameRefused
from tests.conformance.clauses import clause
from tests.peer_samples import messages
from tests.simulation.log.handmade import Hand

ALIVE = b"\xaa\xa1\x02\x01\x00\x07"


@clause("000-28")
def test_a_message_opens_with_64_bits() -> None:
    head = encode_head(NodeNo(0x01020304), ALIVE, 0x0506)
    assert HEADER_BYTES * 8 == 64
    assert head == b"\x01\x02\x03\x04\x05\x06\x00\x06" + ALIVE
    with pytest.raises(FrameRefused) as caught:
        decode_head(head[:7])
    assert caught.value.cause is Cause.TRUNCATED


@clause("000-29")
@pytest.mark.parametrize("number", [NOT_A_MEMBER, NodeNo(1), NodeNo(2**32 - 1)])
def test_32_bits_name_the_node(number: NodeNo) -> None:
    head = encode_head(number, ALIVE)
    assert head[:4] == number.to_bytes(4, "big")
    assert decode_head(head).node_no == number


@clause("000-30")
@pytest.mark.parametrize("metadata", [0, 1, 0x8000, 0xFFFF])
def test_16_bits_are_kept_free(metadata: int) -> None:
    """Sent as zeros; whatever stands there is carried and changes nothing else."""
    assert encode_head(NodeNo(1), ALIVE)[4:6] == bytes(2)
    head = encode_head(NodeNo(1), ALIVE, metadata)
    assert decode_head(head) == Head(NodeNo(1), metadata, ALIVE)


@clause("000-31")
def test_16_bits_count_the_octets_of_the_protocol_part() -> None:
    for size in (0, 1, 255, 256, 65535):
        head = encode_head(NodeNo(1), bytes(size))
        assert head[6:8] == size.to_bytes(2, "big")
        assert len(decode_head(head).command) == size
        for wrong, cause in ((head[:-1], Cause.TRUNCATED), (head + b"\0", Cause.TRAILING_BYTES)):
            with pytest.raises(FrameRefused) as caught:
                decode_head(wrong)
            assert caught.value.cause is cause


@clause("000-32")
def test_n_octets_hold_one_command() -> None:
    head = decode_head(encode_head(NodeNo(1), encode_command(Alive(7))))
    assert decode_command(head.command) == Alive(7)
    two = decode_head(encode_head(NodeNo(1), ALIVE + ALIVE))
    with pytest.raises(FrameRefused) as caught:
        decode_command(two.command)
    assert caught.value.cause is Cause.TRAILING_BYTES


@clause("000-33")
def test_the_rest_is_passed_through() -> None:
    """It is a part of its own: whatever bytes an application sends come out as they went in."""
    message = messages()["ledger, 300 bytes"]
    content = join_content([encode_gossip(message)])
    assert decode_content(content) == [message]
    assert message.body in content
    assert decode_head(encode_head(NodeNo(1), ALIVE)).command == ALIVE  # and knows nothing of it


DIGEST = bytes(range(32))


def ordered(*items: SequenceItem) -> list[list[Outcome]]:
    """What each of three nodes makes of them, proposed one after the other at all three."""
    hand = Hand(3, 3)
    hand.elect(1, 2, 3)
    hand.settle(1, 2, 3)
    for turn, item in enumerate(items):
        hand.propose(turn % 3 + 1, encode_item(item))
        hand.settle(1, 2, 3)
    outcomes: list[list[Outcome]] = []
    for effects in hand.effects.values():
        sequences, found = Sequences(), list[Outcome]()
        for effect in effects:
            if isinstance(effect, EntryChosen):
                for data in effect.entry.items:
                    read = read_item(data)
                    assert isinstance(read, SequenceItem)
                    found.append(sequences.apply(read, Index(effect.entry.index)))
        outcomes.append(found)
    return outcomes


def published(number: int, token: int, holder: int = 1) -> Publish:
    return Publish("s", holder, token, number, DIGEST)


@clause("000-01", "000-03", "000-05")
def test_all_nodes_reach_one_verdict_on_the_order() -> None:
    items = (Lock("s", 1, 2, 0), published(2, 2), published(1, 2), published(2, 2))
    one, two, three = ordered(*items)
    assert one == two == three
    assert isinstance(one[0], Granted)
    assert one[1] is SequenceRefusal.NOT_NEXT
    assert [o.number for o in one if isinstance(o, Published)] == [1, 2]


@clause("000-02")
def test_items_are_not_kept() -> None:
    sequences = Sequences()
    sequences.apply(Lock("s", 1, 64, 0), Index(1))
    for number in range(1, 65):
        sequences.apply(published(number, 1), Index(number + 1))
    assert list(sequences._sequences) == ["s"]
    assert sequences.of("s").number == 64


@clause("000-06")
def test_a_node_obtains_the_right_to_the_number_after_the_agreed_one() -> None:
    items: list[SequenceItem] = [Lock("s", 1, 5, 0)]
    items += [*(published(n, 2) for n in range(1, 6)), Lock("s", 2, 1, 0)]
    (one, _, _) = ordered(*items)
    assert one[-1] == Granted("s", Index(8), 6, 6)
    (one, _, _) = ordered(*items, Lock("s", 3, 1, 0), Lock("s", 3, 1, 8))
    assert one[-2] is SequenceRefusal.LOCKED
    assert one[-1] == Granted("s", Index(10), 6, 6)


@clause("000-07")
def test_the_holder_publishes_it_and_nobody_else() -> None:
    (one, _, _) = ordered(
        Lock("s", 1, 1, 0), published(1, 2, holder=2), published(1, 9), published(1, 2)
    )
    assert one[1:3] == [SequenceRefusal.NOT_HOLDER, SequenceRefusal.STALE]
    assert isinstance(one[3], Published)


@clause("000-08", "000-09", "000-10", "000-11")
def test_a_node_is_in_one_of_three_states_and_a_table_says_how_it_moves() -> None:
    assert {state for state, _ in STATES} == set(NodeState) == {"DSC", "WRK", "ERR"}
    assert next_state(NodeState.DSC, Happening.LEARNED) is NodeState.WRK
    assert next_state(NodeState.WRK, Happening.DIFFERS) is NodeState.ERR
    for happening in (Happening.LEARNED, Happening.ALONE):
        with pytest.raises(NotInThisState):
            next_state(NodeState.ERR, happening)
