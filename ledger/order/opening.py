"""The master's way from CLOSE to OPEN: seals, the cut, receipts over it (DESIGN section 5).

Decides which seals are used and when. All of it is found again from what the core keeps, so a new
master goes on where the one before it ended.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from quipu.ledger import limits, quorum
from quipu.ledger.canonical import encode
from quipu.ledger.core import Core
from quipu.ledger.epochs import Epoch, EpochDocument
from quipu.ledger.history import BranchRecord
from quipu.ledger.inv import Inv, decode_inv
from quipu.ledger.order.changes import Open, encode_change
from quipu.ledger.order.cut import Cut, CutTerms, compute_cut, unresolved
from quipu.ledger.order.roster import Pending
from quipu.ledger.order.roster_gate import covers
from quipu.ledger.order.safeguards import RosterSafeguards
from quipu.ledger.words import Cord, EpochNo, EventId, InvNumber, NodeNo, Seq


@dataclass(frozen=True, slots=True)
class Offer:
    """A cut that was computed, and what it is a function of."""

    close: bytes
    at_ms: int  # monotonic
    document: EpochDocument
    data: bytes
    terms: CutTerms
    proofs: tuple[bytes, ...]

    @property
    def seals(self) -> tuple[bytes, ...]:
        return tuple(seal.data for _, seal in sorted(self.terms.seals.items()))

    def item(self, invs: list[bytes]) -> bytes:
        return encode_change(
            Open(
                self.data,
                list(self.seals),
                self.terms.due_ms,
                list(self.proofs),
                [inv.data for _, inv in self.terms.receipts],
                invs,
            )
        )


class Opening:
    def __init__(self, core: Core, guards: RosterSafeguards) -> None:
        self._core, self._known, self._guards = core, core.known, guards
        self._enough_ms: tuple[bytes, int] = (b"", 0)  # since when there are seals enough
        self.offer: Offer | None = None

    # --- the cut --------------------------------------------------------------------------------
    def prepare(
        self, pending: Pending, live: frozenset[NodeNo], now_ms: int, cluster_now_ms: int
    ) -> Offer | None:
        """The cut to be offered; a new one where the one before has found no receipts."""
        epoch, offer = self._known.epochs.newest, self.offer
        if epoch.number != pending.document.number - 1 or self._known.cut_wanted:
            return None
        is_same = offer is not None and offer.close == pending.close
        if offer is not None and is_same and now_ms < offer.at_ms + limits.OFFER_MS:
            return offer
        seals = self.sealed(pending.close, epoch)
        usable = self._usable(seals, epoch)
        # By force the one who is left goes on with what it sealed itself.
        enough = self._known.me in usable if pending.document.forced else False
        enough = enough and len(pending.document.members) == 1
        if not (enough or self._is_enough(pending.close, (len(seals), usable), live, now_ms)):
            return self.offer
        terms = CutTerms(epoch, usable, cluster_now_ms + limits.OPEN_DUE_AHEAD_MS)
        self.offer = self._computed(pending, terms, now_ms)
        return self.offer

    def sealed(self, close: bytes, epoch: Epoch) -> dict[NodeNo, Inv]:
        found: dict[NodeNo, Inv] = {}
        for number in sorted(epoch.members):
            record = self._known.receipts.newest.get(number)
            data = self._known.past.inv(number, record.number) if record else None
            seal = decode_inv(data) if data is not None else None
            if seal is not None and (seal.array.close, seal.epoch) == (close, epoch.number):
                found[number] = seal
        return found

    def _usable(self, seals: Mapping[NodeNo, Inv], epoch: Epoch) -> dict[NodeNo, Inv]:
        if not self._guards.rows_wait:
            return dict(seals)
        return {n: seal for n, seal in seals.items() if not unresolved([seal], epoch, self._known)}

    def _is_enough(
        self,
        close: bytes,
        found: tuple[int, dict[NodeNo, Inv]],
        live: frozenset[NodeNo],
        now_ms: int,
    ) -> bool:
        """A little is waited for those who answer, and longer for what a seal names."""
        (count, usable), epoch = found, self._known.epochs.newest
        if len(usable) < quorum.seals_needed(epoch.policy, len(epoch.members)):
            return False
        if self._enough_ms[0] != close:
            self._enough_ms = (close, now_ms)
        waited_ms = now_ms - self._enough_ms[1]
        if count > len(usable):
            return waited_ms >= limits.SEAL_FETCH_MS
        answering = [number for number in epoch.members if number in live]
        return waited_ms >= limits.ROSTER_PACE_MS or all(n in usable for n in answering)

    def _computed(self, pending: Pending, terms: CutTerms, now_ms: int) -> Offer:
        proofs = self._proofs(terms)
        terms = CutTerms(terms.epoch, terms.seals, terms.due_ms, self._forks(proofs))
        cut = compute_cut(terms, self._known, self._guards)
        receipts = self._certificates(terms, cut)
        if receipts:
            terms = CutTerms(terms.epoch, terms.seals, terms.due_ms, terms.forks, receipts)
            cut = compute_cut(terms, self._known, self._guards)
        document = msgspec.structs.replace(pending.document, cut=list(cut.rows), cut_hlc=cut.hlc)
        return Offer(pending.close, now_ms, document, encode(document), terms, proofs)

    def _proofs(self, terms: CutTerms) -> tuple[bytes, ...]:
        """Of authors of that epoch who forked a cord."""
        return tuple(
            held.data
            for held in self._known.convictions.all()
            if not held.as_signer and held.culprit in terms.epoch.numbers
        )

    def _forks(self, proofs: tuple[bytes, ...]) -> dict[Cord, Seq]:
        numbers = self._known.epochs.node_numbers
        return {
            Cord(numbers[held.culprit], held.journal): held.seq
            for held in self._known.convictions.all()
            if held.data in proofs
        }

    def _certificates(self, terms: CutTerms, cut: Cut) -> tuple[tuple[NodeNo, Inv], ...]:
        """What completes the seals to certificates of what is Read and that they alone leave out;
        receipts of which all is held."""
        seqs = {(row.author_no, row.journal): row.seq for row in cut.rows}
        found: dict[tuple[NodeNo, InvNumber], Inv] = {}
        for key, record in sorted(self._known.dag.branches.items()):
            forked = len(self._known.dag.cords[key.cord]) > 1 or key.cord in terms.forks
            in_cut = 0 if forked else seqs.get(key.cord, 0)
            if record.read_seq > max(record.cut_seq, record.base_seq, in_cut):
                found.update(self._beside_seals(record, terms))
        whole = [
            (signer, inv)
            for (signer, _), inv in sorted(found.items())
            if not unresolved([inv], terms.epoch, self._known)
        ]
        return tuple(whole[: limits.OPEN_RECEIPTS_MAX])

    def _beside_seals(
        self, record: BranchRecord, terms: CutTerms
    ) -> Iterator[tuple[tuple[NodeNo, InvNumber], Inv]]:
        known, epoch = self._known, terms.epoch
        for signer, (seq, number) in sorted(record.receipts.items()):
            if signer not in epoch.members or self._seals(terms.seals.get(signer), record, seq):
                continue
            data = known.past.inv(signer, number)
            inv = decode_inv(data) if data is not None else None
            if inv is not None and inv.epoch == epoch.number:
                yield (signer, number), inv

    def _seals(self, seal: Inv | None, record: BranchRecord, seq: Seq) -> bool:
        """Whether a seal says of this branch what another receipt says."""
        for row in () if seal is None else seal.rows:
            if row.cord == record.key.cord and row.seq >= seq:
                meta = self._known.past.meta(EventId(row.id))
                return meta is not None and meta.branch == record.key
        return False

    # --- receipts over it -----------------------------------------------------------------------
    def holders(self, offer: Offer) -> list[bytes] | None:
        """Receipts of the next epoch over its cut; None: not enough of them yet."""
        number = EpochNo(offer.document.number)
        members = {member.node_id for member in offer.document.members}
        found = {inv.signer: inv for _, inv in self._known.receipts.of_coming(number)}
        if self._core.coming.own is not None:
            found[self._known.node_id] = self._core.coming.own
        invs = [
            inv.data
            for signer, inv in sorted(found.items())
            if signer in members and covers(inv, offer.document, self._known)
        ]
        needed = quorum.max_confirms(offer.document.policy, len(members)) + 1
        if self._guards.cut_held_first and len(invs) < needed:
            return None
        return invs
