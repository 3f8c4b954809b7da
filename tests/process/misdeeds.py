"""What a node without manners does, by name: the table of `badnode`.

Each has the property that it attacks, and the word under which the attacked node counts it. Those
of a stranger are done with the cluster's secret and a key of no member; those of a thief with the
key of a member.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import time

import msgspec

from quipu.ledger import limits
from quipu.ledger.canonical import encode
from quipu.ledger.entry import data_entry, encode_entry
from quipu.ledger.event import Place, SignedEvent, build_event, event_id, signed_part
from quipu.ledger.evidence import prove_author
from quipu.ledger.inv import Inv, build_inv
from quipu.ledger.log.messages import LogEvidence, Prepare, Propose, encode_log_message
from quipu.ledger.messages import (
    Answer,
    EpochMessage,
    EventBytes,
    EventMessage,
    EvidenceMessage,
    GetData,
    InvMessage,
    RangeWant,
    ReceiptRow,
    SyncEvent,
    SyncRow,
    bytes_of,
)
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
    hlc_at,
)  # fmt: skip
from quipu.p2p.bodies import Answer as QueryAnswer
from quipu.p2p.bodies import HealthAnswer, Lost, VersionMismatch
from quipu.p2p.decen import Broadcast
from quipu.p2p.words import PoolName
from tests.process.badnode import NOTHING, BadNode, content_of, has_proof, where
from tests.process.cluster import wait_until

HOUR_MS = 3_600_000
VICTIM = 1
GHOSTS = 1_000


@dataclass(slots=True)
class Line:
    """The end of a cord that is written by hand."""

    journal: Journal
    seq: int
    id: EventId
    hlc: int
    depth: int


class Pen:
    """Writes what a core would never write."""

    def __init__(self, bad: BadNode, number: int) -> None:
        self.key: KeyPair = bad.key
        self.cluster_id = bad.cluster_id
        self.number = NodeNo(number)  # that it says it has
        self._journals = 0
        self._invs = 0

    @property
    def now_ms(self) -> int:
        return int(time() * 1_000)

    def line(self) -> Line:
        self._journals += 1
        journal = Journal((self.now_ms << 20) + self._journals)
        return Line(journal, 0, EventId(self.cluster_id), 0, 0)

    def extend(self, line: Line, text: str = "lie", ahead_ms: int = 0) -> SignedEvent:
        hlc = Hlc(max(line.hlc + 1, hlc_at(self.now_ms + ahead_ms)))
        cord = Cord(self.number, line.journal)
        place = Place(
            self.cluster_id, EpochNo(1), cord, Seq(line.seq + 1), line.id, (), hlc, line.depth + 1
        )
        event = build_event(self.key, place, [encode_entry(data_entry(text.encode()))])
        line.seq, line.id, line.hlc, line.depth = line.seq + 1, event.id, hlc, line.depth + 1
        return event

    def altered(self, event: SignedEvent, **fields: object) -> EventMessage:
        """Other header fields, signed again."""
        header = encode(msgspec.structs.replace(event.header, **fields))
        signature = self.key.sign(signed_part(event_id(header)))
        return EventMessage(EventBytes(header, signature, event.body))

    def inv(self, rows: list[tuple[Cord, Seq, EventId]], epoch: int = 1) -> Inv:
        self._invs += 1
        number = InvNumber(hlc_at(self.now_ms) + self._invs)
        return build_inv(self.key, self.cluster_id, EpochNo(epoch), number, sorted(rows))

    def row(self, line: Line) -> tuple[Cord, Seq, EventId]:
        return Cord(self.number, line.journal), Seq(line.seq), line.id

    def sync(
        self, rows: list[SyncRow], leaves: list[bytes], receipts: list[ReceiptRow]
    ) -> SyncEvent:
        return SyncEvent(
            self.now_ms, 0, 0, leaves, len(leaves), rows, receipts, 1, bytes(32), bytes(16),
            self.now_ms, False,
        )  # fmt: skip


Deed = Callable[[BadNode, Pen], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Misdeed:
    name: str
    does: str
    attacks: str
    counted: str | None  # None: nothing is wrong with it but what it is for
    deed: Deed
    is_of_thief: bool


MISDEEDS: dict[str, Misdeed] = {}


def misdeed(
    attacks: str, counted: str | None = None, *, is_of_thief: bool = False
) -> Callable[[Deed], Deed]:
    def keep(deed: Deed) -> Deed:
        name = deed.__name__.replace("_", "-")
        does = (deed.__doc__ or "").partition("\n")[0]
        MISDEEDS[name] = Misdeed(name, does, attacks, counted, deed, is_of_thief)
        return deed

    return keep


def _event(event: SignedEvent) -> EventMessage:
    return EventMessage(bytes_of(event))


def _ghost(number: int) -> EventId:
    return EventId(event_id(b"ghost %d" % number))


# --- of a stranger --------------------------------------------------------------------------------
@misdeed("a decoder refuses and never fails", "malformed")
async def garbage_for_the_core(bad: BadNode, pen: Pen) -> None:
    """Bytes that are no message."""
    for data in (b"", b"\xc1", bytes(range(256)), b"\x92\x01" + b"\xff" * 64):
        bad.ledger(VICTIM, data)


@misdeed("kinds of a later version end no link", "unknown-kind")
async def kind_of_nobody(bad: BadNode, pen: Pen) -> None:
    """A message of a kind that there is not."""
    bad.ledger(VICTIM, encode([99, b""]))


@misdeed("members alone write", "not-a-member")
async def event_of_no_member(bad: BadNode, pen: Pen) -> None:
    """A well-formed event, signed by its author, who is no member."""
    bad.ledger(VICTIM, _event(pen.extend(pen.line())))


@misdeed("authorship", "bad-signature")
async def event_in_another_name(bad: BadNode, pen: Pen) -> None:
    """An event that names n2 as its author, with the signature of another key."""
    member, _ = where(bad.net, 2)
    bad.ledger(VICTIM, pen.altered(pen.extend(pen.line()), author=member))


@misdeed("an event belongs to one cluster", "wrong-cluster")
async def event_of_another_cluster(bad: BadNode, pen: Pen) -> None:
    """A header that names another cluster."""
    event = pen.extend(pen.line())
    bad.ledger(VICTIM, pen.altered(event, cluster_id=bytes(32), prev=bytes(32)))


@misdeed("receipts are counted by who signed", "bad-signature")
async def receipt_in_another_name(bad: BadNode, pen: Pen) -> None:
    """A receipt that names n2 as its signer."""
    member, _ = where(bad.net, 2)
    forged = msgspec.structs.replace(pen.inv([]).array, signer=member)
    bad.ledger(VICTIM, InvMessage(encode(forged)))


@misdeed("members alone confirm", "not-a-member")
async def receipt_of_no_member(bad: BadNode, pen: Pen) -> None:
    """A receipt with a good signature of a key of no member."""
    bad.ledger(VICTIM, InvMessage(pen.inv([(Cord(NodeNo(2), Journal(1)), Seq(1), _ghost(0))]).data))


@misdeed("receipts of a later epoch take no room for strangers", "epoch-unknown")
async def receipt_of_a_later_epoch(bad: BadNode, pen: Pen) -> None:
    """Of epoch 9."""
    bad.ledger(VICTIM, InvMessage(pen.inv([], epoch=9).data))


@misdeed("nothing is pushed as an answer", "unrequested")
async def answer_to_nothing(bad: BadNode, pen: Pen) -> None:
    """An answer to a request that was never made."""
    event = bytes_of(pen.extend(pen.line()))
    bad.ledger(VICTIM, Answer(7, [], [event], [], True))


@misdeed("a request is small", "too-large")
async def request_too_large(bad: BadNode, pen: Pen) -> None:
    """A request beyond 64 KiB."""
    anchors = [((1 << 60) + seq, bytes(16)) for seq in range(limits.GET_ANCHORS_MAX)]
    wants = [RangeWant(1, 1 << 60, anchors, 1 << 60, bytes(16))] * limits.GET_RANGES_MAX
    bad.ledger(VICTIM, GetData(1, [bytes(32)] * limits.GET_IDS_MAX, wants, [], [], 1 << 20))


@misdeed("who asks for history waits, and a few requests alone do", "room-full")
async def flood_of_requests(bad: BadNode, pen: Pen) -> None:
    """Five hundred requests for all of a cord."""
    want = RangeWant(1, 1, [], 1 << 40, bytes(16))
    for number in range(500):
        bad.ledger(VICTIM, GetData(number, [], [want], [], [], 1 << 20))


@misdeed("what does not prove itself convicts nobody", "no-proof")
async def evidence_of_nothing(bad: BadNode, pen: Pen) -> None:
    """A proof of two events for one slot that are one event."""
    event = pen.extend(pen.line())
    same = (event.header_bytes, event.signature, event.id)
    bad.ledger(VICTIM, EvidenceMessage(prove_author(same, same)))


@misdeed("epochs come with the seals of a quorum", "malformed")
async def epoch_made_up(bad: BadNode, pen: Pen) -> None:
    """A document of the next epoch that nobody sealed."""
    bad.ledger(VICTIM, EpochMessage(b"\x90", []))


@misdeed("who is behind asks, and asks somebody else where nothing comes")
async def rows_of_ghosts(bad: BadNode, pen: Pen) -> None:
    """SyncEvents of events, leaves and receipts that there are not, and silence when asked."""
    rows = [SyncRow(1 + n % 3, (1 << 50) + n, 1 << 30, _ghost(n)[:16], 1 << 30) for n in range(300)]
    receipts = [ReceiptRow(number, 1 << 62, bytes(16)) for number in (1, 2, 3)]
    leaves = [bytes(_ghost(n)) for n in range(limits.SYNC_LEAVES_MAX)]
    for _ in range(5):
        bad.ledger(VICTIM, pen.sync(rows, leaves, receipts))
        await asyncio.sleep(0.6)


@misdeed("the log hears members alone", "not-a-member")
async def prepare_of_no_voter(bad: BadNode, pen: Pen) -> None:
    """The highest regime there is, wished for by a stranger."""
    bad.log(VICTIM, encode_log_message(Prepare((1 << 32) - 1, 0)))


@misdeed("votes of a query are asked for", "peer-not-asked")
async def votes_nobody_asked_for(bad: BadNode, pen: Pen) -> None:
    """Answers to queries that nobody has asked."""
    for number in range(20):
        body = QueryAnswer(number.to_bytes(16, "big"), b"yes")
        bad.alive(where(bad.net, VICTIM)[0], content_of(bad.says(body)))


@misdeed("a word about others is signed by who says it", "peer-bad-signature")
async def words_without_a_signature(bad: BadNode, pen: Pen) -> None:
    """That n2 is lost, unsigned."""
    said = bad.says(Lost(where(bad.net, 2)[0], 1, 60_000))
    bare = msgspec.structs.replace(said, signature=None)
    bad.alive(where(bad.net, VICTIM)[0], content_of(bare))


@misdeed("health answers count if they were asked for", "peer-not-asked")
async def stale_health_answers(bad: BadNode, pen: Pen) -> None:
    """That n2 was never heard, to no question."""
    body = HealthAnswer(bytes(16), where(bad.net, 2)[0], 1, None)
    bad.alive(where(bad.net, VICTIM)[0], content_of(bad.says(body)))


@misdeed("who speaks no version in common is told and parted from", "peer-no-common-version")
async def version_that_nobody_speaks(bad: BadNode, pen: Pen) -> None:
    """That it speaks versions 200 to 201 alone."""
    said = bad.says(VersionMismatch(200, 201, "9"))
    unsigned = msgspec.structs.replace(said, signature=None)
    bad.alive(where(bad.net, VICTIM)[0], content_of(unsigned))


@misdeed("a pool hears who is in it", "peer-not-in-pool")
async def words_for_a_foreign_pool(bad: BadNode, pen: Pen) -> None:
    """A broadcast to a pool in which the node is not."""
    peer, _ = where(bad.net, VICTIM)
    bad.command(peer, Broadcast(bad.next_sequence(peer), PoolName("nobody")))


@misdeed("frames of a link come once", "peer-repeated-sequence")
async def frames_that_come_again(bad: BadNode, pen: Pen) -> None:
    """The numbers of frames begin anew in the midst of a link."""
    peer, _ = where(bad.net, VICTIM)
    bad.rewind(peer)
    bad.alive(peer, NOTHING)


@misdeed("an unsigned message is its sender's own", "peer-not-its-own")
async def unsigned_in_another_name(bad: BadNode, pen: Pen) -> None:
    """A version mismatch in the name of n2."""
    said = bad.says(VersionMismatch(1, 1, "9"))
    other = msgspec.structs.replace(said, sender=where(bad.net, 2)[0], signature=None)
    bad.alive(where(bad.net, VICTIM)[0], content_of(other))


# --- of a thief -----------------------------------------------------------------------------------
@misdeed("a decoder refuses and never fails", "malformed", is_of_thief=True)
async def garbage_for_the_log(bad: BadNode, pen: Pen) -> None:
    """Bytes that are no message of the log."""
    bad.log(VICTIM, b"\xc1" * 9)


@misdeed("the same bytes have one form", "not-canonical", is_of_thief=True)
async def header_in_a_longer_form(bad: BadNode, pen: Pen) -> None:
    """A header whose version takes two bytes, signed as it is."""
    event = pen.extend(pen.line())
    header = event.header_bytes[:1] + b"\xcc\x01" + event.header_bytes[2:]
    signature = pen.key.sign(signed_part(event_id(header)))
    bad.ledger(VICTIM, EventMessage(EventBytes(header, signature, event.body)))


@misdeed("a body is what its header says", "bad-root", is_of_thief=True)
async def body_of_another_event(bad: BadNode, pen: Pen) -> None:
    """A good header with another body of the same size."""
    event, other = pen.extend(pen.line(), "one"), pen.extend(pen.line(), "two")
    bad.ledger(VICTIM, EventMessage(EventBytes(event.header_bytes, event.signature, other.body)))


@misdeed("edges are what they are in the graph", "bad-depth", is_of_thief=True)
async def depth_that_is_not(bad: BadNode, pen: Pen) -> None:
    """The first event of a cord, a thousand deep."""
    bad.ledger(VICTIM, pen.altered(pen.extend(pen.line()), depth=1_000))


@misdeed("time grows along every edge", "bad-hlc", is_of_thief=True)
async def time_that_falls(bad: BadNode, pen: Pen) -> None:
    """An event that is older than the one before it."""
    line = pen.line()
    first = pen.extend(line)
    bad.ledger(VICTIM, _event(first))
    bad.ledger(VICTIM, pen.altered(pen.extend(line), hlc=first.header.hlc))


@misdeed("what is old comes by asking", "too-old", is_of_thief=True)
async def events_of_yesterday(bad: BadNode, pen: Pen) -> None:
    """An event of an hour ago, pushed."""
    bad.ledger(VICTIM, _event(pen.extend(pen.line(), ahead_ms=-HOUR_MS)))


@misdeed("receipts wait for the time of an event", is_of_thief=True)
async def events_of_tomorrow(bad: BadNode, pen: Pen) -> None:
    """An event of an hour ahead, and the author's receipt for it."""
    line = pen.line()
    bad.ledger(VICTIM, _event(pen.extend(line, "tomorrow", ahead_ms=HOUR_MS)))
    bad.ledger(VICTIM, InvMessage(pen.inv([pen.row(line)]).data))


