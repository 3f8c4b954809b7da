"""What the forms of this protocol share: canonical arrays, texts, and widths of fields."""

import re
from typing import Annotated, Generic, TypeVar

import msgspec

from quipu.ledger.canonical import Canonical
from quipu.ledger.refusals import Reason, Refused
from quipu.p2p.refusals import Cause, FrameRefused

T = TypeVar("T")

U8 = Annotated[int, msgspec.Meta(ge=0, le=2**8 - 1)]
U64 = Annotated[int, msgspec.Meta(ge=0)]
Bytes16 = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]
Bytes32 = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
Signature = Annotated[bytes, msgspec.Meta(min_length=64, max_length=64)]

# A text of a peer lands in logs and on terminals. Surrogates are in no UTF-8.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_CAUSES = {
    Reason.MALFORMED: Cause.MALFORMED,
    Reason.NOT_CANONICAL: Cause.NOT_CANONICAL,
    Reason.TOO_LARGE: Cause.TOO_LARGE,
}


class Form(Generic[T]):
    """A canonical codec that refuses in the words of this protocol."""

    def __init__(self, kind: type[T], bytes_max: int) -> None:
        self._codec = Canonical(kind, bytes_max)

    def decode(self, data: bytes) -> T:
        try:
            return self._codec.decode(data)
        except Refused as refusal:
            raise FrameRefused(_CAUSES[refusal.reason], refusal.detail) from None


def has_control(text: str) -> bool:
    return _CONTROL.search(text) is not None


def is_text(text: str, bytes_max: int) -> bool:
    """Whether a text has at least one character, no control characters, and keeps the limit."""
    return not has_control(text) and 0 < len(text.encode()) <= bytes_max
