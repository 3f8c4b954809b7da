"""HELLO as a proof: who may talk, and as whom.

The link has proven a key. HELLO claims a node id, and that key must be the one of that id. The
HMAC shows that its sender holds a secret of the cluster: it admits, it is never identity. No clock
is asked: what was recorded is useless on a link that somebody else has opened.
"""

import hmac
import re
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import NamedTuple

import msgspec

from quipu.ledger import signing
from quipu.ledger.limits import NAME_BYTES_MAX
from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.addresses import SignedEndpoint, check_endpoint
from quipu.p2p.decen import Hello
from quipu.p2p.forms import is_text
from quipu.p2p.link_keys import link_key_of
from quipu.p2p.refusals import Cause, refuse
from quipu.p2p.words import LinkKey, PoolName, Start

PROTOCOL_MIN = 1  # the lowest protocol version that this node speaks
PROTOCOL_MAX = 1
NO_CLUSTER = bytes(32)  # in the HELLO of a guest: it does not know the cluster's id yet

_NUMBER = re.compile(r"0|[1-9][0-9]{0,19}")
_HEX = re.compile(r"(?:[0-9a-f]{2})+")


@dataclass(frozen=True, slots=True)
class Card:
    """What a node says of itself in each HELLO, and what it holds others' against."""

    node_id: NodeId
    name: str
    start: Start
    version: str  # of the program, for people
    endpoint: SignedEndpoint
    secrets: tuple[bytes, ...] = field(repr=False)  # of the cluster; any of them admits

    @property
    def cluster_id(self) -> bytes:
        return self.endpoint.cluster_id


class Pools(NamedTuple):
    """The pools a node is in, and its running number of changes to them."""

    names: tuple[PoolName, ...]
    status: int


class Greeting(NamedTuple):
    """A HELLO that was verified."""

    peer: NodeId
    name: str
    start: Start
    version: str
    protocol: int  # the highest version that both speak
    endpoint: SignedEndpoint
    pools: Pools


def build_hello(card: Card, receiver: NodeId, sequence: int, pools: Pools) -> Hello:
    assert 0 < len(card.secrets) <= limits.SECRETS_MAX
    macs = [hello_mac(secret, card.node_id, receiver, card.start) for secret in card.secrets]
    headers = {
        "cluster": card.cluster_id.hex(),
        "node": card.node_id.hex(),
        "name": card.name,
        "start": str(card.start),
        "protocol-min": str(PROTOCOL_MIN),
        "protocol-max": str(PROTOCOL_MAX),
        "version": card.version,
        "hmac": ",".join(mac.hex() for mac in macs),
        "stamp": str(card.endpoint.stamp),
        "signature": card.endpoint.signature.hex(),
    }
    host, port = card.endpoint.endpoint
    return Hello(sequence, host, port, pools.names, pools.status, tuple(headers.items()))


def hello_mac(secret: bytes, sender: NodeId, receiver: NodeId, start: Start) -> bytes:
    message = b"hello" + sender + receiver + start.to_bytes(8, "big")
    return hmac.digest(secret, message, sha256)


def verify_hello(
    hello: Hello, key: LinkKey, card: Card, verify: signing.Verifier = signing.verify
) -> Greeting:
    """`key` is what the link has proven. What an operator can mend is told first."""
    headers = _Headers(dict(hello.headers))
    cluster_id = headers.octets("cluster", 32)
    if cluster_id != card.cluster_id:
        refuse(Cause.WRONG_CLUSTER, cluster_id.hex())
    peer = NodeId(headers.octets("node", 32))
    if link_key_of(peer) != key:
        refuse(Cause.WRONG_KEY, peer.hex())
    if peer == card.node_id:
        refuse(Cause.OWN_IDENTITY, peer.hex())
    protocol = _highest_common(headers)
    start = Start(headers.number("start", 2**64 - 1))
    _check_macs(headers, peer, start, card)
    endpoint = SignedEndpoint(
        cluster_id,
        peer,
        hello.host,
        hello.port,
        headers.number("stamp", 2**64 - 1),
        headers.octets("signature", 64),
    )
    check_endpoint(endpoint, cluster_id, verify)
    name = headers.text("name", NAME_BYTES_MAX)
    version = headers.text("version", limits.VERSION_TEXT_BYTES_MAX)
    pools = Pools(hello.pools, hello.status)
    return Greeting(peer, name, start, version, protocol, endpoint, pools)