@misdeed("room for events without parents is bounded", "room-full", is_of_thief=True)
async def children_without_parents(bad: BadNode, pen: Pen) -> None:
    """1,200 events above one that is kept back."""
    line = pen.line()
    pen.extend(line)
    for _ in range(limits.WAITING_PER_CORD_MAX + 200):
        bad.ledger(VICTIM, _event(pen.extend(line)))


@misdeed("of an author's journals 16 get receipts", is_of_thief=True)
async def journal_after_journal(bad: BadNode, pen: Pen) -> None:
    """Sixty journals of one author, each with an event."""
    for _ in range(60):
        bad.ledger(VICTIM, _event(pen.extend(pen.line())))


@misdeed("receipts for ghosts wait in a bounded room", is_of_thief=True)
async def receipts_for_ghosts(bad: BadNode, pen: Pen) -> None:
    """Receipts with rows for events that there are not, again and again other ones."""
    for turn in range(5):
        rows = [
            (Cord(NodeNo(1 + n % 3), Journal((1 << 50) + n)), Seq(9), _ghost(GHOSTS * turn + n))
            for n in range(GHOSTS)
        ]
        bad.ledger(VICTIM, InvMessage(pen.inv(rows).data))


@misdeed("a slot has one event; two are a proof", is_of_thief=True)
async def two_events_for_one_slot(bad: BadNode, pen: Pen) -> None:
    """One for n1 and another one for n2, each with the author's receipt."""
    line = pen.line()
    other = Line(line.journal, line.seq, line.id, line.hlc, line.depth)
    for number, one in ((1, line), (2, other)):
        bad.ledger(number, _event(pen.extend(one, f"for n{number}")))
        bad.ledger(number, InvMessage(pen.inv([pen.row(one)]).data))
    # Whoever hangs up at once may take back what is still on its way.
    await asyncio.to_thread(wait_until, lambda: has_proof(bad.net, VICTIM), "a proof")


@misdeed("who is missed is asked itself", is_of_thief=True)
async def suspicion_of_the_living(bad: BadNode, pen: Pen) -> None:
    """Fifty times that n2 has not been heard for a minute, signed by a member."""
    for _ in range(50):
        said = bad.says(Lost(where(bad.net, 2)[0], 1, 60_000))
        bad.alive(where(bad.net, VICTIM)[0], content_of(said))


@misdeed("a leave is signed by who leaves", "peer-bad-signature", is_of_thief=True)
async def farewell_of_another(bad: BadNode, pen: Pen) -> None:
    """A signed word of n2's in a member's handwriting."""
    said = bad.says(Lost(NodeId(bytes(32)), 1, 1), sender=where(bad.net, 2)[0])
    bad.alive(where(bad.net, VICTIM)[0], content_of(said))


@misdeed("a lie in the log is proven by two statements", "malformed", is_of_thief=True)
async def log_evidence_of_nothing(bad: BadNode, pen: Pen) -> None:
    """A proof against a serializer that is none, and a proposal for a regime that is over."""
    bad.log(VICTIM, encode_log_message(LogEvidence(b"\x90")))
    bad.log(VICTIM, encode_log_message(Propose(1, 1, [b"\x90"])))
