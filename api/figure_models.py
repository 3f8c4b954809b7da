"""What answers about figures and receipts consist of: what the page shows beside entries."""

import msgspec

from quipu.api.bodies import Time
from quipu.api.models import CheckBody, ReceiptRowBody, U64Text


class ReceiptList(msgspec.Struct, frozen=True):
    """The newest journals first. `truncated`: there are more."""

    items: list[ReceiptRowBody]
    truncated: bool


class Delay(msgspec.Struct, frozen=True):
    """How long the last events took, in milliseconds."""

    samples: int
    p50_ms: int
    p95_ms: int
    p99_ms: int


class FiguresBody(msgspec.Struct, frozen=True):
    """The figures of this node, under the names that docs/metrics.md explains, without `quipu_`.
    `finality`: from the coming of an event here to Read; null: nothing has become Read yet."""

    time: Time
    counters: dict[str, U64Text]
    gauges: dict[str, float]
    finality: Delay | None
    checks: list[CheckBody]
    has_report: bool  # there is one to read at /v1/reports/last
