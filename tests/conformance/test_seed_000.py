"""Seed 000, clause by clause: so far the header of a message (docs/protocols.md)."""

import pytest

from quipu.ledger.words import NOT_A_MEMBER, NodeNo
from quipu.p2p.decen import Alive, decode_command, encode_command
from quipu.p2p.frame import HEADER_BYTES, Head, decode_head, encode_head
from quipu.p2p.gossip import decode_content, encode_gossip, join_content
from quipu.p2p.refusals import Cause, FrameRefused
from tests.conformance.clauses import clause
from tests.peer_samples import messages

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
