"""The core: one step a turn. It routes inputs to its parts; the parts never call each other.

Being built: `Core.step` is the whole interface that shells and the simulator rely on.
"""

from dataclasses import dataclass

from quipu.ledger import signing
from quipu.ledger.effects import Effects
from quipu.ledger.history import History, Saved
from quipu.ledger.inputs import Input
from quipu.ledger.safeguards import ALL, Safeguards
from quipu.ledger.words import Now


@dataclass(frozen=True, slots=True)
class CoreConfig:
    key: signing.KeyPair
    genesis: bytes
    entropy: int  # fresh random bits of this start
    safeguards: Safeguards = ALL
    verify: signing.Verifier = signing.verify
    key_existed: bool = False  # the store is new but the node key is not: recover first


class Core:
    def __init__(self, config: CoreConfig, saved: Saved, history: History, now: Now) -> None:
        raise NotImplementedError

    def step(self, inputs: list[Input], now: Now) -> Effects:
        raise NotImplementedError

    def next_deadline(self) -> int | None:
        """The monotonic millisecond at which `step` wants to be called even without inputs."""
        raise NotImplementedError
