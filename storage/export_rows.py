"""What a store holds, as rows of a dump's tables."""

from collections.abc import Iterator, Sequence
from typing import Any

from quipu.dumps.tables import as_long, eid_of
from quipu.ledger.epochs import Epochs, decode_document, decode_genesis
from quipu.ledger.history import BranchRecord
from quipu.ledger.inv import decode_inv, unsigned_part
from quipu.ledger.words import GENESIS_EPOCH, BranchKey

Row = tuple[Any, ...]


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
