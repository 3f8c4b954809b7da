"""The epoch that is coming: who is ready for it, who holds its cut, who says that it has begun.

Decides what this node says of an epoch that is not open here (DESIGN section 5): READY, receipts
over a cut that was offered, and whose word on an opened epoch it takes. It opens nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from quipu.ledger import limits, lone_epochs, quorum
from quipu.ledger.confirmer import Confirmer, Grounds
from quipu.ledger.effects import PutOverruling, StoreInv
from quipu.ledger.epochs import Epoch, EpochDocument, close_hash, decode_document
from quipu.ledger.fetch import Fetch
from quipu.ledger.inputs import EpochOffered, ReadyAsked
from quipu.ledger.inv import Inv
from quipu.ledger.known import Known
from quipu.ledger.messages import EpochOffer, InvMessage, ReadyMessage, ReadyWant
from quipu.ledger.ready import check_ready, sign_ready
from quipu.ledger.recovery import Recovery
from quipu.ledger.refusals import Refused
from quipu.ledger.seals import are_enough, read_seals
from quipu.ledger.sync import Sync
from quipu.ledger.turn import Turn
from quipu.ledger.words import HLC_SHIFT, Cord, EventId, NodeId

SealedBytes = tuple[bytes, tuple[bytes, ...]]  # an epoch document and its seals


@dataclass(slots=True)
class Coming:
    """Invariant: a member of the epoch that ends has sealed it before it signs in the next one."""

    known: Known
    confirmer: Confirmer
    fetch: Fetch
    sync: Sync
    recovery: Recovery
    readies: dict[NodeId, bytes] = field(default_factory=dict)  # of those that were asked
    own: Inv | None = None  # over the cut that is on offer
    overruling: SealedBytes | None = None  # the next epoch, opened by force without this node
    _asked: tuple[NodeId, ...] = ()
    _offer: tuple[bytes, EpochDocument] | None = None
    _vouchers: dict[bytes, dict[NodeId, None]] = field(default_factory=dict)

    def opened(self) -> None:
        """All of this was about the epoch that is open now."""
        self.own, self._offer, self.known.coming = None, None, None
        self.readies.clear()
        self._vouchers.clear()
        self.overruling = None
        self.confirmer.recall_numbers(self.known.me)

    def take(self, given: EpochOffered | ReadyAsked, turn: Turn) -> None:
        match given:
            case EpochOffered(document, seals):
                try:
                    self.offered(document, seals, self.known.node_id, turn)
                except Refused as refusal:
                    turn.refuse(self.known.node_id, refusal)
            case ReadyAsked(nodes):
                self.ask(nodes, turn)

    # --- READY ----------------------------------------------------------------------------------
    def ask(self, nodes: tuple[NodeId, ...], turn: Turn) -> None:
        self._asked = nodes
        number = self.known.epochs.newest.number + 1
        for node in nodes:
            if node in self.sync.views:
                turn.send(node, ReadyWant(number))
        if self.known.node_id in nodes:
            self._note_ready(self.known.node_id, self._ready(number, turn))

    def hear(
        self, message: EpochOffer | ReadyWant | ReadyMessage, peer: NodeId, turn: Turn
    ) -> None:
        number = self.known.epochs.newest.number + 1
        match message:
            case EpochOffer(document, seals):
                self.offered(document, seals, peer, turn)
            case ReadyWant(asked):
                own = self._ready(number, turn) if asked == number else None
                if own is not None:
                    turn.send(peer, ReadyMessage(own))
            case ReadyMessage(statement):
                ready = check_ready(statement, self.known.cluster_id, self.known.verify)
                if ready.signer == peer and ready.epoch == number:
                    self._note_ready(peer, statement)

    def _note_ready(self, node: NodeId, statement: bytes | None) -> None:
        if node in self._asked and statement is not None:
            self.readies[node] = statement

    def _ready(self, number: int, turn: Turn) -> bytes | None:
        if not self.recovery.may_sign or self._lacking() > limits.READY_EVENTS_LACKING_MAX:
            return None
        at_ms = turn.cluster_now >> HLC_SHIFT
        return sign_ready(self.known.key, self.known.cluster_id, number, at_ms)

    def _lacking(self) -> int:
        """Events that peers have shown and that are not held here."""
        newest, heard = self.known.epochs.newest, False
        highest: dict[Cord, int] = {}
        for cord, seq in self.known.cut_wanted.values():
            highest[cord] = max(highest.get(cord, 0), seq)
        for peer, view in self.sync.views.items():
            heard |= peer in newest.numbers and view.heard > 0
            for cord, rows in view.rows.items():
                highest[cord] = max(highest.get(cord, 0), *(row.seq for row in rows))
        if not heard and list(newest.numbers) != [self.known.node_id]:
            return limits.READY_EVENTS_LACKING_MAX + 1
        return sum(max(0, seq - self._held_seq(cord)) for cord, seq in highest.items())

    def _held_seq(self, cord: Cord) -> int:
        return max((r.held_seq for r in self.known.dag.cords.get(cord, ())), default=0)

    # --- a cut on offer -------------------------------------------------------------------------
    def offered(self, data: bytes, seals: Sequence[bytes], peer: NodeId, turn: Turn) -> None:
        """The master has computed this cut. Said again: offer or answer may have been lost."""
        if self._offer is None or self._offer[0] != data:
            self._take_offer(data, seals, peer, turn)
        elif self.own is not None and peer in self.sync.views:
            turn.send(peer, InvMessage(self.own.data))
        if peer == self.known.node_id and self.known.coming is not None:
            others = [m for m in self.known.coming.numbers if m in self.sync.views]
            turn.send_all(others, EpochOffer(data, list(seals)))

    def _take_offer(self, data: bytes, seals: Sequence[bytes], peer: NodeId, turn: Turn) -> None:
        newest, document = self.known.epochs.newest, decode_document(data)
        if document.number != newest.number + 1:
            return
        sealed = read_seals(document, seals, newest, self.known.cluster_id, self.known.verify)
        if peer != self.known.node_id and not are_enough(len(sealed), newest):
            return
        own_seal_missing = self.confirmer.sealed != close_hash(document)
        if self.known.me in newest.members and own_seal_missing:
            return
        self._offer, self.own = (data, document), None
        self.known.coming = Epoch.of(document.number, document.policy, document.members)
        for row in document.cut:
            if self.known.past.meta(EventId(row.id)) is None:
                self.fetch.want(EventId(row.id), peer, turn.now.monotonic_ms)

    def settle(self, turn: Turn) -> None:
        """One receipt of the coming epoch, once the whole cut is held and due."""
        coming = self.known.coming
        if coming is None or self._offer is None or self.own is not None:
            return
        me = coming.numbers.get(self.known.node_id)
        ends = [self.known.past.meta(EventId(row.id)) for row in self._offer[1].cut]
        held = [meta for meta in ends if meta is not None and meta.hlc <= turn.due_until]
        if me is None or not self.recovery.may_sign or len(held) < len(ends):
            return
        self.own = self.confirmer.cover(held, Grounds(me, coming, turn.due_until, turn.now))
        turn.keep(StoreInv(me, self.own, False))
        turn.send_all(list(self.sync.views), InvMessage(self.own.data))

    # --- the word of peers ----------------------------------------------------------------------
    def is_vouched(self, data: bytes, seals: list[bytes], peer: NodeId, turn: Turn) -> bool:
        """Whether so many members tell of this next epoch that one of them does not lie. Members
        have it from their log; who is none, or was away too long, from them."""
        newest = self.known.epochs.newest
        if len(newest.members) == 1:
            return lone_epochs.is_next(self.known, data, seals)
        document = decode_document(data)
        if document.number != newest.number + 1:
            return False
        sealed = read_seals(document, seals, newest, self.known.cluster_id, self.known.verify)
        if not are_enough(len(sealed), newest):
            return self._is_force_followed((data, tuple(seals)), len(sealed), turn)
        members = [member.node_id for member in document.members]
        if peer not in newest.numbers and peer not in members:
            return False
        vouchers = self._vouchers.setdefault(data, {})
        vouchers[peer] = None
        return len(vouchers) > quorum.liars_borne(newest.policy, len(newest.members))

    # --- force ----------------------------------------------------------------------------------
    def _is_force_followed(self, forced: SealedBytes, sealed: int, turn: Turn) -> bool:
        """Who is no member has nothing to lose by it and goes along. A member never does without
        its operator's word; it notes that the others went on, and stands still: with what it could
        still do, together with others that were away, the cluster would become two."""
        newest = self.known.epochs.newest
        if self.known.me not in newest.members:
            return True
        if self.overruling is None:
            self.overruling = forced
            turn.keep(PutOverruling(*forced))
        borne = quorum.liars_borne(newest.policy, len(newest.members))
        self.recovery.is_overruled |= sealed > borne  # as a lie it could be told by so many
        return False

    def recall(self, forced: SealedBytes | None) -> None:
        """After a start."""
        self.overruling = forced
        if forced is not None:
            newest = self.known.epochs.newest
            borne = quorum.liars_borne(newest.policy, len(newest.members))
            self.recovery.is_overruled = len(forced[1]) > borne
