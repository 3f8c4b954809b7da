"""The package imports alike from the tree, from the editable install and from a built wheel.

Each import runs in an interpreter of its own that sees nothing of the working directory (`-I`);
with `-S` it does not even see the editable install.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests import tree
from tests.wheels import built_wheel

FOLDERS_IN_PACKAGE = tuple(
    n.removeprefix("quipu/") for n in tree.tracked_files() if (tree.ROOT / n).is_symlink()
)
MODULES = tuple(
    ("quipu." + n if n.split("/")[0] in FOLDERS_IN_PACKAGE else n)
    .removesuffix(".py")
    .removesuffix("/__init__")
    .replace("/", ".")
    for n in tree.python_files("quipu", *FOLDERS_IN_PACKAGE)
)
IMPORT_ALL = """
import importlib, importlib.util, json, sys
modules, paths = json.loads(sys.argv[1])
sys.path[:0] = paths
files = {m: importlib.import_module(m).__file__ for m in modules if not m.endswith("__main__")}
seen = [f for f in ("ledger", "storage") if importlib.util.find_spec(f) is not None]
print(json.dumps([files, seen]))
"""


def import_all(*flags: str, paths: tuple[Path, ...], cwd: Path) -> tuple[dict[str, str], list[str]]:
    """Where each module of the package came from, and which folders can be imported as such."""
    argument = json.dumps([MODULES, [str(p) for p in paths]])
    command = [sys.executable, *flags, "-c", IMPORT_ALL, argument]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    files, seen = json.loads(done.stdout)
    return files, seen


def site_packages() -> Path:
    return Path(sysconfig.get_path("purelib"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("build"))


def test_every_folder_with_code_is_in_the_package() -> None:
    homes = {n.split("/")[0] for n in tree.python_files(*tree.PRODUCT_FOLDERS)} - {"quipu"}
    assert homes == set(FOLDERS_IN_PACKAGE)


def test_links_in_the_package_are_relative_and_name_their_folder() -> None:
    assert FOLDERS_IN_PACKAGE
    for name in FOLDERS_IN_PACKAGE:
        assert os.readlink(tree.ROOT / "quipu" / name) == f"../{name}"


def test_imports_from_the_tree(tmp_path: Path) -> None:
    files, _ = import_all("-I", "-S", paths=(tree.ROOT, site_packages()), cwd=tmp_path)
    assert "quipu.ledger" in files
    for file in files.values():
        assert Path(file).is_relative_to(tree.ROOT / "quipu")


def test_imports_from_the_editable_install(tmp_path: Path) -> None:
    files, seen = import_all("-I", paths=(), cwd=tmp_path)
    for file in files.values():
        assert Path(file).is_relative_to(tree.ROOT / "quipu")
    assert seen == []


def test_imports_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    files, seen = import_all("-I", "-S", paths=(target, site_packages()), cwd=tmp_path)
    for file in files.values():
        assert Path(file).is_relative_to(target)
    assert seen == []


def test_wheel_holds_real_files_under_one_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        assert {n.split("/")[0].split("-")[0] for n in names} == {"quipu"}
        assert not any(stat.S_ISLNK(i.external_attr >> 16) for i in archive.infolist())
        assert "quipu/py.typed" in names
        (declared,) = (name for name in names if name.endswith("/entry_points.txt"))
        assert b"[pytest11]\nquipu = quipu.pytest_plugin\n" in archive.read(declared)
        for name in tree.python_files("quipu", *FOLDERS_IN_PACKAGE):
            packed = name if name.startswith("quipu/") else f"quipu/{name}"
            assert archive.read(packed) == (tree.ROOT / name).read_bytes()
        assert not any("/tests/" in n or n.startswith("tests/") for n in names)


def test_layers_see_through_the_links(tmp_path: Path) -> None:
    """A planted import of the store by the core breaks the contract."""
    for name in tree.tracked_files():
        if name == "pyproject.toml" or name.split("/")[0] in {"quipu", *FOLDERS_IN_PACKAGE}:
            target = tmp_path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree.ROOT / name, target, follow_symlinks=False)
    (tmp_path / "ledger" / "planted.py").write_text("import quipu.storage\n")
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "quipu.ledger is not allowed to import quipu.storage" in done.stdout
