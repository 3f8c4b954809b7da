"""`quipu` as a real command in a process of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

QUIPU = (sys.executable, "-m", "quipu.cli")
WAIT_S = 60.0
LONG_S = 600.0
ANY_PORTS = tuple(
    part for face in ("api", "p2p", "ops") for part in (f"--{face}-listen", "127.0.0.1:0")
)


def environment(**more: str) -> dict[str, str]:
    plain = {name: text for name, text in os.environ.items() if not name.startswith("QUIPU_")}
    return plain | more


def quipu(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """To its end."""
    return ended(arguments, WAIT_S, **more)


def quipu_at_length(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The same for work on a whole store, on a machine that does much else."""
    return ended(arguments, LONG_S)


def ended(
    arguments: Sequence[str], timeout_s: float, **more: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*QUIPU, *arguments],
        capture_output=True,
        text=True,
        env=environment(**more),
        timeout=timeout_s,
        check=False,
    )


class RunningCommand:
    """`quipu run` on free ports, up to where it says that it is ready."""

    def __init__(self, data_dir: Path, *arguments: str, **more: str) -> None:
        self.process = subprocess.Popen(
            [*QUIPU, "run", "--json", "--data-dir", str(data_dir), *ANY_PORTS, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(**more),
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.facts: dict[str, Any] = json.loads(line) if line else {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.process.kill()
        self.process.communicate(timeout=WAIT_S)

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Its exit code and what it has logged."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> tuple[int, str]:
        _, logged = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode, logged
