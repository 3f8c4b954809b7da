"""Guests and beacons under whatever order of things: bounds hold, and nothing false is taken."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.p2p import effects as fx
from quipu.p2p import inputs as ins
from quipu.p2p import limits
from quipu.p2p.guest import Failed
from tests.peer_bench import Bench, causes, of
from tests.unit.p2p.test_beacons import sealed, where
from tests.unit.p2p.test_guests import GENESIS, Asking, GuestHand, guest_of, host

NAMES = [f"n{number}" for number in range(20, 36)]
happenings = st.tuples(
    st.sampled_from(["hello", "again", "opened", "closed"]),
    st.sampled_from(NAMES),
    st.sampled_from([0, 50, 100, 1_000]),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(happenings, max_size=60))
def test_links_of_guests_are_few_and_short(happened: list[tuple[str, str, int]]) -> None:
    bench = host()
    hands: dict[str, GuestHand] = {name: guest_of(bench, name) for name in NAMES}
    opened_ms: dict[bytes, int] = {}
    given_to = 0
    for what, name, after_ms in happened:
        hand = hands[name]
        inputs: dict[str, ins.Input] = {
            "hello": hand.hello(),
            "again": hand.hello(again=True),
            "opened": ins.LinkOpened(hand.id),
            "closed": ins.LinkClosed(hand.id, "reset"),
        }
        before = len(bench.effects)
        bench.step(inputs[what], after_ms=after_ms)  # in several turns
        for effect in bench.effects[before:]:
            match effect:
                case fx.OpenLink(peer):
                    opened_ms[peer] = bench.now.monotonic_ms
                case fx.CloseLink(peer):
                    del opened_ms[peer]
                case fx.GuestServed(guest):
                    assert guest in opened_ms
                    given_to += 1
        if what == "closed":
            opened_ms.pop(hand.id, None)
        assert len(opened_ms) <= limits.GUESTS_MAX
        oldest_ms = min(opened_ms.values(), default=bench.now.monotonic_ms)
        assert bench.now.monotonic_ms - oldest_ms <= limits.GUEST_TIME_MS + 500
    assert given_to <= len(happened)
    bench.run(limits.GUEST_TIME_MS + 1_000)
    assert bench.peers.next_deadline() is None
    assert bench.peers.views() == ()


changes = st.lists(
    st.tuples(st.integers(0, 1), st.booleans(), st.integers(0, 4_000), st.integers(0, 255)),
    min_size=1,
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@given(changes)
def test_a_changed_answer_gives_the_genesis_or_a_reason(
    changed: list[tuple[int, bool, int, int]],
) -> None:
    asking = Asking()
    frames = asking.answer()
    for which, is_head, at, octet in changed:
        frame = frames[which]
        data = bytearray(frame.head if is_head else frame.content)
        data[at % len(data)] = octet
        octets = bytes(data)
        frames[which] = replace(frame, head=octets) if is_head else replace(frame, content=octets)
    asking.to_guest(frames)
    outcome = asking.guest.outcome
    assert outcome is None or outcome == GENESIS or isinstance(outcome, Failed)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 319), st.integers(1, 255), st.integers(0, 40))
def test_a_changed_beacon_is_none(at: int, flip: int, cut: int) -> None:
    bench = Bench()
    bench.step()
    data = bytearray(sealed(where("n2")))
    data[at % len(data)] ^= flip
    effects = bench.step(ins.BeaconHeard(bytes(data[: len(data) - cut])))
    assert causes(effects) == ["foreign-beacon"]
    assert of(effects, fx.OpenLink) == []
    assert bench.view("n2").endpoint is None
