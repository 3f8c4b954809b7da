"""How many files this process may have open: every connection is one."""

import resource

from quipu.node import limits
from quipu.node.settings import Settings


def needed(settings: Settings) -> int:
    """Connections that are read, and the node's own. Those that wait are in the kernel."""
    return settings.api.connections_max + limits.OWN_FILES_MAX


def raise_to(count: int) -> int:
    """As far as this user may; answers what is allowed now. Most systems begin with 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return count if soft == resource.RLIM_INFINITY else soft
    allowed = count if hard == resource.RLIM_INFINITY else min(count, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed
