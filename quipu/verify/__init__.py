"""Offline verification of a finality bundle: one file, no node, no network.

A second implementation of the ledger's rules from other libraries (msgpack, hashlib, PyNaCl): it
imports nothing of the node, so that a proof never rests on one reading of the format alone.
"""

from quipu.verify.bundle import Verified, verify
from quipu.verify.events import VerifiedEntry
from quipu.verify.rosters import Member
from quipu.verify.values import VerificationFailed

__all__ = ["Member", "VerificationFailed", "Verified", "VerifiedEntry", "verify"]
