"""Words of the log. A regime has at most one master; a place orders the ends of logs."""

from dataclasses import dataclass
from typing import NewType

Regime = NewType("Regime", int)  # u32: promised to one node only
Index = NewType("Index", int)  # u64 >= 1: position in the log, without holes
Life = NewType("Life", int)  # u64: which disk of a node speaks; a replaced one has a greater
Round = NewType("Round", int)  # numbers what one master sends, so that answers say to what
LogTicket = NewType("LogTicket", int)  # names one proposal or read between shell and log


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Compared as pairs: the greater regime first, then the greater index."""

    regime: Regime
    index: Index


NO_REGIME = Regime(0)
NO_INDEX = Index(0)
NOWHERE = Place(NO_REGIME, NO_INDEX)
