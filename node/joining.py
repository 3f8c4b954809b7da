"""From settings and data directory to a running network."""

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from quipu import __version__
from quipu.ledger import signing
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import NOT_A_MEMBER, NodeId
from quipu.node.data_directory import PEERS_FILE, DataDirectory
from quipu.node.exits import BadSetting, PortTaken
from quipu.node.founding import read_seeds
from quipu.node.network import Network
from quipu.node.settings import Address, Settings
from quipu.node.view import View
from quipu.p2p.addresses import BadUri, check_endpoint, is_host, parse_uri
from quipu.p2p.desk import PeersConfig
from quipu.p2p.inputs import Input, SeedGiven
from quipu.p2p.kept import decode_kept
from quipu.p2p.limits import KEPT_BYTES_MAX
from quipu.p2p.peers import Peers
from quipu.p2p.refusals import FrameRefused
from quipu.p2p.transport import Hear, Transport
from quipu.p2p.transports import screen
from quipu.p2p.transports.group_socket import (
    BEACONS,
    CASTS,
    CannotMulticast,
    GroupSocket,
    Reading,
)
from quipu.p2p.transports.refusals import AddressTaken, CannotListen
from quipu.p2p.transports.zmq_transport import ZmqTransport
from quipu.p2p.words import Endpoint

ENTROPY_BITS = 64
ANY_INTERFACE = "0.0.0.0"  # the system chooses one  # noqa: S104


def join_network(
    settings: Settings, directory: DataDirectory, view: View, network: Network
) -> Endpoint:
    """Within the running loop; answers where others reach this node. Raises `CannotStart`."""
    seeds = _seeds(settings, directory)
    transport = _listen(settings, directory, network)
    endpoint = advertised(settings.p2p.advertise, transport.bound)
    epoch = view.epoch
    config = PeersConfig(
        key=directory.key,
        cluster_id=directory.cluster_id,
        secrets=directory.cluster_secrets,
        name=settings.node.name,
        version=__version__,
        endpoint=endpoint,
        node_no=epoch.numbers.get(directory.key.node_id, NOT_A_MEMBER),
        members=tuple(epoch.members.values()),
        entropy=secrets.randbits(ENTROPY_BITS),
        genesis=directory.genesis,
        has_beacon=settings.p2p.beacon is not None,
        has_multicast=settings.p2p.multicast is not None,
    )
    peers = Peers(config, _kept(directory), network.clock())
    first: list[Input] = [SeedGiven(peer, where) for peer, where in seeds]
    network.troubles.own_name, network.troubles.own_endpoint = settings.node.name, endpoint
    network.beacon = _group(settings, "beacon", network.hear_beacon, BEACONS)
    network.multicast = _group(settings, "multicast", network.hear_cast, CASTS)
    network.run(peers, transport, first)
    return endpoint


def _listen(settings: Settings, directory: DataDirectory, network: Network) -> Transport:
    """Behind a screen where a test wants to part this node from others."""
    file = os.environ.get(screen.VARIABLE)
    between = screen.Screen(Path(file), network.hear) if file else None
    hear = network.hear if between is None else between.hear
    transport = listen(settings, directory.key, hear)
    if between is None:
        return transport
    network.log.warning("peers may be blocked on purpose", by=file)
    network.screen = between
    between.over(transport)
    return between


def _group(
    settings: Settings, name: str, hear: Callable[[bytes], None], reading: Reading
) -> GroupSocket | None:
    """By the interface of the address that others dial, where it is one of this machine."""
    group: Address | None = getattr(settings.p2p, name)
    if group is None:
        return None
    dialled = (settings.p2p.advertise or settings.p2p.listen).host
    try:
        with suppress(CannotMulticast):
            return GroupSocket(Endpoint(*group), dialled, hear, reading)
        return GroupSocket(Endpoint(*group), ANY_INTERFACE, hear, reading)
    except CannotMulticast as error:
        raise BadSetting(
            f"p2p.{name}: {error}",
            "Name an IPv4 multicast group and a port, as 239.77.0.1:8473, or none.",
        ) from error


def listen(settings: Settings, key: KeyPair, hear: Hear) -> Transport:
    """Raises `CannotStart`."""
    try:
        return ZmqTransport(key, Endpoint(*settings.p2p.listen), hear)
    except AddressTaken as error:
        raise PortTaken(f"p2p.listen: {error.what}", error.next_step) from error
    except CannotListen as error:
        raise BadSetting(f"p2p.listen: {error.what}", error.next_step) from error


def check_advertised(settings: Settings) -> None:
    """Before anything is made. Raises `BadSetting`."""
    listen, advertise = settings.p2p.listen, settings.p2p.advertise
    if advertise is None and not is_host(listen.host):
        raise BadSetting(
            f"p2p.listen is {listen}, which nobody can dial",
            "Set p2p.advertise to the host:port by which other nodes reach this one.",
        )
    if advertise is not None and not is_host(advertise.host):
        raise BadSetting(
            f"p2p.advertise = {advertise}: no IP address or DNS name that can be dialled",
            "Give the host:port by which other nodes reach this one.",
        )


def advertised(advertise: Address | None, bound: Endpoint) -> Endpoint:
    """With port 0 the port that was found stands in its place."""
    if advertise is None:
        return bound
    return Endpoint(advertise.host, advertise.port or bound.port)


def _seeds(settings: Settings, directory: DataDirectory) -> tuple[tuple[NodeId, Endpoint], ...]:
    try:
        given = tuple(parse_uri(uri) for uri in settings.p2p.peers)
    except BadUri as error:
        raise BadSetting(
            f"p2p.peers: {error}", "`quipu keys` on that node shows its URI."
        ) from error
    return given + read_seeds(directory.path)


def addresses_met(directory: DataDirectory) -> list[tuple[NodeId, Endpoint]]:
    """Members that this node has met, and where; what cannot be read is not there."""
    kept, met = _kept(directory), []
    with suppress(FrameRefused):
        for peer in decode_kept(kept).peers if kept is not None else ():
            if peer.endpoint is not None:
                check_endpoint(peer.endpoint, directory.cluster_id, signing.verify)
                met.append((NodeId(peer.node_id), peer.endpoint.endpoint))
    return met


def _kept(directory: DataDirectory) -> bytes | None:
    with suppress(FileNotFoundError), (directory.path / PEERS_FILE).open("rb") as file:
        return file.read(KEPT_BYTES_MAX + 1)
    return None
