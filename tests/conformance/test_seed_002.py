"""Seed 002, clause by clause: the grammar, octet by octet (docs/protocols.md says how each clause
is read). What nodes do with the commands is in `test_seed_002_conduct.py`.
"""

import pytest

from quipu.p2p import hello
from quipu.p2p.decen import (
    MARKER,
    Alive,
    Broadcast,
    Command,
    DecenAck,
    Hello,
    Join,
    Leave,
    Ping,
    decode_command,
    encode_command,
)
from quipu.p2p.gossip import decode_content, join_content
from quipu.p2p.refusals import Cause, FrameRefused
from quipu.p2p.words import PoolName
from tests.conformance.clauses import clause
from tests.peer_samples import (
    POOLS,
    SECRET,
    START,
    card_of,
    contents,
    endpoint_of,
    hello_of,
    link_key,
    messages,
)
from tests.small_ledger import key_of

VERSION = b"\x01"
SEQUENCE = b"\x01\x02"  # 258
POOL = PoolName("Orders")
POOL_OCTETS = b"\x06Orders"


def is_written(command: Command, octets: bytes) -> None:
    assert encode_command(command) == octets
    assert decode_command(octets) == command


def refused(octets: bytes) -> Cause:
    with pytest.raises(FrameRefused) as caught:
        decode_command(octets)
    return caught.value.cause


def number_of(command: Command) -> int:
    return encode_command(command)[2]


# --- the commands -------------------------------------------------------------------------------
@clause("002-02")
def test_hello_is_command_1() -> None:
    assert number_of(hello_of("n1", "n2")) == 1


@clause("002-03", "002-21")
def test_alive_is_command_2() -> None:
    is_written(Alive(258), b"\xaa\xa1\x02" + VERSION + SEQUENCE)


@clause("002-04", "002-23")
def test_broadcast_is_command_3() -> None:
    is_written(Broadcast(258, POOL), b"\xaa\xa1\x03" + VERSION + SEQUENCE + POOL_OCTETS)


@clause("002-05", "002-26", "002-46")
def test_join_is_command_4() -> None:
    is_written(Join(258, POOL, 9), b"\xaa\xa1\x04" + VERSION + SEQUENCE + POOL_OCTETS + b"\x09")


@clause("002-06", "002-28", "002-49")
def test_leave_is_command_5() -> None:
    is_written(Leave(258, POOL, 9), b"\xaa\xa1\x05" + VERSION + SEQUENCE + POOL_OCTETS + b"\x09")


@clause("002-07", "002-29", "002-30")
def test_ping_is_command_6_and_its_reply_7() -> None:
    """There is one reply, DECENACK, and no eighth command."""
    is_written(Ping(258), b"\xaa\xa1\x06" + VERSION + SEQUENCE)
    is_written(DecenAck(258), b"\xaa\xa1\x07" + VERSION + SEQUENCE)
    assert refused(b"\xaa\xa1\x08" + VERSION + SEQUENCE) is Cause.UNKNOWN_COMMAND


# --- HELLO --------------------------------------------------------------------------------------
@clause("002-08")
def test_hello_gives_what_a_peer_needs_to_connect() -> None:
    said = decode_command(encode_command(hello_of("n1", "n2")))
    assert isinstance(said, Hello)
    found = hello.verify_hello(said, link_key("n1"), card_of("n2"))
    assert found.endpoint == endpoint_of("n1")
    assert found.peer == key_of("n1").node_id
    with pytest.raises(FrameRefused) as caught:
        hello.verify_hello(said, link_key("n3"), card_of("n2"))
    assert caught.value.cause is Cause.WRONG_KEY


@clause("002-09")
def test_hello_in_order() -> None:
    said = Hello(258, "10.0.0.1", 8471, (POOL, PoolName("b")), 9, (("a", "1"), ("b", "2")))
    octets = [
        b"\xaa\xa1",
        b"\x01",
        VERSION,
        SEQUENCE,
        b"\x0810.0.0.1",
        b"\x21\x17",
        b"\x02" + POOL_OCTETS + b"\x01b",
        b"\x09",
        b"\x02\x03a=1\x03b=2",
    ]
    is_written(said, b"".join(octets))


@clause("002-10")
def test_the_marker_comes_first() -> None:
    assert MARKER == b"\xaa\xa1"
    for octets in (b"\xa1\xaa", b"\xaa\xa0", b"\xab\xa1"):
        # Nothing behind it is looked at: neither number nor version is one of ours.
        assert refused(octets + b"\xff\xff\0\0") is Cause.BAD_MARKER


@clause("002-11")
def test_sequence_has_two_octets() -> None:
    for number in (0, 1, 255, 256, 65535):
        is_written(Ping(number), b"\xaa\xa1\x06" + VERSION + number.to_bytes(2, "big"))


