"""Hashes and Ed25519 signatures, each tagged with what it is for.

Ed25519 is deterministic, so signing is a function of key and message and fits a pure core.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from nacl.bindings import crypto_sign, crypto_sign_open, crypto_sign_seed_keypair
from nacl.exceptions import BadSignatureError

from quipu.ledger.words import NodeId

SIGNATURE_BYTES = 64
SEED_BYTES = 32
HASH_BYTES = 32
KEY_BYTES = 32

TAG_GENESIS = b"quipu/genesis/1\0"
TAG_EVENT = b"quipu/event/1\0"
TAG_INV = b"quipu/inv/1\0"
TAG_EPOCH = b"quipu/epoch/1\0"
TAG_CLOSE = b"quipu/close/1\0"
TAG_WISH = b"quipu/wish/1\0"
TAG_LOG = b"quipu/log/1\0"
TAG_SIG_ACCEPTED = b"quipu/sig/accepted/1\0"
TAG_SIG_PROMISE = b"quipu/sig/promise/1\0"
TAG_SEQUENCE = b"quipu/sequence/1\0"
TAG_SEQUENCES = b"quipu/sequences/1\0"
TAG_SIG_REQUEST = b"quipu/sig/request/1\0"
TAG_SIG_RESULTS = b"quipu/sig/results/1\0"
TAG_SIG_READY = b"quipu/sig/ready/1\0"
TAG_SIG_EVENT = b"quipu/sig/event/1\0"
TAG_SIG_INV = b"quipu/sig/inv/1\0"

Verifier = Callable[[bytes, bytes, bytes], bool]  # public key, message, signature


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A node's identity: the public half is its node id."""

    node_id: NodeId
    secret: bytes

    @classmethod
    def from_seed(cls, seed: bytes) -> "KeyPair":
        public, secret = crypto_sign_seed_keypair(seed)
        return cls(NodeId(public), secret)

    def sign(self, message: bytes) -> bytes:
        return crypto_sign(message, self.secret)[:SIGNATURE_BYTES]

    def __repr__(self) -> str:  # a secret never reaches a log
        return f"KeyPair({self.node_id.hex()[:16]})"


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    try:
        crypto_sign_open(signature + message, public)
    except (BadSignatureError, ValueError):
        return False
    return True


def tagged_hash(tag: bytes, data: bytes) -> bytes:
    return sha256(tag + data).digest()
