"""The beacon: what one says, who opens it, what is believed of it, and what it never does."""

import hmac
from dataclasses import replace
from hashlib import sha256

import msgpack
import pytest
from nacl.secret import SecretBox

from quipu.p2p import effects as fx
from quipu.p2p import inputs as ins
from quipu.p2p import limits
from quipu.p2p.addresses import SignedEndpoint, sign_endpoint
from quipu.p2p.beacon import Beacon, open_beacon, seal_beacon
from quipu.p2p.peers import Peers
from quipu.p2p.refusals import FrameRefused
from quipu.p2p.words import Endpoint, PeerState
from tests.peer_bench import CLUSTER_ID, SECRET, Bench, causes, endpoint_of, key_of, node_id, of

OLD_SECRET = b"o" * 32
NONCE = bytes(range(24))
LATER = 1 << 62


def where(name: str, host: str = "10.0.0.77", stamp: int = LATER) -> SignedEndpoint:
    return sign_endpoint(key_of(name), CLUSTER_ID, Endpoint(host, 8471), stamp)


def sealed(endpoint: SignedEndpoint, secret: bytes = SECRET) -> bytes:
    return seal_beacon(Beacon(1, endpoint, endpoint.stamp), secret, NONCE)


def sending(members: int = 3, *secrets: bytes, name: str = "n1") -> Bench:
    bench = Bench(members, name=name)
    held = secrets or (SECRET,)
    bench.config = replace(bench.config, has_beacon=True, secrets=held)
    bench.peers = Peers(bench.config, None, bench.now)
    return bench


# --- the datagram -------------------------------------------------------------------------------
def test_it_is_what_the_page_says() -> None:
    """Made again from hmac, msgpack and PyNaCl alone."""
    endpoint = where("n2")
    fields = [CLUSTER_ID, node_id("n2"), "10.0.0.77", 8471, LATER, endpoint.signature]
    key = hmac.digest(SECRET, b"quipu/beacon/1\0", sha256)
    content = msgpack.packb([1, fields, LATER])
    assert sealed(endpoint) == SecretBox(key).encrypt(content, NONCE)
    assert open_beacon(sealed(endpoint), (OLD_SECRET, SECRET)).endpoint == endpoint


def test_the_longest_one_fits() -> None:
    longest = sign_endpoint(key_of("n2"), CLUSTER_ID, Endpoint("a" * 253, 65535), (1 << 64) - 1)
    assert len(sealed(longest)) <= limits.DATAGRAM_BYTES_MAX


@pytest.mark.parametrize(
    ("datagram", "cause"),
    [
        (b"", "foreign-beacon"),
        (bytes(24), "foreign-beacon"),
        (bytes(limits.DATAGRAM_BYTES_MAX + 1), "too-large"),
        (sealed(where("n2"), OLD_SECRET), "foreign-beacon"),
        (sealed(where("n2"))[:-1] + b"\0", "foreign-beacon"),
    ],
)
def test_what_no_beacon_is(datagram: bytes, cause: str) -> None:
    with pytest.raises(FrameRefused) as caught:
        open_beacon(datagram, (SECRET,))
    assert caught.value.cause == cause


@pytest.mark.parametrize("content", [b"", b"\xc0", b"\x93\x02\xc0\x01", b"\x91\x01"])
def test_a_holder_of_the_secret_may_still_talk_nonsense(content: bytes) -> None:
    key = hmac.digest(SECRET, b"quipu/beacon/1\0", sha256)
    bench = Bench()
    effects = bench.step(ins.BeaconHeard(bytes(SecretBox(key).encrypt(content, NONCE))))
    assert causes(effects) == ["malformed"]


# --- sending ------------------------------------------------------------------------------------
def test_one_a_second_for_each_secret_and_no_nonce_twice() -> None:
    bench = sending(3, SECRET, OLD_SECRET)
    effects = [*bench.step(), *bench.run(9_900)]
    datagrams = [beacon.datagram for beacon in of(effects, fx.SendBeacon)]
    assert len(datagrams) == 20
    assert len({datagram[:24] for datagram in datagrams}) == 20
    for secret in (SECRET, OLD_SECRET):
        opened = sum(1 for d in datagrams if opens(d, secret))
        assert opened == 10
    assert open_beacon(datagrams[0], (SECRET,)).endpoint.node_id == bench.me


def opens(datagram: bytes, secret: bytes) -> bool:
    try:
        open_beacon(datagram, (secret,))
    except FrameRefused:
        return False
    return True


def test_it_is_off_unless_asked_for_and_observers_send_none() -> None:
    assert of([*(bench := Bench()).step(), *bench.run(3_000)], fx.SendBeacon) == []
    observer = sending(3, name="n9")
    assert of([*observer.step(), *observer.run(3_000)], fx.SendBeacon) == []


def test_who_has_left_is_silent() -> None:
    bench = sending()
    bench.step(ins.LeaveAsked())
    assert of(bench.run(3_000), fx.SendBeacon) == []


# --- hearing ------------------------------------------------------------------------------------
def test_a_member_is_found_without_a_seed() -> None:
    bench = Bench()
    assert of(bench.step(), fx.OpenLink) == []
    effects = bench.step(ins.BeaconHeard(sealed(where("n2"))))
    assert of(effects, fx.OpenLink) == [fx.OpenLink(node_id("n2"), Endpoint("10.0.0.77", 8471))]
    assert bench.state("n2") is PeerState.UNKNOWN  # it is no sign of life


def test_a_recorded_one_changes_nothing() -> None:
    bench = Bench()
    datagram = sealed(where("n2"))
    bench.step(ins.BeaconHeard(datagram))
    bench.step(ins.LinkClosed(node_id("n2"), "refused"))
    again = bench.step(*[ins.BeaconHeard(datagram)] * 100)
    assert again == []
    older = bench.step(ins.BeaconHeard(sealed(where("n2", "10.0.0.66", LATER - 1))))
    assert older == []
    assert bench.view("n2").endpoint == Endpoint("10.0.0.77", 8471)


def test_nobody_is_sent_elsewhere_by_another_holder_of_the_secret() -> None:
    bench = Bench()
    forged = SignedEndpoint(CLUSTER_ID, node_id("n2"), "10.6.6.6", 1, LATER, where("n3").signature)
    assert causes(bench.step(ins.BeaconHeard(sealed(forged)))) == ["bad-signature"]
    elsewhere = sign_endpoint(key_of("n2"), bytes(32), endpoint_of("n2"), LATER)
    assert causes(bench.step(ins.BeaconHeard(sealed(elsewhere)))) == ["wrong-cluster"]
    assert bench.view("n2").endpoint is None


def test_strangers_and_oneself_are_passed_over() -> None:
    bench = Bench()
    bench.step()
    assert bench.step(ins.BeaconHeard(sealed(where("n9")))) == []
    assert bench.step(ins.BeaconHeard(sealed(where("n1")))) == []
    assert len(bench.peers.views()) == 2
