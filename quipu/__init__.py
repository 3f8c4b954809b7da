"""Quipu: a replicated, tamper-evident, append-only ledger.

The client and the offline verifier are imported when they are first named, so that the command
line and the node start without them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quipu.client import (
        AsyncClient,
        AsyncReceipt,
        Client,
        Conflict,
        Entry,
        Gap,
        NotFound,
        QuipuError,
        Receipt,
        Rejected,
        Unauthorized,
        Unavailable,
        Undecided,
        Unreachable,
    )

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "AsyncReceipt",
    "Client",
    "Conflict",
    "Entry",
    "Gap",
    "NotFound",
    "QuipuError",
    "Receipt",
    "Rejected",
    "Unauthorized",
    "Unavailable",
    "Undecided",
    "Unreachable",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name == "verify":
        import importlib

        return importlib.import_module("quipu.verify")
    if name in __all__:
        from quipu import client

        return getattr(client, name)
    raise AttributeError(f"module 'quipu' has no attribute {name!r}")
