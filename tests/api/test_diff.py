"""/v1/dag/diff: two nodes by their frontiers."""

from pathlib import Path

import pytest

from quipu.api.diff import differences
from quipu.client import Unavailable
from quipu.ledger.words import EventId, Journal, NodeNo, Seq
from quipu.node import limits
from quipu.node.questions import CordRow, Cords, cords_of
from quipu.node.service import FrontierRow
from quipu.testing import LocalCluster
from tests.api.one_node import OneNode
from tests.api.talk import talking


async def test_the_same_and_not_the_same() -> None:
    async with talking(node=OneNode(size=2)) as api:
        api.node.other = OneNode(size=2)
        for peer in ("2", "n2", api.node.members()[1].node_id.hex(), "1"):
            told = (await api.get(f"/v1/dag/diff?peer={peer}")).json
            assert (told["items"], told["from_journal"]) == ([], "0")
        await api.submit(1)
        told = (await api.get("/v1/dag/diff?peer=n2")).json
        (row,) = told["items"]
        assert (told["peer"]["number"], row["author"]["name"]) == (2, "n1")
        (here,) = row["here"]
        assert (here["held_seq"], here["read_seq"], row["there"]) == ("1", "0", [])
        assert here["held_id"] == (await api.get("/v1/dag/frontier")).json["rows"][0]["held_id"]


@pytest.mark.parametrize("query", ["", "?peer=", "?peer=2&timeout=0s", "?peer=2&timeout=2h"])
async def test_a_question_that_makes_no_sense(query: str) -> None:
    async with talking(node=OneNode(size=2)) as api:
        assert (await api.get(f"/v1/dag/diff{query}")).code == "invalid-parameter"


def row(journal: int, seq: int, author: int = 1, read: int = 0, last: str = "aa") -> CordRow:
    return CordRow(author, journal, seq, last * 32, read)


def test_branches_count_and_their_order_does_not() -> None:
    forked = [row(7, 3), row(7, 3, last="bb")]
    assert differences(Cords(0, forked), Cords(0, forked[::-1])) == []
    ((cord, here, there),) = differences(Cords(0, forked), Cords(0, forked[:1]))
    assert (cord, len(here), len(there)) == ((1, 7), 2, 1)
    assert differences(Cords(0, [row(7, 3)]), Cords(0, [row(7, 3, read=2)])) != []


def test_what_one_of_them_left_out_is_not_compared() -> None:
    here, there = Cords(0, [row(5, 1), row(9, 1)]), Cords(6, [row(9, 2)])
    assert [cord for cord, _, _ in differences(here, there)] == [(1, 9)]


def test_an_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    node = OneNode()
    rows = [
        FrontierRow(NodeNo(no), Journal(j), 0, Seq(1), EventId(bytes(32)), Seq(0), EventId(b""))
        for j in (1, 2, 3)
        for no in (1, 2)
    ]
    monkeypatch.setattr(node, "frontier", lambda: rows)
    monkeypatch.setattr(limits, "CORDS_ANSWERED_MAX", 5)
    cords = cords_of(node)
    assert (cords.from_journal, [(r.journal, r.author_no) for r in cords.rows]) == (
        2,
        [(3, 1), (3, 2), (2, 1), (2, 2)],
    )


def test_two_real_nodes(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, members=2) as cluster:
        first = cluster.client(1)
        assert first.submit(1, wait="read", timeout=30).state == "read"
        assert first.diff(1)["items"] == []
        assert first.diff(2)["peer"]["number"] == 2
        cluster.pause(2)
        with pytest.raises(Unavailable, match="peer-silent"):
            first.diff(2, timeout=0.2)
        cluster.resume(2)
