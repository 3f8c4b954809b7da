"""Every queue of a core has a bound; here they are measured from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.node import SimNode


def check_bounds(node: SimNode, now_us: int) -> None:
    """Filled in against what the core exposes."""
