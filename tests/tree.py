"""The tree under test: its root, its files, and the folders that make up the product."""

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PRODUCT_FOLDERS = ("quipu", "ledger", "p2p", "storage", "node", "api", "spark_analytics")


@cache
def tracked_files() -> tuple[str, ...]:
    """Every path that is committed or would be, links not followed."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    names = sorted(set(listed.split("\0")) - {""})
    return tuple(n for n in names if (ROOT / n).is_symlink() or (ROOT / n).is_file())


def text_files() -> tuple[str, ...]:
    """The tracked files that are text: what a person reads and a rule can be held against."""
    regular = (n for n in tracked_files() if not (ROOT / n).is_symlink())
    return tuple(n for n in regular if b"\0" not in (ROOT / n).read_bytes())


def python_files(*folders: str) -> tuple[str, ...]:
    """Tracked Python files, of the given top-level folders or of all."""
    named = (n for n in text_files() if n.endswith(".py"))
    return tuple(n for n in named if not folders or n.split("/")[0] in folders)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@cache
def parsed(name: str) -> ast.Module:
    return ast.parse(read(name), filename=name)
