"""One decoder of the product, beside a reader that shares no code with it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tests.fuzz.mutate import Repair, Sample

Reader = Callable[..., Any]


class Unsure(Exception):
    """The other reader cannot say: this input is of no use to a comparison."""


class Agreement(Enum):
    """What the two readers owe to each other."""

    SAME = "same"  # both take it, or none
    NARROWER = "narrower"  # the product may refuse what the other reader takes
    WIDER = "wider"  # the product may take what the other reader refuses


@dataclass(frozen=True)
class Target:
    name: str
    product: Reader  # raises Refused or FrameRefused
    oracle: Reader  # raises Bad
    corpus: list[Sample]
    repair: Repair | None = None
    share: int = 1  # of the time, against the others: rules that only whole proofs reach want more
    agreement: Agreement = Agreement.SAME
