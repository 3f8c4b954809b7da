"""Who is in which pool (seed 002): this node, and each peer as far as it said so.

The status is one octet that counts the changes, mod 256; a jump in it says that one was missed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from quipu.p2p import limits
from quipu.p2p.hello import Pools
from quipu.p2p.words import PoolName


@dataclass(slots=True)
class PoolList:
    """`status` is what the last change left it at."""

    names: dict[PoolName, None] = field(default_factory=dict)
    status: int = 0

    @property
    def pools(self) -> Pools:
        return Pools(tuple(sorted(self.names)), self.status)

    # --- this node's own ------------------------------------------------------------------------
    def join(self, pool: PoolName) -> bool:
        if pool in self.names or len(self.names) >= limits.POOLS_MAX:
            return False
        self.names[pool] = None
        self.status = (self.status + 1) % limits.STATUSES
        return True

    def leave(self, pool: PoolName) -> bool:
        if pool not in self.names:
            return False
        del self.names[pool]
        self.status = (self.status + 1) % limits.STATUSES
        return True

    # --- a peer's -------------------------------------------------------------------------------
    def greeted(self, names: Iterable[PoolName], status: int) -> None:
        self.names = dict.fromkeys(names)
        self.status = status

    def joined(self, pool: PoolName, status: int) -> bool:
        """False where a change was missed, or there is no room for what it says."""
        is_next = status == (self.status + 1) % limits.STATUSES
        if pool in self.names or len(self.names) < limits.POOLS_MAX:
            self.names[pool] = None
        self.status = status
        return is_next

    def left(self, pool: PoolName, status: int) -> bool:
        is_next = status == (self.status + 1) % limits.STATUSES
        self.names.pop(pool, None)
        self.status = status
        return is_next
