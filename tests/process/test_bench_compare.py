"""The comparison with others, far too short to say anything about speed."""

import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench.cases import ENTRY_BYTES, Plan
from bench.clusters import NodeCluster, node_cluster
from bench.compare import HEADINGS, IN_MEMORY, KEPT_HEADINGS, file_system_of, shown, shown_kept
from bench.compare_cases import CASES, OURS, Case, Figures, Outcome, measure, rows_of
from bench.footprint import DISK_FLOOR, MEMORY_FLOOR, of_ours
from bench.go_builds import NotHere
from bench.load import Line
from bench.redises import redises
from bench.syncs import counted, synced_files
from bench.wires import CREATED, FAILED, NATS_INBOX, Closed, NatsLine, RedisLine

SHORT = Plan(seconds=1.0, rounds=1, warm_up_s=0.2)
MEMBERS = 3


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeCluster]:
    with node_cluster(tmp_path_factory.mktemp("bench") / "nodes", MEMBERS) as found:
        yield found


@pytest.mark.parametrize("name", ["batch", "read-64"])
def test_a_case_counts_only_with_what_was_acknowledged(name: str, nodes: NodeCluster) -> None:
    case = next(one for one in CASES if one.name == name)
    outcome = measure(case, nodes, {}, SHORT)
    assert outcome.void == ""
    (row,) = rows_of(outcome)
    assert (row.system, row.ratio, row.is_short) == (OURS, None, False)
    assert row.rate > 0
    assert row.cpu_us > 0
    assert len(shown(row)) == len(HEADINGS)


def test_what_entries_leave_behind(nodes: NodeCluster) -> None:
    found, void = of_ours(nodes, 1_000)
    assert void == ""
    assert found.entries >= 1_000
    assert ENTRY_BYTES < found.disk_bytes < 40 * ENTRY_BYTES  # few entries: pages are hardly full
    assert 0 < found.own_mib < found.resident_mib
    worse = replace(found, disk_bytes=DISK_FLOOR + 1, own_mib=MEMORY_FLOOR + 1)
    assert len(worse.short()) == 2
    assert len(shown_kept(found)) == len(KEPT_HEADINGS)


def outcome_of(case: Case, ours: float, other: float) -> Outcome:
    rounds = {name: [Figures(at, at, at, 1.0)] for name, at in ((OURS, ours), ("etcd", other))}
    return Outcome(case, rounds)


def test_ratios_are_of_rates_or_of_latency() -> None:
    by_name = {case.name: case for case in CASES}
    rate = rows_of(outcome_of(by_name["post-64"], 500.0, 1_000.0))[1]
    assert (rate.ratio, rate.floor, rate.is_short) == (0.5, 0.9, True)
    latency = rows_of(outcome_of(by_name["post-1"], 2.0, 1.0))[1]
    assert (latency.ratio, latency.floor, latency.is_short) == (2.0, 3.0, False)


def test_memory_is_no_disk() -> None:
    assert file_system_of(Path("/dev/shm/x")) in IN_MEMORY
    assert file_system_of(Path("/proc")) == "proc"


def test_what_is_not_here_says_how_to_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NotHere, match="apt-get install redis-server"), redises(3, tmp_path):
        pass


# --- syncs ----------------------------------------------------------------------------------------
TRACED = """\
17 fdatasync(21) = 0
18 pwrite64(22, ""..., 120, 4096 <unfinished ...>
17 fsync(9) = 0
18 <... pwrite64 resumed>) = 120
17 write(23, ""..., 64) = 64
17 sync() = 0
17 --- SIGCHLD {si_signo=SIGCHLD} ---
write(22, ""..., 8) = 8
"""


def test_syncs_are_calls_that_sync_and_writes_to_synced_files() -> None:
    assert counted(TRACED.splitlines(), frozenset((22,))) == 5
    assert counted(TRACED.splitlines(), frozenset()) == 3


def test_a_file_whose_writes_are_synced_is_known(tmp_path: Path) -> None:
    flags = os.O_CREAT | os.O_WRONLY
    plain, synced = (
        os.open(tmp_path / name, flags | more) for name, more in (("a", 0), ("b", os.O_DSYNC))
    )
    try:
        assert {plain, synced} & synced_files(os.getpid()) == {synced}
    finally:
        os.close(plain)
        os.close(synced)


# --- protocols ------------------------------------------------------------------------------------
def fed(line: Line, data: bytes) -> list[tuple[int, bytes]]:
    """In pieces of one byte: an answer may come in any pieces."""
    line.begin()
    found = []
    for at in range(len(data)):
        body = line.take(data[at : at + 1])
        if body is not None:
            found.append((line.status, body))
    return found


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        (b"$3\r\n1-1\r\n:2\r\n", CREATED),
        (b"$3\r\n1-1\r\n:1\r\n", FAILED),  # too few copies
        (b"-ERR full\r\n:2\r\n", FAILED),
    ],
)
def test_answers_of_redis(answers: bytes, status: int) -> None:
    with socket.socket() as sock:
        line = RedisLine(sock, 0, [], replies=2)
        assert fed(line, answers * 2) == [(status, answers)] * 2
        good = b"$3\r\n1-1\r\n:2\r\n"
        assert fed(line, good) == [(CREATED, good)], "a failure is of one answer"


def test_a_value_of_redis_that_is_not_there_is_no_success() -> None:
    with socket.socket() as sock:
        assert fed(RedisLine(sock, 0, []), b"$-1\r\n")[0][0] == FAILED
        assert fed(RedisLine(sock, 0, []), b"$2\r\n\r\n\r\n")[0][0] == CREATED


def nats_pair() -> tuple[NatsLine, socket.socket]:
    ours, theirs = socket.socketpair()
    theirs.sendall(b'INFO {"x":1}\r\nPONG\r\n')
    return NatsLine(ours, 0, [b"PUB a " + NATS_INBOX + b" 1\r\nx\r\n"], replies=2), theirs


def test_acknowledgements_of_nats() -> None:
    line, theirs = nats_pair()
    good, bad = b"MSG _INBOX.1 1 2\r\n{}\r\n", b'MSG _INBOX.1 1 12\r\n{"error":{}}\r\n'
    with line.socket, theirs:
        assert [status for status, _ in fed(line, good + b"PING\r\n" + good)] == [CREATED]
        said = theirs.recv(1 << 16)
        assert said.startswith(b"CONNECT")
        assert said.endswith(b"PONG\r\n")
        inbox = said.split(b"SUB ")[1].split(b" ")[0]
        assert line.requests == [b"PUB a " + inbox + b" 1\r\nx\r\n"]
        theirs.sendall(b"PONG\r\n")
        assert [status for status, _ in fed(line, good + bad + good + good)] == [FAILED, CREATED]
        theirs.sendall(b"PONG\r\n")
        assert [status for status, _ in fed(line, b"-ERR 'no'\r\n")] == [FAILED]


def test_a_server_that_closes_before_it_begins() -> None:
    line, theirs = nats_pair()
    with line.socket:
        theirs.recv(0)
        theirs.close()
        line.socket.recv(1 << 16)
        with pytest.raises((Closed, ConnectionError)):
            line.begin()