def hello_with(host: bytes, port: bytes, pools: bytes, status: bytes, headers: bytes) -> bytes:
    return b"\xaa\xa1\x01" + VERSION + SEQUENCE + host + port + pools + status + headers


def shortest(**changes: bytes) -> bytes:
    parts = {
        "host": b"\x02n1",
        "port": b"\0\x01",
        "pools": b"\0",
        "status": b"\0",
        "headers": b"\0",
    }
    return hello_with(**(parts | changes))


def read(octets: bytes) -> Hello:
    said = decode_command(octets)
    assert isinstance(said, Hello)
    assert encode_command(said) == octets
    return said


@clause("002-12", "002-32")
def test_hello_tells_the_address() -> None:
    assert read(shortest(host=b"\x03::1")).host == "::1"
    assert hello_of("n1", "n2").host == endpoint_of("n1").host


@clause("002-15", "002-33")
def test_hello_tells_the_port() -> None:
    assert read(shortest(port=b"\x21\x17")).port == 0x2117 == 8471
    assert hello_of("n1", "n2").port == endpoint_of("n1").port


@clause("002-13")
def test_a_string_is_its_size_and_visible_characters() -> None:
    assert read(shortest(host=b"\x04\xc3\xa9nn")).host == "énn"
    for text in (b"\x01\xff", b"\x01\n", b"\x02a\0", b"\x04\x1b[0m", b"\x02\xc2\x85"):
        assert refused(shortest(host=text)) is Cause.BAD_TEXT


@clause("002-14")
def test_that_size_is_one_octet() -> None:
    assert read(shortest(host=b"\xff" + b"h" * 255)).host == "h" * 255
    assert read(shortest(host=b"\0")).host == ""


@clause("002-16", "002-34")
def test_hello_lists_the_pools() -> None:
    assert read(shortest(pools=b"\x02" + POOL_OCTETS + b"\x01b")).pools == ("Orders", "b")
    assert hello_of("n1", "n2").pools == POOLS.names


@clause("002-17")
def test_a_list_is_its_size_and_that_many_strings() -> None:
    assert read(shortest(pools=b"\0")).pools == ()
    assert refused(shortest(pools=b"\x02\x01a", status=b"", headers=b"")) is Cause.TRUNCATED


@clause("002-18", "002-35")
def test_status_is_one_octet() -> None:
    for status in (0, 1, 255):
        assert read(shortest(status=bytes([status]))).status == status
    assert hello_of("n1", "n2").status == POOLS.status


@clause("002-19")
def test_headers_are_properties_of_the_sender() -> None:
    told = dict(hello_of("n1", "n2").headers)
    assert (told["protocol-min"], told["protocol-max"]) == ("1", "1")
    mac = hello.hello_mac(SECRET, key_of("n1").node_id, key_of("n2").node_id, START)
    assert told["hmac"] == mac.hex()


@clause("002-20")
def test_a_header_is_name_equals_value() -> None:
    assert read(shortest(headers=b"\x01\x05a=b=c")).headers == (("a", "b=c"),)
    assert read(shortest(headers=b"\x01\x02a=")).headers == (("a", ""),)
    for headers in (b"\x01\x01a", b"\x01\x02=a", b"\x02\x03a=1\x03a=2"):
        assert refused(shortest(headers=headers)) is Cause.MALFORMED


# --- fields of the others -----------------------------------------------------------------------
@clause("002-22", "002-25", "002-40", "002-42")
def test_the_content_is_a_frame_of_its_own() -> None:
    """An array of gossip messages, the second part of the ZeroMQ message; none: an empty array."""
    assert join_content([]) == b"\x90"
    assert list(decode_content(b"\x90")) == []
    assert list(decode_content(contents()["every kind"])) == list(messages().values())
    for command in (Alive(1), Broadcast(1, POOL)):
        assert refused(encode_command(command) + b"\x90") is Cause.TRAILING_BYTES


@clause("002-24")
def test_a_pool_is_named_by_a_string() -> None:
    assert decode_command(b"\xaa\xa1\x03" + VERSION + SEQUENCE + b"\x02\xc4\x8d") == Broadcast(
        258, PoolName("č")
    )
    assert refused(b"\xaa\xa1\x03" + VERSION + SEQUENCE + b"\0") is Cause.MALFORMED


@clause("002-27")
def test_the_status_of_join_is_one_octet() -> None:
    for status in (0, 255):
        octets = encode_command(Join(0, POOL, status))
        assert octets[-1] == status
        assert refused(octets[:-1]) is Cause.TRUNCATED


@clause("002-47")
def test_upper_and_lower_case_make_different_names() -> None:
    said = read(shortest(pools=b"\x02\x01a\x01A"))
    assert len(set(said.pools)) == 2
    assert encode_command(Join(0, PoolName("a"), 0)) != encode_command(Join(0, PoolName("A"), 0))
