"""Epochs of a member that is alone, as others take them over.

Its document is believed without the log: the seal of the one member signs every row of the cut,
and the cut is all that rose since the one before.
"""

from collections.abc import Sequence

from quipu.ledger.epochs import EpochDocument, decode_document
from quipu.ledger.inv import InvRow
from quipu.ledger.known import Known
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.seals import read_seals
from quipu.ledger.words import EventId


def is_next(known: Known, data: bytes, seals: Sequence[bytes]) -> bool:
    """False where it cannot be said yet: not the next one, or its cut is not all held here."""
    epochs = known.epochs
    document = decode_document(data)
    if document.number != epochs.newest.number + 1 or len(epochs.newest.members) != 1:
        return False  # an epoch of several members is taken from their log
    sealed = read_seals(document, seals, epochs.newest, epochs.cluster_id, known.verify)
    rows = [row for seal in sealed.values() for row in seal.rows if _is_new(known, row)]
    metas = [known.past.meta(EventId(row.id)) for row in rows]
    held = [meta for meta in metas if meta is not None]
    if len(held) < len(rows):
        # What a checkpoint has left behind nobody can look at: the seal alone speaks for it.
        return document.number <= known.checkpoint_told and _says(document, rows)
    if document.cut_hlc != max([epochs.cut_hlc, *(meta.hlc for meta in held)]):
        refuse(Reason.BAD_ROWS, "the time of the cut is not that of its events")
    cut = [(row.author_no, row.journal, row.seq, row.id) for row in document.cut]
    if [(*meta.branch.cord, meta.seq, meta.id) for meta in held] != cut:
        refuse(Reason.BAD_ROWS, "the cut is not what the seal says")
    return True


def _is_new(known: Known, row: InvRow) -> bool:
    cut = [record.cut_seq for record in known.dag.cords.get(row.cord, ())]
    cut += [seq for cord, seq in known.cut_wanted.values() if cord == row.cord]
    return row.seq > max(cut, default=0)


def _says(document: EpochDocument, rows: list[InvRow]) -> bool:
    """Whether the cut is what the seal says."""
    cut = [(row.author_no, row.journal, row.seq, row.id) for row in document.cut]
    return cut == [(*row.cord, row.seq, row.id) for row in rows]
