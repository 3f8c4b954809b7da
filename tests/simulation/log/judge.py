"""What must hold at every step. Signatures, entries and orders are read anew from bytes."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from quipu.ledger.log.effects import (
    LogEffects,
    LogInputRefused,
    MasterChanged,
    StoreLogEntry,
)
from quipu.ledger.log.entry import LogEntry, decode_log_entry
from quipu.ledger.log.evidence import LogConviction
from quipu.ledger.log.messages import (
    Accept,
    AcceptedMessage,
    PromiseMessage,
    decode_log_message,
)
from quipu.ledger.log.statements import decode_accepted, decode_promise
from quipu.ledger.words import NodeNo
from tests.simulation.log.history import HistoryError

if TYPE_CHECKING:
    from tests.simulation.log.node import SimLogNode
    from tests.simulation.log.world import LogWorld


class LogProperty(StrEnum):
    ONE_VALUE = "one-value"  # at an index, for all nodes and for ever
    PREFIX = "prefix"  # each node is told the log in order, without holes
    ONE_MASTER = "one-master"  # a regime
    REGIMES_RISE = "regimes-rise"  # along the log
    REAL_TIME = "real-time"  # what was answered before lies below; one place for each item
    DURABLE_FIRST = "durable-first"  # no signature for what a restart would not find
    IN_MODEL = "in-model"  # a voter takes from its master only what is in its Model
    HONEST_TAKEN = "honest-not-refused"
    HONEST_UNPROVEN = "honest-not-convicted"
    GOES_ON = "goes-on"  # within 3 s of healing, and after
    EQUAL = "logs-equal"  # after healing
    LIAR_FOUND = "liar-found"
    ERROR = "error"  # of the program itself; no evidence in an ablation


class LogViolation(Exception):
    def __init__(self, broken: LogProperty, detail: str) -> None:
        super().__init__(f"{broken}: {detail}")
        self.property = broken


class LogJudge:
    def __init__(self, world: LogWorld) -> None:
        self._world = world
        self.masters: dict[int, NodeNo] = {}
        self.convicted: dict[NodeNo, LogConviction] = {}
        self.refusals: dict[str, int] = {}
        self.chosen_us: list[int] = []

    def fail(self, broken: LogProperty, detail: str) -> None:
        seconds = self._world.scheduler.now_us / 1e6
        raise LogViolation(broken, f"at {seconds:.3f} s: {detail}")

    def on_step(self, node: SimLogNode, effects: LogEffects) -> None:
        state = node.machine.state
        for effect in effects.durable:
            if not isinstance(effect, StoreLogEntry):
                continue
            entry = decode_log_entry(effect.data)
            missing = [item for item in entry.items if not self._in_model(node, item)]
            if entry.regime == state.promised and missing:
                self.fail(LogProperty.IN_MODEL, f"n{node.number} took {missing}")

    def _in_model(self, node: SimLogNode, item: bytes) -> bool:
        return not item.startswith(b"event ") or item in node.model

    def on_sent(self, node: SimLogNode, data: bytes) -> None:
        message = decode_log_message(data)
        if isinstance(message, AcceptedMessage) and message.statement is not None:
            self._check_accepted(node, message.statement)
        elif isinstance(message, PromiseMessage):
            promise, vote = decode_promise(message.promise), node.disk.vote()
            if vote is None or vote.promised < promise.regime:
                self.fail(LogProperty.DURABLE_FIRST, f"n{node.number} promised {promise.regime}")
        elif isinstance(message, Accept):
            for data in message.certificate:
                if decode_accepted(data).signer == node.number:
                    self._check_accepted(node, data)

    def _check_accepted(self, node: SimLogNode, data: bytes) -> None:
        statement, vote = decode_accepted(data), node.disk.vote()
        if vote is None or (vote.accepted_regime, vote.accepted_index) < (
            statement.regime,
            statement.index,
        ):
            self.fail(LogProperty.DURABLE_FIRST, f"n{node.number} accepted {statement.place}")

    def on_chosen(self, node: SimLogNode, entry: LogEntry, digest: bytes) -> None:
        if entry.index != node.applied + 1:
            self.fail(LogProperty.PREFIX, f"n{node.number}: {entry.index} after {node.applied}")
        node.applied = entry.index
        history = self._world.history
        if entry.index not in history.chosen:
            self.chosen_us.append(self._world.scheduler.now_us)
        from tests.simulation.log.node import app_items

        try:
            history.report(entry.index, entry.regime, digest, app_items(entry))
        except HistoryError as error:
            self.fail(LogProperty.ONE_VALUE, str(error))
        below = history.chosen.get(entry.index - 1)
        if below is not None and below[0] > entry.regime:
            self.fail(LogProperty.REGIMES_RISE, f"{entry.regime} after {below[0]}")

    def on_master(self, node: SimLogNode, effect: MasterChanged) -> None:
        if effect.master != node.number:
            return
        other = self.masters.setdefault(effect.regime, node.number)
        if other != node.number:
            self.fail(LogProperty.ONE_MASTER, f"{effect.regime}: n{other} and n{node.number}")

    def on_refused(self, node: SimLogNode, effect: LogInputRefused) -> None:
        text = f"{effect.reason} {effect.detail}"
        self.refusals[text] = self.refusals.get(text, 0) + 1
        if effect.reason != "unrequested" and effect.peer not in self._world.liars:
            self.fail(LogProperty.HONEST_TAKEN, f"n{node.number} of n{effect.peer}: {text}")

    def on_conviction(self, node: SimLogNode, conviction: LogConviction) -> None:
        self.convicted.setdefault(conviction.culprit, conviction)
        if conviction.culprit not in self._world.liars:
            self.fail(LogProperty.HONEST_UNPROVEN, f"n{conviction.culprit}: {conviction.lie}")

    def at_end(self) -> None:
        try:
            self._world.history.check()
        except HistoryError as error:
            self.fail(LogProperty.REAL_TIME, str(error))
