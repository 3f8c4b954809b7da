"""A node with a URI and the secret gets the genesis; both sides of it, and what neither takes."""

from dataclasses import dataclass, field, replace

import msgspec
import pytest

from quipu.ledger.canonical import encode
from quipu.ledger.epochs import GENESIS_VERSION, Founder, Genesis, cluster_id_of
from quipu.ledger.words import NodeNo
from quipu.p2p import effects as fx
from quipu.p2p import inputs as ins
from quipu.p2p import limits
from quipu.p2p.addresses import sign_endpoint
from quipu.p2p.decen import Alive, Hello, decode_command, encode_command
from quipu.p2p.frame import decode_head, encode_head
from quipu.p2p.gossip import Kind, compose, decode_content, encode_gossip, join_content
from quipu.p2p.guest import Effect as GuestEffect
from quipu.p2p.guest import Failed, Failure, Guest, GuestConfig
from quipu.p2p.hello import NO_CLUSTER, Card, build_hello
from quipu.p2p.outbox import NOTHING
from quipu.p2p.peers import Peers
from quipu.p2p.refusals import Cause
from quipu.p2p.words import Endpoint, LinkId
from tests.peer_bench import NO_POOLS, SECRET, Bench, Hand, causes, endpoint_of, key_of, of

GENESIS = encode(
    Genesis(
        GENESIS_VERSION,
        "bench",
        1,
        "majority",
        [Founder(key_of("n1").node_id, "n1", ["member", "serializer"])],
        bytes(16),
        [],
    )
)
OTHER_SECRET = b"o" * 32
WHERE = endpoint_of("n9")


def host(members: int = 1) -> Bench:
    """A member that has a genesis to give."""
    bench = Bench(members)
    bench.config = replace(bench.config, cluster_id=cluster_id_of(GENESIS), genesis=GENESIS)
    bench.peers = Peers(bench.config, None, bench.now)
    bench.step()
    return bench


class GuestHand(Hand):
    """A hand that knows no cluster."""

    @property
    def card(self) -> Card:
        signed = sign_endpoint(self.key, NO_CLUSTER, endpoint_of(self.name), self.start)
        return Card(self.id, self.name, self.start, "test", signed, self.secrets)


def guest_of(bench: Bench, name: str = "n9", *secrets: bytes) -> GuestHand:
    return GuestHand(bench, name, secrets=secrets or (SECRET,))


# --- the side of the member ---------------------------------------------------------------------
def test_a_guest_is_dialled_greeted_and_given_the_genesis() -> None:
    bench = host()
    n9 = guest_of(bench)
    assert bench.step(n9.hello()) == [fx.OpenLink(n9.id, WHERE)]
    effects = bench.step(ins.LinkOpened(n9.id))
    hello, alive = n9.said(effects)
    assert isinstance(hello.command, Hello)
    assert dict(hello.command.headers)["cluster"] == cluster_id_of(GENESIS).hex()
    assert isinstance(alive.command, Alive)
    assert [m.body for m in n9.told(effects, Kind.GENESIS)] == [GENESIS]
    assert of(effects, fx.GuestServed) == [fx.GuestServed(n9.id, WHERE)]
    assert bench.peers.views() == ()


def test_nothing_of_a_guest_stays() -> None:
    bench = host()
    n9 = guest_of(bench)
    bench.step(n9.hello())
    bench.step(ins.LinkOpened(n9.id))
    effects = bench.run(limits.GUEST_TIME_MS + 1_000)
    assert of(effects, fx.CloseLink) == [fx.CloseLink(n9.id)]
    assert n9.said(effects) == []
    assert causes(bench.step(n9.alive())) == ["not-hello"]
    assert bench.peers.next_deadline() is None


def test_a_guest_that_ends_its_link_is_forgotten_at_once() -> None:
    bench = host()
    n9 = guest_of(bench)
    bench.step(n9.hello())
    bench.step(ins.LinkOpened(n9.id))
    bench.step(ins.LinkClosed(n9.id, "the connection ended"))
    assert bench.peers.next_deadline() is None
    assert of(bench.step(n9.hello(), after_ms=100), fx.OpenLink) == [fx.OpenLink(n9.id, WHERE)]


