"""Why an event is not Read: what a member of three says of it."""

from quipu.ledger import limits
from quipu.ledger.effects import StoreProof
from quipu.ledger.event import EventMeta, SignedEvent
from quipu.ledger.evidence import check_proof, prove_author
from quipu.ledger.history import BranchRecord, Saved
from quipu.ledger.signing import verify
from quipu.ledger.words import BranchKey, InvNumber, Journal, NodeNo, Now, Seq
from quipu.node.explain import Witness
from quipu.node.service import Cause, EventState, Explanation
from quipu.node.view import View
from tests.small_ledger import START_MS, SmallLedger, node_id

NOW = Now(START_MS + 1_000_000, 0)


class Told:
    """A ledger of three as n1 sees it: who has signed what is up to the test."""

    def __init__(self) -> None:
        self.ledger = SmallLedger(3)
        self.view = View.of(self.ledger.genesis, Saved(), 0)

    def holds(self, event: SignedEvent, signers: tuple[int, ...] = (), read: int = 0) -> EventMeta:
        meta = self.ledger.metas[event.id]
        self.view.branches[meta.branch] = BranchRecord(
            meta.branch,
            Seq(0),
            0,
            meta.seq,
            meta.id,
            meta.hlc,
            read_seq=Seq(read),
            signed_seq=Seq(1),
            receipts={NodeNo(no): (meta.seq, InvNumber(1)) for no in signers},
        )
        return meta

    def explain(self, meta: EventMeta, now: Now = NOW) -> Explanation:
        witness = Witness(self.view, self.ledger, node_id(1))
        return witness.explain(meta, now, [node_id(3)])


def causes(explanation: Explanation) -> list[Cause]:
    return [obstacle.cause for obstacle in explanation.obstacles]


def test_receipts_that_are_missing_and_who_is_offline() -> None:
    told = Told()
    explanation = told.explain(told.holds(told.ledger.write(2)))
    own, others = explanation.obstacles
    assert (own.cause, own.members, own.offline) == (Cause.OWN_RECEIPT, (2,), (2,))
    assert (others.cause, others.members, others.wanted) == (Cause.RECEIPTS, (1, 3), 1)
    assert others.offline == ()
    assert explanation.status.state is EventState.STORED
    assert explanation.status.first_seen_ms is None


def test_enough_receipts_are_no_obstacle() -> None:
    told = Told()
    meta = told.holds(told.ledger.write(2), signers=(2, 3), read=1)
    explanation = told.explain(meta)
    assert (causes(explanation), explanation.status.confirmed_by) == ([], (3,))


def test_a_parent_that_is_unread() -> None:
    told = Told()
    parent = told.ledger.write(2)
    told.holds(parent)
    meta = told.holds(told.ledger.write(1, parents=[parent]), signers=(1, 2))
    (obstacle,) = told.explain(meta).obstacles
    assert (obstacle.cause, obstacle.events) == (Cause.PARENT, (parent.id,))


def test_a_stamp_ahead_of_the_clock() -> None:
    told = Told()
    meta = told.holds(told.ledger.write(1), signers=(1, 2))
    (obstacle,) = told.explain(meta, Now(START_MS - 10_000, 0)).obstacles
    assert obstacle.cause is Cause.CLOCK
    assert obstacle.until_ms is not None
    assert obstacle.until_ms + limits.CLOCK_AHEAD_MS == meta.hlc >> 16


def test_a_proof_against_its_author() -> None:
    told = Told()
    one = told.ledger.write(2)
    meta = told.holds(one)
    fork = told.ledger.write(2, ["fork"], prev=one)
    rival = told.ledger.write(2, ["rival"], prev=one)
    proof = prove_author(
        (fork.header_bytes, fork.signature, fork.id),
        (rival.header_bytes, rival.signature, rival.id),
    )
    conviction = check_proof(proof, told.ledger.cluster_id, verify)
    told.view.committed([StoreProof(conviction)], 0)
    assert Cause.SUSPENDED in causes(told.explain(meta))


def test_too_many_journals() -> None:
    told = Told()
    meta = told.holds(told.ledger.write(2))
    told.view.branches[meta.branch].signed_seq = Seq(0)
    for journal in range(limits.JOURNALS_SIGNED_MAX):
        key = BranchKey(NodeNo(2), Journal(journal + 1), 0)
        record = told.view.branches[meta.branch].copy()
        record.key, record.signed_seq = key, Seq(1)
        told.view.branches[key] = record
    assert Cause.JOURNALS in causes(told.explain(meta))


def test_an_author_who_left() -> None:
    told = Told()
    meta = told.holds(told.ledger.write(3))
    document = told.ledger.document([1, 2], "majority")
    seals = told.ledger.seal(document, [1, 2])
    told.ledger.open(document, seals)
    told.view.epochs.open(told.ledger.documents[0][0])
    explanation = told.explain(meta)
    assert (causes(explanation), explanation.status.state) == ([Cause.LEFT], EventState.VOID)
