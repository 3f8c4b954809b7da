"""GET /v1/node, /v1/evidence and /v1/streams: who this is, and what it has seen."""

import base64
import time

from quipu import __version__
from quipu.api import limits
from quipu.api.calls import Call, Response
from quipu.api.events import FOR_NOW
from quipu.api.figure_models import (
    Delay,
    FiguresBody,
    ReceiptList,
)
from quipu.api.models import (
    CheckBody,
    ConvictionBody,
    EvidenceList,
    Limits,
    MemberRef,
    NodeBody,
    StreamList,
    StreamRow,
)
from quipu.api.receipts import receipt_row
from quipu.api.settings import Settings
from quipu.api.times import time_text
from quipu.api.tokens import ENTRIES_READ
from quipu.ledger import limits as ledger_limits


def _limits(settings: Settings) -> Limits:
    return Limits(
        entry_bytes=ledger_limits.ENTRY_BYTES_MAX,
        body_bytes=settings.body_bytes_max,
        batch_bytes=settings.batch_bytes_max,
        batch_items=limits.BATCH_ITEMS_MAX,
        page_items=limits.PAGE_MAX,
        wait_ms=limits.WAIT_MS_MAX,
    )


async def node(call: Call) -> Response:
    ledger = call.ledger
    epoch, health = ledger.epoch, ledger.health()
    number = epoch.numbers.get(ledger.node_id)
    body = NodeBody(
        node_id=ledger.node_id.hex(),
        name=ledger.name,
        number=number,
        version=__version__,
        cluster_id=ledger.cluster_id.hex(),
        cluster_name=ledger.cluster_name,
        epoch=str(epoch.number),
        policy=epoch.policy,
        required=epoch.max_confirms,
        safe=epoch.max_confirms >= len(epoch.members) // 2,
        journal=None if ledger.journal is None else str(ledger.journal),
        feed_number=str(ledger.feed_number),
        feed_first=str(ledger.feed_first),
        history_from=str(ledger.history_from),
        members=[MemberRef(m.number, m.node_id.hex(), m.name) for m in ledger.members()],
        streams_erasable=sorted(epoch.streams_erasable),
        ready=health.is_ready,
        finality=health.is_readable,
        limits=_limits(call.face.settings),
    )
    return call.answer(body, headers=FOR_NOW)


async def figures(call: Call) -> Response:
    """What /metrics of the OPS listener counts: a browser reaches the API listener alone."""
    ledger, health = call.ledger, call.ledger.health()
    found, administration = ledger.metrics(), call.face.administration
    checks = (*health.live, *health.ready, *health.read, *health.store)
    body = FiguresBody(
        time=time_text(int(time.time() * 1_000)),
        counters={name: str(count) for name, count in sorted(found.counters.items())},
        gauges=dict(sorted(found.gauges.items())),
        finality=_delay(ledger.finality_ms(limits.FINALITY_SAMPLES)),
        checks=[CheckBody(check.name, check.passes, check.detail) for check in checks],
        has_report=administration is not None and administration.has_report(),
    )
    return call.answer(body, headers=FOR_NOW)


def _delay(took_ms: list[int]) -> Delay | None:
    if not took_ms:
        return None
    ranked, last = sorted(took_ms), len(took_ms) - 1
    p50, p95, p99 = (ranked[last * percent // 100] for percent in (50, 95, 99))
    return Delay(len(ranked), p50, p95, p99)


async def receipts(call: Call) -> Response:
    found = call.ledger.receipts(limits.RECEIPT_ROWS_MAX + 1)
    items = [receipt_row(call.face.shapes, row) for row in found[: limits.RECEIPT_ROWS_MAX]]
    return call.answer(ReceiptList(items, len(found) > len(items)), headers=FOR_NOW)


async def evidence(call: Call) -> Response:
    items = [
        ConvictionBody(
            node_id=one.culprit.hex(),
            role="signer" if one.as_signer else "author",
            journal=None if one.as_signer else str(one.journal),
            proof_base64=base64.b64encode(one.data).decode(),
        )
        for one in call.ledger.convictions()
    ]
    items += [
        ConvictionBody(
            node_id=one.node_id.hex(),
            role="serializer",
            journal=None,
            proof_base64=base64.b64encode(one.proof).decode(),
        )
        for one in call.ledger.order.liars()
    ]
    return call.answer(EvidenceList(items), headers=FOR_NOW)


async def list_streams(call: Call) -> Response:
    await call.face.count_streams()
    allowed = call.principal.streams(ENTRIES_READ)
    rows = [
        StreamRow(name, str(t.entries), time_text(t.first_ms), time_text(t.last_ms))
        for name, t in sorted(call.face.tallies.by_name.items())
        if allowed is None or name in allowed
    ]
    return call.answer(StreamList(rows), headers=FOR_NOW)