def test_a_guest_that_greets_again_is_served_once() -> None:
    bench = host()
    n9 = guest_of(bench)
    bench.step(n9.hello())
    assert bench.step(n9.hello(again=True), after_ms=1_000) == []
    assert len(n9.told(bench.step(ins.LinkOpened(n9.id)), Kind.GENESIS)) == 1
    assert bench.step(n9.hello(again=True)) == []


@pytest.mark.parametrize("what", ["secret", "key", "signature"])
def test_a_stranger_makes_nobody_dial(what: str) -> None:
    bench = host()
    n9 = guest_of(bench, "n9", OTHER_SECRET if what == "secret" else SECRET)
    frame = n9.hello()
    assert isinstance(frame, ins.FrameReceived)
    if what == "key":
        frame = replace(frame, key=bench.hand("n8").link_key)
    if what == "signature":
        told = build_hello(replace(n9.card, endpoint=n9.endpoint), bench.me, 0, NO_POOLS)
        headers = dict(told.headers) | {"cluster": NO_CLUSTER.hex()}
        changed = n9.frame(replace(told, headers=tuple(headers.items())))
        assert isinstance(changed, ins.FrameReceived)
        frame = changed
    effects = bench.step(frame)
    cause = {"secret": "wrong-secret", "key": "wrong-key", "signature": "bad-signature"}[what]
    assert causes(effects) == [cause]
    assert of(effects, fx.ShutLink) == [fx.ShutLink(n9.link)]
    assert len(effects) == 2


def test_guests_are_bounded_in_number_and_rate() -> None:
    bench = host()
    first = [guest_of(bench, f"n{20 + number}") for number in range(limits.GUESTS_MAX)]
    for guest in first:
        assert causes(bench.step(guest.hello(), after_ms=limits.GUEST_INTERVAL_MS)) == []
    late = guest_of(bench, "n40")
    effects = bench.step(late.hello(), after_ms=limits.GUEST_INTERVAL_MS)
    assert causes(effects) == ["too-many-guests"]
    assert of(effects, fx.ShutLink) == []  # it greets again
    bench.step(ins.LinkClosed(first[0].id, "reset"))
    assert of(bench.step(late.hello(again=True)), fx.OpenLink) != []
    bench.step(ins.LinkClosed(late.id, "reset"))
    assert causes(bench.step(late.hello(again=True))) == ["too-many-guests"]  # too soon


def test_a_node_without_a_genesis_at_hand_serves_nobody() -> None:
    bench = Bench(1)
    assert causes(bench.step(guest_of(bench).hello())) == ["wrong-cluster"]


def test_a_founder_gets_it_on_the_link_it_has() -> None:
    bench = host(2)
    n2 = guest_of(bench, "n2")
    effects = bench.step(n2.hello())  # nobody has told where n2 is, but n2 itself
    assert of(effects, fx.OpenLink) == [fx.OpenLink(n2.id, endpoint_of("n2"))]
    assert of(bench.step(n2.hello(again=True), after_ms=100), fx.OpenLink) == []
    effects = bench.step(ins.LinkOpened(n2.id))
    assert n2.commands(effects)[0] is Hello
    assert n2.told(effects, Kind.GENESIS) == []
    effects = bench.step(n2.hello(again=True), after_ms=1_000)
    assert [m.body for m in n2.told(effects, Kind.GENESIS)] == [GENESIS]
    assert n2.told(bench.step(n2.hello(again=True), after_ms=1_000), Kind.GENESIS) == []
    effects = bench.run(limits.GUEST_TIME_MS + 500)
    assert of(effects, fx.CloseLink) == []
    assert [m.body for m in n2.told(bench.step(n2.hello()), Kind.GENESIS)] == [GENESIS]


