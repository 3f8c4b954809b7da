"""One executor with one client that may do everything."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.executing import Executed


@pytest.fixture
def executed(tmp_path: Path) -> Iterator[Executed]:
    made = Executed(tmp_path / "executor")
    made.add()
    yield made
    made.executor.close()
