"""Long work on the store in a process of its own: it takes no time of the loop, and nothing of
LMDB is shared but the file."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from quipu.node import limits
from quipu.storage.store import StoreError

Heard = Callable[[dict[str, Any]], None]


class WorkFailed(StoreError):
    """The process said why, or ended without a word."""


async def work_beside(arguments: list[str], heard: Heard) -> dict[str, Any]:
    """Its result. Cancelling ends the process at once."""
    command = [sys.executable, "-m", "quipu.storage", "--leash", *arguments]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, env=paths, limit=limits.WORK_LINE_BYTES_MAX
    )
    last: dict[str, Any] = {}
    try:
        assert process.stdout is not None
        async for line in process.stdout:
            last = json.loads(line)
            heard(last)
        code = await process.wait()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if process.stdin is not None:
            process.stdin.close()
    if code == 0 and "result" in last:
        result: dict[str, Any] = last["result"]
        return result
    raise WorkFailed(str(last.get("error", f"the process ended with {code}")))