# --- guests -------------------------------------------------------------------------------------
def is_of_guest(hello: Hello) -> bool:
    return ("cluster", NO_CLUSTER.hex()) in hello.headers


def verify_guest(
    hello: Hello, key: LinkKey, card: Card, verify: signing.Verifier = signing.verify
) -> Greeting:
    """As any HELLO, under the id of no cluster. Versions are left to the guest: it reads those of
    the answer, and has somebody to tell."""
    spoken = {"protocol-min": str(PROTOCOL_MIN), "protocol-max": str(PROTOCOL_MAX)}
    told = replace(hello, headers=tuple((dict(hello.headers) | spoken).items()))
    return verify_hello(told, key, _in_cluster(card, NO_CLUSTER), verify)


def verify_host(
    hello: Hello, key: LinkKey, card: Card, verify: signing.Verifier = signing.verify
) -> Greeting:
    """What a guest takes: of whatever cluster, which the endpoint in the greeting names."""
    cluster_id = _Headers(dict(hello.headers)).octets("cluster", 32)
    return verify_hello(hello, key, _in_cluster(card, cluster_id), verify)


def _in_cluster(card: Card, cluster_id: bytes) -> Card:
    return replace(card, endpoint=msgspec.structs.replace(card.endpoint, cluster_id=cluster_id))


# ------------------------------------------------------------------------------------------------
def _highest_common(headers: "_Headers") -> int:
    lowest, highest = headers.number("protocol-min", 255), headers.number("protocol-max", 255)
    common = min(highest, PROTOCOL_MAX)
    if lowest > highest:
        refuse(Cause.MALFORMED, f"protocol {lowest} to {highest}")
    if common < max(lowest, PROTOCOL_MIN):
        refuse(
            Cause.NO_COMMON_VERSION,
            f"it speaks {lowest} to {highest}, this node {PROTOCOL_MIN} to {PROTOCOL_MAX}",
        )
    return common


def _check_macs(headers: "_Headers", peer: NodeId, start: Start, card: Card) -> None:
    told = headers.text("hmac", limits.TEXT_BYTES_MAX)
    macs = [_octets("hmac", text, 32) for text in told.split(",")]
    for secret in card.secrets:
        expected = hello_mac(secret, peer, card.node_id, start)
        if any([hmac.compare_digest(mac, expected) for mac in macs]):  # noqa: C419 - all of them
            return
    refuse(Cause.WRONG_SECRET, peer.hex())


class _Headers:
    """The headers of a HELLO, each read in one form only."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values

    def text(self, name: str, bytes_max: int) -> str:
        value = self._values.get(name)
        if value is None or not is_text(value, bytes_max):
            refuse(Cause.MALFORMED, f"HELLO header {name}")
        return value

    def number(self, name: str, most: int) -> int:
        value = self.text(name, 20)
        if not _NUMBER.fullmatch(value) or int(value) > most:
            refuse(Cause.MALFORMED, f"HELLO header {name}")
        return int(value)

    def octets(self, name: str, count: int) -> bytes:
        return _octets(name, self.text(name, limits.TEXT_BYTES_MAX), count)


def _octets(name: str, text: str, count: int) -> bytes:
    if len(text) != 2 * count or not _HEX.fullmatch(text):
        refuse(Cause.MALFORMED, f"HELLO header {name}")
    return bytes.fromhex(text)
