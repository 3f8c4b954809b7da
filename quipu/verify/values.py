"""The form of values: canonical msgpack, its types and bounds, hashes and signatures."""

import re
from collections.abc import Callable
from hashlib import sha256
from typing import NoReturn, TypeVar

import msgpack
from nacl.exceptions import CryptoError
from nacl.signing import VerifyKey

T = TypeVar("T")

BUNDLE_BYTES_MAX = 16 << 20
DOCUMENT_BYTES_MAX = 1 << 20
ENTRY_BYTES_MAX = 1 << 20
HEADER_BYTES_MAX = 4096
INV_BYTES_MAX = 128 << 10
BODY_BYTES_MAX = 4 << 20
ENTRIES_MAX = 10_000
PARENTS_MAX = 7
MEMBERS_MAX = 32
DOCUMENTS_MAX = 4096
VALUES_MAX = 200_000  # in one array of arrays; the largest bundle has fewer
CHAIN_MAX = 1024
INV_ROWS_MAX = 1024
CUT_ROWS_MAX = 4096
STREAMS_ERASABLE_MAX = 256
ROLES_MAX = 8
NAME_BYTES_MAX = 128
IDEMPOTENCY_KEY_BYTES_MAX = 256
ENTRY_SIGNATURE_BYTES_MAX = 512
POLICY_CHARACTERS_MAX = 16

U32 = 2**32 - 1
U64 = 2**64 - 1
STREAM = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}\Z")


class VerificationFailed(Exception):
    """The bundle does not prove what it should; the message says why."""


def fail(why: str) -> NoReturn:
    raise VerificationFailed(why)


def need(holds: bool, why: str) -> None:
    if not holds:
        fail(why)


# msgpack's first octets: how long a value is beside its first octet, or how wide its length is.
_FIXED = {
    **dict.fromkeys((0xC0, 0xC2, 0xC3), 0),
    0xCC: 1,
    0xCD: 2,
    0xCE: 4,
    0xCF: 8,
    0xD0: 1,
    0xD1: 2,
    0xD2: 4,
    0xD3: 8,
    0xDC: 2,
    0xDD: 4,  # arrays: their elements are values of their own
}
_LENGTH = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}


def _check_count(data: bytes, what: str) -> None:
    """Bounds how many values there are before any is built: a megabyte of empty arrays would
    cost a gigabyte and half a minute. Maps, floats and extensions are not used, and end here."""
    at = count = 0
    while at < len(data):
        first = data[at]
        count += 1
        need(count <= VALUES_MAX, f"{what}: not of at most {VALUES_MAX} values")
        if first < 0x80 or 0x90 <= first < 0xA0 or first >= 0xE0:
            at += 1
        elif 0xA0 <= first < 0xC0:
            at += 1 + (first & 0x1F)
        elif first in _FIXED:
            at += 1 + _FIXED[first]
        elif first in _LENGTH:
            width = _LENGTH[first]
            at += 1 + width + int.from_bytes(data[at + 1 : at + 1 + width], "big")
        else:
            fail(f"{what}: not a value of the format: {first:#x}")


def decoded(data: bytes, bytes_max: int, what: str) -> object:
    need(len(data) <= bytes_max, f"{what}: {len(data)} bytes, at most {bytes_max}")
    _check_count(data, what)
    try:
        value: object = msgpack.unpackb(data, raw=False)
        again: bytes = msgpack.packb(value)
    except (ValueError, msgpack.UnpackException) as error:
        fail(f"{what}: not msgpack: {type(error).__name__}: {error}"[:200])
    need(again == data, f"{what}: not the canonical bytes")
    return value


def list_of(value: object, count_max: int, what: str) -> list[object]:
    if type(value) is not list or len(value) > count_max:
        fail(f"{what}: not an array of at most {count_max}")
    return value


def array_of(value: object, count: int, what: str) -> list[object]:
    if type(value) is not list or len(value) != count:
        fail(f"{what}: not an array of {count}")
    return value


def bytes_of(value: object, what: str, size: int | None = None) -> bytes:
    if type(value) is not bytes or (size is not None and len(value) != size):
        fail(f"{what}: not {'bytes' if size is None else f'{size} bytes'}")
    return value


def int_of(value: object, most: int, what: str, least: int = 0) -> int:
    if type(value) is not int or not least <= value <= most:
        fail(f"{what}: not an integer of {least} to {most}")
    return value


def text_of(value: object, bytes_max: int, what: str) -> str:
    if type(value) is not str or not 1 <= len(value.encode()) <= bytes_max:
        fail(f"{what}: not a text of 1 to {bytes_max} bytes")
    return value


def tagged(tag: str, data: bytes) -> bytes:
    return sha256(f"quipu/{tag}/1\0".encode() + data).digest()


def is_signed(public: bytes, tag: str, identity: bytes, signature: bytes) -> bool:
    try:
        VerifyKey(public).verify(f"quipu/sig/{tag}/1\0".encode() + identity, signature)
    except (CryptoError, ValueError):
        return False
    return True


def optional(
    form: Callable[[object, int, str], T], value: object, most: int, what: str
) -> T | None:
    return None if value is None else form(value, most, what)


def stream_of(value: object) -> str:
    if type(value) is not str or STREAM.match(value) is None:
        fail("a stream's name is wrong")
    return value
