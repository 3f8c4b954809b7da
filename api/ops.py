"""The OPS listener: three different checks, and the figures."""

import msgspec
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from quipu.api.calls import Call, Response
from quipu.api.codes import Code
from quipu.api.counters import exposition
from quipu.api.models import CheckBody, HealthBody
from quipu.api.problems import at
from quipu.node.service import Check


class ProbeQuery(msgspec.Struct, kw_only=True):
    verbose: str | None = None


class ReadyQuery(msgspec.Struct, kw_only=True, rename={"purpose": "for"}):
    verbose: str | None = None
    purpose: str | None = None


def _answer(call: Call, checks: tuple[Check, ...], verbose: str | None) -> Response:
    passes = all(check.passes for check in checks)
    shown = checks if verbose is not None else tuple(c for c in checks if not c.passes)
    body = HealthBody(
        "ok" if passes else "failing", [CheckBody(c.name, c.passes, c.detail) for c in shown]
    )
    return call.answer(body, 200 if passes else 503, {"Cache-Control": "no-store"})


async def livez(call: Call) -> Response:
    """The loop turns and the writer answers: if not, restart it."""
    return _answer(call, call.ledger.health().live, call.query(ProbeQuery).verbose)


async def readyz(call: Call) -> Response:
    """This node takes entries; `for=read`: finality is possible; `for=store`: the last scrub found
    nothing wrong."""
    query = call.query(ReadyQuery)
    health = call.ledger.health()
    purposes = {None: health.ready, "write": health.ready, "read": health.read}
    purposes["store"] = health.store
    if query.purpose not in purposes:
        raise at(Code.INVALID_PARAMETER, "for", "is one of write, read, store")
    checks = health.live + purposes[query.purpose]
    if call.face.draining:
        checks += (Check("draining", False, "the node is stopping"),)
    return _answer(call, checks, query.verbose)


async def startupz(call: Call) -> Response:
    """The node has opened its store and its listeners."""
    checks = (Check("started", True, "the store is open and the listeners answer"),)
    return _answer(call, checks, call.query(ProbeQuery).verbose)


async def metrics(call: Call) -> Response:
    body = exposition(call.ledger, call.face.counters)
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})
