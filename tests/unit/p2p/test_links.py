"""Links of one peer: dialling, sequences, heartbeats."""

import itertools

from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.links import Link, Links, Way
from quipu.p2p.words import Endpoint

HERE = Endpoint("10.0.0.2", 8471)
ME, N2, N3 = (NodeId(bytes([n]) * 32) for n in (1, 2, 3))


def wanted(now_ms: int = 0, slow: bool = False) -> tuple[Links, Link]:
    links = Links(ME, entropy=7)
    link = links.know(N2)
    links.want(link, True, slow, now_ms)
    return links, link


def attempts(links: Links, link: Link, end_ms: int) -> list[int]:
    """When it is dialled, if every attempt fails at once."""
    times = []
    for now_ms in range(end_ms + 1):
        if links.due(now_ms):
            times.append(now_ms)
            links.dialled(link, HERE, now_ms)
            links.closed(link, now_ms)
    return times


def test_dialled_at_once_then_after_doubled_times_for_ever() -> None:
    links, link = wanted()
    times = attempts(links, link, 20_000)
    waits = [b - a for a, b in itertools.pairwise(times)]
    assert times[0] == 0
    for wait, base in zip(waits, (100, 200, 400, 800, *[1_000] * 100), strict=False):
        assert base * 3 // 4 <= wait <= base * 5 // 4 + 1
    assert len(set(waits[4:])) > 3  # jittered
    assert times[-1] > 18_000


def test_the_dead_are_dialled_now_and_then() -> None:
    links, link = wanted(slow=True)
    waits = attempts(links, link, 60_000)
    assert 24 <= len(waits) <= 41


def test_who_is_alive_again_is_dialled_at_once() -> None:
    links, link = wanted(slow=True)
    attempts(links, link, 100)
    links.want(link, True, False, 200)
    assert links.due(200) == [link]
    links.dialled(link, HERE, 200)
    links.closed(link, 200)
    for now_ms in range(210, 300):
        links.hurry_by_hearsay(link, now_ms)  # nobody can make it dial faster by saying so
        assert links.due(now_ms) == []
    assert links.due(300) == [link]
    links.dialled(link, HERE, 300)
    links.closed(link, 300)
    links.hurry(link, 310)
    assert links.due(310) == [link]


def test_the_unwanted_are_not_dialled() -> None:
    links, link = wanted()
    links.want(link, False, False, 0)
    assert attempts(links, link, 5_000) == []


def test_an_answer_that_never_comes_is_given_up() -> None:
    links, link = wanted()
    assert links.due(0) == [link]
    links.dialled(link, HERE, 0)
    ways = []
    for now_ms in (limits.DIAL_ANSWER_MS - 1, limits.DIAL_ANSWER_MS):
        assert links.due(now_ms) == []
        ways.append(link.way)
    assert ways == [Way.DIALLING, Way.IDLE]
    assert links.due(limits.DIAL_ANSWER_MS + 200) == [link]


def test_outcomes_that_nobody_waits_for_change_nothing() -> None:
    links, link = wanted()
    assert not links.opened(link, 0)
    assert not links.closed(link, 0)
    assert link.way is Way.IDLE


def test_sequences_wrap_around() -> None:
    _links, link = wanted()
    link.next_sequence = 65_534
    assert [link.number(0) for _ in range(4)] == [65_534, 65_535, 0, 1]
    link.expected = 65_535
    assert [link.take(n) for n in (65_535, 0, 1)] == [0, 0, 0]


def test_gaps_are_counted() -> None:
    _, link = wanted()
    link.expected = 65_530
    assert link.take(65_530) == 0
    assert link.take(3) == 8
    assert link.take(4) == 0
    assert link.missed == 8


def test_what_was_here_is_not_taken_again() -> None:
    _, link = wanted()
    link.expected = 100
    assert link.take(100) == 0
    for sequence in (100, 99, 0, 65_535, 101 + 2**15):
        assert link.take(sequence) is None
    assert link.take(101) == 0


def test_a_heartbeat_only_where_nothing_else_went_out() -> None:
    links, _link = wanted()
    other = links.know(N3)
    links.want(other, True, False, 0)
    for each in links.due(0):
        links.dialled(each, HERE, 0)
        links.opened(each, 0)
        each.number(0)
    beats: dict[NodeId, list[int]] = {N2: [], N3: []}
    for now_ms in range(0, 5_001, 10):
        if now_ms % 700 == 0:
            other.number(now_ms)
        for silent in links.silent(now_ms):
            beats[silent.peer].append(now_ms)
            silent.number(now_ms)
    assert beats == {N2: [1_000, 2_000, 3_000, 4_000, 5_000], N3: []}


def test_a_hello_is_asked_for_at_most_once_a_second() -> None:
    links, link = wanted()
    assert not links.may_ask_hello(link, 0)  # it could not be sent
    links.dialled(link, HERE, 0)
    links.opened(link, 0)
    asked = [now for now in range(0, 3_000, 100) if links.may_ask_hello(link, now)]
    assert asked == [0, 1_000, 2_000]
