"""Canonical bytes: the one shortest msgpack encoding of a value, and nothing else is taken.

A receiver encodes again what it decoded and refuses other bytes. Structs are arrays of fixed
positions; there are no maps, floats or extension types in anything that is signed or hashed.
"""

from typing import Generic, TypeVar

import msgspec

from quipu.ledger.refusals import Reason, refuse

T = TypeVar("T")

_encoder = msgspec.msgpack.Encoder()
encode = _encoder.encode


class Canonical(Generic[T]):
    """A codec for one type: `decode` takes canonical bytes up to a limit and refuses all else."""

    def __init__(self, kind: type[T], bytes_max: int) -> None:
        self._decoder = msgspec.msgpack.Decoder(kind)
        self._bytes_max = bytes_max

    def decode(self, data: bytes) -> T:
        if len(data) > self._bytes_max:
            refuse(Reason.TOO_LARGE, f"{len(data)} bytes, at most {self._bytes_max}")
        try:
            value = self._decoder.decode(data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            refuse(Reason.MALFORMED, str(error))
        if _encoder.encode(value) != data:
            refuse(Reason.NOT_CANONICAL)
        return value


def fits_bytes(text: str | None, bytes_max: int) -> bool:
    """Whether a text keeps a limit of bytes: a struct alone bounds its characters."""
    return text is None or text.isascii() or len(text.encode()) <= bytes_max
