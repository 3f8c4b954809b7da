"""Who has been proven to have signed twice, as author or as signer. Of several proofs against one
node in one role the least is kept, so that all honest nodes end with the same.
"""

from collections.abc import Iterable
from hashlib import sha256

from quipu.ledger.evidence import Conviction
from quipu.ledger.messages import PREFIX_BYTES
from quipu.ledger.words import NodeId

NO_PROOFS = bytes(PREFIX_BYTES)


class Convictions:
    def __init__(self, held: Iterable[Conviction]) -> None:
        self._held: dict[tuple[NodeId, bool], Conviction] = {}
        self._digest = NO_PROOFS
        for conviction in held:
            self.take(conviction)

    def take(self, conviction: Conviction) -> bool:
        """Whether this is news: the first of that culprit and role, or a lesser one."""
        key = (conviction.culprit, conviction.as_signer)
        known = self._held.get(key)
        if known is not None and known.rank <= conviction.rank:
            return False
        self._held[key] = conviction
        proven = sha256()
        for _, held in sorted(self._held.items()):
            proven.update(sha256(held.data).digest())
        self._digest = proven.digest()[:PREFIX_BYTES]
        return True

    @property
    def digest(self) -> bytes:
        return self._digest

    def all(self) -> list[Conviction]:
        return [conviction for _, conviction in sorted(self._held.items())]

    def of_author(self, author: NodeId) -> Conviction | None:
        return self._held.get((author, False))

    def of_signer(self, signer: NodeId) -> Conviction | None:
        return self._held.get((signer, True))
