"""The frames of stream ingest, read from outside: msgpack alone, nothing of quipu.

Written from docs/ingest.md; the fuzzer's oracle too. Unlike what is signed, a frame may be any
encoding of its value.
"""

from typing import Any

import msgpack

from tests.vectors.check import MIB, U64, Bad, just, maybe, need, no_map, octets, row, some, whole

FRAME_BYTES_MAX, FRAME_ENTRIES_MAX = 2 * MIB, 2_048
TEXT_FIELDS = 4  # data, then stream, key, content type; time after them


def flag(value: Any) -> None:
    need(type(value) is bool, "true or false")


def words(value: Any) -> None:
    need(type(value) is str, "text")


def item(value: Any) -> None:
    need(type(value) is list and 1 <= len(value) <= 5, "fields of an item")
    octets()(value[0])
    for field in value[1:TEXT_FIELDS]:
        maybe(words)(field)
    for field in value[TEXT_FIELDS:]:
        maybe(whole())(field)


FRAME = row(whole(), some(item, FRAME_ENTRIES_MAX, 1))
STORED = row(whole(), whole(U64, 1), octets(32, 32), whole(9_999), whole(), words, flag)
REFUSED = row(whole(), whole(U64, 1), whole(599, 400), words, flag, words, words)
ANSWERS = {
    0: row(just(0), just(1), *[whole()] * 7),
    1: row(just(1), some(STORED, 1_024, 1)),
    2: row(just(2), some(REFUSED, 1_024, 1)),
    3: row(just(3), whole(599, 400), words, flag, words),
}


def unpack(data: bytes) -> Any:
    try:
        return msgpack.unpackb(data, raw=False, object_pairs_hook=no_map)
    except (ValueError, msgpack.UnpackException) as error:
        raise Bad(str(error)) from error


def frame(data: bytes) -> Any:
    """What a producer sends: the first number, and the items with all five fields."""
    need(len(data) <= FRAME_BYTES_MAX, "too large")
    value = unpack(data)
    FRAME(value)
    first, items = value
    need(first + len(items) - 1 <= U64, "numbers")
    return [first, [fields + [None] * (5 - len(fields)) for fields in items]]


def answer(data: bytes) -> Any:
    """What a node sends."""
    value = unpack(data)
    need(type(value) is list and len(value) > 0, "array")
    need(type(value[0]) is int and value[0] in ANSWERS, "kind")
    ANSWERS[value[0]](value)
    return value
