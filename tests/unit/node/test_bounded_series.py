"""Peers that come and go leave no series behind, nor anything else that grows with them."""

import asyncio
from pathlib import Path
from typing import Any, cast

from quipu.ledger.words import NodeId
from quipu.node.network import Network
from quipu.node.service import Metrics
from quipu.p2p import effects as fx
from quipu.p2p.refusals import Cause
from quipu.p2p.words import PeerState
from tests.small_node import running, small_node

PEERS = 1_000
NO_TRANSPORT = cast(Any, None)  # nothing is sent


def series(metrics: Metrics) -> set[str]:
    parts: tuple[dict[str, Any], ...] = (metrics.counters, metrics.gauges, metrics.histograms)
    refused = {f"refused {reason}" for reason in metrics.refused}
    return {name for part in parts for name in part} | refused


def visit(network: Network, number: int, cause: Cause) -> None:
    """It is seen, greeted, refused for something, and gone."""
    peer = NodeId(number.to_bytes(32, "big"))
    alive, dead = PeerState.ALIVE, PeerState.DEAD
    for effect in (
        fx.StateChanged(peer, dead, alive, "heard"),
        fx.PeerUp(peer),
        fx.Refusal(peer, cause, f"by peer {number}"),
        fx.PeerDown(peer),
        fx.StateChanged(peer, alive, dead, "silent"),
    ):
        network._carry_out(effect, NO_TRANSPORT)


def test_a_thousand_peers_leave_no_series(tmp_path: Path) -> None:
    async def test() -> None:
        causes = list(Cause)
        async with small_node(tmp_path) as node:
            ledger, network = node.ledger, node.ledger.network
            for number, cause in enumerate(causes, start=1):
                visit(network, number, cause)
            before = series(ledger.metrics())
            for number in range(PEERS):
                visit(network, 1_000 + number, causes[number % len(causes)])
                await asyncio.sleep(0)
            await ledger.turns.idle()
            after = ledger.metrics()
            assert series(after) == before
            assert sum(after.refused.values()) >= PEERS
            assert (after.gauges["peers_up"], len(network.up)) == (0, 0)
            assert not ledger.machine.core.sync.views

    running(test)
