"""The benchmark of the order, far too short to say anything about speed: it runs, counts, and finds
again on every node what was acknowledged."""

from collections.abc import Iterator

import pytest

from bench.cases import Plan
from bench.clusters import NodeCluster, node_cluster
from bench.etcds import SOURCE
from bench.go_builds import NotHere, built
from bench.order import HEADINGS, row_of
from bench.order_cases import CASES, Case, Measured, measure

SHORT = Plan(seconds=2.0, rounds=1, warm_up_s=0.5)
MEMBERS = 3


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeCluster]:
    with node_cluster(tmp_path_factory.mktemp("bench") / "nodes", MEMBERS) as found:
        yield found


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_case_finds_everywhere_what_was_acknowledged(case: Case, nodes: NodeCluster) -> None:
    outcome = measure(case, nodes, None, SHORT)
    assert outcome.void == ""
    (found,) = outcome.nodes
    assert found.rate > 0
    assert found.cpu_us > 0
    assert found.commits > 0
    assert len(row_of(outcome)) == len(HEADINGS)


def test_what_is_missing_makes_the_figures_void(nodes: NodeCluster) -> None:
    publish = next(case for case in CASES if case.sequence)
    measured = Measured(publish, nodes)
    measured.round(SHORT)
    measured.void = ""  # answers that came late are not what this is about
    measured.acknowledged = measured.sent = measured.sent + 1
    assert f"{measured.sent} numbers acknowledged of {measured.sent}" in measured.missing()


def test_etcd_that_cannot_be_built_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NotHere, match="no Go"):
        built(SOURCE)
