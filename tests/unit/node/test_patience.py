"""What a peer said and what has time: which turn takes it."""

from dataclasses import dataclass, field

from quipu.ledger.inputs import MessageReceived, PeerLost
from quipu.ledger.inv import build_inv
from quipu.ledger.log.inputs import LogMessageReceived
from quipu.ledger.messages import EpochWant, EventBytes, EventMessage, InvMessage, encode_message
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import Cord, EpochNo, EventId, InvNumber, Journal, NodeId, NodeNo, Seq
from quipu.node import limits
from quipu.node.inbox import Inbox

N2, N3 = (KeyPair.from_seed(bytes([number]) * 32) for number in (2, 3))
PACE_MS = 5


@dataclass
class Surrounded:
    """An inbox whose clock and whose waiters are the test's."""

    inbox: Inbox = field(default_factory=Inbox)
    now_ms: int = 1_000
    signed_at_ms: int = 0
    asked: int = 0
    is_awaited: bool = False

    def __post_init__(self) -> None:
        self.inbox.now_ms = lambda: self.now_ms
        self.inbox.signed_at_ms = lambda now_ms: max(now_ms, self.signed_at_ms)
        self.inbox.may_wait = lambda inv: True
        self.inbox.is_awaited = lambda inv: self.is_awaited
        self.inbox.wake = self.wake

    def wake(self) -> None:
        self.asked += 1

    def hear(self, key: KeyPair, data: bytes) -> MessageReceived:
        message = MessageReceived(key.node_id, data)
        assert self.inbox.push(message, len(data))
        return message


def receipt(key: KeyPair, number: int) -> bytes:
    row = (Cord(NodeNo(1), Journal(7)), Seq(number), EventId(bytes(32)))
    inv = build_inv(key, bytes(32), EpochNo(1), InvNumber(number), [row])
    return encode_message(InvMessage(inv.data))


def event(text: bytes) -> bytes:
    return encode_message(EventMessage(EventBytes(b"header", bytes(64), text)))


def test_of_one_signer_only_the_last_receipt_is_kept() -> None:
    near = Surrounded()
    near.hear(N2, receipt(N2, 1))
    last = near.hear(N2, receipt(N2, 3))
    near.hear(N2, receipt(N2, 2))
    other = near.hear(N3, receipt(N3, 1))
    assert near.asked == 0
    near.inbox.press()
    assert near.inbox.take() == [last, other]
    assert not near.inbox.has_inputs()


def test_whoever_speaks_in_anothers_name_does_not_hide_what_that_one_says() -> None:
    near = Surrounded()
    mine = near.hear(N2, receipt(N2, 1))
    forged = near.hear(N3, receipt(N2, 9))
    near.inbox.press()
    assert near.inbox.take() == [mine, forged]


def test_a_receipt_waits_no_longer_than_the_first_of_its_signer() -> None:
    near = Surrounded()
    near.hear(N2, receipt(N2, 1))
    near.now_ms += limits.RECEIPTS_WAIT_MS - 1
    last = near.hear(N2, receipt(N2, 2))
    assert near.inbox.take() == []
    near.now_ms += 1
    assert near.inbox.asks_for_turn()
    assert near.inbox.take() == [last]


def test_who_begins_to_wait_has_receipts_taken() -> None:
    near = Surrounded()
    message = near.hear(N2, receipt(N2, 1))
    near.inbox.look()
    assert near.asked == 0
    near.is_awaited = True
    near.inbox.look()
    assert near.asked == 1
    assert near.inbox.take() == [message]


def test_what_is_no_receipt_though_it_begins_as_one_goes_to_the_core_at_once() -> None:
    near = Surrounded()
    torn = [near.hear(N2, receipt(N2, 1)[:-1]), near.hear(N2, encode_message(InvMessage(b"no")))]
    assert near.asked == 2
    assert near.inbox.take() == torn


def test_an_event_waits_for_the_turn_that_signs_it() -> None:
    near = Surrounded()
    near.signed_at_ms = near.now_ms + PACE_MS
    first = near.hear(N2, event(b"first"))
    near.now_ms += 2
    second = near.hear(N3, event(b"second"))
    assert (near.asked, near.inbox.take()) == (0, [])
    near.now_ms += PACE_MS - 2
    assert near.inbox.asks_for_turn()
    assert near.inbox.take() == [first, second]


def test_an_event_that_would_be_signed_at_once_is_taken_at_once() -> None:
    near = Surrounded()
    message = near.hear(N2, event(b"first"))
    assert near.asked == 1
    assert near.inbox.take() == [message]


def test_the_log_and_the_end_of_a_link_take_all_along() -> None:
    near = Surrounded()
    near.signed_at_ms = near.now_ms + PACE_MS
    waiting = [near.hear(N2, event(b"first")), near.hear(N2, receipt(N2, 1))]
    assert near.inbox.push(LogMessageReceived(NodeNo(2), b"log"), 3)
    assert near.inbox.take() == waiting
    near.inbox.take_log()
    waiting = [near.hear(N2, event(b"first")), near.hear(N2, receipt(N2, 1))]
    lost = PeerLost(N2.node_id)
    assert near.inbox.push(lost, 0)
    assert near.inbox.take() == [*waiting, lost]


def test_other_messages_leave_what_has_time_behind() -> None:
    near = Surrounded()
    near.hear(N2, receipt(N2, 1))
    urgent = near.hear(N2, encode_message(EpochWant(2)))
    assert near.inbox.take() == [urgent]
    assert near.inbox.has_inputs()


def test_what_waits_has_its_share_of_the_room() -> None:
    near = Surrounded()
    near.signed_at_ms = near.now_ms + PACE_MS
    large = event(bytes(limits.PEER_BYTES_WAITING_MAX // 2))
    near.hear(N2, large)
    assert not near.inbox.push(MessageReceived(NodeId(N2.node_id), large), len(large))
    assert near.asked == 1  # room is made at once
    assert len(near.inbox.take()) == 1
    assert near.inbox.patience.bytes_held == 0


def test_what_cannot_be_kept_is_dropped_whole() -> None:
    near = Surrounded()
    near.hear(N2, receipt(N2, 1))
    near.inbox.fail_all(ValueError("dropped"))
    assert not near.inbox.has_inputs()
    assert near.inbox.patience.due_ms is None
