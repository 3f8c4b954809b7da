"""Keys and signature checks, each computed once for all cores of a process.

The check is a real one behind a dict: a forged signature is found out here as anywhere.
"""

from functools import lru_cache
from hashlib import sha256

from quipu.ledger import signing

CACHE_ENTRIES_MAX = 400_000


@lru_cache(maxsize=4096)
def key_pair(name: str) -> signing.KeyPair:
    return signing.KeyPair.from_seed(sha256(b"simulated " + name.encode()).digest())


class SharedVerifier:
    """`CoreConfig.verify` for every core of one world."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, bytes, bytes], bool] = {}
        self.verified = 0

    def __call__(self, public: bytes, message: bytes, signature: bytes) -> bool:
        key = (public, message, signature)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= CACHE_ENTRIES_MAX:
                self._known.clear()
            self.verified += 1
            known = self._known[key] = signing.verify(public, message, signature)
        return known
