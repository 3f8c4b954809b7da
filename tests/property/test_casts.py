"""Multicast under loss, disorder and copies: nothing comes twice, and nothing is forgotten."""

from dataclasses import dataclass, field
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.bodies import CastReport
from quipu.p2p.cast import open_piece, seal_frame, stream_of
from quipu.p2p.cast_ear import Ear
from quipu.p2p.casting import Casting, Frame
from quipu.p2p.refusals import Cause, FrameRefused

SENDER, RECEIVER, OTHER = NodeId(b"s" * 32), NodeId(b"r" * 32), NodeId(b"o" * 32)
STREAM = stream_of(SENDER, bytes(32))


@dataclass
class Pair:
    """One that sends and one that hears, and everything that came, by which way."""

    first: int = 0
    now_ms: int = 0
    casting: Casting = field(init=False)
    ear: Ear = field(init=False)
    by_cast: list[bytes] = field(default_factory=list)
    by_link: list[bytes] = field(default_factory=list)
    refused: list[Cause] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.casting = Casting(STREAM, self.first)
        self.casting.told_key(RECEIVER)
        self.ear = Ear(SENDER, STREAM, self.first)

    def say(self, content: bytes) -> list[bytes]:
        number = self.casting.next_number(Frame(None, content), (RECEIVER, OTHER), self.now_ms)
        return seal_frame(STREAM, number, content)

    def empty(self) -> list[bytes]:
        number = self.casting.next_number(None, (), self.now_ms)
        return seal_frame(STREAM, number, b"")

    def hear(self, datagram: bytes) -> None:
        try:
            frame = self.ear.take(open_piece(datagram, STREAM.key), self.now_ms)
        except FrameRefused as refusal:
            self.refused.append(refusal.cause)
            return
        if frame:
            self.by_cast.append(frame)

    def report(self) -> None:
        due_ms = self.ear.due_ms()
        while due_ms is not None and due_ms <= self.now_ms:
            missing = self.ear.report(self.now_ms)
            told = CastReport(STREAM.id, self.ear.settled, missing)
            owed = self.casting.reported(RECEIVER, told, self.now_ms)
            assert owed is not None
            self.by_link += [frame.content for frame in owed]
            due_ms = self.ear.due_ms()

    def calm_down(self) -> None:
        """Empty frames come, and there is time."""
        for _ in range(8):
            self.now_ms += limits.CAST_REPORT_MS
            for datagram in self.empty():
                self.hear(datagram)
            self.now_ms += limits.CAST_GAP_MS
            self.report()


FRAMES = st.lists(st.integers(1, 4), min_size=1, max_size=60)  # each of so many parts


@given(FRAMES, st.randoms(use_true_random=False), st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_every_frame_comes_once(parts: list[int], random: Random, loss: float) -> None:
    pair = Pair()
    said = [bytes([number]) * (1_166 * count) for number, count in enumerate(parts, 1)]
    under_way: list[bytes] = []
    for content in said:
        under_way += pair.say(content)
        if random.random() < 0.5:
            random.shuffle(under_way)
            going, under_way = under_way[:3], under_way[3:]
            for datagram in going:
                for _ in range(1 + (random.random() < 0.2)):
                    if random.random() >= loss:
                        pair.hear(datagram)
        pair.now_ms += random.choice([0, 1, 5, 30])
        pair.report()
    for datagram in under_way:
        if random.random() >= loss:
            pair.hear(datagram)
    pair.calm_down()
    assert sorted(pair.by_cast + pair.by_link) == sorted(said)
    assert pair.ear.settled == pair.ear.top == pair.casting.number
    assert set(pair.refused) <= {Cause.REPEATED_CAST}


@given(st.integers(1, 3 * limits.CAST_WINDOW), st.integers(1, 400))
def test_a_long_silence_is_bounded(lost: int, heard: int) -> None:
    """What is older than the window nobody asks for; it is counted."""
    pair = Pair()
    for number in range(lost):
        pair.say(b"lost %d" % number)
    for number in range(heard):
        for datagram in pair.say(b"heard %d" % number):
            pair.hear(datagram)
    pair.calm_down()
    assert len(pair.by_cast) == heard
    assert len(pair.by_link) + pair.ear.missed == lost
    assert pair.ear.settled == pair.casting.number


@given(st.lists(st.binary(min_size=1, max_size=3_000), min_size=1, max_size=8), st.data())
def test_who_falls_silent_gets_what_it_had_not_settled(
    said: list[bytes], data: st.DataObject
) -> None:
    pair = Pair()
    for datagram in pair.empty():
        pair.hear(datagram)
    pair.report()
    assert pair.casting.hears(RECEIVER, pair.now_ms)
    deaf_from = data.draw(st.integers(0, len(said)))
    for number, content in enumerate(said):
        for datagram in pair.say(content):
            if number < deaf_from:
                pair.hear(datagram)
    pair.now_ms += limits.CAST_SILENT_MS
    fallen = pair.casting.fallen_silent(pair.now_ms)
    assert not pair.casting.hears(RECEIVER, pair.now_ms)
    again = [frame.content for frame in fallen[RECEIVER]]
    assert pair.by_cast == said[:deaf_from]
    assert again == said  # it had reported none of them: some may come twice
    assert pair.casting.fallen_silent(pair.now_ms) == {}


@given(st.lists(st.integers(0, 200_000), max_size=50))
def test_the_rate_is_kept(sizes: list[int]) -> None:
    casting = Casting(STREAM)
    sent = 0
    for now_ms, size in enumerate(sizes):
        if casting.has_room(size, now_ms):
            sent += size
    most = limits.CAST_BURST_BYTES_MAX + len(sizes) * limits.CAST_BYTES_MS_MAX
    assert sent <= most


@given(st.integers(1, 100), st.sampled_from([2, 3, 64]))
def test_parts_that_never_come_are_bounded(frames: int, parts: int) -> None:
    pair = Pair()
    for number in range(frames):
        first, *_ = pair.say(bytes([number]) * (1_166 * (parts - 1) + 1))
        pair.hear(first)
        assert len(pair.ear._unfinished) <= limits.CAST_UNFINISHED_MAX
    pair.now_ms += limits.CAST_GAP_MS
    pair.report()
    pair.calm_down()
    kept = limits.CAST_WINDOW_BYTES // (1_166 * (parts - 1) + 1)  # by the sender
    assert len(pair.by_link) == min(frames, kept)
