"""A wheel of the tree as it stands."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests import tree


def built_wheel(folder: Path) -> Path:
    """Of a copy of the committed files, without network or build isolation."""
    source = folder / "source"
    for name in tree.tracked_files():
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(tree.ROOT / name, target, follow_symlinks=False)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel"]
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(folder)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [*command, *options, str(source)], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built
