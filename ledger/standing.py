"""The newest epoch, as far as the document of the next one repeats it."""

from collections.abc import Sequence
from typing import NamedTuple

from quipu.ledger.epochs import (
    EPOCH_VERSION,
    FORCED_VERSION,
    EpochDocument,
    Member,
    cluster_id_of,
    decode_document,
    decode_genesis,
    document_hash,
)
from quipu.ledger.words import GENESIS_EPOCH

FIRST_ATTEMPT = 1


class Standing(NamedTuple):
    """The newest epoch, as far as the next document repeats it."""

    cluster_id: bytes
    number: int
    hash: bytes
    policy: str
    members: tuple[Member, ...]
    streams_erasable: tuple[str, ...]
    cut_hlc: int

    @classmethod
    def of(cls, genesis_bytes: bytes, documents: Sequence[bytes]) -> "Standing":
        genesis, cluster_id = decode_genesis(genesis_bytes), cluster_id_of(genesis_bytes)
        members = tuple(
            Member(number, founder.node_id, founder.name, founder.roles)
            for number, founder in enumerate(genesis.members, start=1)
        )
        streams = tuple(genesis.streams_erasable)
        standing = cls(cluster_id, GENESIS_EPOCH, cluster_id, genesis.policy, members, streams, 0)
        for data in documents:
            standing = standing.after(data)
        return standing

    def after(self, data: bytes) -> "Standing":
        document = decode_document(data)
        return Standing(
            self.cluster_id,
            document.number,
            document_hash(data),
            document.policy,
            tuple(document.members),
            tuple(document.streams_erasable),
            max(self.cut_hlc, document.cut_hlc),
        )

    def next_document(self, forced: bool = False) -> EpochDocument:
        """The same roster once more; its cut is decided by the seals."""
        return EpochDocument(
            version=FORCED_VERSION if forced else EPOCH_VERSION,
            cluster_id=self.cluster_id,
            number=self.number + 1,
            previous=self.hash,
            attempt=FIRST_ATTEMPT,
            policy=self.policy,
            members=list(self.members),
            streams_erasable=list(self.streams_erasable),
            cut=[],
            cut_hlc=self.cut_hlc,
        )
