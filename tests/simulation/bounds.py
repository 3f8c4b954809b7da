"""Every queue of a core has a bound; here they are measured from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quipu.ledger import limits
from tests.simulation.violation import Property, Violation

if TYPE_CHECKING:
    from quipu.ledger.core import Core
    from tests.simulation.node import SimNode

STEP_METAS_MAX = 2 * limits.ANSWER_EVENTS_MAX  # one step adds before the next one trims
WAITING_LOOKED_AT = 64


def measures(core: Core) -> list[tuple[str, int, int]]:
    """What a core keeps in memory: name, how much there is, how much there may be."""
    intake, receipts = core.intake, core.receipts
    waiting = intake.waiting
    members = len(core.epochs.node_ids)
    coming = len(core.known.coming.members) if core.known.coming else 0
    forked = max((len(branches) for branches in core.dag.cords.values()), default=0)
    rows = max((len(view.rows) for view in core.sync.views.values()), default=0)
    cords = max((len(ids) for ids in waiting._cords.values()), default=0)
    return [
        ("events waiting", len(waiting._events), limits.WAITING_EVENTS_MAX),
        ("bytes waiting", waiting.size_bytes, limits.WAITING_BYTES_MAX),
        ("events of one cord waiting", cords, limits.WAITING_PER_CORD_MAX),
        ("ids wanted", len(core.fetch.wanted), limits.WANTS_MAX),
        (
            "requests",
            len(core.fetch._requests),
            limits.REQUESTS_PER_PEER_MAX * max(1, len(core.sync.views)) + limits.PEERS_MAX,
        ),
        ("ids refused", len(intake.refused), limits.REFUSED_RECENT_MAX),
        ("summaries", len(core.past._metas), limits.METAS_RECENT_MAX + STEP_METAS_MAX),
        ("receipts of epochs to come", len(receipts._future), members + coming),
        ("branches of a cord", forked, limits.BRANCHES_PER_CORD_MAX),
        ("rows of a peer", rows, limits.SYNC_ROWS_MAX),
        ("peers", len(core.sync.views), limits.PEERS_MAX),
        *(
            (f"parked rows of {signer}", receipts.parked_count(signer), parked_max())
            for signer in receipts._parked
        ),
    ]


def parked_max() -> int:
    return limits.PARKED_ROWS_PER_SIGNER_MAX + 1  # two of the last cord


def check_bounds(node: SimNode, now_us: int) -> None:
    assert node.core is not None
    for name, amount, bound in measures(node.core):
        if amount > bound:
            raise Violation(Property.BOUNDS, f"{node}: {amount} {name}, at most {bound}", now_us)


def check_waiting(node: SimNode, now_us: int) -> None:
    """Whatever waits for ancestors lacks one."""
    if node.core is None:
        return
    for waiting in list(node.core.intake.waiting._events.values())[:WAITING_LOOKED_AT]:
        header = waiting.event.header
        edges = [*header.parents, header.prev] if header.seq > 1 else header.parents
        if all(edge in node.shadow.held for edge in edges):
            detail = f"{node}: {waiting.event.id.hex()[:8]} waits although all ancestors are held"
            raise Violation(Property.WAITING_WAITS, detail, now_us)
