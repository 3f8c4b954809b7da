"""The digest of a stored result, made anew from it: without its words for people."""

from hashlib import sha256

import msgpack

TAG = b"quipu outcome\0"


def digest_of(result: bytes) -> bytes | None:
    """None: not the bytes of a result."""
    try:
        code, results, _ = msgpack.unpackb(result)
        told = [
            code,
            [[code, columns, rows, changes] for code, columns, rows, changes, _ in results],
        ]
        return sha256(TAG + msgpack.packb(told)).digest()
    except (ValueError, TypeError, msgpack.UnpackException):
        return None
