"""Cases that run in a process of their own, in namespaces where nobody else is."""

import subprocess
import sys
from pathlib import Path

AS_ROOT = ("unshare", "--user", "--map-root-user")


def run_apart(module: str, case: str, path: Path, *prefix: str) -> None:
    program = f"import sys, pathlib; from {module} import {case}; {case}(pathlib.Path(sys.argv[1]))"
    command = [*prefix, sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def may_run(*command: str) -> bool:
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False
