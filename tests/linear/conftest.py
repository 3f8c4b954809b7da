"""The checker is built once for each process of the suite."""

import shutil
from pathlib import Path

import pytest

from tests.linear.histories import build


@pytest.fixture(scope="session")
def porcupine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("go") is None:
        pytest.skip("no Go here: make system installs it")
    return build(tmp_path_factory.mktemp("porcupine"))
