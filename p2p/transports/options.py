"""Options of the sockets. libzmq's own defaults are without bounds."""

import errno
import ipaddress
from dataclasses import dataclass

import zmq

from quipu.ledger.signing import KeyPair
from quipu.p2p import limits
from quipu.p2p.link_keys import link_key_of, link_secret_of
from quipu.p2p.transports.readable import Socket
from quipu.p2p.transports.zap import DOMAIN
from quipu.p2p.words import Endpoint, LinkKey

CURVE_BYTES = 42  # more for each part on the wire: of CURVE 33, of ZMTP 9 at most
PORT_MAX = 65_535
SERVER_FRAME_BYTES_MAX = limits.KIB  # a ROUTER sends the handshake and heartbeats, nothing else


@dataclass(frozen=True, slots=True)
class Curve:
    """The CURVE keys of a node."""

    public: LinkKey
    secret: bytes

    @classmethod
    def of(cls, key: KeyPair) -> "Curve":
        public = link_key_of(key.node_id)
        assert public is not None, "an own key is a point"
        return cls(public, link_secret_of(key))

    def __repr__(self) -> str:  # a secret never reaches a log
        return f"Curve({self.public.hex()[:16]})"


def address_of(endpoint: Endpoint) -> str:
    """Raises `zmq.ZMQError` for no port at all: libzmq would take another in its place."""
    if not 0 <= endpoint.port <= PORT_MAX:
        raise zmq.ZMQError(errno.EINVAL)
    return f"tcp://{endpoint}"


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def set_router(socket: Socket, own: Curve, listen: Endpoint) -> None:
    _set_both(socket, own, listen)
    socket.curve_server = True
    socket.zap_domain = DOMAIN
    socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
    socket.maxmsgsize = limits.CONTENT_BYTES_MAX + CURVE_BYTES
    socket.rcvhwm = limits.RECEIVE_HWM_FRAMES
    socket.sndhwm = 1  # it never sends
    socket.backlog = limits.BACKLOG_MAX
    socket.router_handover = False  # a newcomer never takes the name of a living connection
    socket.linger = 0


def set_dealer(socket: Socket, own: Curve, server: LinkKey, peer: Endpoint) -> None:
    _set_both(socket, own, peer)
    socket.curve_serverkey = server
    socket.maxmsgsize = SERVER_FRAME_BYTES_MAX
    socket.sndhwm = limits.SEND_HWM_FRAMES
    socket.rcvhwm = 1  # it never reads
    socket.connect_timeout = limits.CONNECT_TIMEOUT_MS
    socket.reconnect_ivl = -1  # one connection: its end is told, and the machine dials anew
    socket.linger = limits.LINGER_MS


def _set_both(socket: Socket, own: Curve, endpoint: Endpoint) -> None:
    socket.ipv6 = ":" in endpoint.host
    socket.curve_publickey, socket.curve_secretkey = own.public, own.secret
    socket.handshake_ivl = limits.HANDSHAKE_TIMEOUT_MS
    # These also find what TCP's own keepalive is for, in seconds and not in hours.
    socket.heartbeat_ivl = limits.LINK_HEARTBEAT_INTERVAL_MS
    socket.heartbeat_timeout = limits.LINK_HEARTBEAT_TIMEOUT_MS
