"""Pruning in a running node: by itself, as the settings say, and when an operator asks.

One step a turn of the loop and a pause after each, so that entries of clients come first; a node
that is stopped in between goes on later with what is left.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quipu.ledger.inputs import HistoryPruned
from quipu.node import limits
from quipu.node.logs import Log
from quipu.node.operations import Operation, OperationKind, OperationRuns, Operations
from quipu.node.pruned_store import holds_in
from quipu.node.pruning import Plan, Retention
from quipu.node.running import RunningLedger
from quipu.node.service import Draining


@dataclass(slots=True)
class Pruner:
    """Invariant: what it lets go, the core has decided; here only what may go is looked for."""

    folder: Path  # the data directory
    ledger: RunningLedger
    operations: Operations
    log: Log
    retention: Retention  # of the settings
    archived_only: bool
    wall_ms: Callable[[], int]
    _task: "asyncio.Task[None] | None" = None

    def start(self) -> None:
        """From now on by itself; nothing where everything is kept."""
        if self.retention.prunes:
            self._task = asyncio.create_task(self._prune_on())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def prune(self, retention: Retention, dry_run: bool = False) -> Operation:
        """Raises `OperationRuns`."""

        async def work(operation: Operation) -> dict[str, Any]:
            return await self._carry_out(operation, retention, dry_run)

        return self.operations.start(OperationKind.PRUNE, work)

    async def _prune_on(self) -> None:
        while True:
            await asyncio.sleep(limits.PRUNE_INTERVAL_S)
            try:
                await self.operations.ended(self.prune(self.retention))
            except OperationRuns as other:
                await self.operations.ended(other.operation)
            except Draining:
                return

    async def _carry_out(
        self, operation: Operation, retention: Retention, dry_run: bool
    ) -> dict[str, Any]:
        plan = await asyncio.to_thread(self._plan, retention)
        operation.phase, operation.total = "prune", plan.store.stats().events
        for step in plan.steps():
            if not dry_run:
                await self._give(step)
            operation.done = plan.events
            await asyncio.sleep(limits.PRUNE_PAUSE_S)
        if not dry_run:
            await self._until_durable()
        if plan.events and not dry_run:
            self.log.info("history pruned", **plan.facts())
        stats = self.ledger.machine.store.stats()
        left = {"events_left": stats.events, "live_bytes": stats.live_bytes}
        return plan.facts() | {"dry_run": dry_run} | left | {"file_bytes": stats.file_bytes}

    async def _until_durable(self) -> None:
        """A commit may be under way; the one after it has the last step."""
        turns, measures = self.ledger.turns, self.ledger.measures
        due = measures.commits + 2
        try:
            async with asyncio.timeout(limits.PRUNE_ENDS_S):
                while not (turns.is_idle() or measures.commits >= due):  # noqa: ASYNC110
                    await asyncio.sleep(limits.PRUNE_PAUSE_S)
        except TimeoutError:
            raise TimeoutError("the last step is not durable yet: ask again") from None

    def _plan(self, retention: Retention) -> Plan:
        machine = self.ledger.machine
        plan = Plan(
            machine.store,
            machine.store.saved(),
            retention,
            holds_in(self.folder, self.archived_only),
            self.wall_ms(),
            has_log=machine.surroundings.key.node_id in machine.view.epoch.numbers,
        )
        plan.prepare()
        return plan

    async def _give(self, step: HistoryPruned) -> None:
        while not self.ledger.inbox.push(step, 0):  # noqa: ASYNC110 - it tells peers alone
            await asyncio.sleep(limits.PRUNE_PAUSE_S)
