"""Where a node accepts connections, signed by that node: nobody can redirect another one.

Of two endpoints of a node the one with the newer stamp counts. People write them as
`quipu://host:port/<node id>`.
"""

import ipaddress
import re
from typing import Annotated

import msgspec

from quipu.ledger import signing
from quipu.ledger.canonical import encode
from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.forms import U64, Bytes32, Form, Signature
from quipu.p2p.refusals import Cause, refuse
from quipu.p2p.words import Endpoint

TAG_ENDPOINT = b"quipu/sig/endpoint/1\0"
SCHEME = "quipu://"
EXAMPLE = "quipu://host:port/ and then the 64 hex digits of the node id"

_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_NODE_ID = re.compile(r"[0-9a-fA-F]{64}")
_PORT = re.compile(r"[0-9]{1,5}")


class BadUri(ValueError):
    """A text that names no node; says what is wrong with it and how it should look."""


class SignedEndpoint(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    cluster_id: Bytes32
    node_id: Bytes32
    host: str
    port: Annotated[int, msgspec.Meta(ge=0, le=limits.PORT_MAX)]
    stamp: U64  # of one node, the greater is the newer
    signature: Signature

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.host, self.port)


_form = Form(SignedEndpoint, limits.BODY_BYTES_MAX)


def _signed_part(cluster_id: bytes, node_id: bytes, endpoint: Endpoint, stamp: int) -> bytes:
    return TAG_ENDPOINT + encode([cluster_id, node_id, *endpoint, stamp])


def sign_endpoint(
    key: signing.KeyPair, cluster_id: bytes, endpoint: Endpoint, stamp: int
) -> SignedEndpoint:
    signature = key.sign(_signed_part(cluster_id, key.node_id, endpoint, stamp))
    return SignedEndpoint(cluster_id, key.node_id, *endpoint, stamp, signature)


def check_endpoint(signed: SignedEndpoint, cluster_id: bytes, verify: signing.Verifier) -> None:
    """Of this cluster, possible to dial, and signed by the node that it is about."""
    if signed.cluster_id != cluster_id:
        refuse(Cause.WRONG_CLUSTER, "of an endpoint")
    if not is_host(signed.host) or signed.port == 0:
        refuse(Cause.BAD_ENDPOINT, repr(str(signed.endpoint))[:80])
    part = _signed_part(cluster_id, signed.node_id, signed.endpoint, signed.stamp)
    if not verify(signed.node_id, part, signed.signature):
        refuse(Cause.BAD_SIGNATURE, "of an endpoint")


def is_newer(one: SignedEndpoint, other: SignedEndpoint) -> bool:
    """All nodes choose alike, even where a node signed two endpoints under one stamp."""
    return (one.stamp, one.signature) > (other.stamp, other.signature)


def encode_endpoint(signed: SignedEndpoint) -> bytes:
    return encode(signed)


def decode_endpoint(data: bytes) -> SignedEndpoint:
    """Its signature is not looked at: `check_endpoint` does that."""
    return _form.decode(data)


def is_host(text: str) -> bool:
    """An IP address that can be dialled, or a DNS name."""
    if not text.isascii() or len(text) > limits.HOST_BYTES_MAX:
        return False
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        labels = text.split(".")
        is_number = labels[-1].isdigit()  # 1.2.3.400 is no name, it is a mistake
        return not is_number and all(_LABEL.fullmatch(label) for label in labels)
    return not address.is_unspecified and "%" not in text  # a zone says something to one host only


# --- as people write them -----------------------------------------------------------------------
def parse_endpoint(text: str) -> Endpoint:
    """`host:port`, an IPv6 address in brackets."""
    host, colon, port = text.rpartition(":")
    if not colon or "]" in port:
        raise BadUri(f"{text!r} has no port; write host:port, as 10.0.0.1:8471 or [::1]:8471")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        if ":" not in host:
            raise BadUri(f"{text!r}: only an IPv6 address stands in brackets")
    elif ":" in host:
        raise BadUri(f"{text!r}: an IPv6 address stands in brackets, as [::1]:8471")
    if not _PORT.fullmatch(port) or not 0 < int(port) <= limits.PORT_MAX:
        raise BadUri(f"{text!r}: the port is a number from 1 to {limits.PORT_MAX}")
    if not is_host(host):
        raise BadUri(f"{text!r}: {host!r} is no IP address or DNS name that can be dialled")
    return Endpoint(host, int(port))


def parse_uri(text: str) -> tuple[NodeId, Endpoint]:
    if not text.startswith(SCHEME):
        raise BadUri(f"{text!r} does not begin with {SCHEME}; write {EXAMPLE}")
    where, slash, node_id = text.removeprefix(SCHEME).partition("/")
    if not slash or not node_id:
        raise BadUri(f"{text!r} has no node id; write {EXAMPLE}")
    if not _NODE_ID.fullmatch(node_id):
        raise BadUri(
            f"{text!r}: a node id is 64 hex digits, these are {len(node_id)} characters; "
            "`quipu keys` on that node shows it"
        )
    return NodeId(bytes.fromhex(node_id)), parse_endpoint(where)


def uri_of(node_id: NodeId, endpoint: Endpoint) -> str:
    return f"{SCHEME}{endpoint}/{node_id.hex()}"
