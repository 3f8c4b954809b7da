"""Entries that differ in their data alone, made flat: the rest of their bytes is cast once.

For high-rate ingest: 0.2 us an entry of 256 bytes, 0.9 us through `encode_entry`. A property test
holds that both make the same bytes.
"""

from struct import Struct

from quipu.ledger.entry import ContentType, data_entry, encode_entry

_TAIL = b"\x00\xc0"  # sig_type 0, no signature
_EMPTY = b"\xc4\x00" + _TAIL  # what an entry without data ends with
_bin8, _bin16, _bin32 = Struct(">BB").pack, Struct(">BH").pack, Struct(">BI").pack


class Mold:
    """Plain data entries of one stream, content type and submitter."""

    __slots__ = ("_head",)

    def __init__(
        self, stream: str, content_type: ContentType | str, submitter: str | None = None
    ) -> None:
        entry = data_entry(b"", stream=stream, content_type=content_type, submitter=submitter)
        whole = encode_entry(entry)
        assert whole.endswith(_EMPTY)
        self._head = whole[: -len(_EMPTY)]

    def cast(self, data: bytes) -> bytes:
        size = len(data)
        if size < 1 << 8:
            return self._head + _bin8(0xC4, size) + data + _TAIL
        if size < 1 << 16:
            return self._head + _bin16(0xC5, size) + data + _TAIL
        return self._head + _bin32(0xC6, size) + data + _TAIL
