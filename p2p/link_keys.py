"""The key of a link: the Curve25519 form of a node's Ed25519 identity.

So anybody can compute the key that a claimed node id has to prove on its link.
"""

from nacl.bindings import (
    crypto_sign_ed25519_pk_to_curve25519,
    crypto_sign_ed25519_sk_to_curve25519,
)
from nacl.exceptions import CryptoError

from quipu.ledger.signing import KeyPair
from quipu.ledger.words import NodeId
from quipu.p2p.words import LinkKey


def link_key_of(node_id: NodeId) -> LinkKey | None:
    """None where these 32 bytes are no point that a node could have as its key."""
    try:
        return LinkKey(crypto_sign_ed25519_pk_to_curve25519(node_id))
    except CryptoError:
        return None


def link_secret_of(key: KeyPair) -> bytes:
    return bytes(crypto_sign_ed25519_sk_to_curve25519(key.secret))
