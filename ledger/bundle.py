"""Finality bundles: one canonical file that proves offline that an event is Read.

It proves that the members of one epoch hold the event and all below it in its cord; by what a
receipt says they hold its parents too. A bundle has no slack: every part of it must be used.
`quipu.verify` is a second implementation of these rules, from other libraries.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec

from quipu.ledger import limits, merkle
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.entry import Entry, decode_entry
from quipu.ledger.epochs import Epoch, EpochDocument, Epochs, decode_document
from quipu.ledger.erasures import ERASED
from quipu.ledger.event import U64, Bytes32, Header, decode_header, event_id, signed_part
from quipu.ledger.holes import is_hole, leaf_of
from quipu.ledger.inv import Inv, decode_inv, has_valid_signature
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.seals import read_seals, sealers_needed
from quipu.ledger.signing import Verifier
from quipu.ledger.words import Cord, EpochNo, EventId, Journal, NodeId, NodeNo

BUNDLE_VERSION = 1

Signature = Annotated[bytes, msgspec.Meta(min_length=64, max_length=64)]


class SealedDocument(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    document: bytes
    seals: Annotated[list[bytes], msgspec.Meta(max_length=limits.SEALS_MAX)]


class Bundle(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    version: U64
    genesis: bytes
    documents: Annotated[
        list[SealedDocument], msgspec.Meta(max_length=limits.BUNDLE_DOCUMENTS_MAX)
    ]  # from epoch 2 to the one that the certificate is of
    header: bytes
    signature: Signature
    index: U64
    entry: bytes
    path: list[Bytes32]
    chain: Annotated[
        list[bytes], msgspec.Meta(max_length=limits.BUNDLE_HEADERS_MAX)
    ]  # headers from the event's successor up to the highest row used
    invs: Annotated[
        list[bytes], msgspec.Meta(max_length=limits.MEMBERS_MAX)
    ]  # by member number; empty: the event lies at or below a row of the last document's cut


class Finality(NamedTuple):
    """What a bundle proves."""

    cluster_id: bytes
    event: EventId
    header: Header
    entry_index: int
    entry: Entry  # ERASED: its leaf hash is proven all the same
    epoch: Epoch  # whose receipts, or seals, make the event final
    by_cut: bool
    confirmed: tuple[NodeNo, ...]  # by receipts: members beside the author; by a cut: sealers
    required: int  # how many of these would have done


_codec = Canonical(Bundle, limits.BUNDLE_BYTES_MAX)


def encode_bundle(bundle: Bundle) -> bytes:
    return encode(bundle)


def decode_bundle(data: bytes) -> Bundle:
    """The form alone; `check_bundle` says what it proves."""
    bundle = _codec.decode(data)
    if bundle.version != BUNDLE_VERSION:
        refuse(Reason.UNKNOWN_VERSION, f"bundle version {bundle.version}")
    return bundle


class _Roster(NamedTuple):
    """The epochs of a bundle, each sealed by the one before; the last document with its seals."""

    epochs: Epochs
    document: EpochDocument | None
    sealed: dict[NodeNo, Inv]


class Line(NamedTuple):
    """A cord from the event of a bundle upwards."""

    cord: Cord
    first_seq: int
    ids: list[EventId]

    def steps_to(self, inv: Inv) -> int | None:
        """How far above the event the Inv's row lies on this line; None: it does not cover it."""
        for row in inv.rows:
            if row.cord == self.cord:
                return self.steps_to_row(row.seq, row.id)
        return None

    def steps_to_row(self, seq: int, identity: bytes) -> int | None:
        steps = seq - self.first_seq
        if 0 <= steps < len(self.ids) and self.ids[steps] == identity:
            return steps
        return None


def check_bundle(data: bytes, verify: Verifier) -> Finality:
    """What the bundle proves, or a refusal."""
    bundle = decode_bundle(data)
    roster = _check_roster(bundle, verify)
    header, identity = _check_event(bundle, roster.epochs, verify)
    entry = _check_entry(bundle, header)
    line = _check_chain(bundle, header, identity, roster.epochs)
    if bundle.invs:
        epoch = roster.epochs.newest
        confirmed = check_receipts(bundle.invs, line, header, roster.epochs, verify)
        required, by_cut = epoch.max_confirms, False
    else:
        epoch, confirmed, required = _check_cut(roster, line, header)
        by_cut = True
    return Finality(
        roster.epochs.cluster_id,
        identity,
        header,
        bundle.index,
        entry,
        epoch,
        by_cut,
        confirmed,
        required,
    )


def _check_roster(bundle: Bundle, verify: Verifier) -> _Roster:
    epochs = Epochs.from_genesis(bundle.genesis)
    document: EpochDocument | None = None
    sealed: dict[NodeNo, Inv] = {}
    for item in bundle.documents:
        document = decode_document(item.document)
        sealed = read_seals(document, item.seals, epochs.newest, epochs.cluster_id, verify)
        epochs.open(item.document)
    return _Roster(epochs, document, sealed)


