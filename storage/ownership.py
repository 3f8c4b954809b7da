"""Whose store it is and in which format: written once, held against everyone who opens it."""

from pathlib import Path
from struct import Struct

import lmdb

from quipu.ledger.effects import PutOwnState
from quipu.ledger.words import Journal, NodeId
from quipu.storage import environment, limits, records
from quipu.storage.environment import ReadTxn, Tables, WriteTxn
from quipu.storage.log_tables import LogWriter
from quipu.storage.store import Owner, StoreCorrupt, StoreError

OWN_STATE = b"own"
OVERRULING = b"overruling"
FORMAT_VERSION = 2  # 2: the log has tables
FORMAT_PRUNED = 3  # the same, and something was let go: older programs would call it damage
FORMAT_ERASED = 4  # the same, and an entry was erased
FORMAT_NEWEST = FORMAT_ERASED
FORMAT_OLDEST = 1  # the oldest that this program reads

_FORMAT, _CLUSTER, _NODE = b"format", b"cluster", b"node"
_NUMBER = Struct(">I")


class StoreForeign(StoreError):
    """The store is of another cluster or another node."""


class FormatTooNew(StoreError):
    """A newer program wrote it; this one would read it wrongly."""


class FormatTooOld(StoreError):
    """An older program wrote it, and this one no longer reads that format."""


def claim(
    env: lmdb.Environment, path: Path, tables: Tables, owner: Owner, recovering: bool
) -> bool:
    """Writes the owner into a new store, or holds the one found against it. True: it is new."""
    try:
        with env.begin(buffers=True) as txn:
            environment.touch_tables(txn, tables)
            found = read_owner(txn, tables, path)
            empty = all(txn.stat(table)["entries"] == 0 for _, table in tables.named)
        if found is None and not empty:
            raise StoreCorrupt("meta", "owner", "is missing")
        if found is None:
            with env.begin(write=True) as writer:
                for key, value in (
                    (_FORMAT, _NUMBER.pack(FORMAT_VERSION)),
                    (_CLUSTER, owner.cluster_id),
                    (_NODE, owner.node_id),
                ):
                    writer.put(key, records.guarded(key, value), db=tables.meta)
                state = PutOwnState(Journal(0), recovering)
                writer.put(OWN_STATE, records.encode_own_state(OWN_STATE, state), db=tables.meta)
                if recovering:
                    LogWriter(writer, tables).mark_lost()
            return True
    except lmdb.Error as error:
        environment.raise_uncommitted(error, path, limits.MIB)
    if found != owner:
        which = "cluster" if found.cluster_id != owner.cluster_id else "node"
        raise StoreForeign(f"{path} belongs to another {which}")
    return False


def upgraded(env: lmdb.Environment, path: Path, tables: Tables) -> Tables:
    """A store of the first format becomes one of the present one. Its node never voted; but where
    the store was put in the place of another, that one may have."""
    if tables.log is not None:
        return tables
    try:
        with env.begin(write=True) as writer:
            tables = environment.add_tables(env, writer, tables)
            own = records.decode_own_state(OWN_STATE, writer.get(OWN_STATE, b"", db=tables.meta))
            if own.recovering:
                LogWriter(writer, tables).mark_lost()
            value = records.guarded(_FORMAT, _NUMBER.pack(FORMAT_VERSION))
            writer.put(_FORMAT, value, db=tables.meta)
    except lmdb.Error as error:
        environment.raise_uncommitted(error, path, limits.MIB)
    return tables


def raise_format(txn: WriteTxn, tables: Tables, version: int) -> None:
    """With the first thing that older programs would call damage."""
    held = records.unguarded("meta", _FORMAT, txn.get(_FORMAT, b"", db=tables.meta))
    if held < _NUMBER.pack(version):
        txn.put(_FORMAT, records.guarded(_FORMAT, _NUMBER.pack(version)), db=tables.meta)


def read_owner(txn: ReadTxn, tables: Tables, path: Path) -> Owner | None:
    """Whose store it is, None: nobody's yet. Refuses a format that is not ours."""
    values = {key: txn.get(key, db=tables.meta) for key in (_FORMAT, _CLUSTER, _NODE)}
    if all(value is None for value in values.values()):
        return None
    found = {}
    for key, value in values.items():
        if value is None:
            raise StoreCorrupt("meta", key.decode(), "is missing")
        found[key] = records.unguarded("meta", key, value)
    version = _NUMBER.unpack(found[_FORMAT])[0]
    if version > FORMAT_NEWEST:
        raise FormatTooNew(f"{path} has format {version}, this program knows {FORMAT_NEWEST}")
    if version < FORMAT_OLDEST:
        raise FormatTooOld(f"{path} has format {version}, the oldest readable is {FORMAT_OLDEST}")
    if version >= FORMAT_VERSION and tables.log is None:
        raise StoreCorrupt("log", "the table", "is missing")
    return Owner(found[_CLUSTER], NodeId(found[_NODE]))
