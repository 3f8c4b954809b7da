"""A digest of the set of Read events in 4,096 parts, by the first 12 bits of their ids.

Two nodes with equal parts hold the same events there: who compares them reads the other parts only.
"""

from collections.abc import Iterable
from hashlib import sha256

from quipu.dumps.limits import BUCKET_BITS, BUCKETS

_EMPTY = sha256(b"").digest()
DIGEST_BYTES = len(_EMPTY)


def bucket_of(identity: bytes) -> int:
    return int.from_bytes(identity[:2], "big") >> (16 - BUCKET_BITS)


def bucket_digests(ids_sorted: Iterable[bytes]) -> bytes:
    """32 bytes a bucket; `ids_sorted` without repetition."""
    digests = [_EMPTY] * BUCKETS
    current, running = -1, sha256()
    for identity in ids_sorted:
        bucket = bucket_of(identity)
        if bucket != current:
            if current >= 0:
                digests[current] = running.digest()
            current, running = bucket, sha256()
        running.update(identity)
    if current >= 0:
        digests[current] = running.digest()
    return b"".join(digests)


def differing(digests: Iterable[bytes]) -> list[int]:
    """The buckets in which not all agree."""
    first, *others = digests
    return [
        bucket
        for bucket in range(BUCKETS)
        for at in (bucket * DIGEST_BYTES,)
        if any(o[at : at + DIGEST_BYTES] != first[at : at + DIGEST_BYTES] for o in others)
    ]
