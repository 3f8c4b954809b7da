"""The peer protocol: what is encoded decodes to itself, and hostile bytes are refused, no more."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quipu.ledger.canonical import encode
from quipu.ledger.signing import verify
from quipu.ledger.words import NodeNo
from quipu.p2p import addresses, bodies, decen, frame, gossip, hello
from quipu.p2p.refusals import Cause, FrameRefused
from quipu.p2p.words import Endpoint
from tests.peer_readers import READERS
from tests.peer_samples import (
    CLUSTER_ID,
    COMMANDS,
    POOLS,
    card_of,
    contents,
    endpoint_of,
    hello_of,
    link_key,
    messages,
    origin,
)
from tests.property import peer_strategies, strategies
from tests.small_ledger import key_of
from tests.vectors.check import Bad
from tests.vectors.check_peers import DECODERS


# --- round trips --------------------------------------------------------------------------------
@given(strategies.u32, peer_strategies.u16, st.binary(max_size=300))
def test_heads(number: int, metadata: int, command: bytes) -> None:
    head = frame.Head(NodeNo(number), metadata, command)
    assert frame.decode_head(frame.encode_head(head.node_no, command, metadata)) == head


@given(peer_strategies.commands)
def test_commands(command: decen.Command) -> None:
    assert decen.decode_command(decen.encode_command(command)) == command


@given(peer_strategies.bodies_of_all_kinds)
def test_bodies(body: bodies.Body) -> None:
    assert bodies.decode_body(type(body), bodies.encode_body(body)) == body


@given(st.lists(peer_strategies.messages, max_size=20))
def test_contents(sent: list[gossip.Gossip]) -> None:
    data = gossip.join_content([gossip.encode_gossip(message) for message in sent])
    assert data == encode(sent)
    assert gossip.decode_content(data) == sent


@given(st.lists(st.one_of(peer_strategies.messages, peer_strategies.foreign), max_size=20))
def test_later_versions_stand_between_messages_of_this_one(
    sent: list[gossip.Gossip | list[Any]],
) -> None:
    found = gossip.decode_content(gossip.join_content([encode(item) for item in sent]))
    for item, read in zip(sent, found, strict=True):
        if isinstance(item, list):
            version, identity, kind = item[:3]
            assert read == gossip.Foreign(version, identity, kind, encode(item))
        else:
            assert read == item


@given(
    peer_strategies.hosts,
    peer_strategies.ports,
    st.text("0123456789abcdef", min_size=64, max_size=64),
)
def test_uris(host: str, port: int, node_id: str) -> None:
    uri = addresses.uri_of(bytes.fromhex(node_id), Endpoint(host, port))  # type: ignore[arg-type]
    assert addresses.parse_uri(uri) == (bytes.fromhex(node_id), Endpoint(host, port))


@given(st.text(max_size=80).map(lambda text: "quipu://" + text))
def test_any_text_is_a_uri_or_told_why_not(text: str) -> None:
    try:
        node_id, endpoint = addresses.parse_uri(text)
    except addresses.BadUri as bad:
        words = str(bad)
    else:
        words = repr(text)
        assert addresses.parse_uri(addresses.uri_of(node_id, endpoint)) == (node_id, endpoint)
    assert repr(text) in words or repr(text[8:].partition("/")[0]) in words


# --- hostile bytes ------------------------------------------------------------------------------
HELLO_INPUTS = [
    decen.encode_command(hello_of("n1", "n2")),
    link_key("n1"),
    key_of("n2").node_id,
    CLUSTER_ID,
    b"s" * 32,
]
GOOD: dict[str, list[list[bytes]]] = {
    "frame": [[frame.encode_head(NodeNo(1), b"abc", 2)]],
    "command": [[decen.encode_command(command)] for command in COMMANDS.values()],
    "hello": [HELLO_INPUTS],
    "endpoint": [[addresses.encode_endpoint(endpoint_of("n1")), CLUSTER_ID]],
    "content": [[data] for data in contents().values()],
    "gossip": [[gossip.encode_gossip(message), CLUSTER_ID] for message in messages().values()],
}


def read_by(readers: Any, kind: str, inputs: list[bytes], refusal: type[Exception]) -> Any:
    try:
        return readers[kind](*inputs)
    except refusal:
        return None


def agree(kind: str, inputs: list[bytes]) -> None:
    """Refused by both or read alike; and what is read is encoded to the same bytes again."""
    ours = read_by(READERS, kind, inputs, FrameRefused)
    assert ours == read_by(DECODERS, kind, inputs, Bad)


@pytest.mark.parametrize("kind", GOOD)
@given(data=st.data())
def test_a_few_bytes_in_the_place_of_others(kind: str, data: st.DataObject) -> None:
    good, *rest = data.draw(st.sampled_from(GOOD[kind]))
    at = data.draw(st.integers(0, len(good)))
    until = at + data.draw(st.integers(0, 4))
    agree(kind, [good[:at] + data.draw(st.binary(max_size=4)) + good[until:], *rest])


@pytest.mark.parametrize("kind", GOOD)
@given(data=st.one_of(strategies.anything.map(encode), st.binary(max_size=200)))
def test_any_bytes_at_all(kind: str, data: bytes) -> None:
    agree(kind, [data, *GOOD[kind][0][1:]])


@given(st.data())
def test_a_field_in_the_place_of_another(data: st.DataObject) -> None:
    for kind in ("endpoint", "gossip"):
        good, *rest = data.draw(st.sampled_from(GOOD[kind]))
        fields = msgspec.msgpack.decode(good)
        at = data.draw(st.integers(0, len(fields) - 1))
        fields[at] = data.draw(strategies.anything)
        agree(kind, [encode(fields), *rest])


# --- proofs -------------------------------------------------------------------------------------
secrets = st.lists(
    st.sampled_from([bytes([i]) * 32 for i in range(6)]), min_size=1, max_size=3, unique=True
)


@given(secrets, secrets)
def test_one_secret_in_common_admits(held: list[bytes], known: list[bytes]) -> None:
    greeting = hello_of("n1", "n2", *held)
    card = card_of("n2", *known)
    if set(held) & set(known):
        found = hello.verify_hello(greeting, link_key("n1"), card)
        assert found.pools == POOLS
        assert found.endpoint == endpoint_of("n1")
        return
    with pytest.raises(FrameRefused) as caught:
        hello.verify_hello(greeting, link_key("n1"), card)
    assert caught.value.cause is Cause.WRONG_SECRET


@given(peer_strategies.bodies_of_all_kinds, st.integers(0, 16), st.data())
def test_a_signature_leaves_only_the_hops_open(
    body: bodies.Body, hops: int, data: st.DataObject
) -> None:
    message = gossip.compose_body(origin(), body, None, 16)
    message = gossip.signed(message, CLUSTER_ID, key_of("n1"))
    passed = msgspec.structs.replace(message, hop_limit=hops)
    assert gossip.has_valid_signature(passed, CLUSTER_ID, verify)
    other = data.draw(peer_strategies.messages)
    names = ["id", "kind", "sender", "target", "action", "hlc", "body"]
    name = data.draw(st.sampled_from(names))
    changed = msgspec.structs.replace(message, **{name: getattr(other, name)})
    is_same = changed == message
    assert gossip.has_valid_signature(changed, CLUSTER_ID, verify) == is_same


@given(peer_strategies.endpoints, peer_strategies.endpoints)
def test_of_two_endpoints_one_is_newer(
    one: addresses.SignedEndpoint, other: addresses.SignedEndpoint
) -> None:
    assert not addresses.is_newer(one, one)
    if (one.stamp, one.signature) != (other.stamp, other.signature):
        assert addresses.is_newer(one, other) != addresses.is_newer(other, one)
    if one.stamp > other.stamp:
        assert addresses.is_newer(one, other)
