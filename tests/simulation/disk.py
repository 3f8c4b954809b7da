"""A disk that can lose power: what is written counts once it is synced.

It keeps the contract of the real store (History and `saved`) in dicts.
"""

from collections.abc import Iterable

from quipu.ledger.effects import (
    AppendFeed,
    Durable,
    PutBranch,
    PutOwnState,
    StoreEpoch,
    StoreEvent,
    StoreInv,
    StoreProof,
)
from quipu.ledger.event import EventMeta, SignedEvent
from quipu.ledger.evidence import Conviction
from quipu.ledger.history import BranchRecord, Saved, SignerRecord
from quipu.ledger.messages import PREFIX_BYTES
from quipu.ledger.words import BranchKey, EpochNo, EventId, InvNumber, Journal, NodeNo, Slot


class SimDisk:
    """Invariant: the dicts hold what was synced; `_written` is what a power loss takes."""

    def __init__(self) -> None:
        self.events: dict[EventId, tuple[SignedEvent, EventMeta]] = {}
        self.slots: dict[Slot, EventId] = {}
        self.prefixes: dict[bytes, EventId] = {}
        self.branches: dict[BranchKey, BranchRecord] = {}
        self.feed: list[EventId] = []
        self.invs: dict[NodeNo, dict[InvNumber, bytes]] = {}
        self.signers: dict[NodeNo, SignerRecord] = {}
        self.proofs: dict[tuple[bytes, bool], Conviction] = {}
        self.epochs: dict[EpochNo, tuple[bytes, tuple[bytes, ...]]] = {}
        self.own_state: PutOwnState | None = None
        self._written: list[Durable] = []

    # --- the store ------------------------------------------------------------------------------
    def write(self, durable: list[Durable]) -> None:
        self._written.extend(
            PutBranch(effect.record.copy()) if isinstance(effect, PutBranch) else effect
            for effect in durable
        )

    def sync(self) -> None:
        for effect in self._written:
            self._apply(effect)
        self._written = []

    def crash(self) -> None:
        self._written = []

    def _apply(self, effect: Durable) -> None:
        match effect:
            case StoreEvent(event, meta):
                self.events[event.id] = (event, meta)
                self.slots[meta.slot] = event.id
                self.prefixes[event.id[:PREFIX_BYTES]] = event.id
            case PutBranch(record):
                self.branches[record.key] = record
            case AppendFeed(ids):
                self.feed.extend(ids)
            case StoreInv(signer_no, inv, newest):
                kept = self.invs.setdefault(signer_no, {})
                kept[inv.number] = inv.data
                if newest:
                    self.signers[signer_no] = SignerRecord(
                        signer_no, inv.number, inv.id, inv.epoch, inv.array.close or b""
                    )
            case StoreProof(conviction):
                self.proofs[(conviction.culprit, conviction.as_signer)] = conviction
            case StoreEpoch(number, document, seals):
                self.epochs[number] = (document, seals)
            case PutOwnState():
                self.own_state = effect

    def image(self) -> "SimDisk":
        """A copy of what is synced: a backup, or a clone of the directory."""
        copy = SimDisk()
        copy.events = dict(self.events)
        copy.slots = dict(self.slots)
        copy.prefixes = dict(self.prefixes)
        copy.branches = {key: record.copy() for key, record in self.branches.items()}
        copy.feed = list(self.feed)
        copy.invs = {signer: dict(invs) for signer, invs in self.invs.items()}
        copy.signers = dict(self.signers)
        copy.proofs = dict(self.proofs)
        copy.epochs = dict(self.epochs)
        copy.own_state = self.own_state
        return copy

    def saved(self) -> Saved:
        own = self.own_state
        return Saved(
            branches=[record.copy() for record in self.branches.values()],
            signers=list(self.signers.values()),
            epochs=[self.epochs[number] for number in sorted(self.epochs)],
            proofs=[conviction.data for conviction in self.proofs.values()],
            newest_journal_own=own.newest_journal if own else Journal(0),
            recovering=own.recovering if own else False,
        )

    # --- History --------------------------------------------------------------------------------
    def meta(self, identity: EventId) -> EventMeta | None:
        found = self.events.get(identity)
        return found[1] if found else None

    def meta_by_prefix(self, prefix: bytes) -> EventMeta | None:
        identity = self.prefixes.get(prefix)
        return self.meta(identity) if identity is not None else None

    def id_at(self, slot: Slot) -> EventId | None:
        return self.slots.get(slot)

    def event(self, identity: EventId) -> SignedEvent | None:
        found = self.events.get(identity)
        return found[0] if found else None

    def inv(self, signer_no: NodeNo, number: InvNumber) -> bytes | None:
        return self.invs.get(signer_no, {}).get(number)

    def invs_from(self, signer_no: NodeNo, number: InvNumber) -> Iterable[bytes]:
        kept = self.invs.get(signer_no, {})
        return [kept[key] for key in sorted(kept) if key >= number]
