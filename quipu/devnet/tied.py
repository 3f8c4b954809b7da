"""`python -m quipu.devnet.tied FD run …`: the command `quipu`, ended when its starter is gone.

FD is the reading end of a pipe that the starter alone holds open: it ends with that process,
however that ends. A parent-death signal would come when the thread ends that started this one.
"""

import os
import runpy
import signal
import sys
from functools import cache
from threading import Thread


@cache
def line() -> int:
    """The end that those who are tied to this process inherit; the other stays open as long."""
    reading, _ = os.pipe()
    return reading


def _end_with(line: int) -> None:
    while os.read(line, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    line = int(sys.argv.pop(1))
    Thread(target=_end_with, args=(line,), name="quipu-tied", daemon=True).start()
    runpy.run_module("quipu.cli", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
