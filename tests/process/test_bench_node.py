"""The benchmark of the node, far too short to say anything about speed: it runs, counts, and finds
again what was acknowledged."""

import dataclasses
from collections.abc import Iterator

import pytest

from bench import abuse, overload, requests
from bench.cases import CASES, Case, Floors, Plan, measure
from bench.generator import Round, rate_said, script_of, shown
from bench.node import HEADINGS, below_floors, row_of
from bench.resilience import run_abuses
from bench.servers import Server, both

SHORT = Plan(seconds=0.3, rounds=1, warm_up_s=0.1)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    with both(tmp_path_factory.mktemp("bench")) as found:
        yield found


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_case_finds_what_was_acknowledged(case: Case, servers: tuple[Server, Server]) -> None:
    outcome = measure(case, *servers, SHORT)
    assert outcome.void == ""
    (figures,) = outcome.node
    assert figures.peak > 0
    assert figures.server_cpu_us > 0
    assert figures.client_cpu_us > 0
    assert set(figures.latency_ms) == {"p50", "p95", "p99"}
    assert (outcome.ratio is not None) == case.beside_bare
    assert len(row_of(outcome)) == len(HEADINGS)


def test_a_floor_that_is_not_reached_is_said(servers: tuple[Server, Server]) -> None:
    easy = next(case for case in CASES if case.name == "page")
    assert below_floors(measure(easy, *servers, SHORT)) == []
    hard = dataclasses.replace(easy, floors=Floors(1e12, p50_ms=0.0, p99_ms=0.0))
    said = below_floors(measure(hard, *servers, SHORT))
    assert [line.split()[0] for line in said[1:]] == ["p50", "p99"]
    assert said[0].endswith("entries/s, at least 1,000,000,000,000")


def test_entries_that_are_missing_make_the_figures_void(servers: tuple[Server, Server]) -> None:
    elsewhere = next(case for case in CASES if case.name == "batch")
    strays = Case("strays", "", 4, 1, elsewhere.prepare)
    outcome = measure(strays, *servers, SHORT)
    assert "acknowledged" in outcome.void


def test_a_flood_is_counted(servers: tuple[Server, Server]) -> None:
    flood = overload.measure(servers[1], SHORT)
    assert flood.void == ""
    assert flood.text().startswith("overload: ")
    assert flood.flood.accepted > 0
    assert flood.rss_after > 0


def test_abuse_is_measured_in_pairs(servers: tuple[Server, Server]) -> None:
    (found,), void = run_abuses(["huge-body"], servers[1], SHORT)
    assert void == ""
    assert found.kind in abuse.KINDS
    assert found.times["p50"][0] > 0


# --- beside wrk -----------------------------------------------------------------------------------
def test_wrk_is_given_the_same_request() -> None:
    script = script_of(requests.post("loaded", 16))
    assert script.splitlines() == [
        'wrk.method = "POST"',
        'wrk.path = "/v1/entries"',
        'wrk.body = [==[{"stream":"loaded","data":"xxxxxxxxxxxxxx"}]==]',
        'wrk.headers["Content-Type"] = "application/json"',
    ]


def test_what_wrk_says_counts_where_all_was_taken() -> None:
    assert rate_said("Running\nRequests/sec:   3081.52\nTransfer/sec: 1MB\n") == 3081.52
    with pytest.raises(SystemExit, match="Non-2xx"):
        rate_said("  Non-2xx or 3xx responses: 7\nRequests/sec: 9.0\n")
    with pytest.raises(SystemExit, match="no rate"):
        rate_said("unable to connect")


def test_the_ratio_is_of_rounds_that_saw_both() -> None:
    said = shown("post", [Round(100.0, 200.0, 1.0, 1.0), Round(90.0, 100.0, 1.0, 1.0)])
    assert "ours is 0.70 x" in said
