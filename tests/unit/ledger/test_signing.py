from hashlib import sha256

from quipu.ledger.signing import KeyPair, tagged_hash, verify
from tests.small_ledger import key_of


def test_a_signature_is_of_one_key_and_one_message() -> None:
    one, other = key_of("n1"), key_of("n2")
    signature = one.sign(b"message")
    assert one.sign(b"message") == signature
    assert verify(one.node_id, b"message", signature)
    assert not verify(other.node_id, b"message", signature)
    assert not verify(one.node_id, b"massage", signature)


def test_what_has_not_the_form_of_a_signature_or_key_is_no_signature() -> None:
    key = key_of("n1")
    signature = key.sign(b"m")
    for public, bad in (
        (key.node_id, b""),
        (key.node_id, signature[:-1]),
        (key.node_id, signature + b"\0"),
        (key.node_id[:-1], signature),
        (b"", signature),
        (bytes(32), signature),  # a point of small order
        (b"\xff" * 32, signature),
    ):
        assert not verify(public, b"m", bad)


def test_a_secret_is_never_shown() -> None:
    key = KeyPair.from_seed(bytes(32))
    assert repr(key) == f"KeyPair({key.node_id.hex()[:16]})"


def test_hashes_are_told_apart_by_their_tag() -> None:
    assert tagged_hash(b"tag\0", b"data") == sha256(b"tag\0data").digest()
