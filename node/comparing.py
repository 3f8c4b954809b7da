"""Executors beside each other: each says now and then in the order how far it is and with what
digest; one that differs from most of them stops serving."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from quipu.ledger.order.marks import ExecutorMark, Marks, SnapshotMade, Verdict, encode_mark
from quipu.ledger.words import NOT_A_MEMBER
from quipu.node import limits
from quipu.node.client_service import NoExecutor
from quipu.node.execution import Execution
from quipu.node.order_service import NoQuorum, OrderUnknown
from quipu.node.running_order import RunningOrder
from quipu.node.service import NotTaken
from quipu.storage.executors.executor import Mark
from quipu.storage.executors.request import Digest, LogIndex
from quipu.storage.executors.sqlite_executor import SqliteExecutor


@dataclass(slots=True)
class Comparing:
    """Invariant: it has said of an index what its executor had there, and nothing else."""

    order: RunningOrder
    execution: Execution
    _task: asyncio.Task[None] | None = None
    _said: tuple[int, int] = (0, 0)  # the last command that it spoke of, and how far it was
    _snapshot_said: int = 0
    _voted: dict[int, None] = field(default_factory=dict)

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._look())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(limits.EXECUTOR_LOOK_S)
            with suppress(NoExecutor, NoQuorum, OrderUnknown, NotTaken):
                await self.compare()
                await self.tell()
                await self._tell_snapshot()

    async def _tell_snapshot(self) -> None:
        """That others may fetch it, and what they will find."""
        made = self.execution.made
        if made is None or made.applied.at == self._snapshot_said:
            return
        self._snapshot_said = made.applied.at
        (at, digest), tables, engine, size, of_file = made
        mark = SnapshotMade(self.order.own_no, at, digest, tables, engine, size, of_file)
        await self.order.ordered(encode_mark(mark))

    @property
    def _marks(self) -> Marks:
        return self.order.machine.ordering.journal.marks

    @property
    def _members(self) -> int:
        return len(self.execution.members)

    async def tell(self) -> None:
        """How far it is, if that is news and somebody else executes as well."""
        if not self.order.machine.ordering.journal.registry.clients or self._members == 1:
            return
        last = await self.execution.ask(_last)
        executed = self.execution.applied.at
        is_news = last.at > self._said[0]
        if is_news or executed - self._said[1] >= limits.EXECUTOR_MARK_ENTRIES:
            self._said = (last.at, executed)
            await self._say(last)

    async def compare(self) -> None:
        """With what others have said. Raises what asks the order raises."""
        me = self.order.own_no
        for at, told in list(self._marks.told.items()):
            mine = await self.execution.ask(partial(_digest_as_of, LogIndex(at)))
            if mine is None or all(said == mine for said in told.values()):
                continue
            verdict = self._marks.verdict(at, mine, self._members)
            if verdict is Verdict.DIFFERS:
                others = ", ".join(str(n) for n, said in told.items() if said != mine)
                self.execution.fail(
                    f"at log index {at} it has another digest than the executors of {others}"
                )
                return
            if me not in told and at not in self._voted:
                self._voted[at] = None
                await self._say(Mark(LogIndex(at), mine))

    async def _say(self, mark: Mark) -> None:
        if self.order.own_no != NOT_A_MEMBER:
            executed = self.execution.applied.at
            said = ExecutorMark(self.order.own_no, mark.at, mark.digest, executed)
            await self.order.ordered(encode_mark(said))


def _last(executor: SqliteExecutor) -> Mark:
    return executor.last_command


def _digest_as_of(index: LogIndex, executor: SqliteExecutor) -> Digest | None:
    return executor.digest_as_of(index)
