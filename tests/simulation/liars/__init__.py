"""Liars: each owns a real key of the roster and speaks the real formats."""

from tests.simulation.liars.authors import (
    AncientOrHuge,
    Baiter,
    Brancher,
    DeepEquivocator,
    EdgeCheat,
    Equivocator,
    Forger,
    FutureDater,
    OrphanFlooder,
    Outsider,
    Withholder,
    WrongCluster,
)
from tests.simulation.liars.base import Liar
from tests.simulation.liars.signers import (
    DoubleSigner,
    GhostReceipts,
    PrematureEpoch,
    ReceiptFlooder,
    ReceiptForger,
    SilentMember,
)
from tests.simulation.liars.talkers import (
    Babbler,
    GhostAnnouncer,
    Replayer,
    RequestFlooder,
    SignatureJunker,
    SyncLiar,
)

LIARS: tuple[type[Liar], ...] = (
    Equivocator,
    DeepEquivocator,
    Withholder,
    AncientOrHuge,
    Forger,
    FutureDater,
    EdgeCheat,
    OrphanFlooder,
    Brancher,
    Outsider,
    WrongCluster,
    ReceiptForger,
    ReceiptFlooder,
    DoubleSigner,
    PrematureEpoch,
    SilentMember,
    GhostReceipts,
    Replayer,
    GhostAnnouncer,
    SyncLiar,
    RequestFlooder,
    SignatureJunker,
    Babbler,
)

__all__ = ["LIARS", "Baiter", "Liar"]
