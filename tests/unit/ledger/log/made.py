"""Logs, entries and statements made by hand."""

from quipu.ledger.log.entry import encode_log_entry
from quipu.ledger.log.statements import (
    UNSIGNED,
    Accepted,
    Promise,
    sign_accepted,
    sign_promise,
)
from quipu.ledger.log.suffix import Suffix, genesis_base
from quipu.ledger.log.words import Index, Place, Regime
from quipu.ledger.words import EpochNo, NodeId, NodeNo
from tests.small_ledger import key_of

CLUSTER_ID = bytes(range(32))
DIGEST = bytes(32)
KEYS: dict[NodeNo, NodeId] = {NodeNo(i): key_of(f"n{i}").node_id for i in range(1, 8)}
THREE = (NodeNo(1), NodeNo(2), NodeNo(3))


def place(regime: int, index: int) -> Place:
    return Place(Regime(regime), Index(index))


def entry(regime: int, index: int, *items: bytes, master: int = 1) -> bytes:
    return encode_log_entry(place(regime, index), NodeNo(master), list(items))


def log_of(*regimes: int, serializers: tuple[NodeNo, ...] = THREE) -> Suffix:
    """One entry of each regime, in this order."""
    entries = [
        entry(regime, index, b"item %d" % index) for index, regime in enumerate(regimes, start=1)
    ]
    return Suffix(genesis_base(CLUSTER_ID, serializers), entries)


def accepted(signer: int, regime: int, index: int, digest: bytes = DIGEST) -> Accepted:
    key = key_of(f"n{signer}")
    at = (place(regime, index), digest)
    return sign_accepted(key, CLUSTER_ID, EpochNo(1), NodeNo(signer), at)


def promise(signer: int, regime: int, greatest: Place, digest: bytes = DIGEST) -> Promise:
    unsigned = Promise(
        1,
        signer,
        1,
        regime,
        2,
        0,
        DIGEST,
        0,
        DIGEST,
        greatest.regime,
        greatest.index,
        digest,
        [],
        UNSIGNED,
    )
    return sign_promise(key_of(f"n{signer}"), CLUSTER_ID, unsigned)
