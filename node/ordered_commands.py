"""What the order says to an executor: out of a log entry and the events that it refers to."""

from collections.abc import Iterable

from quipu.ledger.entry import decode_entry
from quipu.ledger.limits import EVENT_ENTRIES_MAX
from quipu.ledger.log.entry import LogEntry
from quipu.ledger.order.client_items import read_client_item
from quipu.ledger.order.items import EventReference, read_item
from quipu.ledger.words import EventId
from quipu.storage.executors.request import Command, Configured, LogIndex, Ordered, Signed
from quipu.storage.store import Store, StoreError

_SIGNED = b"\xc4\x40"  # what stands before a signature of 64 bytes, the last field of an entry


def commands_of(entry: LogEntry, store: Store) -> Iterable[Ordered]:
    """What a log entry has for an executor: signed entries of its events, and items of clients."""
    at = LogIndex(entry.index)
    for number, data in enumerate(entry.items):
        item = read_item(data)
        if isinstance(item, EventReference):
            for signed in signed_entries(EventId(item.id), store):
                yield Ordered(at, signed)
        elif item is None and read_client_item(data) is not None:
            yield Ordered(at, Configured(entry.regime, entry.index, number, data))


def signed_entries(event: EventId, store: Store) -> Iterable[Command]:
    found = store.entries(event, 0, EVENT_ENTRIES_MAX)
    if found is None:
        raise StoreError(f"event {event.hex()[:16]} is ordered and not here")
    for data in found[1]:
        if data[-66:-64] != _SIGNED:
            continue
        entry = decode_entry(data)
        if entry.client_id is None or entry.message_id is None or entry.signature is None:
            continue
        yield Signed(entry.client_id, entry.message_id, entry.data, entry.sig_type, entry.signature)
