"""Offline verification of a finality bundle: one file, no node, no network.

A second implementation of the ledger's rules from other libraries (msgpack, hashlib, PyNaCl): it
imports nothing of the node, so that a proof never rests on one reading of the format alone.
"""

import sys
from types import ModuleType

from quipu.verify.bundle import Verified, verify
from quipu.verify.events import VerifiedEntry
from quipu.verify.rosters import Member
from quipu.verify.values import VerificationFailed

__all__ = ["Member", "VerificationFailed", "Verified", "VerifiedEntry", "verify"]


class _Callable(ModuleType):
    """So that `quipu.verify(bundle)` says it in one word."""

    def __call__(self, bundle: bytes, genesis: bytes | None = None) -> Verified:
        return verify(bundle, genesis)


sys.modules[__name__].__class__ = _Callable
