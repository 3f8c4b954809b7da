"""`quipu bench`: how much a ledger takes from this machine, and how long an answer takes.

It goes through the client that apps use, so it says what an app in Python may expect; `bench/` in
the source tree measures the node itself. What it submits are entries like any other: they stay.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from quipu.cli.remote import Remote, fail, progress, progress_ends, remote
from quipu.node.exits import Exit

if TYPE_CHECKING:
    from quipu.client.trial import Plan, Sample

SECONDS_MAX = 600  # as long as a person may want to watch; every second leaves entries behind
CONNECTIONS_MAX = 256  # of one address, as a node allows them unless told otherwise
BATCH_MAX = 10_000  # entries of one event
VALUE_BYTES_MAX = 1 << 20  # an entry's
STATES = ("stored", "read", "ordered")


@remote
def bench(
    to: Remote,
    seconds: Annotated[float, typer.Option("--seconds", help="How long, 600 at most.")] = 10,
    connections: Annotated[int, typer.Option("--connections", "-c", help="1 to 256.")] = 16,
    size: Annotated[int, typer.Option("--size", help="Bytes of each value.")] = 256,
    batch: Annotated[
        int, typer.Option("--batch", help="Entries of a request; 0: single entries.")
    ] = 0,
    wait: Annotated[str, typer.Option("--wait", help="stored, read or ordered.")] = "stored",
    rate: Annotated[
        float | None,
        typer.Option("--rate", help="Requests a second; without it as many as are answered."),
    ] = None,
    stream: Annotated[str, typer.Option("--stream", help="Where the entries go.")] = "bench",
) -> None:
    """Submit entries for a while and say how fast they were taken. They stay in the ledger."""
    from quipu.client.trial import Plan

    plan = Plan(seconds, connections, size, batch, stream, wait, rate)
    _check(plan)
    sample = _measure(to, plan)
    to.show(_report(plan, sample))
    if not sample.accepted:
        fail(f"nothing was taken: {sample.why}", Exit.FAILURE)
    if sample.refused or sample.failed:
        fail(f"some were not taken, the last because of: {sample.why}", Exit.PARTLY)


def _check(plan: "Plan") -> None:
    bounds = (
        ("--seconds", plan.seconds, 0.1, SECONDS_MAX),
        ("--connections", plan.connections, 1, CONNECTIONS_MAX),
        ("--size", plan.size, 2, VALUE_BYTES_MAX),
        ("--batch", plan.batch, 0, BATCH_MAX),
        ("--rate", plan.rate or 1, 0.1, 1_000_000),
    )
    for name, value, least, most in bounds:
        if not least <= value <= most:
            fail(f"{name} is {value:g}: {least:g} to {most:,} are possible", Exit.USAGE)
    if plan.wait not in STATES:
        fail(f"--wait is {plan.wait}: stored, read or ordered", Exit.USAGE)


def _measure(to: Remote, plan: "Plan") -> "Sample":
    import asyncio

    from quipu.client.trial import load

    async def run() -> "Sample":
        async with to.async_client() as client:
            return await load(client, plan, lambda taken: progress(taken, "entries"))

    try:
        return asyncio.run(run())
    finally:
        progress_ends()


def _report(plan: "Plan", sample: "Sample") -> dict[str, object]:
    ordered = sorted(sample.latency_s)

    def at(share: float) -> float | None:
        if not ordered:
            return None
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1e3, 2)

    return {
        "entries": sample.accepted,
        "entries_per_second": round(sample.accepted / sample.seconds, 1),
        "wait": plan.wait,
        "p50_ms": at(0.50),
        "p95_ms": at(0.95),
        "p99_ms": at(0.99),
        "not_reached": sample.not_reached,
        "refused": sample.refused,
        "failed_requests": sample.failed,
        "late_requests": sample.late,
        "seconds": round(sample.seconds, 2),
        "client_cpu_us_an_entry": round(sample.cpu_s / max(sample.accepted, 1) * 1e6, 1),
    }
