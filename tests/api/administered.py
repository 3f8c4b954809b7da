"""The real administration of a store of its own, beside the ledger in memory."""

import io
import time
from pathlib import Path
from typing import Any

from quipu.ledger.signing import KeyPair
from quipu.node.administration import Administration
from quipu.node.data_directory import NO_LOCK, STORE_FOLDER, DataDirectory
from quipu.node.key_list import key_rows
from quipu.node.logs import open_log
from quipu.node.operations import Operation, OperationKind, Operations
from quipu.node.pruning import Retention
from quipu.node.settings import LogSettings, NodeSettings, Settings
from quipu.node.soundness import Soundness
from quipu.storage.lmdb_store import open_store
from tests.made_events import MadeCluster, lived_through


class Drained:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


class NothingToPrune:
    """The ledger in memory keeps all that it has; what really goes, the process tests see."""

    retention = Retention()

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    def prune(self, retention: Retention, dry_run: bool = False) -> Operation:
        async def work(operation: Operation) -> dict[str, Any]:
            return {"events": 0, "dry_run": dry_run}

        return self._operations.start(OperationKind.PRUNE, work)

    def start(self) -> None: ...

    async def stop(self) -> None: ...


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def administration_in(folder: Path, turns: int = 5) -> tuple[Administration, Drained]:
    cluster, drained = MadeCluster(), Drained()
    store = open_store(folder / STORE_FOLDER, cluster.owner())
    for batch in lived_through(cluster, turns):
        store.commit(batch)
    store.close()
    (folder / "genesis").write_bytes(b"a genesis")
    settings = Settings(node=NodeSettings(data_dir=folder))
    log = open_log(LogSettings(format="json"), stream=io.StringIO())
    key = KeyPair.from_seed(bytes(32))
    directory = DataDirectory(folder, key, (bytes(32),), b"a genesis", NO_LOCK)
    operations = Operations(wall_ms, log)
    made = Administration(
        folder,
        lambda: key_rows(settings, directory),
        key.sign,
        drained,
        lambda: None,
        operations,
        Soundness.of(folder, wall_ms),
        log,
        pruner=NothingToPrune(operations),
    )
    return made, drained
