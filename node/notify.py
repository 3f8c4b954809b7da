"""What the service manager is told (sd_notify): ready, stopping, still alive.

Where nobody asked to be told, as `NOTIFY_SOCKET` and `WATCHDOG_USEC` say, nothing happens.
"""

import asyncio
import os
import socket
from collections.abc import Callable

READY, STOPPING, ALIVE = "READY=1", "STOPPING=1", "WATCHDOG=1"
RELOADING = "RELOADING=1"
SOCKET_VARIABLE = "NOTIFY_SOCKET"
PERIOD_VARIABLE = "WATCHDOG_USEC"
PID_VARIABLE = "WATCHDOG_PID"
US_PER_S = 1_000_000


def notify(state: str) -> None:
    """Never an error: a node runs as well without its manager."""
    path = os.environ.get(SOCKET_VARIABLE, "")
    if not path:
        return
    address = "\0" + path[1:] if path.startswith("@") else path
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as speaker:
            speaker.sendto(state.encode(), address)
    except OSError:
        return


def watchdog_s() -> float:
    """How long the manager waits for a sign of life before it kills; 0: it does not wait."""
    period, pid = os.environ.get(PERIOD_VARIABLE, ""), os.environ.get(PID_VARIABLE, "")
    if not period.isdigit() or (pid and pid != str(os.getpid())):
        return 0.0
    return int(period) / US_PER_S


async def keep_alive(is_live: Callable[[], bool], period_s: float) -> None:
    """Twice in each period, while the loop turns and what else has to live does."""
    while True:
        if is_live():
            notify(ALIVE)
        await asyncio.sleep(period_s / 2)
