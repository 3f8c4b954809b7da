"""Fixtures with a real node, for the tests of apps (docs/testing.md).

It is loaded into every run of pytest where quipu is installed, so it imports nothing of the node
before a test asks for one.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from quipu.testing import LocalCluster, LocalNode


class NewNode(Protocol):
    """Starts one more node, in a directory of its own; it is stopped when the test is done."""

    def __call__(self, settings: Mapping[str, str] | None = None) -> "LocalNode": ...


@pytest.fixture
def quipu_node(quipu_new_node: NewNode) -> "LocalNode":
    """A running node with an empty ledger, for this test alone."""
    return quipu_new_node()


@pytest.fixture(scope="session")
def quipu_node_session(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[LocalNode]":
    """One running node for all tests of the session: faster, and what others wrote is there."""
    from quipu.testing import LocalNode

    with LocalNode(tmp_path_factory.mktemp("quipu-session")) as node:
        yield node


@pytest.fixture
def quipu_new_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewNode]:
    """Starts nodes with settings of your own, several of them where that is wanted."""
    from quipu.testing import LocalNode

    with ExitStack() as running:

        def new_node(settings: Mapping[str, str] | None = None) -> LocalNode:
            folder: Path = tmp_path_factory.mktemp("quipu")
            return running.enter_context(LocalNode(folder, settings))

        yield new_node


@pytest.fixture
def quipu_cluster(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[LocalCluster]":
    """Three running nodes as one ledger, each a process of its own, for this test alone."""
    from quipu.testing import LocalCluster

    with LocalCluster(tmp_path_factory.mktemp("quipu-cluster") / "net") as cluster:
        yield cluster
