"""A disk that can lose power: the in-memory twin of the real store, and what the judge reads there.

What is written counts once it is synced. The core reads the past from the same store.
"""

from __future__ import annotations

from quipu.ledger.effects import Durable, PutOwnState
from quipu.ledger.history import BranchRecord, History, Saved
from quipu.ledger.words import BranchKey, EpochNo, NodeNo
from quipu.storage.memory_store import Image, MemoryStore
from quipu.storage.store import Owner


class SimDisk:
    def __init__(self, owner: Owner) -> None:
        self._store = MemoryStore(owner)

    # --- the store ------------------------------------------------------------------------------
    @property
    def history(self) -> History:
        return self._store

    def write(self, durable: list[Durable]) -> None:
        self._store.write(durable)

    def sync(self) -> None:
        self._store.sync()

    def crash(self) -> None:
        self._store = self._store.crash()

    def image(self) -> Image:
        return self._store.image()

    @classmethod
    def from_image(cls, image: Image) -> SimDisk:
        disk = cls(image.owner)
        disk._store = MemoryStore.from_image(image)
        return disk

    def saved(self) -> Saved:
        return self._store.saved()

    # --- for the judge, the registrar and the liars ---------------------------------------------
    @property
    def own_state(self) -> PutOwnState | None:
        return self._store._open().own.get("own")

    @property
    def is_recovering(self) -> bool:
        return self.own_state is not None and self.own_state.recovering

    @property
    def newest_epoch(self) -> int:
        return max(self._store._open().epochs, default=EpochNo(1))

    @property
    def proofs(self) -> list[bytes]:
        return sorted(self._store._open().proofs.values())

    @property
    def branches(self) -> dict[BranchKey, BranchRecord]:
        return self._store._open().branches

    @property
    def newest_invs(self) -> dict[NodeNo, bytes]:
        """The newest receipt kept of each signer."""
        tables = self._store._open()
        return {
            signer: tables.invs[signer, numbers[-1]]
            for signer, numbers in tables.inv_numbers.items()
            if numbers
        }
