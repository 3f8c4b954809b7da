"""Talks to a ledger over HTTP. Needs nothing of a running node: no store, no sockets of peers."""

from quipu.client.asynchronous import AsyncClient, AsyncReceipt
from quipu.client.errors import (
    Conflict,
    NotFound,
    Problem,
    QuipuError,
    Rejected,
    Unauthorized,
    Unavailable,
    Undecided,
    Unreachable,
)
from quipu.client.ingest import AsyncIngest, Ingest
from quipu.client.models import (
    BatchAnswer,
    BatchResult,
    Consumer,
    Entry,
    Gap,
    Member,
    Page,
    Status,
    Verdict,
)
from quipu.client.synchronous import Client, Receipt

__all__ = [
    "AsyncClient",
    "AsyncIngest",
    "AsyncReceipt",
    "BatchAnswer",
    "BatchResult",
    "Client",
    "Conflict",
    "Consumer",
    "Entry",
    "Gap",
    "Ingest",
    "Member",
    "NotFound",
    "Page",
    "Problem",
    "QuipuError",
    "Receipt",
    "Rejected",
    "Status",
    "Unauthorized",
    "Unavailable",
    "Undecided",
    "Unreachable",
    "Verdict",
]
