from nacl.bindings import crypto_scalarmult_base
from nacl.public import Box, PrivateKey, PublicKey

from quipu.ledger.words import NodeId
from quipu.p2p.link_keys import link_key_of, link_secret_of
from tests.small_ledger import key_of
from tests.vectors.refused_peers import NO_POINT


def test_both_halves_come_from_the_identity() -> None:
    key = key_of("n1")
    assert link_key_of(key.node_id) == crypto_scalarmult_base(link_secret_of(key))


def test_two_nodes_can_talk_by_them() -> None:
    one, other = key_of("n1"), key_of("n2")
    public = {name: PublicKey(link_key_of(key_of(name).node_id) or b"") for name in ("n1", "n2")}
    sealed = Box(PrivateKey(link_secret_of(one)), public["n2"]).encrypt(b"hello")
    assert Box(PrivateKey(link_secret_of(other)), public["n1"]).decrypt(sealed) == b"hello"


def test_what_is_no_key_has_none() -> None:
    for data in (NO_POINT, bytes(32), b"\1" + bytes(31), b"", bytes(31)):
        assert link_key_of(NodeId(data)) is None
