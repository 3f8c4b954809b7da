"""kill -9 at any moment: whatever was acknowledged is there, whole turns and nothing else."""

import random
import subprocess
import sys
from pathlib import Path

from quipu.ledger.effects import StoreEvent
from quipu.storage.lmdb_store import open_store
from quipu.storage.verification import verify_store
from tests.made_events import MadeCluster, lived_through
from tests.process.committing import TURNS

KILLS = 20
SEED = 7


def test_everything_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "store"
    rng = random.Random(SEED)
    acknowledged = 0
    for _ in range(KILLS):
        command = [sys.executable, "-m", "tests.process.committing", str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for _ in range(rng.randrange(1, TURNS // KILLS)):
                line = child.stdout.readline()
                assert line, "the child ended by itself"
                acknowledged = int(line)
            child.kill()
            # What it had said before it died, and nobody had read yet, counts as well.
            for line in child.stdout:
                if line.endswith("\n"):
                    acknowledged = int(line)
        _check(path, acknowledged)
    result = verify_store(path, signatures=True)
    assert result.findings == ()
    assert result.events >= acknowledged


def _check(path: Path, acknowledged: int) -> None:
    cluster = MadeCluster()
    batches = lived_through(cluster, TURNS)
    store = open_store(path, cluster.owner())
    events = store.stats().events
    assert events >= acknowledged
    for batch in batches[:events]:
        effect = batch[0]
        assert isinstance(effect, StoreEvent)
        assert store.event(effect.event.id) == effect.event
    assert store.stats().feed == events - 1
    assert sum(record.held_seq for record in store.saved().branches) == events
    store.close()
