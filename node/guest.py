"""A first start with nothing but a URI and the cluster's secret: asks that node for the genesis.

The answer comes to the address that other nodes are told to dial, so a start that succeeds has
shown that this address is right.
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from quipu import __version__
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import NodeId, Now
from quipu.node.exits import BadSetting, CannotStart, NotAdmitted, SeedUnreachable
from quipu.node.founding import read_cluster_secrets
from quipu.node.invitation import Invitation
from quipu.node.joining import ENTROPY_BITS, advertised, check_advertised, listen
from quipu.node.settings import Settings
from quipu.p2p.addresses import BadUri, parse_uri
from quipu.p2p.effects import OpenLink, SendFrame
from quipu.p2p.guest import Effect, Failed, Failure, Guest, GuestConfig
from quipu.p2p.inputs import Input
from quipu.p2p.refusals import Cause
from quipu.p2p.transport import Happening, Transport
from quipu.p2p.words import Endpoint

NS_PER_MS = 1_000_000
MS_PER_S = 1_000


def guest_of(settings: Settings) -> Callable[[KeyPair], Invitation]:
    """How the URI in `node.join` becomes an invitation. Raises `BadSetting`, now or then."""
    assert settings.node.join is not None
    try:
        host, where = parse_uri(settings.node.join)
    except BadUri as error:
        raise BadSetting(
            f"node.join: {error}", "`quipu keys` on that node shows its URI."
        ) from error
    return partial(_invitation, settings, host, where)


def _invitation(settings: Settings, host: NodeId, where: Endpoint, key: KeyPair) -> Invitation:
    check_advertised(settings)
    known = _secrets(settings)
    with ThreadPoolExecutor(1) as pool:  # the caller may be within a loop, which waits for this
        genesis = pool.submit(asyncio.run, _ask(settings, (host, where), known, key)).result()
    return Invitation(genesis, ((host, where),), known[0])


def _secrets(settings: Settings) -> tuple[bytes, ...]:
    file = settings.node.secret_file
    if file is None:
        raise BadSetting(
            "node.join is a URI, and node.secret_file names no file",
            "Say --secret-file FILE: a copy of cluster.key of a member, mode 0600.",
        )
    try:
        return read_cluster_secrets(file)
    except OSError as error:
        raise BadSetting(
            f"cannot read {file}: {error.strerror or error}",
            "Copy cluster.key of a member to it, mode 0600.",
        ) from error


async def _ask(
    settings: Settings, seed: tuple[NodeId, Endpoint], known: tuple[bytes, ...], key: KeyPair
) -> bytes:
    asking = _Asking()
    transport = listen(settings, key, asking.hear)
    try:
        config = GuestConfig(
            key,
            *seed,
            known,
            settings.node.name,
            __version__,
            advertised(settings.p2p.advertise, transport.bound),
            secrets.randbits(ENTROPY_BITS),
        )
        outcome = await asking.run(Guest(config, _now()), transport)
    finally:
        await transport.stop()
    if isinstance(outcome, Failed):
        raise _explained(outcome, config, settings)
    return outcome


@dataclass(slots=True)
class _Asking:
    """The guest's machine on its loop."""

    heard: list[Input] = field(default_factory=list)
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def hear(self, happening: Happening) -> None:
        self.heard.append(happening)
        self.woken.set()

    async def run(self, guest: Guest, transport: Transport) -> bytes | Failed:
        _carry_out(guest.begin(), transport)
        while guest.outcome is None:
            left_ms = guest.next_deadline() - _now().monotonic_ms
            try:
                async with asyncio.timeout(max(left_ms, 1) / MS_PER_S):
                    await self.woken.wait()
            except TimeoutError:
                pass  # the step below sees what is due
            self.woken.clear()
            inputs, self.heard = self.heard, []
            _carry_out(guest.step(inputs, _now()), transport)
        return guest.outcome


def _carry_out(effects: list[Effect], transport: Transport) -> None:
    for effect in effects:
        match effect:
            case OpenLink(peer, endpoint):
                transport.open(peer, endpoint)
            case SendFrame(peer, head, content):
                transport.send(peer, head, content)


def _now() -> Now:
    return Now(time.time_ns() // NS_PER_MS, time.monotonic_ns() // NS_PER_MS)


# --- in words -----------------------------------------------------------------------------------
def _explained(failed: Failed, config: GuestConfig, settings: Settings) -> CannotStart:
    where = config.host_endpoint
    match failed.failure:
        case Failure.UNREACHABLE:
            return SeedUnreachable(
                f"cannot reach {where} ({failed.detail})",
                "Is that node running, and is this its p2p address? `quipu keys` there shows it.",
            )
        case Failure.OTHER_NODE:
            return NotAdmitted(
                f"what answers at {where} is not node {config.host.hex()[:16]}: another node, or "
                "no node at all",
                "Take the URI from `quipu keys` on that node: its id may be of an older key.",
            )
        case Failure.REFUSED:
            return NotAdmitted(
                f"{where} refuses this node: {settings.node.secret_file} does not hold its "
                "cluster's secret",
                "Copy cluster.key anew from a member; the log of that node has its reason.",
            )
        case Failure.UNANSWERED:
            return SeedUnreachable(
                f"{where} was reached and sent no genesis {failed.detail}: most likely it cannot "
                f"dial {config.endpoint}",
                "Set p2p.listen or p2p.advertise to an address that it can reach; a node of an "
                "older version answers nobody: then use an invitation file.",
            )
        case Failure.ANSWER:
            return _unusable(failed, where)


def _unusable(failed: Failed, where: Endpoint) -> CannotStart:
    match failed.cause:
        case Cause.WRONG_SECRET:
            return NotAdmitted(
                f"{where} does not prove the secret of this node's file",
                "Copy cluster.key anew from a member.",
            )
        case Cause.NO_COMMON_VERSION:
            return CannotStart(
                f"no version of the protocol is common with {where} ({failed.detail})",
                "Upgrade the older of the two.",
            )
        case _:
            return NotAdmitted(
                f"{where} answers with what cannot be taken ({failed.detail})",
                "Ask another member; that one is broken, or of another version.",
            )