def test_a_guest_that_comes_as_a_peer_keeps_its_link() -> None:
    bench = host()
    bench.step(guest_of(bench).hello())
    bench.step(ins.LinkOpened(key_of("n9").node_id))
    n9 = bench.hand("n9")
    signed = sign_endpoint(n9.key, cluster_id_of(GENESIS), WHERE, n9.start)
    card = Card(n9.id, "n9", n9.start, "test", signed, (SECRET,))
    n9.link = LinkId(b"another")
    effects = bench.step(n9.frame(build_hello(card, bench.me, 0, NO_POOLS)))
    assert of(effects, fx.OpenLink) == [fx.OpenLink(n9.id, WHERE)]
    effects = bench.step(ins.LinkOpened(n9.id))
    assert of(effects, fx.PeerUp) == [fx.PeerUp(n9.id)]
    assert of(bench.run(limits.GUEST_TIME_MS - 500), fx.CloseLink) == []


def test_a_genesis_is_news_to_guests_alone() -> None:
    bench = Bench(2)
    n2 = bench.linked("n2")
    assert causes(bench.step(n2.alive(n2.plain(Kind.GENESIS, GENESIS)))) == ["not-asked"]


# --- the side of the guest ----------------------------------------------------------------------
@dataclass
class Asking:
    """A guest and the member it asks."""

    bench: Bench = field(default_factory=host)
    secrets: tuple[bytes, ...] = (SECRET,)

    def __post_init__(self) -> None:
        config = GuestConfig(
            key_of("n9"), self.bench.me, endpoint_of("n1"), self.secrets, "n9", "t", WHERE, 5
        )
        self.guest = Guest(config, self.bench.now)

    def open(self) -> list[GuestEffect]:
        assert self.guest.begin() == [fx.OpenLink(self.bench.me, endpoint_of("n1"))]
        return self.guest.step([ins.LinkOpened(self.bench.me)], self.bench.now)

    def to_host(self, effects: list[GuestEffect]) -> list[fx.Effect]:
        key = Hand(self.bench, "n9").link_key
        frames = [e for e in effects if isinstance(e, fx.SendFrame)]
        return self.bench.step(
            *(ins.FrameReceived(LinkId(b"in"), key, f.head, f.content) for f in frames)
        )

    def to_guest(self, frames: list[fx.SendFrame], name: str = "n1") -> None:
        key = Hand(self.bench, name).link_key
        heard: list[ins.Input] = [
            ins.FrameReceived(LinkId(b"back"), key, f.head, f.content) for f in frames
        ]
        self.guest.step(heard, self.bench.now)

    def answer(self) -> list[fx.SendFrame]:
        self.to_host(self.open())
        return of(self.bench.step(ins.LinkOpened(key_of("n9").node_id)), fx.SendFrame)


def test_the_guest_takes_the_genesis_of_its_host() -> None:
    asking = Asking()
    asking.to_guest(asking.answer())
    assert asking.guest.outcome == GENESIS


def test_one_secret_in_common_is_enough() -> None:
    asking = Asking(secrets=(OTHER_SECRET, SECRET))
    asking.to_guest(asking.answer())
    assert asking.guest.outcome == GENESIS


def test_the_guest_greets_every_second_until_it_is_answered() -> None:
    asking = Asking()
    (first,) = asking.open()
    assert asking.guest.step([], asking.bench.now) == []
    asking.bench.run(limits.HELLO_AGAIN_MS)
    assert asking.guest.next_deadline() == asking.bench.now.monotonic_ms
    (second,) = asking.guest.step([], asking.bench.now)
    assert isinstance(first, fx.SendFrame)
    assert isinstance(second, fx.SendFrame)
    sequences = [decode_command(decode_head(f.head).command).sequence for f in (first, second)]
    assert sequences == [0, 1]


@pytest.mark.parametrize(
    ("opened", "why", "failure"),
    [
        (False, "no connection: refused", Failure.UNREACHABLE),
        (False, "ended within the handshake: not the node", Failure.OTHER_NODE),
        (True, "the connection ended", Failure.REFUSED),
    ],
)
def test_why_there_is_no_link(opened: bool, why: str, failure: Failure) -> None:
    asking = Asking()
    if opened:
        asking.open()
    asking.guest.step([ins.LinkClosed(asking.bench.me, why)], asking.bench.now)
    assert asking.guest.outcome == Failed(failure, why)
    assert asking.guest.step([ins.LinkOpened(asking.bench.me)], asking.bench.now) == []


