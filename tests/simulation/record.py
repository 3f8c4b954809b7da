"""The omniscient record: every event and receipt that any honest disk or any wire has carried.

It is the judge's own: ids, signatures, coverage and certificates are worked out here anew from
bytes. Of `ledger` it uses decoders and hashes alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from quipu.ledger import epochs as formats
from quipu.ledger.event import SignedEvent, Standing, decode_event, event_id, signed_part
from quipu.ledger.inv import Inv, decode_inv, has_valid_signature
from quipu.ledger.messages import PREFIX_BYTES
from quipu.ledger.refusals import Refused
from quipu.ledger.signing import Verifier
from quipu.ledger.words import EventId, NodeId

CordKey = tuple[int, int]  # author's number, journal
SlotKey = tuple[int, int, int]


def confirms_needed(policy: str, n: int) -> int:
    """MAX_CONFIRMS as seed and design say it, written down a second time."""
    named = {"majority": n // 2, "two-thirds": (2 * n) // 3, "all": n - 1}
    return named[policy] if policy in named else int(policy)


def seals_needed(policy: str, n: int) -> int:
    if policy == "two-thirds":
        return 2 * n // 3 + 1
    return max(n // 2 + 1, n - confirms_needed(policy, n))


@dataclass(slots=True)
class Roster:
    """One epoch as the judge knows it."""

    number: int
    policy: str
    members: dict[int, NodeId]
    confirms: int
    cut: dict[EventId, None] = field(default_factory=dict)  # all that this and older cuts hold
    document: bytes = b""
    cut_hlc: int = 0

    @property
    def borne(self) -> int:
        return (len(self.members) - 1) // 3 if self.policy == "two-thirds" else 0

    @property
    def seals(self) -> int:
        return seals_needed(self.policy, len(self.members))

    @property
    def witnesses(self) -> int:
        n = len(self.members)
        return min(n - 1, n - self.confirms + self.borne)


@dataclass(slots=True)
class KnownEvent:
    event: SignedEvent
    author_no: int
    seen_us: int
    covers: dict[int, dict[int, None]] = field(default_factory=dict)  # epoch -> signers

    @property
    def id(self) -> EventId:
        return self.event.id

    @property
    def cord(self) -> CordKey:
        return (self.author_no, self.event.header.journal)

    @property
    def slot(self) -> SlotKey:
        return (self.author_no, self.event.header.journal, self.event.header.seq)

    @property
    def ancestors(self) -> list[EventId]:
        """prev and parents; the first event of a journal has no prev."""
        header = self.event.header
        edges = [EventId(parent) for parent in header.parents]
        return edges if header.seq == 1 else [EventId(header.prev), *edges]


OnAcknowledged = Callable[[int, KnownEvent, Inv], None]


class Record:
    def __init__(self, genesis: bytes, verify: Verifier) -> None:
        self.verify = verify
        self.cluster_id = formats.cluster_id_of(genesis)
        self.numbers: dict[NodeId, int] = {}
        self.rosters: dict[int, Roster] = {}
        self.events: dict[EventId, KnownEvent] = {}
        self.prefixes: dict[bytes, EventId] = {}
        self.by_slot: dict[SlotKey, list[EventId]] = {}
        self.forked: dict[CordKey, int] = {}  # lowest seq with two ids
        self.invs: dict[bytes, Inv] = {}  # by id
        self.on_acknowledged: OnAcknowledged | None = None
        self._invs_by_bytes: dict[bytes, Inv | None] = {}
        self._pending: dict[EventId, list[tuple[int, Inv, CordKey, int]]] = {}
        first = formats.genesis_epoch(formats.decode_genesis(genesis))
        self._add_roster(
            Roster(1, first.policy, {int(no): key for no, key in first.members.items()}, 0), {}
        )

    def _add_roster(self, roster: Roster, cut: dict[EventId, None]) -> None:
        roster.confirms = confirms_needed(roster.policy, len(roster.members))
        roster.cut = cut
        self.rosters[roster.number] = roster
        for number, node_id in roster.members.items():
            self.numbers[node_id] = number

    @property
    def newest(self) -> Roster:
        return self.rosters[max(self.rosters)]

    # --- epochs ---------------------------------------------------------------------------------
    def add_epoch(self, document_bytes: bytes) -> Roster:
        document = formats.decode_document(document_bytes)
        cut = dict(self.newest.cut)
        for row in document.cut:
            for known in self.chain(EventId(row.id)):
                if known.id in cut:
                    break
                cut[known.id] = None
        members = {member.node_no: NodeId(member.node_id) for member in document.members}
        roster = Roster(document.number, document.policy, members, 0)
        roster.document, roster.cut_hlc = document_bytes, document.cut_hlc
        self._add_roster(roster, cut)
        return roster

    # --- events ---------------------------------------------------------------------------------
    def add_event(self, event: SignedEvent, now_us: int) -> str:
        """Takes an event as bytes; answers what is wrong with it by itself, or nothing."""
        known = self.events.get(event.id)
        if known is not None:
            if known.event.header_bytes != event.header_bytes or known.event.body != event.body:
                return "other bytes under a known id"
            return ""
        if event_id(event.header_bytes) != event.id:
            return "the id is not the hash of the header"
        try:
            again = decode_event(event.header_bytes, event.signature, event.body)
        except Refused as refusal:
            return f"not well-formed: {refusal}"
        header = again.header
        if header.cluster_id != self.cluster_id:
            return "of another cluster"
        is_spared = event.standing is Standing.SPARED  # judged at the end, where it is honest's
        if not is_spared and not self.verify(header.author, signed_part(event.id), event.signature):
            return "wrong signature"
        number = self.numbers.get(NodeId(header.author))
        if number is None:
            return "its author was never a member"
        self._keep(KnownEvent(again, number, now_us))
        return ""

    def _keep(self, known: KnownEvent) -> None:
        self.events[known.id] = known
        self.prefixes[known.id[:PREFIX_BYTES]] = known.id
        ids = self.by_slot.setdefault(known.slot, [])
        ids.append(known.id)
        if len(ids) == 2:
            seq = known.slot[2]
            self.forked[known.cord] = min(seq, self.forked.get(known.cord, seq))
        for signer, inv, cord, row_seq in self._pending.pop(known.id, []):
            if known.cord == cord and known.slot[2] == row_seq:
                self._cover(signer, inv, known.id)

    def chain(self, tip: EventId) -> Sequence[KnownEvent]:
        """The event and those below it in its cord, as far as they are known."""
        found: list[KnownEvent] = []
        known = self.events.get(tip)
        while known is not None:
            found.append(known)
            header = known.event.header
            known = self.events.get(EventId(header.prev)) if header.seq > 1 else None
        return found

    # --- receipts -------------------------------------------------------------------------------
    def read_inv(self, data: bytes) -> Inv | None:
        """A well-formed and truly signed receipt of this cluster, or None."""
        if data not in self._invs_by_bytes:
            try:
                inv = decode_inv(data)
                valid = inv.array.cluster_id == self.cluster_id
                valid = valid and has_valid_signature(inv, self.verify)
            except Refused:
                self._invs_by_bytes[data] = None
            else:
                self._invs_by_bytes[data] = inv if valid else None
        return self._invs_by_bytes[data]

    def add_inv(self, data: bytes) -> Inv | None:
        """Counts a receipt from now on; None where it is not one."""
        inv = self.read_inv(data)
        if inv is None or inv.id in self.invs:
            return inv
        signer = self.numbers.get(inv.signer)
        if signer is None:
            return None
        self.invs[inv.id] = inv
        for row in inv.rows:
            identity, cord = EventId(row.id), (row.author_no, row.journal)
            known = self.events.get(identity)
            if known is None:
                self._pending.setdefault(identity, []).append((signer, inv, cord, row.seq))
            elif known.cord == cord and known.slot[2] == row.seq:
                self._cover(signer, inv, identity)
        return inv

    def _cover(self, signer: int, inv: Inv, tip: EventId) -> None:
        epoch = inv.array.epoch
        known = self.events.get(tip)
        while known is not None:
            signers = known.covers.setdefault(epoch, {})
            if signer in signers:
                return
            signers[signer] = None
            if self.on_acknowledged is not None:
                self.on_acknowledged(signer, known, inv)
            header = known.event.header
            if header.seq == 1:
                return
            prev = EventId(header.prev)
            known = self.events.get(prev)
            if known is None:
                row = (signer, inv, (self.numbers[NodeId(header.author)], header.journal))
                self._pending.setdefault(prev, []).append((*row, header.seq - 1))

    def signers_of(self, known: KnownEvent, epoch: int) -> list[int]:
        """Members of an epoch whose receipts of that epoch cover the event."""
        roster = self.rosters.get(epoch)
        if roster is None:
            return []
        return [signer for signer in known.covers.get(epoch, {}) if signer in roster.members]

    def certificate(self, known: KnownEvent, newest_epoch: int) -> int | None:
        """The epoch of a certificate that counts at a node that has opened `newest_epoch`."""
        for epoch in known.covers:
            if not known.event.header.epoch <= epoch <= newest_epoch or epoch not in self.rosters:
                continue
            signers = self.signers_of(known, epoch)
            others = [signer for signer in signers if signer != known.author_no]
            if len(signers) > len(others) >= self.rosters[epoch].confirms:
                return epoch
        return None
