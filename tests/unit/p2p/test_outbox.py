"""What leaves in a step: one frame a peer, in pieces where it would be too large."""

from quipu.ledger.words import NodeId, NodeNo, Now
from quipu.p2p import limits
from quipu.p2p.decen import Alive, Ping, decode_command
from quipu.p2p.effects import SendFrame
from quipu.p2p.frame import decode_head
from quipu.p2p.gossip import Gossip, Kind, decode_content, join_content
from quipu.p2p.links import Link, Links, Way
from quipu.p2p.outbox import Outbox
from quipu.p2p.voice import Voice
from quipu.p2p.words import Endpoint
from tests.peer_bench import Bench, node_id

PEER = node_id("n2")
NOW = Now(1_790_000_000_000, 5_000)


def laid(way: Way = Way.OPEN) -> tuple[Outbox, Link, Voice]:
    links = Links(node_id("n1"), 7)
    link = links.know(PEER)
    link.way = way
    voice = Bench().peers._desk.voice
    return Outbox(NodeNo(3), links), link, voice


def frames(outbox: Outbox) -> list[SendFrame]:
    outbox.flush(NOW)
    found = []
    for effect in outbox.take():
        assert isinstance(effect, SendFrame)
        found.append(effect)
    return found


def bodies(frame: SendFrame) -> list[bytes]:
    messages = decode_content(frame.content)
    assert all(isinstance(message, Gossip) for message in messages)
    return [message.body for message in messages if isinstance(message, Gossip)]


def test_all_messages_of_a_step_go_into_one_alive() -> None:
    outbox, link, voice = laid()
    data = [b"message %d" % n for n in range(100)]
    for each in data:
        outbox.add(PEER, voice.ledger(each, NOW))
    (frame,) = frames(outbox)
    head = decode_head(frame.head)
    assert head.node_no == 3
    assert decode_command(head.command) == Alive(0)
    assert bodies(frame) == data
    assert (link.next_sequence, link.sent_ms) == (1, NOW.monotonic_ms)


def test_a_content_is_split_at_a_mebibyte_and_a_larger_message_goes_alone() -> None:
    outbox, _, voice = laid()
    sizes = [400_000, 400_000, 400_000, 3_000_000, 10]
    for number, size in enumerate(sizes):
        outbox.add(PEER, voice.ledger(bytes([number]) * size, NOW))
    sent = [[len(body) for body in bodies(frame)] for frame in frames(outbox)]
    assert sent == [[400_000, 400_000], [400_000], [3_000_000], [10]]


def test_a_content_is_split_at_its_bound_of_messages() -> None:
    outbox, _, voice = laid()
    for _ in range(limits.CONTENT_MESSAGES_MAX + 1):
        outbox.add(PEER, voice.ledger(b"x", NOW))
    counts = [len(bodies(frame)) for frame in frames(outbox)]
    assert counts == [limits.CONTENT_MESSAGES_MAX, 1]


def test_commands_go_before_the_messages_of_the_step() -> None:
    outbox, link, voice = laid()
    outbox.add(PEER, voice.ledger(b"x", NOW))
    outbox.frame(link, Ping, NOW)
    commands = [decode_command(decode_head(frame.head).command) for frame in frames(outbox)]
    assert commands == [Ping(0), Alive(1)]


def test_a_few_messages_wait_for_a_link_that_is_being_made() -> None:
    outbox, link, voice = laid(Way.DIALLING)
    for number in range(limits.WAITING_MESSAGES_MAX + 5):
        outbox.add(PEER, voice.ledger(b"%d" % number, NOW))
    assert frames(outbox) == []
    link.way = Way.OPEN
    (frame,) = frames(outbox)
    assert len(bodies(frame)) == limits.WAITING_MESSAGES_MAX
    assert bodies(frame)[0] == b"5"
    assert frames(outbox) == []


def test_what_is_for_nobody_is_dropped() -> None:
    outbox, _, voice = laid()
    outbox.add(NodeId(bytes(32)), voice.ledger(b"x", NOW))
    assert frames(outbox) == []


def test_the_short_way_to_a_ledger_message_makes_the_same_as_the_long_one() -> None:
    _, _, voice = laid()
    for now in (NOW, Now(NOW.wall_ms + 1, 1), Now(NOW.wall_ms + 1, 2)):
        for body in (b"", b"x", b"y" * 300, b"z" * 70_000):
            (message,) = decode_content(join_content([voice.ledger(body, now)]))
            assert isinstance(message, Gossip)
            assert (message.kind, message.body) == (Kind.LEDGER, body)
            assert message.hlc >> 16 == now.wall_ms
            assert message.signature is None


def test_an_endpoint_is_what_was_dialled() -> None:
    links = Links(node_id("n1"), 7)
    link = links.know(PEER)
    here = Endpoint("10.0.0.2", 1)
    links.dialled(link, here, 0)
    assert (link.way, link.endpoint) == (Way.DIALLING, here)
