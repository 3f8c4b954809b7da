"""Keys of the tables: big-endian, so that their order on disk is the order of numbers."""

from collections.abc import Sequence
from struct import Struct, error
from typing import Any

from quipu.ledger import messages
from quipu.ledger.words import BranchKey, EpochNo, EventId, InvNumber, Journal, NodeNo, Slot
from quipu.storage.store import StoreCorrupt

PREFIX_BYTES = messages.PREFIX_BYTES  # of an id: one length in the index and on the wire

_SLOT = Struct(">IQQH")
_BRANCH = Struct(">IQH")
_INV = Struct(">IQ")
_SIGNER = Struct(">I")
_U64 = Struct(">Q")
_ROOM = Struct(">IQQ")

SLOT_BYTES = _SLOT.size
_U64_MAX = 2**64 - 1


def fits(numbers: tuple[int, ...]) -> bool:
    """Whether a key can hold them: peers send any number, and nothing is stored beyond this."""
    return all(0 <= number <= _U64_MAX for number in numbers)


def _unpacked(form: Struct, key: bytes | memoryview) -> tuple[Any, ...]:
    try:
        return form.unpack(key)
    except error as misfit:
        raise StoreCorrupt("keys", f"key {bytes(key).hex()}", f"unreadable: {misfit}") from misfit


def slot_key(slot: Slot) -> bytes:
    return _SLOT.pack(slot.author_no, slot.journal, slot.seq, slot.number)


def slot_of(key: bytes | memoryview) -> Slot:
    return Slot._make(_unpacked(_SLOT, key))


def numbers_of_slot(key: bytes | memoryview) -> tuple[Any, ...]:
    """As `slot_of`, for whoever reads many."""
    return _unpacked(_SLOT, key)


def numbers_of_slots(slot_keys: Sequence[bytes]) -> list[tuple[int, int, int, int]]:
    """The same of thousands at once."""
    return list(_SLOT.iter_unpack(b"".join(slot_keys)))


def slot_keys_above(slot: Slot) -> tuple[bytes, bytes]:
    """The range of keys one seq further in the cord, on whatever branch."""
    start = _ROOM.pack(slot.author_no, slot.journal, min(slot.seq + 1, _U64_MAX))
    return start, start + b"\xff\xff"


def branch_key(key: BranchKey) -> bytes:
    return _BRANCH.pack(key.author_no, key.journal, key.number)


def branch_of(key: bytes | memoryview) -> BranchKey:
    author_no, journal, number = _unpacked(_BRANCH, key)
    return BranchKey(NodeNo(author_no), Journal(journal), number)


def inv_key(signer_no: NodeNo, number: InvNumber) -> bytes:
    return _INV.pack(signer_no, number)


def inv_of(key: bytes | memoryview) -> tuple[NodeNo, InvNumber]:
    signer_no, number = _unpacked(_INV, key)
    return NodeNo(signer_no), InvNumber(number)


def signer_key(signer_no: NodeNo) -> bytes:
    return _SIGNER.pack(signer_no)


def signer_of(key: bytes | memoryview) -> NodeNo:
    return NodeNo(_unpacked(_SIGNER, key)[0])


def feed_key(number: int) -> bytes:
    return _U64.pack(number)


def feed_of(key: bytes | memoryview) -> int:
    number: int = _unpacked(_U64, key)[0]
    return number


def index_key(index: int) -> bytes:
    """Of the log."""
    return _U64.pack(index)


def index_of(key: bytes | memoryview) -> int:
    return feed_of(key)


def epoch_key(number: EpochNo) -> bytes:
    return _U64.pack(number)


def proof_key(culprit: bytes, as_signer: bool) -> bytes:
    return (b"\1" if as_signer else b"\0") + culprit


def prefix_of(identity: EventId) -> bytes:
    return identity[:PREFIX_BYTES]


def describe(slot: Slot) -> str:
    branch = f" branch {slot.number}" if slot.number else ""
    return f"author {slot.author_no} journal {slot.journal} seq {slot.seq}{branch}"
