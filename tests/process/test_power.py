"""An answered entry survives a loss of power: kill -9, and what was never synced is gone.

kill -9 alone keeps the page cache. `power.c` notes what each unsynced write replaced; after the
kill all of it, or a random part, is put back, as a disk may have written some pages and not others.
It also notes every call that syncs, with its times.
"""

import http.client
import json
import re
import struct
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.process.apps import Apps, missing
from tests.process.command import WAIT_S, RunningCommand
from tests.process.disk import COMPILER, build_one, lose_power

CALL = struct.Struct("=QQQ")
APPS = 4
ENTRIES = 40

pytestmark = pytest.mark.skipif(
    COMPILER is None, reason="a C compiler makes the failing disk: apt-get install -y gcc"
)


class Answered(NamedTuple):
    sent_ns: int
    answered_ns: int


class Commit(NamedTuple):
    begun_ns: int
    ended_ns: int


@pytest.fixture(scope="module")
def failing_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_one(tmp_path_factory.mktemp("power"), "power")


def live_and_lose_power(folder: Path, library: Path, site: str, **more: str) -> list[str]:
    """What was acknowledged in one life."""
    armed = {"LD_PRELOAD": str(library), "POWER_UNDO": str(folder / "undo"), **more}
    with RunningCommand(folder / "data", QUIPU_FAILPOINTS=site, **armed) as node:
        apps = Apps(node.facts["api"])
        if not site:
            assert apps.enough.wait(WAIT_S)
            node.process.kill()
        node.process.wait(WAIT_S)
        apps.end()
    return apps.acknowledged


def test_what_was_acknowledged_survives_a_loss_of_power(tmp_path: Path, failing_disk: Path) -> None:
    acknowledged: list[str] = []
    for seed, site in enumerate(("", "commit.durable=kill@20", "commit.begin=kill@20", "")):
        acknowledged += live_and_lose_power(tmp_path, failing_disk, site)
        chance = (1.0, 0.5)[seed % 2]
        lose_power(tmp_path / "data/store/data.mdb", tmp_path / "undo", chance, seed)
        with RunningCommand(tmp_path / "data") as node:
            assert missing(node.facts["api"], acknowledged) == []
    assert acknowledged


def test_a_disk_that_lies_is_noticed(tmp_path: Path, failing_disk: Path) -> None:
    """The test above bites: where syncing does nothing, what was acknowledged is lost."""
    acknowledged = live_and_lose_power(tmp_path, failing_disk, "", POWER_LIES="1")
    assert lose_power(tmp_path / "data/store/data.mdb", tmp_path / "undo", 1.0, 0)
    with RunningCommand(tmp_path / "data") as node:
        assert not node.facts or missing(node.facts["api"], acknowledged)


# --- each acknowledgement waits for its sync ------------------------------------------------------
def test_every_acknowledged_turn_was_synced_before(tmp_path: Path, failing_disk: Path) -> None:
    """Counted at the system calls: the node's own count of commits is the same."""
    syncs = tmp_path / "syncs"
    armed = {"LD_PRELOAD": str(failing_disk), "POWER_SYNCS": str(syncs)}
    with RunningCommand(tmp_path / "data", **armed) as node:
        before = commits_counted(node.facts["ops"], syncs)
        answered = under_load(node.facts["api"])
        after = commits_counted(node.facts["ops"], syncs)
        assert node.stop()[0] == 0
    assert len(answered) == APPS * ENTRIES
    commits = commits_in(syncs)
    assert [one for one in answered if not has_sync(one, commits)] == []
    assert after[0] - before[0] == after[1] - before[1] > 0


def test_an_acknowledgement_without_a_sync_is_noticed(tmp_path: Path, failing_disk: Path) -> None:
    """The test above bites."""
    syncs = tmp_path / "syncs"
    armed = {"LD_PRELOAD": str(failing_disk), "POWER_SYNCS": str(syncs), "POWER_LIES": "1"}
    with RunningCommand(tmp_path / "data", **armed) as node:
        answered = under_load(node.facts["api"])
    commits = commits_in(syncs)
    assert answered
    assert not any(has_sync(one, commits) for one in answered)


def under_load(url: str) -> list[Answered]:
    """Apps side by side, so that turns hold entries of several and commits overlap requests."""
    with ThreadPoolExecutor(APPS) as apps:
        return [one for found in apps.map(write_some, [url] * APPS) for one in found]


def write_some(url: str) -> list[Answered]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=WAIT_S)
    answered = []
    for number in range(ENTRIES):
        sent_ns = time.monotonic_ns()
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/entries", json.dumps({"data": number}), headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 201
        answered.append(Answered(sent_ns, time.monotonic_ns()))
    connection.close()
    return answered


def noted_in(file: Path) -> list[tuple[int, int, int]]:
    """Kind, begin and end of each call."""
    return list(CALL.iter_unpack(file.read_bytes())) if file.exists() else []


def commits_in(file: Path) -> list[Commit]:
    """Pages are written and synced, then the meta page is written by a call that syncs."""
    commits, written_ns, is_synced = [], None, False
    for kind, begin_ns, end_ns in sorted(noted_in(file), key=lambda call: call[1]):
        match kind:
            case 5:
                written_ns = begin_ns if written_ns is None else written_ns
                is_synced = False
            case 1 | 2:
                is_synced = True
            case 4 if is_synced and written_ns is not None:
                commits.append(Commit(written_ns, end_ns))
                written_ns, is_synced = None, False
    return commits


def has_sync(answered: Answered, commits: list[Commit]) -> bool:
    """A whole commit lies between the request and its answer, and not only the end of one."""
    return any(
        answered.sent_ns < commit.begun_ns and commit.ended_ns < answered.answered_ns
        for commit in commits
    )


def commits_counted(ops: str, file: Path) -> tuple[int, int]:
    """By the node and at the system calls, when two looks show the same: nothing is under way."""
    last = (-1, -1)
    while True:
        with urllib.request.urlopen(f"{ops}/metrics", timeout=WAIT_S) as answer:
            found = re.search(r"^quipu_commits_total (\S+)$", answer.read().decode(), re.MULTILINE)
        assert found is not None
        counted = (int(float(found[1])), len(commits_in(file)))
        if counted == last:
            return counted
        last = counted