def _check_event(bundle: Bundle, epochs: Epochs, verify: Verifier) -> tuple[Header, EventId]:
    header = decode_header(bundle.header)
    if header.cluster_id != epochs.cluster_id:
        refuse(Reason.WRONG_CLUSTER, "event")
    epoch = epochs.by_number.get(EpochNo(header.epoch))
    if epoch is None:
        refuse(Reason.EPOCH_UNKNOWN, f"event of epoch {header.epoch}")
    if NodeId(header.author) not in epoch.numbers:
        refuse(Reason.NOT_A_MEMBER, "author")
    identity = event_id(bundle.header)
    if not verify(header.author, signed_part(identity), bundle.signature):
        refuse(Reason.BAD_SIGNATURE, "event")
    return header, identity


def _check_entry(bundle: Bundle, header: Header) -> Entry:
    leaf = leaf_of(bundle.entry)
    root = merkle.root_from_path(leaf, bundle.index, header.entry_count, bundle.path)
    if root != header.entries_root:
        refuse(Reason.BAD_ROOT, "the path leads to another root")
    return ERASED if is_hole(bundle.entry) else decode_entry(bundle.entry)


def _check_chain(bundle: Bundle, header: Header, identity: EventId, epochs: Epochs) -> Line:
    ids = [identity]
    for header_bytes in bundle.chain:
        above = decode_header(header_bytes)
        if (
            above.prev != ids[-1]
            or (above.author, above.journal) != (header.author, header.journal)
            or (above.cluster_id, above.seq) != (header.cluster_id, header.seq + len(ids))
        ):
            refuse(Reason.NO_PROOF, "the headers are no chain")
        ids.append(event_id(header_bytes))
    author_no = epochs.node_numbers[NodeId(header.author)]
    return Line(Cord(author_no, Journal(header.journal)), header.seq, ids)


def check_receipts(
    invs: Sequence[bytes], line: Line, header: Header, epochs: Epochs, verify: Verifier
) -> tuple[NodeNo, ...]:
    """The members beside the author whose receipts of the newest epoch cover the event."""
    epoch, highest = epochs.newest, 0
    signers: list[NodeNo] = []
    for data in invs:
        inv = decode_inv(data)
        if inv.array.cluster_id != epochs.cluster_id:
            refuse(Reason.WRONG_CLUSTER, "receipt")
        if inv.epoch != epoch.number:
            refuse(Reason.NO_PROOF, f"a receipt of epoch {inv.epoch}, not {epoch.number}")
        number = epoch.numbers.get(inv.signer)
        if number is None:
            refuse(Reason.NOT_A_MEMBER, "signer of a receipt")
        steps = line.steps_to(inv)
        if steps is None:
            refuse(Reason.NO_PROOF, "a receipt that does not cover the event")
        if not has_valid_signature(inv, verify):
            refuse(Reason.BAD_SIGNATURE, "receipt")
        signers.append(number)
        highest = max(highest, steps)
    if sorted(set(signers)) != signers:
        refuse(Reason.NO_PROOF, "receipts are sorted, one a member")
    if highest != len(line.ids) - 1:
        refuse(Reason.NO_PROOF, "headers above the highest row")
    author_no = epoch.numbers.get(NodeId(header.author))
    if author_no not in signers:
        refuse(Reason.NO_PROOF, "the author's own receipt is missing")
    others = tuple(number for number in signers if number != author_no)
    if len(others) < epoch.max_confirms:
        refuse(Reason.NO_PROOF, f"{len(others)} receipts, {epoch.max_confirms} needed")
    return others


def _check_cut(
    roster: _Roster, line: Line, header: Header
) -> tuple[Epoch, tuple[NodeNo, ...], int]:
    """The epoch that the cut ended, the members whose seals cover its row, how many are needed."""
    document = roster.document
    if document is None or header.epoch >= document.number:
        refuse(Reason.NO_PROOF, "neither receipts nor a cut above the event")
    rows = [
        steps
        for row in document.cut
        if (row.author_no, row.journal) == line.cord
        and (steps := line.steps_to_row(row.seq, row.id)) is not None
    ]
    if not rows:
        refuse(Reason.NO_PROOF, "no row of the cut covers the event")
    epoch = roster.epochs.by_number[EpochNo(document.number - 1)]
    covering, highest = cut_support(roster.sealed, line, max(rows))
    required = sealers_needed(epoch, len(roster.sealed))
    if len(covering) < required:
        refuse(Reason.NO_PROOF, f"{len(covering)} seals cover the cut, {required} needed")
    if highest != len(line.ids) - 1:
        refuse(Reason.NO_PROOF, "headers above the highest row")
    return epoch, covering, required


def cut_support(
    sealed: dict[NodeNo, Inv], line: Line, cut_steps: int
) -> tuple[tuple[NodeNo, ...], int]:
    """Whose seals cover that row of the cut, and the highest row used."""
    steps = {number: line.steps_to(seal) for number, seal in sorted(sealed.items())}
    above = {number: n for number, n in steps.items() if n is not None and n >= cut_steps}
    return tuple(above), max([cut_steps, *above.values()])
