"""Seals: the last receipts of an epoch, each naming the CLOSE that its signer agreed to end it by.

An epoch document beyond the genesis is believed because enough members of the epoch before signed
its roster (DESIGN section 5). A seal does not sign the cut: that is computed from the seals.
"""

from collections.abc import Sequence

from quipu.ledger import limits, quorum
from quipu.ledger.epochs import Epoch, EpochDocument, close_hash
from quipu.ledger.inv import Inv, decode_inv, has_valid_signature
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.signing import Verifier
from quipu.ledger.words import NodeNo


def check_seals(
    document: EpochDocument,
    seals: Sequence[bytes],
    previous: Epoch,
    cluster_id: bytes,
    verify: Verifier,
) -> None:
    """Refuses unless enough distinct members of `previous` sealed it with this roster."""
    read_seals(document, seals, previous, cluster_id, verify)


def read_seals(
    document: EpochDocument,
    seals: Sequence[bytes],
    previous: Epoch,
    cluster_id: bytes,
    verify: Verifier,
) -> dict[NodeNo, Inv]:
    """The same, and the seals by their signer's number for who goes on to their rows. A document
    that is marked as forced needs one: whether it may stand at all is asked by who takes it.

    Strict: one bad seal refuses all of them, so there is nothing to hide among the good ones.
    """
    if document.cluster_id != cluster_id:
        refuse(Reason.WRONG_CLUSTER, "epoch document")
    if document.number != previous.number + 1:
        refuse(Reason.EPOCH_UNKNOWN, f"epoch {document.number} does not follow {previous.number}")
    if len(seals) > limits.SEALS_MAX:
        refuse(Reason.TOO_LARGE, f"{len(seals)} seals")
    close = close_hash(document)
    sealed: dict[NodeNo, Inv] = {}
    for data in seals:
        seal = decode_inv(data)
        if seal.array.cluster_id != cluster_id:
            refuse(Reason.WRONG_CLUSTER, "seal")
        if seal.epoch != previous.number or seal.array.close != close:
            refuse(Reason.NO_PROOF, "a seal of something else")
        number = previous.numbers.get(seal.signer)
        if number is None:
            refuse(Reason.NOT_A_MEMBER, "seal")
        if number in sealed:
            refuse(Reason.NO_PROOF, "two seals of one member")
        if not has_valid_signature(seal, verify):
            refuse(Reason.BAD_SIGNATURE, "seal")
        sealed[number] = seal
    needed = 1 if document.forced else quorum.seals_needed(previous.policy, len(previous.members))
    if len(sealed) < needed:
        refuse(Reason.NO_PROOF, f"{len(sealed)} seals, {needed} needed")
    return sealed


def are_enough(sealed: int, previous: Epoch) -> bool:
    """Whether so many seals make an epoch that needs no force."""
    return sealed >= quorum.seals_needed(previous.policy, len(previous.members))


def sealers_needed(epoch: Epoch, seals: int) -> int:
    """Seals that must cover an event of the cut: with the members that did not seal, and the liars
    that the policy bears, a certificate must have been possible. No seal signs the cut, so
    without this a row could be made up."""
    silent = len(epoch.members) - seals
    liars = quorum.liars_borne(epoch.policy, len(epoch.members))
    return max(1, epoch.max_confirms + 1 - silent - liars)
