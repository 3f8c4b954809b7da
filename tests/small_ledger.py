"""A ledger small enough to write by hand: it makes signed things, and is the `History` of them.

It decides nothing. What members say is what the test lets them say, true or not.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256

from quipu.ledger.bundle_build import Lineage
from quipu.ledger.canonical import encode
from quipu.ledger.entry import data_entry, encode_entry
from quipu.ledger.epochs import (
    CutRow,
    Epoch,
    EpochDocument,
    Epochs,
    Founder,
    Genesis,
    Member,
    close_hash,
    cluster_id_of,
)
from quipu.ledger.event import EventMeta, Place, SignedEvent, build_event, meta_of
from quipu.ledger.history import Held
from quipu.ledger.inv import Inv, build_inv
from quipu.ledger.messages import bytes_of
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import (
    Cord,
    EpochNo,
    EventId,
    Hlc,
    InvNumber,
    Journal,
    NodeId,
    NodeNo,
    Seq,
    Slot,
    hlc_at,
)

START_MS = 1_790_000_000_000
JOURNAL = Journal(START_MS << 20 | 7)


def key_of(name: str) -> KeyPair:
    return KeyPair.from_seed(seed_of(name))


def seed_of(name: str) -> bytes:
    return sha256(b"quipu test key " + name.encode()).digest()


def entry_bytes(text: str) -> bytes:
    return encode_entry(data_entry(text.encode(), stream="orders"))


class SmallLedger:
    """Node number i is `n<i>`, for ever; time moves one millisecond with every thing made."""

    def __init__(self, members: int = 3, policy: str = "majority", name: str = "small") -> None:
        founders = [
            Founder(key_of(f"n{i}").node_id, f"n{i}", ["member"]) for i in range(1, members + 1)
        ]
        self.genesis = encode(Genesis(1, name, START_MS, policy, founders, bytes(range(16)), []))
        self.cluster_id = cluster_id_of(self.genesis)
        self.epochs = Epochs.from_genesis(self.genesis)
        self.documents: list[tuple[bytes, tuple[bytes, ...]]] = []
        self.events: dict[EventId, SignedEvent] = {}
        self.metas: dict[EventId, EventMeta] = {}
        self.slots: dict[Slot, EventId] = {}
        self.tips: dict[Cord, SignedEvent] = {}
        self.invs: dict[NodeNo, dict[InvNumber, bytes]] = {}
        self.now_ms = START_MS

    @property
    def epoch(self) -> Epoch:
        return self.epochs.newest

    @property
    def lineage(self) -> Lineage:
        return Lineage.of(self.genesis, self.documents)

    def write(
        self,
        author_no: int,
        texts: Sequence[str] = ("one",),
        prev: SignedEvent | None = None,
        parents: Sequence[SignedEvent] = (),
        journal: int = JOURNAL,
    ) -> SignedEvent:
        """The next event of a cord; with `prev`, another branch of it."""
        entries = [entry_bytes(text) for text in texts]
        return self.write_raw(author_no, entries, prev, parents, journal)

    def write_raw(
        self,
        author_no: int,
        entries: Sequence[bytes],
        prev: SignedEvent | None = None,
        parents: Sequence[SignedEvent] = (),
        journal: int = JOURNAL,
    ) -> SignedEvent:
        """The same with entries that may be none."""
        cord = Cord(NodeNo(author_no), Journal(journal))
        before = prev or self.tips.get(cord)
        below = [event.header for event in (before, *parents) if event is not None]
        self.now_ms += 1
        place = Place(
            cluster_id=self.cluster_id,
            epoch=self.epoch.number,
            cord=cord,
            seq=Seq(before.header.seq + 1 if before else 1),
            prev=before.id if before else EventId(self.cluster_id),
            parents=tuple(sorted(event.id for event in parents)),
            hlc=Hlc(max([hlc_at(self.now_ms), *(header.hlc + 1 for header in below)])),
            depth=1 + max([0, *(header.depth for header in below)]),
        )
        event = build_event(key_of(f"n{author_no}"), place, entries)
        self._keep(event, cord)
        return event

    def _keep(self, event: SignedEvent, cord: Cord) -> None:
        branch = 0
        while Slot(*cord, Seq(event.header.seq), branch) in self.slots:
            branch += 1
        meta = meta_of(event, cord.author_no, branch)
        self.events[event.id] = event
        self.metas[event.id] = meta
        self.slots[meta.slot] = event.id
        self.tips[cord] = event

    def cord_of(self, event: SignedEvent) -> Cord:
        return self.metas[event.id].branch.cord

    def sign(
        self,
        signer_no: int,
        *tips: SignedEvent,
        epoch: int | None = None,
        close: bytes | None = None,
    ) -> Inv:
        """A receipt over these events, kept like one that came in."""
        self.now_ms += 1
        rows = sorted((self.cord_of(tip), Seq(tip.header.seq), tip.id) for tip in tips)
        inv = build_inv(
            key_of(f"n{signer_no}"),
            self.cluster_id,
            EpochNo(epoch or self.epoch.number),
            InvNumber(hlc_at(self.now_ms)),
            rows,
            close,
        )
        self.invs.setdefault(NodeNo(signer_no), {})[inv.number] = inv.data
        return inv

    def document(
        self, members: Sequence[int], policy: str, cut: Sequence[SignedEvent] = ()
    ) -> EpochDocument:
        """The next epoch document, not opened yet."""
        rows = sorted((*self.cord_of(event), event.header.seq, event.id) for event in cut)
        return EpochDocument(
            version=1,
            cluster_id=self.cluster_id,
            number=self.epoch.number + 1,
            previous=self.epochs.newest_hash,
            attempt=1,
            policy=policy,
            members=[Member(i, key_of(f"n{i}").node_id, f"n{i}", ["member"]) for i in members],
            streams_erasable=["gdpr"],
            cut=[CutRow(*row) for row in rows],
            cut_hlc=max([0, *(event.header.hlc for event in cut)]),
        )

    def seal(self, document: EpochDocument, sealers: Sequence[int]) -> tuple[bytes, ...]:
        """Seals of these members over all tips."""
        close = close_hash(document)
        return tuple(self.sign(i, *self.tips.values(), close=close).data for i in sealers)

    def open(self, document: EpochDocument, seals: tuple[bytes, ...]) -> None:
        data = encode(document)
        self.epochs.open(data)
        self.documents.append((data, seals))

    # --- History --------------------------------------------------------------------------------
    def meta(self, identity: EventId) -> EventMeta | None:
        return self.metas.get(identity)

    def meta_by_prefix(self, prefix: bytes) -> EventMeta | None:
        return next((m for i, m in self.metas.items() if i.startswith(prefix)), None)

    def id_at(self, slot: Slot) -> EventId | None:
        return self.slots.get(slot)

    def event(self, identity: EventId) -> SignedEvent | None:
        return self.events.get(identity)

    def run(self, first: Slot, last: Seq, bytes_max: int) -> list[Held]:
        slots = (first._replace(seq=Seq(seq)) for seq in range(first.seq, last + 1))
        events = [self.events[self.slots[slot]] for slot in slots if slot in self.slots]
        return [
            Held(first.branch, Seq(e.header.seq), e.id, Hlc(e.header.hlc), e.size, bytes_of(e))
            for e in events
        ]

    def metas_from(self, first: Slot, last: Seq, count_max: int) -> list[EventMeta]:
        held = self.run(first, last, 0)
        return [self.metas[one.id] for one in held[:count_max]]

    def inv(self, signer_no: NodeNo, number: InvNumber) -> bytes | None:
        return self.invs.get(signer_no, {}).get(number)

    def epoch_document(self, number: EpochNo) -> tuple[bytes, tuple[bytes, ...]] | None:
        return dict(enumerate(self.documents, start=2)).get(number)

    def invs_from(self, signer_no: NodeNo, number: InvNumber) -> Iterable[bytes]:
        kept = self.invs.get(signer_no, {})
        return (kept[at] for at in sorted(kept) if at >= number)


def node_id(number: int) -> NodeId:
    return key_of(f"n{number}").node_id
