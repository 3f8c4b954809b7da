"""Building finality bundles from what a node keeps: `History` and its epoch documents.

It looks for the earliest receipts that cover the event, so that few headers lie between; failing
these, for a cut. A node asks it for events that are Read; of others it finds no certificate.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from quipu.ledger import limits, merkle
from quipu.ledger.bundle import (
    BUNDLE_VERSION,
    Bundle,
    Line,
    SealedDocument,
    cut_support,
    encode_bundle,
)
from quipu.ledger.epochs import Epoch, EpochDocument, decode_document, decode_genesis, genesis_epoch
from quipu.ledger.event import EventMeta, SignedEvent, decode_body
from quipu.ledger.history import History
from quipu.ledger.holes import leaves_of
from quipu.ledger.inv import Inv, decode_inv
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.seals import sealers_needed
from quipu.ledger.words import HLC_SHIFT, EventId, InvNumber, NodeId, NodeNo

SealedBytes = tuple[bytes, tuple[bytes, ...]]  # an epoch document and its seals


@dataclass(frozen=True, slots=True)
class Lineage:
    """The genesis and all epoch documents opened here, decoded once for many bundles."""

    genesis: bytes
    documents: tuple[SealedBytes, ...]
    decoded: tuple[EpochDocument, ...]
    epochs: tuple[Epoch, ...]  # epoch k stands at k - 1

    @classmethod
    def of(cls, genesis: bytes, documents: Sequence[SealedBytes]) -> "Lineage":
        decoded = tuple(decode_document(document) for document, _ in documents)
        first = genesis_epoch(decode_genesis(genesis))
        later = (Epoch.of(d.number, d.policy, d.members, d.streams_erasable) for d in decoded)
        return cls(genesis, tuple(documents), decoded, (first, *later))


class _Certificate(NamedTuple):
    documents: int  # how many, from epoch 2 on
    ids: list[EventId]  # above the event, upwards
    invs: list[bytes]


def build_bundle(history: History, lineage: Lineage, identity: EventId, index: int) -> bytes:
    """The bundle of one entry, or a refusal that says what is missing."""
    event, meta = history.event(identity), history.meta(identity)
    if event is None or meta is None:
        refuse(Reason.NOT_READ, "the event is not held")
    if not 0 <= index < event.header.entry_count:
        refuse(Reason.BAD_ENTRY, f"entry {index} of {event.header.entry_count}")
    certificate = next(_certificates(history, lineage, meta), None)
    if certificate is None:
        refuse(Reason.NOT_READ, "no receipts of one epoch and no cut make the event final")
    entries = decode_body(event.header, event.body)
    leaves = leaves_of(entries)
    return encode_bundle(
        Bundle(
            version=BUNDLE_VERSION,
            genesis=lineage.genesis,
            documents=[
                SealedDocument(document, list(seals))
                for document, seals in lineage.documents[: certificate.documents]
            ],
            header=event.header_bytes,
            signature=event.signature,
            index=index,
            entry=entries[index],
            path=merkle.path_of(leaves, index),
            chain=[_held(history, above).header_bytes for above in certificate.ids],
            invs=certificate.invs,
        )
    )


def _held(history: History, identity: EventId) -> SignedEvent:
    event = history.event(identity)
    assert event is not None  # its meta was read from the same snapshot
    return event


def _certificates(history: History, lineage: Lineage, meta: EventMeta) -> Iterator[_Certificate]:
    """By receipts of the oldest epoch that has them, then by the oldest cut above the event."""
    for epoch in lineage.epochs[meta.epoch - 1 :]:
        found = _by_receipts(history, epoch, meta)
        if found is not None:
            yield found
    for position in range(meta.epoch - 1, len(lineage.documents)):
        found = _by_cut(history, lineage, position, meta)
        if found is not None:
            yield found


def _by_receipts(history: History, epoch: Epoch, meta: EventMeta) -> _Certificate | None:
    author_no = meta.slot.author_no
    if author_no not in epoch.members:
        return None
    covering: dict[NodeNo, tuple[Inv, list[EventId]]] = {}
    for signer_no in sorted(epoch.members):
        found = _first_covering(history, signer_no, epoch, meta)
        if found is not None:
            covering[signer_no] = found
        elif signer_no == author_no:
            return None
    # Rows may name both branches of a fork above the event; the shortest line that suffices wins.
    for _, ids in sorted(covering.values(), key=lambda item: (len(item[1]), item[1])):
        used = {no: inv for no, (inv, own) in covering.items() if own == ids[: len(own)]}
        if author_no in used and len(used) > epoch.max_confirms:
            return _Certificate(epoch.number - 1, ids, [inv.data for inv in used.values()])
    return None


def _first_covering(
    history: History, signer_no: NodeNo, epoch: Epoch, meta: EventMeta
) -> tuple[Inv, list[EventId]] | None:
    """The earliest receipt of that epoch, by its number, that covers the event.

    Numbers and hlc both come from clocks, so the search begins near the event's hlc. Where it
    begins above the first covering receipt, because the signer's clock was behind, it begins
    again further back.
    """
    best: tuple[Inv, list[EventId]] | None = None
    back_ms = limits.CLOCK_AHEAD_MS
    while True:
        start = max(0, meta.hlc - (back_ms << HLC_SHIFT))
        below = False  # a row was seen that did not reach the event yet
        invs = history.invs_from(signer_no, InvNumber(start))
        for data in islice(invs, limits.INVS_SCANNED_MAX):
            inv = decode_inv(data)
            if inv.epoch > epoch.number:
                break
            seq = _row_seq(inv, meta)
            below = below or 0 < seq < meta.seq
            if inv.epoch == epoch.number and seq >= meta.seq:
                ids = _ids_up_to_row(history, inv, meta)
                if ids is not None and (best is None or len(ids) < len(best[1])):
                    best = inv, ids
                    break
        near = best is not None and len(best[1]) < limits.INV_STRIDE
        if near or below or start == 0:  # rows only rise: nothing older covers it
            return best
        back_ms *= limits.BUNDLE_SEARCH_FACTOR


def _row_seq(inv: Inv, meta: EventMeta) -> int:
    for row in inv.rows:
        if row.cord == meta.branch.cord:
            return row.seq
    return 0


def _ids_up_to_row(history: History, inv: Inv, meta: EventMeta) -> list[EventId] | None:
    for row in inv.rows:
        if row.cord == meta.branch.cord:
            return _ids_up_to(history, row.seq, EventId(row.id), meta)
    return None


def _ids_up_to(
    history: History, seq: int, identity: EventId, meta: EventMeta
) -> list[EventId] | None:
    """The ids above the event up to that one, or None where it is not on a branch above."""
    if not 0 <= seq - meta.seq <= limits.BUNDLE_HEADERS_MAX:
        return None
    ids: list[EventId] = []
    for _ in range(seq - meta.seq):
        above = history.meta(identity)
        if above is None:
            return None
        ids.append(identity)
        identity = above.prev
    return ids[::-1] if identity == meta.id else None


def _by_cut(
    history: History, lineage: Lineage, position: int, meta: EventMeta
) -> _Certificate | None:
    document, (_, seals) = lineage.decoded[position], lineage.documents[position]
    ended = lineage.epochs[position]
    sealed: dict[NodeNo, Inv] = {}
    for data in seals:
        seal = decode_inv(data)
        sealed[ended.numbers[NodeId(seal.signer)]] = seal
    needed = sealers_needed(ended, len(sealed))
    tips = [_ids_up_to_row(history, seal, meta) for seal in sealed.values()]
    for row in document.cut:
        if (row.author_no, row.journal) != meta.branch.cord:
            continue
        cut_ids = _ids_up_to(history, row.seq, EventId(row.id), meta)
        if cut_ids is None:
            continue
        reaching = [t for t in tips if t is not None and t[: len(cut_ids)] == cut_ids]
        for ids in sorted([cut_ids, *reaching], key=lambda item: (len(item), item)):
            line = Line(meta.branch.cord, meta.seq, [meta.id, *ids])
            covering, highest = cut_support(sealed, line, len(cut_ids))
            if len(covering) >= needed and highest == len(ids):
                return _Certificate(position + 1, ids, [])
    return None
