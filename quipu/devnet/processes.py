"""Node processes: started apart from who starts them, known again, signalled, awaited."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from quipu.devnet import limits, tied
from quipu.devnet.plan import Running

STATE_FIELD, BEGUN_FIELD = 0, 19  # of /proc/PID/stat, after the name in parentheses


class ProcessState(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"  # there is no such process, or it is ending


def spawn(
    arguments: list[str], log: Path, environment: Mapping[str, str], *, is_tied: bool = False
) -> Running:
    """In a session of its own: a Ctrl-C or the end of a terminal is nothing to it. Tied, it ends
    with this process, and else it outlives it."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("QUIPU_")}
    lines = [tied.line()] if is_tied else []
    program = ["quipu.devnet.tied", str(lines[0])] if is_tied else ["quipu.cli"]
    with log.open("ab") as out:
        process = subprocess.Popen(  # noqa: S603 - this very program
            [sys.executable, "-m", *program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**inherited, **environment},
            start_new_session=True,
            pass_fds=lines,
        )
    process.returncode = 0  # it outlives this object; `state_of` reaps it where it is our child
    return Running(process.pid, _begun_ticks(process.pid))


def state_of(running: Running | None) -> ProcessState:
    if running is None:
        return ProcessState.STOPPED
    with suppress(ChildProcessError):  # somebody else's child, or reaped before
        os.waitpid(running.pid, os.WNOHANG)
    fields = _stat(running.pid)
    if not fields or int(fields[BEGUN_FIELD]) != running.begun_ticks:
        return ProcessState.STOPPED
    match fields[STATE_FIELD]:
        case "Z" | "X":
            return ProcessState.STOPPED
        case "T" | "t":
            return ProcessState.PAUSED
        case _:
            return ProcessState.RUNNING


def send(running: Running | None, number: signal.Signals) -> None:
    if running is not None and state_of(running) is not ProcessState.STOPPED:
        with suppress(ProcessLookupError):
            os.kill(running.pid, number)


def until(is_so: Callable[[], bool], timeout_s: float) -> bool:
    end = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(limits.POLL_S)
    return True


def ended(running: Running | None, timeout_s: float) -> bool:
    return until(lambda: state_of(running) is ProcessState.STOPPED, timeout_s)


def _begun_ticks(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[BEGUN_FIELD]) if fields else 0


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()
