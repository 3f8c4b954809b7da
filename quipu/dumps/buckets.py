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
    bucket, end, within = -1, b"", list[bytes]()
    for identity in ids_sorted:
        if identity >= end:
            if within:
                digests[bucket] = sha256(b"".join(within)).digest()
            bucket, within = bucket_of(identity), []
            end = _end_of(bucket)
        within.append(identity)
    if within:
        digests[bucket] = sha256(b"".join(within)).digest()
    return b"".join(digests)


def _end_of(bucket: int) -> bytes:
    """Above every id in it."""
    return (((bucket + 1) << (24 - BUCKET_BITS)) - 1).to_bytes(3, "big") + b"\xff" * DIGEST_BYTES


def differing(digests: Iterable[bytes]) -> list[int]:
    """The buckets in which not all agree."""
    first, *others = digests
    return [
        bucket
        for bucket in range(BUCKETS)
        for at in (bucket * DIGEST_BYTES,)
        if any(o[at : at + DIGEST_BYTES] != first[at : at + DIGEST_BYTES] for o in others)
    ]
