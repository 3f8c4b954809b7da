"""What a node answers: a closed list, equal bytes where nodes agree."""

import pytest

from quipu.ledger.words import Now
from quipu.node.questions import MEANINGS, Answers, Question, model_digest
from quipu.node.service import FrontierRow
from tests import tree
from tests.api.one_node import OneNode


def answers(ledger: OneNode, wall_ms: int = 1_790_000_061_234) -> Answers:
    return Answers(ledger, lambda: Now(wall_ms, 0))


class Holding(OneNode):
    """A node whose frontier is told."""

    rows: tuple[FrontierRow, ...] = ()

    def frontier(self) -> list[FrontierRow]:
        return list(self.rows)


def row(author: int, read_seq: int, held_seq: int, branch: int = 0) -> FrontierRow:
    return FrontierRow(author, 9, branch, held_seq, b"h" * 32, read_seq, b"r" * 32)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("argument", "answer"),
    [
        (b"", b"1790000040000"),
        (b"1000", b"1790000061000"),
        (b"1", b"1790000061234"),
        (b"0", b"bad-argument"),
        (b"-5", b"bad-argument"),
        (b"9" * 16, b"bad-argument"),
        ("²".encode(), b"bad-argument"),
    ],
)
def test_time_is_rounded_so_that_clocks_may_agree(argument: bytes, answer: bytes) -> None:
    assert answers(OneNode()).answer("time", argument) == answer


def test_health_names_what_fails() -> None:
    node = OneNode(3)
    assert answers(node).answer("health", b"") == b"quorum"
    node.ready = False
    assert answers(node).answer("health", b"") == b"store,quorum"


def test_epoch_names_the_members() -> None:
    node = OneNode(2)
    text = answers(node).answer("epoch", b"").decode()
    assert text.startswith(f"{node.epoch.number} majority 1:{node.node_id.hex()},2:")


@pytest.mark.parametrize("question", ["", "versions", "VERSION", "x" * 128])
def test_what_it_does_not_know(question: str) -> None:
    assert answers(OneNode()).answer(question, b"") == b"unknown-question"


@pytest.mark.parametrize("question", [q for q in Question if q is not Question.TIME])
def test_an_argument_that_nothing_takes(question: Question) -> None:
    assert answers(OneNode()).answer(question, b"7") == b"bad-argument"


def test_equal_models_have_equal_digests() -> None:
    one, other = Holding(), Holding()
    one.rows = (row(1, 4, 6), row(2, 3, 3), row(3, 0, 2))
    other.rows = (row(2, 3, 9), row(1, 4, 4, branch=1))  # what is not Read yet does not count
    assert model_digest(one) == model_digest(other)
    other.rows = (row(2, 3, 9), row(1, 5, 5))
    assert model_digest(one) != model_digest(other)


def test_every_question_is_described() -> None:
    described = tree.read("docs/cluster.md")
    for question in Question:
        assert f"| `{question}` | {MEANINGS[question]} |" in described
