"""Mutations that know the form: values change in place, and what hangs on them may be put right.

Bytes inside of bytes (an entry in a body, a header in a bundle) are opened too, so that a change
reaches them; afterwards sizes, roots and signatures are often made good, so that it gets past the
first check to the one behind it.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import msgpack

from tests.small_ledger import node_id
from tests.vectors.refused import Raw, pack

Sample = list[bytes]  # the inputs of one decoder
EDGES = [0, 1, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**63, 2**64 - 1]
SIZES = [0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 512, 513]
TEXTS = ["", "a", "A", "\n", "\0", "é", "default", "majority", "two-thirds", "all", "0", "01", "9"]
ODD = [
    Raw(b"\xc1"),
    Raw(b"\x80"),
    Raw(b"\x81\x01\x02"),
    Raw(b"\xd4\x01\x00"),
    Raw(b"\xd6\xff\x00\x00\x00\x01"),
    Raw(b"\xca\x3f\x80\x00\x00"),
    Raw(b"\xcb\x43\xf0\x00\x00\x00\x00\x00\x00"),
    Raw(b"\xa2\xc3\x28"),
    Raw(b"\xa3\xed\xa0\x80"),
    Raw(b"\xdd\xff\xff\xff\xff"),
    Raw(b"\xc6\xff\xff\xff\xff"),
    Raw(b"\x91" * 1000 + b"\x90"),
    Raw(b"\x91" * 100_000 + b"\x90"),
]
DEPTH_MAX = 20
OPEN_BYTES_MAX = 20_000  # larger bytes inside of bytes are data, and stay closed


class Inside(list[Any]):
    """Bytes that are themselves an encoded array, opened."""


def opened(value: Any) -> Any:
    if isinstance(value, bytes) and len(value) <= OPEN_BYTES_MAX:
        inner = fields_of(value)
        return value if inner is None else Inside(opened(item) for item in inner)
    return [opened(item) for item in value] if isinstance(value, list) else value


def fields_of(data: bytes) -> list[Any] | None:
    """The fields of what is an array, canonical or not, and not nested beyond reason."""
    if not data or not (0x90 <= data[0] <= 0x9F or data[0] in (0xDC, 0xDD)):
        return None
    try:
        value = msgpack.unpackb(data)
    except (ValueError, TypeError, msgpack.UnpackException):
        return None
    levels, depth = [value], 0
    while levels := [item for level in levels if isinstance(level, list) for item in level]:
        depth += 1
        if depth > DEPTH_MAX:
            return None
    assert isinstance(value, list)
    return value


def closed(value: Any) -> Any:
    if isinstance(value, Inside):
        return pack([closed(item) for item in value])
    return [closed(item) for item in value] if isinstance(value, list) else value


class Mutator:
    def __init__(self, random: Random) -> None:
        self.random = random
        # Values seen lately, to put elsewhere; the first are nodes that can sign.
        self._pool: list[Any] = [node_id(number) for number in range(1, 7)]

    def mutated(self, sample: Sample) -> Sample:
        """One input of the sample changed, once or a few times."""
        at = self.random.randrange(len(sample))
        data = sample[at]
        for _ in range(self.random.choice([1, 1, 1, 2, 3])):
            data = self._changed(data)
        return [*sample[:at], data, *sample[at + 1 :]]

    def _changed(self, data: bytes) -> bytes:
        if self.random.random() < 0.2 or not data:
            return self._bytes_changed(data)
        tree = opened(Raw(data)) if data[0] >= 0x90 else data
        if not isinstance(tree, Inside):
            return self._bytes_changed(data)
        result = closed(self._descend(tree))
        return result if isinstance(result, bytes) else pack(result)

    def _bytes_changed(self, data: bytes) -> bytes:
        random = self.random
        at = random.randrange(len(data) + 1)
        match random.randrange(6):
            case 0:
                return data[:at]
            case 1:
                return data + random.randbytes(random.randint(1, 3))
            case 2:
                return data[:at] + random.randbytes(random.randint(1, 4)) + data[at:]
            case 3:
                return data[:at] + data[at + random.randint(1, 4) :]
            case 4:
                return data[:at] + random.choice(ODD) + data[at + 1 :]
            case _:
                if not data:
                    return b"\x90"
                at = min(at, len(data) - 1)
                return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]

    def _descend(self, node: Any) -> Any:
        """Down to some node, which changes."""
        random = self.random
        # A list of things is as likely to change itself as one of them is.
        whole = 0.5 if type(node) is list else 0.1
        if isinstance(node, list) and node and random.random() >= whole:
            at = self._child(node)
            self._remember(node[at])
            copy = type(node)(node)
            copy[at] = self._descend(node[at])
            return copy
        return self._replaced(node)

    def _child(self, node: list[Any]) -> int:
        """Rather one with something in it: that is where most of the rules are about."""
        at = self.random.randrange(len(node))
        if self.random.random() < 0.5:
            deeper = [i for i, item in enumerate(node) if isinstance(item, list) and item]
            return self.random.choice(deeper) if deeper else at
        return at

    def _remember(self, node: Any) -> None:
        if len(self._pool) < 200:
            self._pool.append(node)
        else:
            self._pool[self.random.randrange(6, 200)] = node

    def _replaced(self, node: Any) -> Any:
        if self.random.random() < 0.15:
            return self.random.choice([None, True, 1.5, *ODD, *self._pool[-20:]])
        if isinstance(node, bool):
            return self.random.choice([not node, int(node)])
        if isinstance(node, int):
            return self._integer(node)
        if isinstance(node, bytes):
            return self._octets(node)
        if isinstance(node, str):
            return self._text(node)
        if isinstance(node, list):
            return self._array(node)
        return self.random.choice([*EDGES, *TEXTS, b"", [], bytes(16), bytes(32), bytes(64)])

    def _integer(self, number: int) -> Any:
        random = self.random
        match random.randrange(5):
            case 0:
                return max(0, min(number + random.choice([-1, 1]), 2**64 - 1))
            case 1:
                return random.choice(EDGES)
            case 2:
                return random.choice([-1, -128, -(2**63), float(number), bool(number), str(number)])
            case 3:
                return random.randrange(8)
            case _:
                width = random.choice([1, 2, 4, 8])
                if not 0 <= number < 1 << 8 * width:
                    return number
                code = {1: b"\xcc", 2: b"\xcd", 4: b"\xce", 8: b"\xcf"}[width]
                return Raw(code + number.to_bytes(width, "big"))

    def _octets(self, data: bytes) -> Any:
        random = self.random
        match random.randrange(8):
            case 0 if data:
                at = random.randrange(len(data))
                return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]
            case 1:
                return random.randbytes(random.choice([len(data), *SIZES]))
            case 2:
                return random.choice([data[:-1], data + b"\0", b"", data * 2])
            case 3:
                return (
                    Raw(b"\xc5" + len(data).to_bytes(2, "big") + data) if len(data) < 256 else b""
                )
            case 4:
                return data.decode("latin-1")
            case _:
                same = [v for v in self._pool if isinstance(v, bytes) and len(v) == len(data)]
                return random.choice(same) if same else bytes(len(data))

    def _text(self, text: str) -> Any:
        random = self.random
        match random.randrange(6):
            case 0:
                return random.choice(TEXTS)
            case 1:
                return text + random.choice(["\n", "\0", "A", "é", " ", "_", "/", "\x7f"])
            case 2:
                return random.choice(["a", "é"]) * random.choice([64, 65, 127, 128, 129, 256, 257])
            case 3:
                return text.encode()
            case 4:
                data = text.encode()
                return Raw(b"\xd9" + bytes([len(data)]) + data) if len(data) < 256 else ""
            case _:
                return text[:-1]

    def _array(self, items: list[Any]) -> Any:
        random = self.random
        copy = type(items)(items)
        at = random.randrange(len(items)) if items else 0
        match random.randrange(9):
            case 0 if items:
                copy.insert(at, items[at])
            case 1 if items:
                del copy[at]
            case 2 if items:
                other = random.randrange(len(items))
                copy[at], copy[other] = copy[other], copy[at]
            case 3:
                copy.reverse()
            case 4:
                copy.append(None)
            case 5:
                copy = type(items)(items * random.randint(2, 40))
            case 6 if len(items) < 16:
                inner = b"".join(pack(closed(item)) for item in items)
                return Raw(b"\xdc\x00" + bytes([len(items)]) + inner)
            case 7:
                self._grow_sorted(copy)
            case _:
                return type(items)(items[:at])
        return copy

    def _grow_sorted(self, items: list[Any]) -> None:
        """A few more of the same kind, in order: what only a limit or a comparison refuses."""
        random = self.random
        if not all(type(item) is bytes for item in items):
            return
        size = len(items[0]) if items else 32
        known = [v for v in self._pool if type(v) is bytes and len(v) == size]
        for _ in range(random.randint(1, 9)):
            fresh = random.choice(known) if known and random.random() < 0.5 else None
            items.append(fresh or random.randbytes(size))
        items[:] = sorted(dict.fromkeys(items))


Repair = Callable[[Random, Sample], Sample]
