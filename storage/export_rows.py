"""What a store holds, as rows of a dump's tables."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quipu.dumps.headers import edges_of
from quipu.dumps.tables import as_long, eid_of
from quipu.ledger.entry import Entry
from quipu.ledger.epochs import Epochs, decode_document, decode_genesis
from quipu.ledger.event import SignedEvent
from quipu.ledger.history import BranchRecord
from quipu.ledger.inv import decode_inv, unsigned_part
from quipu.ledger.words import GENESIS_EPOCH, HLC_SHIFT, BranchKey, Slot
from quipu.storage.event_blob import entries_of
from quipu.verify.events import MEDIA_TYPES

Row = tuple[Any, ...]
READ, UNREAD = "read", "unread"
_entries = msgspec.msgpack.Decoder(Entry)


class EventRows:
    """Rows of `events`, `edges` and `entries` for the files of one segment."""

    def __init__(self, branches: dict[BranchKey, BranchRecord], entries: str) -> None:
        self._receipts = {
            key: sorted(
                (seq for no, (seq, _) in record.receipts.items() if no != key.author_no),
            )
            for key, record in branches.items()
        }
        self._with_entries = entries != "none"
        self._with_data = entries == "with data"
        self.clear()

    def clear(self) -> None:
        self.events: list[Row] = []
        self.edges: list[Row] = []
        self.entries: list[Row] = []
        self.bytes = 0

    def add(self, slot: Slot, event: SignedEvent, feed_pos: int | None) -> None:
        header, identity = event.header, bytes(event.id)
        eid = eid_of(identity)
        signed = self._receipts.get(slot.branch, [])
        self.events.append(
            (
                identity,
                eid,
                header.author,
                slot.author_no,
                as_long(header.journal),
                as_long(header.seq),
                slot.number,
                as_long(header.epoch),
                header.prev,
                as_long(header.hlc),
                as_long(header.depth),
                header.kind,
                header.entry_count,
                header.body_size,
                header.entries_root,
                event.header_bytes,
                event.signature,
                UNREAD if feed_pos is None else READ,
                len(signed) - bisect_left(signed, slot.seq),
                feed_pos,
                None,
                None,
            )
        )
        for parent, ordinal in edges_of(header.prev, header.seq, header.parents):
            self.edges.append((identity, parent, eid, eid_of(parent), ordinal))
        self.bytes += event.size
        if self._with_entries:
            self._add_entries(event, identity, eid)

    def _add_entries(self, event: SignedEvent, identity: bytes, eid: int) -> None:
        stamped_ms = event.header.hlc >> HLC_SHIFT
        decode, add, with_data = _entries.decode, self.entries.append, self._with_data
        for position, (leaf, data) in enumerate(zip(event.leaves, entries_of(event), strict=True)):
            entry = decode(data)
            kind = entry.content_type
            add(
                (
                    identity,
                    eid,
                    position,
                    entry.stream,
                    entry.client_id,
                    None if entry.message_id is None else as_long(entry.message_id),
                    stamped_ms if entry.time is None else as_long(entry.time),
                    kind if type(kind) is str else MEDIA_TYPES[int(kind)],
                    len(entry.data),
                    leaf,
                    entry.data if with_data else None,
                )
            )


def inv_rows(signer_no: int, data: bytes) -> tuple[Row, list[Row]]:
    """The row of `invs` and those of `receipts` that one Inv makes."""
    inv = decode_inv(data)
    number, epoch = as_long(inv.number), as_long(inv.epoch)
    preimage, signature = unsigned_part(inv.array), inv.array.signature
    row = (inv.signer, signer_no, number, epoch, len(inv.rows), inv.id, preimage, signature, None)
    receipts = [
        (
            signer_no,
            number,
            epoch,
            one.author_no,
            as_long(one.journal),
            as_long(one.seq),
            one.id,
            eid_of(one.id),
        )
        for one in inv.rows
    ]
    return row, receipts


def config_rows(genesis: bytes, documents: Sequence[tuple[bytes, tuple[bytes, ...]]]) -> list[Row]:
    rows: list[Row] = [(GENESIS_EPOCH, genesis, [])]
    rows += [(decode_document(data).number, data, list(seals)) for data, seals in documents]
    return rows


def member_rows(genesis: bytes, documents: Sequence[tuple[bytes, tuple[bytes, ...]]]) -> list[Row]:
    epochs = Epochs.from_genesis(genesis)
    names = {bytes(f.node_id): f.name for f in decode_genesis(genesis).members}
    for data, _ in documents:
        names.update({bytes(m.node_id): m.name for m in decode_document(data).members})
        epochs.open(data)
    return [
        (number, node_no, node_id, names[node_id], epoch.max_confirms)
        for number, epoch in epochs.by_number.items()
        for node_no, node_id in epoch.members.items()
    ]


def cut_rows(documents: Sequence[tuple[bytes, tuple[bytes, ...]]]) -> Iterator[Row]:
    for data, _ in documents:
        document = decode_document(data)
        for row in document.cut:
            yield document.number, row.author_no, as_long(row.journal), as_long(row.seq), row.id


def frontier_rows(branches: dict[BranchKey, BranchRecord]) -> list[Row]:
    return [
        (
            key.author_no,
            as_long(key.journal),
            key.number,
            as_long(record.held_seq),
            record.held_id,
            as_long(record.read_seq),
            as_long(record.cut_seq),
        )
        for key, record in sorted(branches.items())
    ]
