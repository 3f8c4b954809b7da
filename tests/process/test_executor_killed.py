"""kill -9 at each place of a turn: index, results and tables agree, each request done once."""

import random
import subprocess
import sys
from pathlib import Path

from quipu.storage.executors.executor import Released
from quipu.storage.executors.outcome import Code
from quipu.storage.executors.request import ClientId, LogIndex, MessageId
from quipu.storage.executors.sqlite_executor import SITES, SqliteExecutor
from tests.process.executing_child import CLUSTER, REQUESTS, TURNS, turn

ROUNDS = 4  # through all places
SEED = 11


def test_a_turn_is_applied_whole_and_once(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    directory, twin = tmp_path / "killed", SqliteExecutor(tmp_path / "twin", CLUSTER)
    acknowledged = 0
    for site in [*SITES] * ROUNDS:
        # Some turns further on, and within a turn at any of its commands.
        passings = rng.randrange(1, 12) * (REQUESTS + 1 if site == "executor.executed" else 1)
        said = _killed(directory, site, passings + rng.randrange(2))
        acknowledged = max([acknowledged, *said])
        applied = _check(directory, twin, acknowledged)
        if applied == TURNS:
            break
    assert acknowledged > ROUNDS
    twin.close()


def _killed(directory: Path, site: str, passings: int) -> list[int]:
    """Runs it until it kills itself there; gives the turns that it said are done."""
    command = [sys.executable, "-m", "tests.process.executing_child"]
    done = subprocess.run(
        [*command, str(directory), site, str(passings)], capture_output=True, text=True, check=False
    )
    assert done.returncode in {-9, 0}, done.stderr
    return [int(line) for line in done.stdout.splitlines()]


def _check(directory: Path, twin: SqliteExecutor, acknowledged: int) -> int:
    """What lies there is what an executor has that was never killed."""
    executor = SqliteExecutor(directory, CLUSTER)
    applied = executor.position().applied.at
    assert acknowledged <= applied <= acknowledged + 1
    for number in range(twin.position().applied.at + 1, applied + 1):
        twin.apply(turn(number), LogIndex(number))
    assert executor.position() == twin.position()
    assert executor.table_digest() == twin.table_digest()
    if applied > 1:
        _check_counts(executor, last=1 + (applied - 1) * REQUESTS)
    executor.close()
    return applied


def _check_counts(executor: SqliteExecutor, last: int) -> None:
    found = executor.reader.query("SELECT request, times FROM counted ORDER BY request").rows
    assert found == tuple((n, 1) for n in range(2, last + 1) if n % 5)
    kept = executor.result(ClientId(1), MessageId(last))
    assert not isinstance(kept, Released | None)
    assert kept.outcome.code is (Code.OK if last % 5 else Code.NOT_UNIQUE)
    assert executor.result(ClientId(1), MessageId(last + 1)) is None
