"""From the feed to what it names, many records at a time: a call for each costs more than the work.

Where a record does not fit, it is looked at alone and named.
"""

from collections.abc import Sequence
from zlib import crc32

from quipu.ledger.words import EventId
from quipu.storage import keys, records
from quipu.storage.environment import ReadTxn, Tables
from quipu.storage.store import StoreCorrupt

Rows = Sequence[tuple[memoryview, memoryview]]


class Lookup:
    """Within one read transaction."""

    def __init__(self, txn: ReadTxn, tables: Tables) -> None:
        self._get, self._tables = txn.get, tables

    def fed(self, rows: Rows) -> tuple[list[int], list[bytes]]:
        """Feed positions, and where their events lie. Raises `StoreCorrupt`."""
        numbers = [int.from_bytes(key, "big") for key, _ in rows]
        values = [bytes(value) for _, value in rows]
        sums = [
            crc32(value[4:], crc32(key)).to_bytes(4, "big")
            for (key, _), value in zip(rows, values, strict=True)
        ]
        if sums != [value[:4] for value in values]:
            for key, value in rows:
                records.unguarded("feed", key, value)
        identities = [value[4:] for value in values]
        get, ids, cut = self._get, self._tables.ids, keys.PREFIX_BYTES
        found = [bytes(get(identity[:cut], b"", db=ids)) for identity in identities]
        end = keys.SLOT_BYTES
        slot_keys = [value[:end] for value in found]
        if [value[end:] for value in found] != [identity[cut:] for identity in identities]:
            slot_keys = [
                self._slot_key(EventId(i), value)
                for i, value in zip(identities, found, strict=True)
            ]
        return numbers, slot_keys

    def _slot_key(self, identity: EventId, value: bytes) -> bytes:
        for other, slot in records.index_rows(keys.prefix_of(identity), value) if value else ():
            if other == identity:
                return keys.slot_key(slot)
        raise StoreCorrupt("feed", identity.hex(), "is not held")

    def blobs(self, slot_keys: Sequence[bytes]) -> list[bytes]:
        """Raises `StoreCorrupt`."""
        get, events = self._get, self._tables.events
        found = [bytes(get(key, b"", db=events)) for key in slot_keys]
        for key, blob in zip(slot_keys, found, strict=True) if b"" in found else ():
            if not blob:
                named = keys.describe(keys.slot_of(key))
                raise StoreCorrupt("events", named, "indexed, but not there")
        return found
