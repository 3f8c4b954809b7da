"""The small records of the store. Each carries a checksum over its key and itself, because LMDB
pages have none; what names events is checked against the events besides."""

from struct import Struct
from typing import NoReturn
from zlib import crc32

import msgspec

from quipu.ledger.canonical import encode
from quipu.ledger.effects import PutOwnState
from quipu.ledger.history import BranchRecord, SignerRecord
from quipu.ledger.inv import Inv
from quipu.ledger.signing import HASH_BYTES
from quipu.ledger.words import (
    BranchKey,
    EpochNo,
    EventId,
    Hlc,
    InvNumber,
    Journal,
    NodeNo,
    Seq,
    Slot,
)
from quipu.storage import keys
from quipu.storage.store import StoreCorrupt

Bytes = bytes | memoryview
_CHECKSUM = Struct(">I")


class _Branch(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    base_seq: int
    parent: int
    held_seq: int
    held_id: bytes
    held_hlc: int
    read_seq: int
    read_id: bytes
    cut_seq: int
    signed_seq: int
    leaf: bool
    lender: bytes
    moved_ms: int
    receipts: list[tuple[int, int, int]]  # signer, seq, number of the Inv; in the given order
    spared_from: int = 0  # absent in records of the first stores
    spared_upto: int = 0
    gone_upto: int = 0  # absent where nothing was pruned


class _Signer(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    number: int
    inv_id: bytes
    epoch: int
    sealed: bytes


class _Epoch(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    document: bytes
    seals: list[bytes]


class _OwnState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    newest_journal: int
    recovering: bool
    pruned_to: int = 0  # absent where nothing was pruned


_branches = msgspec.msgpack.Decoder(_Branch)
_signers = msgspec.msgpack.Decoder(_Signer)
_epochs = msgspec.msgpack.Decoder(_Epoch)
_own_states = msgspec.msgpack.Decoder(_OwnState)


def guarded(key: bytes, payload: bytes) -> bytes:
    return _CHECKSUM.pack(crc32(payload, crc32(key))) + payload


def unguarded(table: str, key: Bytes, value: Bytes) -> bytes:
    payload = bytes(value[_CHECKSUM.size :])
    expected = _CHECKSUM.pack(crc32(payload, crc32(key)))
    if value[: _CHECKSUM.size] != expected:
        raise StoreCorrupt(table, f"key {bytes(key).hex()}", "the checksum is wrong")
    return payload


def _undecodable(table: str, key: Bytes, error: Exception) -> NoReturn:
    raise StoreCorrupt(table, f"key {bytes(key).hex()}", f"does not decode: {error}") from error


def encode_branch(key: bytes, record: BranchRecord) -> bytes:
    receipts = [(no, seq, number) for no, (seq, number) in record.receipts.items()]
    values: tuple[object, ...] = (
        record.base_seq,
        record.parent,
        record.held_seq,
        record.held_id,
        record.held_hlc,
        record.read_seq,
        record.read_id,
        record.cut_seq,
        record.signed_seq,
        record.leaf,
        record.lender,
        record.moved_ms,
        receipts,
        record.spared_from,
        record.spared_upto,
    )
    if record.gone_upto:
        values = (*values, record.gone_upto)
    return guarded(key, encode(values))


def decode_branch(key: Bytes, value: Bytes) -> BranchRecord:
    payload = unguarded("branches", key, value)
    try:
        branch, place = _branches.decode(payload), keys.branch_of(key)
    except msgspec.DecodeError as error:
        _undecodable("branches", key, error)
    return _branch_record(place, branch)


def _branch_record(place: BranchKey, branch: _Branch) -> BranchRecord:
    return BranchRecord(
        place,
        Seq(branch.base_seq),
        branch.parent,
        Seq(branch.held_seq),
        EventId(branch.held_id),
        Hlc(branch.held_hlc),
        Seq(branch.read_seq),
        EventId(branch.read_id),
        Seq(branch.cut_seq),
        Seq(branch.signed_seq),
        branch.leaf,
        branch.lender,
        branch.moved_ms,
        {NodeNo(no): (Seq(seq), InvNumber(number)) for no, seq, number in branch.receipts},
        Seq(branch.spared_from),
        Seq(branch.spared_upto),
        Seq(branch.gone_upto),
    )


def signer_record(signer_no: NodeNo, inv: Inv) -> SignerRecord:
    """What is remembered of a signer's newest Inv."""
    return SignerRecord(signer_no, inv.number, inv.id, inv.epoch, inv.array.close or b"")


def encode_signer(key: bytes, record: SignerRecord) -> bytes:
    values = (record.number, record.inv_id, record.epoch, record.sealed)
    return guarded(key, encode(values))


def decode_signer(key: Bytes, value: Bytes) -> SignerRecord:
    payload = unguarded("signers", key, value)
    try:
        signer, signer_no = _signers.decode(payload), keys.signer_of(key)
    except msgspec.DecodeError as error:
        _undecodable("signers", key, error)
    number, epoch = InvNumber(signer.number), EpochNo(signer.epoch)
    return SignerRecord(signer_no, number, signer.inv_id, epoch, signer.sealed)


def encode_epoch(key: bytes, document: bytes, seals: tuple[bytes, ...]) -> bytes:
    return guarded(key, encode((document, seals)))


def decode_epoch(key: Bytes, value: Bytes) -> tuple[bytes, tuple[bytes, ...]]:
    payload = unguarded("epochs", key, value)
    try:
        epoch = _epochs.decode(payload)
    except msgspec.DecodeError as error:
        _undecodable("epochs", key, error)
    return epoch.document, tuple(epoch.seals)


def encode_own_state(key: bytes, state: PutOwnState) -> bytes:
    values: tuple[object, ...] = (state.newest_journal, state.recovering)
    if state.pruned_to:
        values = (*values, state.pruned_to)
    return guarded(key, encode(values))


def decode_own_state(key: Bytes, value: Bytes) -> PutOwnState:
    payload = unguarded("meta", key, value)
    try:
        state = _own_states.decode(payload)
    except msgspec.DecodeError as error:
        _undecodable("meta", key, error)
    return PutOwnState(Journal(state.newest_journal), state.recovering, EpochNo(state.pruned_to))


# --- the index: prefix of an id -> where the events with that prefix lie -----------------------
def index_record(identity: EventId, slot_key: bytes) -> bytes:
    """One row of an index value: the slot and the rest of the id."""
    return slot_key + identity[keys.PREFIX_BYTES :]


def only_slot(identity: EventId, value: memoryview) -> Slot | None:
    """The slot where, as nearly always, this event is the only one with its prefix (3 us less)."""
    data, rest = bytes(value), identity[keys.PREFIX_BYTES :]
    if len(data) != keys.SLOT_BYTES + len(rest) or not data.endswith(rest):
        return None
    return keys.slot_of(data[: keys.SLOT_BYTES])


def index_rows(prefix: Bytes, value: Bytes) -> list[tuple[EventId, Slot]]:
    """All events with that prefix, the one stored first first."""
    row_bytes = keys.SLOT_BYTES + HASH_BYTES - keys.PREFIX_BYTES
    data, start = bytes(value), bytes(prefix)
    if len(data) == row_bytes:  # nearly always
        return [(EventId(start + data[keys.SLOT_BYTES :]), keys.slot_of(data[: keys.SLOT_BYTES]))]
    if not data or len(data) % row_bytes:
        raise StoreCorrupt("ids", f"prefix {start.hex()}", f"{len(data)} bytes")
    return [
        (
            EventId(start + data[at + keys.SLOT_BYTES : at + row_bytes]),
            keys.slot_of(data[at : at + keys.SLOT_BYTES]),
        )
        for at in range(0, len(data), row_bytes)
    ]
