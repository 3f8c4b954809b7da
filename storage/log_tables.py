"""The quorum log on disk: its entries by index, and beside them what this node promised and knows.

It writes and reads back what the log ordered, and judges nothing but that the pieces fit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

import msgspec

from quipu.ledger.canonical import encode
from quipu.ledger.log.effects import (
    DropLogFrom,
    ForgetLog,
    LogDurable,
    PutBase,
    PutChosen,
    PutConfirmed,
    PutLie,
    PutVote,
    StoreLogEntry,
)
from quipu.ledger.log.entry import decode_log_entry
from quipu.ledger.log.evidence import kept_conviction
from quipu.ledger.log.state import SavedLog
from quipu.ledger.log.suffix import decode_base
from quipu.ledger.log.words import Index, Life
from quipu.ledger.refusals import Refused
from quipu.ledger.words import NodeNo
from quipu.storage import keys, records
from quipu.storage.environment import ReadTxn, Tables, WriteTxn, records_from
from quipu.storage.store import StoreCorrupt

VOTE, CHOSEN, BASE, LOST = b"vote", b"chosen", b"base", b"lost"
CONFIRMED = b"confirmed "
LIE = b"lie "
FIRST_LIFE = Life(1)  # of a disk that no other went before


class _Chosen(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    index: int
    certificate: list[bytes]


class _Base(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    record: bytes
    state: bytes


_chosen = msgspec.msgpack.Decoder(_Chosen)
_base = msgspec.msgpack.Decoder(_Base)
_certificate = msgspec.msgpack.Decoder(list[bytes])


# --- writing ------------------------------------------------------------------------------------
@dataclass(slots=True)
class LogWriter:
    """Within one transaction."""

    txn: WriteTxn
    tables: Tables

    def write(self, effect: LogDurable) -> None:
        match effect:
            case StoreLogEntry(index, data):
                key = keys.index_key(index)
                self.txn.put(key, records.guarded(key, data), db=self.tables.entries_of_log)
            case DropLogFrom(index):
                self._drop(index, None)
            case PutVote(record):
                self._put(VOTE, record)
                self.txn.delete(LOST, db=self.tables.votes_of_log)
            case PutChosen(index, certificate):
                self._put(CHOSEN, encode((index, certificate)))
            case PutConfirmed(index, certificate):
                self._put(CONFIRMED + keys.index_key(index), encode(certificate))
            case PutLie(culprit, proof):
                self._put(LIE + keys.index_key(culprit), proof)
            case ForgetLog():
                self._drop(Index(0), None)
                self._forget_votes()
                self.mark_lost()
            case PutBase(record, state):
                self._put(BASE, encode((record, state)))
                index = Index(decode_base(record).index)
                self._drop(Index(0), index)
                self._forget_confirmed(index)
            case _:
                assert_never(effect)

    def _forget_votes(self) -> None:
        with self.txn.cursor(self.tables.votes_of_log) as cursor:
            there = cursor.first()
            while there:
                is_lie = _place_of(LIE, cursor.key()) is not None
                there = cursor.next() if is_lie else cursor.delete() and bool(cursor.key())

    def mark_lost(self) -> None:
        """This disk is not the one that the node had: what that one voted, nobody knows."""
        self._put(LOST, b"")

    def _put(self, key: bytes, payload: bytes) -> None:
        self.txn.put(key, records.guarded(key, payload), db=self.tables.votes_of_log)

    def _drop(self, first: Index, last: Index | None) -> None:
        with self.txn.cursor(self.tables.entries_of_log) as cursor:
            there = cursor.set_range(keys.index_key(first))
            while there and (last is None or keys.index_of(cursor.key()) <= last):
                there = cursor.delete() and bool(cursor.key())

    def _forget_confirmed(self, index: Index) -> None:
        with self.txn.cursor(self.tables.votes_of_log) as cursor:
            there = cursor.set_range(CONFIRMED)
            while there and (at := _place_of(CONFIRMED, cursor.key())) is not None and at <= index:
                there = cursor.delete() and bool(cursor.key())


def _place_of(kind: bytes, key: bytes | memoryview) -> int | None:
    return keys.index_of(key[len(kind) :]) if key[: len(kind)] == kind else None


# --- reading ------------------------------------------------------------------------------------
def read_log(txn: ReadTxn, tables: Tables) -> SavedLog:
    saved = SavedLog(FIRST_LIFE)
    for key, payload in _kept(txn, tables):
        _take(saved, key, payload)
    due = first_index(saved)
    for view, value in records_from(txn, tables.entries_of_log):
        at = keys.index_of(view)
        if at != due:
            raise StoreCorrupt("log", f"index {at}", f"{due} is due there")
        saved.entries.append(records.unguarded("log", view, value))
        due += 1
    if saved.chosen >= due:
        raise StoreCorrupt("log", f"index {due}", f"is missing: up to {saved.chosen} is chosen")
    return saved


def first_index(saved: SavedLog) -> int:
    return 1 if saved.base is None else decode_base(saved.base).index + 1


def _kept(txn: ReadTxn, tables: Tables) -> Iterator[tuple[bytes, bytes]]:
    for view, value in records_from(txn, tables.votes_of_log):
        yield bytes(view), records.unguarded("votes", view, value)


def _take(saved: SavedLog, key: bytes, payload: bytes) -> None:
    try:
        if key == VOTE:
            saved.vote = payload
        elif key == LOST:
            saved.recovering = True
        elif key == CHOSEN:
            chosen = _chosen.decode(payload)
            saved.chosen, saved.certificate = Index(chosen.index), tuple(chosen.certificate)
        elif key == BASE:
            base = _base.decode(payload)
            decode_base(base.record)
            saved.base, saved.state = base.record, base.state
        elif (at := _place_of(CONFIRMED, key)) is not None:
            saved.confirmed[Index(at)] = tuple(_certificate.decode(payload))
        elif (culprit := _place_of(LIE, key)) is not None:
            kept_conviction(payload)
            saved.lies[NodeNo(culprit)] = payload
        else:
            raise StoreCorrupt("votes", f"key {key!r}", "is none of ours")
    except (msgspec.DecodeError, Refused) as error:
        raise StoreCorrupt("votes", f"key {key!r}", f"does not decode: {error}") from error


# --- checking -----------------------------------------------------------------------------------
def check_entry(key: bytes, value: memoryview) -> None:
    """One entry by itself; that none is missing is seen when all are read."""
    at = keys.index_of(key)
    try:
        entry = decode_log_entry(records.unguarded("log", key, value))
    except Refused as refused:
        raise StoreCorrupt("log", f"index {at}", f"is not well-formed: {refused}") from refused
    if entry.index != at:
        raise StoreCorrupt("log", f"index {at}", f"holds index {entry.index}")


def check_kept(key: bytes, value: memoryview) -> None:
    _take(SavedLog(FIRST_LIFE), key, records.unguarded("votes", key, value))
