"""A load of entries through the client that apps use, for so long; what became of it."""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from quipu.client.asynchronous import AsyncClient, reached
from quipu.client.errors import QuipuError, Rejected, Unauthorized

FAILURES_MAX = 3  # on one connection in a row: then nobody is there
TOLD_S = 0.5


@dataclass(frozen=True, slots=True)
class Plan:
    """What is submitted, how, and for how long."""

    seconds: float
    connections: int
    size: int
    batch: int
    stream: str
    wait: str
    rate: float | None  # requests a second over all connections; None: as fast as answers come

    @property
    def entries(self) -> int:
        """Of one request."""
        return self.batch or 1


@dataclass(slots=True)
class Sample:
    latency_s: list[float] = field(default_factory=list)  # of requests with an accepted entry
    accepted: int = 0  # entries
    not_reached: int = 0  # of these: stored, but not so far as was asked for in time
    refused: int = 0
    failed: int = 0  # requests
    late: int = 0  # requests that this process sent after their time
    why: str = ""  # the last failure
    seconds: float = 0.0
    cpu_s: float = 0.0


async def load(client: AsyncClient, plan: Plan, tell: Callable[[int], None]) -> Sample:
    """`tell` hears now and then how many entries were taken."""
    await client.node()  # a node that is not there is said before the clock runs
    sample, began, cpu = Sample(), time.monotonic(), time.process_time()
    line = Line(client, plan, sample, began, began + plan.seconds)
    tasks = [asyncio.create_task(line.run(number)) for number in range(plan.connections)]
    telling = asyncio.create_task(_tell(sample, tell))
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in (telling, *tasks):
            task.cancel()
    sample.seconds = time.monotonic() - began
    sample.cpu_s = time.process_time() - cpu
    return sample


async def _tell(sample: Sample, tell: Callable[[int], None]) -> None:
    while True:
        await asyncio.sleep(TOLD_S)
        tell(sample.accepted)


@dataclass(frozen=True, slots=True)
class Line:
    """One request at a time on each. With a rate, latency counts from when a request was meant to
    be sent: a node that stalls is charged for what waits meanwhile."""

    client: AsyncClient
    plan: Plan
    sample: Sample
    began: float
    ends: float

    async def run(self, number: int) -> None:
        every = self.plan.connections / self.plan.rate if self.plan.rate else 0.0
        meant = self.began + every * number / self.plan.connections
        failures = 0
        while failures < FAILURES_MAX:
            now = time.monotonic()
            if every and meant > now:
                await asyncio.sleep(min(meant, self.ends) - now)
            self.sample.late += bool(every) and meant < now
            start = meant if every else now
            if max(start, time.monotonic()) >= self.ends:
                return
            failures = 0 if await self._request(start) else failures + 1
            meant += every

    async def _request(self, start: float) -> bool:
        """Whether it was answered, with whatever."""
        sample = self.sample
        try:
            accepted, reached, why = await self._submit()
        except (Rejected, Unauthorized):
            raise  # the next one would be refused as well
        except QuipuError as error:
            sample.failed, sample.why = sample.failed + 1, str(error)
            return False
        sample.accepted += accepted
        sample.not_reached += accepted - reached
        sample.refused += self.plan.entries - accepted
        sample.why = why or sample.why
        if accepted:
            sample.latency_s.append(time.monotonic() - start)
        return True

    async def _submit(self) -> tuple[int, int, str]:
        """How many were taken, how many of these got as far as was asked for, why not all."""
        plan = self.plan
        if not plan.batch:
            receipt = await self.client.submit(
                _value(plan.size), stream=plan.stream, wait=plan.wait
            )
            return 1, int(reached(receipt.state, plan.wait)), ""
        values = [_value(plan.size) for _ in range(plan.batch)]
        answer = await self.client.submit_batch(values, stream=plan.stream, wait=plan.wait)
        states = [result.state for result in answer.results if result.state is not None]
        problems = [result.problem for result in answer.results if result.problem is not None]
        taken = answer.stored + answer.duplicates
        there = sum(reached(state, plan.wait) for state in states)
        return taken, there, str(problems[-1]) if problems else ""


def _value(size: int) -> str:
    """That many bytes as JSON, no two alike: nothing on the way can spare itself any of it."""
    return os.urandom(size // 2).hex()[: size - 2]
