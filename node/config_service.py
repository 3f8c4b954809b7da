"""What a running node offers of the config stream: the contract between `node` and `api`."""

from typing import NamedTuple, Protocol

from quipu.ledger.order.config import ChangeState
from quipu.ledger.order.config_items import ConfigKind, ConfigRefusal
from quipu.ledger.words import NodeNo


class ConfigRefused(Exception):
    """The change was not made, and why."""

    def __init__(self, why: ConfigRefusal, what: str) -> None:
        super().__init__(what)
        self.why = why


class NotConfigNode(Exception):
    """This node takes no changes: another one is a config node."""


class UnknownNode(Exception):
    """No member has this number."""


class NodeRoles(NamedTuple):
    node: NodeNo
    roles: tuple[str, ...]
    blocked: bool  # it is about to be no ingest node any more


class ConfigState(NamedTuple):
    """As far as it is applied here."""

    newest: ChangeState | None  # in flight, or the last that ended
    nodes: tuple[NodeRoles, ...]  # every member


class Config(Protocol):
    def state(self) -> ConfigState: ...

    async def propose(
        self, kind: ConfigKind, nodes: tuple[NodeNo, ...], timeout_s: float
    ) -> ChangeState:
        """The change as it is when it has ended, or when the time is over. Raises `ConfigRefused`,
        `NotConfigNode`, `UnknownNode`, and what ordering raises."""