def test_a_host_that_cannot_dial_back_is_waited_for_so_long() -> None:
    asking = Asking()
    asking.open()
    asking.bench.run(limits.GUEST_WAIT_MS)
    assert asking.guest.step([], asking.bench.now) == []
    outcome = asking.guest.outcome
    assert isinstance(outcome, Failed)
    assert outcome.failure is Failure.UNANSWERED


def test_a_host_that_does_not_hold_the_secret_is_not_believed() -> None:
    bench = host()
    bench.config = replace(bench.config, secrets=(OTHER_SECRET,))
    bench.peers = Peers(bench.config, None, bench.now)
    asking = Asking(bench, (OTHER_SECRET,))
    frames = asking.answer()
    other = Asking(host())
    other.open()
    other.to_guest(frames)
    assert isinstance(other.guest.outcome, Failed)
    assert other.guest.outcome.cause is Cause.WRONG_SECRET


def test_versions_are_told_apart_by_the_guest() -> None:
    asking = Asking()
    hello, genesis = asking.answer()
    command = decode_command(decode_head(hello.head).command)
    assert isinstance(command, Hello)
    headers = dict(command.headers) | {"protocol-min": "2", "protocol-max": "3"}
    later = replace(command, headers=tuple(headers.items()))
    head = encode_head(NodeNo(1), encode_command(later))
    asking.to_guest([replace(hello, head=head), genesis])
    assert isinstance(asking.guest.outcome, Failed)
    assert asking.guest.outcome.cause is Cause.NO_COMMON_VERSION


def test_a_later_version_of_a_guest_is_served_too() -> None:
    bench = host()
    n9 = guest_of(bench)
    n9.hello()
    assert of(bench.step(n9.hello_of_protocol(7, 9)), fx.OpenLink) == [fx.OpenLink(n9.id, WHERE)]


@pytest.mark.parametrize("body", [b"", GENESIS + b"\0", GENESIS[:-1], b"x" * 2_000_000])
def test_another_genesis_than_that_of_the_hello_is_refused(body: bytes) -> None:
    asking = Asking()
    hello, genesis = asking.answer()
    (message,) = decode_content(genesis.content)
    assert not isinstance(message, tuple)
    changed = encode_gossip(msgspec.structs.replace(message, body=body))
    asking.to_guest([hello, replace(genesis, content=join_content([changed]))])
    assert isinstance(asking.guest.outcome, Failed)
    assert asking.guest.outcome.cause is Cause.WRONG_CLUSTER


def test_what_has_the_right_hash_must_be_a_genesis_too() -> None:
    bench = host()
    nonsense = b"no genesis at all"
    bench.config = replace(bench.config, cluster_id=cluster_id_of(nonsense), genesis=nonsense)
    bench.peers = Peers(bench.config, None, bench.now)
    asking = Asking(bench)
    asking.to_guest(asking.answer())
    assert isinstance(asking.guest.outcome, Failed)
    assert asking.guest.outcome.cause is Cause.MALFORMED


def test_nobody_else_can_answer() -> None:
    asking = Asking()
    hello, genesis = asking.answer()
    asking.to_guest([hello, genesis], name="n2")
    asking.to_guest([genesis])  # without the HELLO before it
    assert asking.guest.outcome is None


def test_other_frames_of_the_host_mean_nothing_to_a_guest() -> None:
    asking = Asking()
    hello, genesis = asking.answer()
    other = compose(Hand(asking.bench, "n1").origin(), Kind.LEDGER, b"an event")
    alive = encode_head(NodeNo(1), encode_command(Alive(1)))
    extra = fx.SendFrame(asking.bench.me, alive, join_content([encode_gossip(other)]))
    beat = fx.SendFrame(asking.bench.me, alive, NOTHING)
    asking.to_guest([hello, extra, beat])
    assert asking.guest.outcome is None
    asking.to_guest([genesis])
    assert asking.guest.outcome == GENESIS


def test_the_endpoint_of_a_guest_is_worth_nothing_in_the_cluster() -> None:
    signed = sign_endpoint(key_of("n9"), NO_CLUSTER, Endpoint("10.0.0.9", 1), 1)
    assert signed.cluster_id == NO_CLUSTER
    bench = host()
    n9 = guest_of(bench)
    bench.step(n9.hello())
    assert bench.peers._desk.book.signed == {}
