"""The RFC 6962 root over leaf hashes, a second time: by the RFC's own recursion."""

from collections.abc import Sequence
from hashlib import sha256


def root_of(leaves: Sequence[bytes]) -> bytes:
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    half = 1 << (len(leaves) - 1).bit_length() - 1  # the greatest power of two below
    return sha256(b"\1" + root_of(leaves[:half]) + root_of(leaves[half:])).digest()
