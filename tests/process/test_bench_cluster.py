"""The benchmark of a cluster, far too short to say anything about speed: it runs, counts, and finds
again on every node what was acknowledged."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench import growth, rejoin
from bench.cases import Plan
from bench.cluster import HEADINGS, row_of
from bench.cluster_cases import CASES, Case, measure
from bench.clusters import BareCluster, NodeCluster, bare_cluster, node_cluster

SHORT = Plan(seconds=0.3, rounds=1, warm_up_s=0.1)
MEMBERS = 3


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BareCluster, NodeCluster]]:
    folder = tmp_path_factory.mktemp("bench")
    with (
        bare_cluster(folder / "bare", MEMBERS) as bare,
        node_cluster(folder / "nodes", MEMBERS) as nodes,
    ):
        yield bare, nodes


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_case_finds_everywhere_what_was_acknowledged(
    case: Case, clusters: tuple[BareCluster, NodeCluster]
) -> None:
    outcome = measure(case, *clusters, SHORT)
    assert outcome.void == ""
    (found,) = outcome.nodes
    assert found.rate > 0
    assert found.cpu_us > 0
    assert found.commits > 0
    assert found.signed > 0
    assert found.checked > 0
    assert found.messages > 0
    assert found.wire_share(MEMBERS) > 1.0
    assert bool(outcome.bare) == case.beside_bare
    assert len(row_of(outcome)) == len(HEADINGS)


def test_entries_that_are_missing_make_the_figures_void(
    clusters: tuple[BareCluster, NodeCluster],
) -> None:
    batch = next(case for case in CASES if case.name == "batch")
    outcome = measure(replace(batch, name="strays", beside_bare=False), *clusters, SHORT)
    assert "acknowledged" in outcome.void


def test_a_node_that_was_away_has_all_that_it_missed(tmp_path: Path) -> None:
    large, single = rejoin.measure(tmp_path / "cluster", 500, 20)
    assert (large.void, single.void) == ("", "")
    assert large.entries >= 500
    assert single.events >= 20
    assert large.seconds > 0
    assert large.rss_bytes > 0


def test_an_idle_cluster_sends_little_and_a_lone_node_nothing(tmp_path: Path) -> None:
    alone, two = (growth.measure(tmp_path / str(n), n, SHORT, idle_s=0.1) for n in (1, 2))
    assert (alone.void, two.void) == ("", "")
    assert alone.idle_bytes_s == 0
    assert two.busy.wire_bytes > 0
