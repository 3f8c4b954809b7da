"""Talks to a ledger over HTTP. Needs nothing of a running node: no store, no sockets of peers."""

from quipu.client.asynchronous import AsyncClient, AsyncReceipt
from quipu.client.clients import Session
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
from quipu.client.session_state import SessionInUse
from quipu.client.sessions import AsyncSession, Outcome, Result
from quipu.client.synchronous import Client, Receipt

__all__ = [
    "AsyncClient",
    "AsyncIngest",
    "AsyncReceipt",
    "AsyncSession",
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
    "Outcome",
    "Page",
    "Problem",
    "QuipuError",
    "Receipt",
    "Rejected",
    "Result",
    "Session",
    "SessionInUse",
    "Status",
    "Unauthorized",
    "Unavailable",
    "Undecided",
    "Unreachable",
    "Verdict",
]
