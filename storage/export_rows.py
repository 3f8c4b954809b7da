"""What a store holds, as rows of a dump's tables."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from quipu.dumps.tables import as_long, eid_of
from quipu.ledger.canonical import encode
from quipu.ledger.epochs import Epochs, decode_document, decode_genesis
from quipu.ledger.history import BranchRecord
from quipu.ledger.inv import decode_inv, unsigned_part
from quipu.ledger.limits import SERIALIZERS_MAX
from quipu.ledger.log.entry import decode_log_entry, next_digest
from quipu.ledger.log.state import SavedLog
from quipu.ledger.log.suffix import Suffix, decode_base, genesis_base
from quipu.ledger.order.items import EventReference, read_item
from quipu.ledger.words import GENESIS_EPOCH, BranchKey, NodeNo

Row = tuple[Any, ...]
Place = tuple[int, int, int]  # author number, journal, seq


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


def journal_rows(
    log: SavedLog, cluster_id: bytes, founders: int, is_read: Callable[[Place], bool]
) -> Iterator[Row]:
    """What is chosen and applied here: up to the first entry that names what is not Read yet."""
    first = tuple(NodeNo(n) for n in range(1, min(founders, SERIALIZERS_MAX) + 1))
    base = genesis_base(cluster_id, first) if log.base is None else decode_base(log.base)
    digest, voting = base.digest, Suffix(base, log.entries)
    for data in log.entries:
        entry = decode_log_entry(data)
        ordered = [_reference(item) for item in entry.items] or [None]
        if entry.index > log.chosen or not all(is_read(_place(one)) for one in ordered if one):
            return
        before, digest = digest, next_digest(digest, data)
        is_newest = entry.index == log.chosen
        proof = encode(list(log.certificate)) if is_newest else None
        voters = encode(_voters_at(voting, entry.index)) if is_newest else None
        for position, one in enumerate(ordered):
            slot = _slot(one) if one else (None, None, None, None)
            yield entry.regime, entry.index, position, *slot, digest, before, proof, voters
            before = digest


def _voters_at(voting: Suffix, index: int) -> list[list[int]]:
    segment = next(s for s in reversed(voting.segments) if s.start <= index)
    return [list(numbers) for numbers in segment.voters.sets]


def _reference(item: bytes) -> EventReference | None:
    found = read_item(item)
    return found if isinstance(found, EventReference) else None


def _slot(one: EventReference) -> Row:
    return one.node_no, as_long(one.journal), as_long(one.seq), one.id


def _place(one: EventReference) -> Place:
    return one.node_no, one.journal, one.seq


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
