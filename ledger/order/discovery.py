"""The three states of a node (seed 000) as a table: DSC discovery, WRK work, ERR error.

DSCREQ asks neighbours who they are, DSCRES answers, SEQRES asks for a sequence, SEQ answers. Which
number wins is decided elsewhere: the highest that comes with a certificate.
"""

from enum import StrEnum


class NodeState(StrEnum):
    DSC = "DSC"
    WRK = "WRK"
    ERR = "ERR"


class Happening(StrEnum):
    ALONE = "alone"  # the genesis names this node alone, or an operator says so
    LEARNED = "learned"  # the highest certified number was taken over
    DIFFERS = "differs"  # the own running digest is not that of the quorum
    REPAIRED = "repaired"  # an operator has set the node right: it discovers again


STATES: dict[tuple[NodeState, Happening], NodeState] = {
    (NodeState.DSC, Happening.ALONE): NodeState.WRK,
    (NodeState.DSC, Happening.LEARNED): NodeState.WRK,
    (NodeState.DSC, Happening.DIFFERS): NodeState.ERR,
    (NodeState.WRK, Happening.LEARNED): NodeState.WRK,
    (NodeState.WRK, Happening.DIFFERS): NodeState.ERR,
    (NodeState.ERR, Happening.DIFFERS): NodeState.ERR,
    (NodeState.ERR, Happening.REPAIRED): NodeState.DSC,
}


class NotInThisState(Exception):
    """The table has no way out of this state by that happening."""


def next_state(state: NodeState, happening: Happening) -> NodeState:
    found = STATES.get((state, happening))
    if found is None:
        raise NotInThisState(f"{happening} in {state}")
    return found


def serves(state: NodeState) -> bool:
    """Whether locks and publishes are taken here."""
    return state is NodeState.WRK
