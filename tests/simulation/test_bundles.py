"""What a world made final, every node can prove to a stranger."""

from collections.abc import Iterator

import pytest

from quipu import verify as offline
from quipu.ledger.bundle import check_bundle
from quipu.ledger.bundle_build import Lineage, build_bundle
from quipu.ledger.signing import verify
from quipu.ledger.words import EventId
from tests.simulation.node import SimNode
from tests.simulation.runs import Run
from tests.simulation.scenario import generate


def read_of(node: SimNode) -> Iterator[EventId]:
    """Every Read event that a node holds, down each of its branches."""
    seen: set[EventId] = set()
    for branch in node.disk.saved().branches:
        identity = branch.read_id
        while identity not in seen and (meta := node.disk.history.meta(identity)) is not None:
            seen.add(identity)
            yield identity
            identity = meta.prev


@pytest.mark.parametrize("seed", [1, 26])
def test_every_read_event_has_a_bundle_that_verifies(seed: int) -> None:
    """Seeds with loss, crashes and liars; in the last one epochs open, and cuts are needed."""
    run = Run(generate(seed))
    run.run()
    proven = 0
    for node in run.world.honest():
        lineage = Lineage.of(run.world.genesis, node.disk.saved().epochs)
        for identity in read_of(node):
            data = build_bundle(node.disk.history, lineage, identity, 0)
            found = offline.verify(data, run.world.genesis)
            assert found.event_id == check_bundle(data, verify).event == identity
            proven += 1
    assert proven > 50
