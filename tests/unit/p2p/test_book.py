"""Where the others are, and whom a node keeps links to."""

from hashlib import sha256

from quipu.ledger.words import NodeId
from quipu.p2p.addresses import SignedEndpoint, sign_endpoint
from quipu.p2p.book import Book
from quipu.p2p.words import Endpoint, PeerState
from tests.peer_bench import CLUSTER_ID, Bench, key_of, node_id

MEMBERS = tuple(node_id(f"n{n}") for n in range(1, 11))
SEED = Endpoint("seed.example", 8471)


def place(name: str, stamp: int = 1) -> SignedEndpoint:
    return sign_endpoint(key_of(name), CLUSTER_ID, Endpoint(f"{name}.example", stamp), stamp)


def of_observer(states: dict[NodeId, PeerState]) -> list[NodeId]:
    book = Book(node_id("n99"), MEMBERS, seeds={MEMBERS[0]: SEED})
    book.signed = {node_id(f"n{n}"): place(f"n{n}") for n in range(1, 11)}
    return book.wanted([], [], lambda peer: states.get(peer, PeerState.ALIVE))


def test_a_member_keeps_links_to_all_members_and_whoever_greeted_it() -> None:
    book = Book(MEMBERS[0], MEMBERS[:4], seeds={MEMBERS[2]: SEED})
    observer, gone = node_id("n50"), node_id("n51")
    state = {gone: PeerState.LEFT}
    wanted = book.wanted([observer, gone], [], lambda p: state.get(p, PeerState.ALIVE))
    assert wanted == [*MEMBERS[1:4], observer]


def test_an_observer_keeps_the_first_three_of_its_own_ranking() -> None:
    book = Book(node_id("n99"), MEMBERS)
    assert of_observer({}) == book.ranking()[:3]
    other = Book(node_id("n98"), MEMBERS)
    assert book.ranking() != other.ranking()
    assert sorted(book.ranking()) == sorted(MEMBERS)


def test_an_observer_keeps_a_link_to_members_that_began_one() -> None:
    book = Book(node_id("n99"), MEMBERS)
    book.signed = {node_id(f"n{n}"): place(f"n{n}") for n in range(1, 11)}
    *_, caller, gone = book.ranking()
    states = {gone: PeerState.DEAD}
    called = [caller, gone, node_id("n98")]
    wanted = book.wanted([], called, lambda peer: states.get(peer, PeerState.ALIVE))
    assert wanted == [*book.ranking()[:3], caller]


def test_in_place_of_the_gone_an_observer_takes_the_next_and_still_dials_the_first() -> None:
    ranking = Book(node_id("n99"), MEMBERS).ranking()
    wanted = of_observer({ranking[1]: PeerState.DEAD})
    assert wanted[:4] == ranking[:4]


def test_until_it_has_reached_three_an_observer_also_wants_its_seed() -> None:
    unknown = dict.fromkeys(MEMBERS, PeerState.UNKNOWN)
    assert MEMBERS[0] in of_observer(unknown)


def test_observers_spread_evenly_over_the_members() -> None:
    counts = dict.fromkeys(MEMBERS, 0)
    for number in range(1_000):
        book = Book(NodeId(sha256(b"%d" % number).digest()), MEMBERS)
        for member in book.ranking()[:3]:
            counts[member] += 1
    assert all(240 <= count <= 360 for count in counts.values())


def test_signed_and_configured_endpoint_are_tried_in_turn() -> None:
    book = Book(MEMBERS[0], MEMBERS, seeds={MEMBERS[1]: SEED})
    assert book.endpoint(MEMBERS[1]) == SEED
    book.signed[MEMBERS[1]] = place("n2")
    assert [book.endpoint(MEMBERS[1], n) for n in range(3)] == [
        place("n2").endpoint,
        SEED,
        place("n2").endpoint,
    ]


def test_only_what_is_newer_is_news() -> None:
    book = Book(MEMBERS[0], MEMBERS)
    assert book.is_news(place("n2", 5))
    book.signed[MEMBERS[1]] = place("n2", 5)
    assert not book.is_news(place("n2", 5))
    assert not book.is_news(place("n2", 4))
    assert book.is_news(place("n2", 6))
    assert not book.is_news(place("n1", 9))  # its own it knows


def test_the_bench_knows_no_addresses_at_first() -> None:
    bench = Bench(3)
    assert bench.peers._desk.book.lacks_addresses()
