"""Quipu: a replicated, tamper-evident, append-only ledger."""

__version__ = "0.1.0"
