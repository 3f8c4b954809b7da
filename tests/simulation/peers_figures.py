"""Figures of the peer machine from simulated worlds: how fast nodes find each other, how often a
living one is suspected, what idle peers cost. `make figures` writes them into docs/simulation.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from quipu.ledger.limits import ATTACHMENTS
from quipu.p2p.words import PeerState
from tests.simulation.network import FAIR, Weather
from tests.simulation.peers_world import PeersWorld, SimPeer

STEP_MS = 5
LATER_STEP_MS = 250
CONVERGED_MS_MAX = 60_000
SUSPICION_SPAN_MS = 60_000
IDLE_SPAN_MS = 10_000


@dataclass(frozen=True, slots=True)
class Convergence:
    """When how much of all that is wanted stood, in ms from the start of all nodes at once."""

    half_ms: int
    most_ms: int  # 99 %
    all_ms: int
    frames: int


def started(world: PeersWorld) -> list[SimPeer]:
    """All begin at once, with the URI of n1 alone."""
    world["n1"].start()
    for node in world.nodes[1:]:
        node.start(world["n1"])
    return [node for node in world.nodes if node.node_id in world.members]


def converge(members: int, observers: int, weather: Weather, seed: int = 1) -> Convergence:
    world = PeersWorld(seed, members, observers, weather)
    roster = started(world)
    ids = frozenset(world.members)
    wanted = members * (members - 1) + ATTACHMENTS * observers
    reached: dict[float, int] = {}
    while 1.0 not in reached and world.now_ms < CONVERGED_MS_MAX:
        world.run_ms(STEP_MS if world.now_ms < 1_000 else LATER_STEP_MS)
        up = sum(len(ids & node.up.keys()) for node in roster)
        up += sum(min(len(node.up), ATTACHMENTS) for node in world.nodes[members:])
        for share in (0.5, 0.99, 1.0):
            if up >= share * wanted:
                reached.setdefault(share, world.now_ms)
    assert 1.0 in reached, f"seed {seed}: not within {CONVERGED_MS_MAX} ms"
    return Convergence(reached[0.5], reached[0.99], reached[1.0], world.frames)


def false_suspicions(members: int, loss: float, seed: int = 1) -> tuple[int, int]:
    """How often a node that lives was suspected, and how often held for unreachable or dead."""
    world = PeersWorld(seed, members)
    started(world)
    world.run_ms(3_000)
    world.network.weather = replace(world.weather, loss=loss)
    before = {node: len(node.moves) for node in world.nodes}
    world.run_ms(SUSPICION_SPAN_MS)
    moves = [move.after for node in world.nodes for _, move in node.moves[before[node] :]]
    gone = (PeerState.UNREACHABLE, PeerState.DEAD, PeerState.LEFT)
    return moves.count(PeerState.SUSPECT), sum(move in gone for move in moves)


def idle(members: int) -> tuple[float, float]:
    """Frames and bytes that a node sends in a second in which nothing happens."""
    world = PeersWorld(1, members)
    started(world)
    world.run_ms(3_000)
    frames, size = world.frames, world.network.traffic.total_bytes
    world.run_ms(IDLE_SPAN_MS)
    seconds = IDLE_SPAN_MS / 1_000 * members
    return (world.frames - frames) / seconds, (world.network.traffic.total_bytes - size) / seconds


SLOW = replace(FAIR, base_us=50_000, jitter_us=10_000)
WEATHERS = {
    "1-3 ms": FAIR,
    "50-60 ms": SLOW,
    "1-3 ms, 5 % of frames lost": replace(FAIR, loss=0.05),
    "50-60 ms, 5 % of frames lost": replace(SLOW, loss=0.05),
}


def table() -> list[str]:
    lines = [
        "32 members and 100 observers start at once and know the URI of one of them. Wanted are",
        "all 992 ways between members, and 3 members for each observer, verified both ways.",
        "",
        "| one way | half of it | 99 % | all | frames |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, weather in WEATHERS.items():
        found = converge(32, 100, weather)
        reached = " | ".join(f"{ms} ms" for ms in (found.half_ms, found.most_ms, found.all_ms))
        lines.append(f"| {name} | {reached} | {found.frames} |")
    lines += [
        "",
        "False suspicions: 32 members that all live, 992 ways, one minute. A lost frame is lost",
        "for good here; over TCP it comes late.",
        "",
        "| frames lost | suspected | unreachable, dead or left |",
        "| ---: | ---: | ---: |",
    ]
    for loss in (0.05, 0.1, 0.2, 0.3):
        suspected, gone = false_suspicions(32, loss)
        lines.append(f"| {loss:.0%} | {suspected} | {gone} |")
    lines += [
        "",
        "Idle: what a node sends in a second.",
        "",
        "| members | frames | bytes |",
        "| ---: | ---: | ---: |",
    ]
    for members in (1, 3, 5, 7, 10, 32):
        frames, size = idle(members)
        lines.append(f"| {members} | {frames:.1f} | {size:.0f} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
