"""The LAN beacon: a datagram that says where a node is, sealed under the cluster's secret.

Whoever opens it knows that a holder of the secret made it, and no more: what it says of a node is
believed where that node signed it. So a recorded one says what was said before, and nothing else.
"""

import hmac
from collections.abc import Sequence
from hashlib import sha256
from typing import Annotated

import msgspec
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from quipu.ledger.canonical import encode
from quipu.p2p import limits
from quipu.p2p.addresses import SignedEndpoint
from quipu.p2p.forms import U64, Form
from quipu.p2p.refusals import Cause, refuse

BEACON_VERSION = 1
TAG_BEACON = b"quipu/beacon/1\0"


class Beacon(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    version: Annotated[int, msgspec.Meta(ge=BEACON_VERSION, le=BEACON_VERSION)]
    endpoint: SignedEndpoint  # with cluster id, node id and stamp
    start: U64


_form = Form(Beacon, limits.DATAGRAM_BYTES_MAX)


def beacon_key(secret: bytes) -> bytes:
    """Not the secret itself: that one keys the HMAC of HELLO."""
    return hmac.digest(secret, TAG_BEACON, sha256)


def seal_beacon(beacon: Beacon, secret: bytes, nonce: bytes) -> bytes:
    """`nonce`: 24 octets that no other datagram under this secret has."""
    sealed = bytes(SecretBox(beacon_key(secret)).encrypt(encode(beacon), nonce))
    assert len(sealed) <= limits.DATAGRAM_BYTES_MAX, "a host has 253 octets at most"
    return sealed


def open_beacon(datagram: bytes, secrets: Sequence[bytes]) -> Beacon:
    """Its endpoint is not looked at."""
    if len(datagram) > limits.DATAGRAM_BYTES_MAX:
        refuse(Cause.TOO_LARGE, "of a beacon")
    contents = (_opened(datagram, secret) for secret in secrets)
    content = next((content for content in contents if content is not None), None)
    if content is None:
        refuse(Cause.FOREIGN_BEACON)
    return _form.decode(content)


def _opened(datagram: bytes, secret: bytes) -> bytes | None:
    try:
        return bytes(SecretBox(beacon_key(secret)).decrypt(datagram))
    except (CryptoError, ValueError):  # ValueError: shorter than a nonce
        return None
