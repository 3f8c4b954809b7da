"""Changes of roster as items of the log (DESIGN section 5), and what makes one valid.

Valid is a function of the item's bytes and of the items before it: every node passes over the
same ones. What a voter asks besides, of clocks and of events that it holds, is `roster_gate`'s.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

from quipu.ledger import limits
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.epochs import Epoch, EpochDocument
from quipu.ledger.event import U64
from quipu.ledger.evidence import check_proof
from quipu.ledger.inv import Inv, decode_inv, has_valid_signature
from quipu.ledger.order.cut import CutTerms
from quipu.ledger.order.wishes import Wish, WishEnded
from quipu.ledger.quorum import max_confirms
from quipu.ledger.ready import check_ready
from quipu.ledger.refusals import Reason, Refused, refuse
from quipu.ledger.seals import read_seals
from quipu.ledger.signing import Verifier
from quipu.ledger.words import Cord, EpochNo, NodeId, NodeNo, Seq

Receipts = Annotated[list[bytes], msgspec.Meta(max_length=limits.OPEN_RECEIPTS_MAX)]
Statements = Annotated[list[bytes], msgspec.Meta(max_length=limits.MEMBERS_MAX)]


class Close(msgspec.Struct, array_like=True, frozen=True, tag=7, forbid_unknown_fields=True):
    """The epoch before this document's ends; its attempt stands in the document."""

    at_ms: U64  # cluster now of the master that wrote it
    document: bytes  # without a cut
    readies: Statements


class Open(msgspec.Struct, array_like=True, frozen=True, tag=8, forbid_unknown_fields=True):
    """The epoch of this document begins, with the cut that the seals make."""

    document: bytes
    seals: Statements
    due_ms: U64
    proofs: Statements  # of authors who forked a cord
    receipts: Receipts  # of the epoch that ends: with the seals they make certificates
    invs: Statements  # of the epoch that begins: its members hold the cut


RosterItem = Close | Open | Wish | WishEnded
HEADS = tuple(bytes(head) for head in ((0x94, 7), (0x97, 8), (0x94, 9), (0x94, 10)))
_codec: Canonical[RosterItem] = Canonical(RosterItem, limits.LOG_ENTRY_BYTES_MAX)  # type: ignore[arg-type]


def encode_change(item: RosterItem) -> bytes:
    return encode(item)


def read_change(data: bytes) -> RosterItem | None:
    """None for what is no change of roster."""
    if not data.startswith(HEADS):
        return None
    try:
        return _codec.decode(data)
    except Refused:
        return None


def check_readies(close: Close, document: EpochDocument, verify: Verifier) -> None:
    """Refuses without READYs of MAX_CONFIRMS + 1 members of the epoch that it names."""
    members = {member.node_id for member in document.members}
    ready: dict[bytes, None] = {}
    for data in close.readies:
        statement = check_ready(data, document.cluster_id, verify)
        if statement.signer not in members or statement.epoch != document.number:
            refuse(Reason.NOT_A_MEMBER, "READY")
        if not is_fresh(statement.at_ms, close.at_ms):
            refuse(Reason.TOO_OLD, "READY")
        ready[statement.signer] = None
    check_enough(len(ready), document, "READYs")


def is_fresh(ready_ms: int, close_ms: int) -> bool:
    return close_ms - limits.READY_AGE_MS_MAX <= ready_ms <= close_ms + limits.CLOCK_AHEAD_MS


def check_enough(count: int, document: EpochDocument, what: str) -> None:
    """MAX_CONFIRMS + 1 members of the epoch that this document begins."""
    needed = max_confirms(document.policy, len(document.members)) + 1
    if count < needed:
        refuse(Reason.NO_PROOF, f"{count} {what}, {needed} needed")


def check_open(
    item: Open,
    document: EpochDocument,
    previous: Epoch,
    numbers: Mapping[NodeId, NodeNo],
    verify: Verifier,
) -> tuple[CutTerms, int]:
    """What its cut must be a function of, and how many say that they hold it; or a refusal."""
    cluster_id = document.cluster_id
    seals = read_seals(document, item.seals, previous, cluster_id, verify)
    following = Epoch.of(document.number, document.policy, document.members)
    holders = {number for number, _ in read_invs(item.invs, following, cluster_id, verify)}
    forks: dict[Cord, Seq] = {}
    for data in item.proofs:
        proof = check_proof(data, cluster_id, verify)
        author_no = numbers.get(proof.culprit)
        if proof.as_signer or author_no is None:
            refuse(Reason.NO_PROOF, "no fork of a member")
        cord = Cord(author_no, proof.journal)
        forks[cord] = min(proof.seq, forks.get(cord, proof.seq))
    receipts = read_invs(item.receipts, previous, cluster_id, verify)
    return CutTerms(previous, seals, item.due_ms, forks, tuple(receipts)), len(holders)


def read_invs(
    invs: Sequence[bytes], epoch: Epoch, cluster_id: bytes, verify: Verifier
) -> list[tuple[NodeNo, Inv]]:
    """Receipts of that epoch by its members; one that is not refuses all of them."""
    found: list[tuple[NodeNo, Inv]] = []
    for data in invs:
        inv = decode_inv(data)
        if inv.array.cluster_id != cluster_id:
            refuse(Reason.WRONG_CLUSTER, "receipt")
        number = epoch.numbers.get(inv.signer)
        if number is None or inv.epoch != EpochNo(epoch.number):
            refuse(Reason.NOT_A_MEMBER, "signer of a receipt")
        if not has_valid_signature(inv, verify):
            refuse(Reason.BAD_SIGNATURE, "receipt")
        found.append((number, inv))
    return found
