"""Programs of others that are measured beside ours, built from the Go module proxy.

Pinned by hashes, and built once for each set of pinned modules, into a cache outside of the tree.
"""

import os
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

BUILD_S_MAX = 1_800  # from nothing, on two busy cores
PINNED = ("main.go", "go.mod", "go.sum")


class NotHere(Exception):
    """What is to be measured beside ours cannot be had on this machine, and why."""


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "quipu" / "bench"


def built(source: Path) -> Path:
    """Raises `NotHere`."""
    if shutil.which("go") is None:
        raise NotHere("no Go here: make system installs it")
    mark = sha256(b"".join((source / name).read_bytes() for name in PINNED))
    found = cache_folder() / f"{source.name}-{mark.hexdigest()[:16]}"
    if found.exists():
        return found
    found.parent.mkdir(parents=True, exist_ok=True)
    made = found.with_suffix(".part")
    command = ["go", "build", "-mod=readonly", "-o", str(made), "."]
    try:
        subprocess.run(
            command, cwd=source, check=True, timeout=BUILD_S_MAX, capture_output=True, text=True
        )
    except subprocess.CalledProcessError as failed:
        reason = failed.stderr.strip().splitlines() or ["go build failed"]
        raise NotHere(reason[-1]) from failed
    except subprocess.TimeoutExpired as late:
        raise NotHere(f"go build took over {BUILD_S_MAX} s") from late
    made.rename(found)
    return found
