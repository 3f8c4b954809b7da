"""Long work: one of a kind, its end in every way there is, and what is remembered of it."""

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest

from quipu.node import limits
from quipu.node.beside import WorkFailed, work_beside
from quipu.node.logs import open_log
from quipu.node.operations import (
    Operation,
    OperationKind,
    OperationRuns,
    Operations,
    OperationState,
)
from quipu.node.service import Draining
from quipu.node.settings import LogSettings
from quipu.node.soundness import SCRUB_FILE, Soundness
from quipu.storage.store import StoreError
from tests.small_node import running

SCRUB, BACKUP = OperationKind.SCRUB, OperationKind.BACKUP
NOW_MS = 1_800_000_000_000


def made() -> Operations:
    return Operations(lambda: NOW_MS, open_log(LogSettings(format="json"), io.StringIO()))


async def nothing(operation: Operation) -> dict[str, Any]:
    operation.heard({"phase": "events", "done": 3, "total": 4, "found": 0})
    operation.heard({"result": {}})
    return {"is": "done"}


async def for_ever(operation: Operation) -> dict[str, Any]:
    await asyncio.Event().wait()
    return {}


def test_each_end() -> None:
    async def wrong(operation: Operation) -> dict[str, Any]:
        raise StoreError("planted")

    async def mistaken(operation: Operation) -> dict[str, Any]:
        raise KeyError("planted")

    async def test() -> None:
        operations = made()
        done = operations.start(SCRUB, nothing)
        await operations.ended(done)
        assert (done.state, done.result) == (OperationState.DONE, {"is": "done"})
        assert (done.phase, done.done, done.total, done.ended_ms) == ("events", 3, 4, NOW_MS)
        for work, error in ((wrong, "planted"), (mistaken, "KeyError: 'planted'")):
            failed = operations.start(SCRUB, work)
            await operations.ended(failed)
            assert (failed.state, failed.error) == (OperationState.FAILED, error)
        cancelled = operations.start(SCRUB, for_ever)
        await operations.cancel(cancelled)
        assert cancelled.state is OperationState.CANCELLED
        assert [one.id for one in operations.list()][-1] == done.id
        assert operations.get(done.id) is done

    running(test)


def test_one_of_a_kind_and_none_after_the_end() -> None:
    async def test() -> None:
        operations = made()
        scrub, backup = operations.start(SCRUB, for_ever), operations.start(BACKUP, for_ever)
        with pytest.raises(OperationRuns) as caught:
            operations.start(SCRUB, nothing)
        assert caught.value.operation is scrub
        await operations.close()
        assert {scrub.state, backup.state} == {OperationState.CANCELLED}
        with pytest.raises(Draining):
            operations.start(SCRUB, nothing)

    running(test)


def test_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OPERATIONS_KEPT_MAX", 3)

    async def test() -> None:
        operations = made()
        runs = operations.start(BACKUP, for_ever)
        ended = [operations.start(SCRUB, nothing) for _ in range(1)]
        for _ in range(5):
            await operations.ended(ended[-1])
            ended.append(operations.start(SCRUB, nothing))
        await operations.ended(ended[-1])
        assert operations.get(runs.id) is runs
        assert operations.get(ended[0].id) is None
        assert [one.id for one in operations.list()[:2]] == [ended[-1].id, ended[-2].id]
        assert len(operations.list()) <= 4
        await operations.close()

    running(test)


def test_process_that_fails_or_dies_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        with pytest.raises(WorkFailed, match="StoreMissing"):
            await work_beside(["scrub", str(tmp_path)], lambda line: None)
        monkeypatch.setattr("sys.executable", "/bin/false")
        with pytest.raises(WorkFailed, match="the process ended with 1"):
            await work_beside(["scrub", str(tmp_path)], lambda line: None)

    running(test)


# --- what is known of the store -------------------------------------------------------------------
FOUND = {"events": 7, "found": 2, "findings": [{"table": "ids", "place": "x", "what": "wrong"}]}


def test_the_last_scrub_is_remembered(tmp_path: Path) -> None:
    known = Soundness.of(tmp_path, lambda: NOW_MS)
    assert known.checks()[0].passes
    known.noted(FOUND)
    again = Soundness.of(tmp_path, lambda: NOW_MS)
    assert (again.found, again.events, again.ended_ms) == (2, 7, NOW_MS)
    assert (again.checks()[0].passes, again.checks()[0].detail) == (
        False,
        "2 wrong, first: ids: x: wrong",
    )
    again.not_done("planted")
    assert (again.failures, again.checks()[0].passes) == (1, False)
    assert "could not be done: planted" in again.checks()[0].detail
    again.noted({"events": 8, "found": 0, "findings": []})
    assert again.checks()[0].passes
    assert Soundness.of(tmp_path, lambda: NOW_MS).checks()[0].passes


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"ended_ms": "x"}', b"\xff"])
def test_a_note_that_cannot_be_read_is_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / SCRUB_FILE).write_bytes(content)
    assert Soundness.of(tmp_path, lambda: NOW_MS).ended_ms is None


def test_a_note_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    known = Soundness.of(tmp_path / "missing", lambda: NOW_MS)
    known.noted(FOUND)
    assert known.found == 2


def test_when_the_next_one_is_due(tmp_path: Path) -> None:
    now_ms = NOW_MS
    known = Soundness(tmp_path, lambda: now_ms)
    assert known.due_in_s(1_000.0) == limits.SCRUB_START_DELAY_S
    known.ended_ms = now_ms - 400_000
    assert known.due_in_s(1_000.0) == 600.0
    known.ended_ms = now_ms - 990_000
    assert known.due_in_s(1_000.0) == limits.SCRUB_START_DELAY_S
    known.ended_ms = now_ms + 10**9
    assert known.due_in_s(1_000.0) == 1_000.0
