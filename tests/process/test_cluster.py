"""A real cluster as programs and people see it: members, queries, health, what is missing."""

import json
import threading
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from quipu.client import Client, Unavailable
from quipu.devnet import Devnet
from quipu.node.exits import Exit
from quipu.node.questions import Question
from tests.process.cluster import client_of, cluster, read_at, wait_until
from tests.process.command import quipu


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Devnet]:
    with cluster(tmp_path / "net", observers=1) as made:
        yield made


def members_of(net: Devnet, number: int) -> dict[str, dict[str, Any]]:
    with client_of(net, number) as client:
        return {row["name"]: row for row in client.members()["items"]}


def is_readable(net: Devnet, number: int) -> bool:
    url = f"{net.node(number).ops}/readyz?for=read"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return bool(answer.status == 200)
    except urllib.error.HTTPError:
        return False


ANSWERED_S = 5.0  # a question without a verdict waits for so long
OWN_SIGHT = (Question.MEMBERS, Question.JOURNAL)  # each says what it alone sees


def is_answered(client: Client, question: Question) -> bool:
    """By all three, who agree where it is not about what each sees. A minute that ends between the
    answers, or a checkpoint, needs another try."""
    told = client.query(question, timeout=ANSWERED_S)
    assert told["asked"] == 3
    return len(told["answers"]) == 3 if question in OWN_SIGHT else told["verdict"] == "agreed"


def test_all_agree(net: Devnet) -> None:
    with client_of(net, 2) as client, client_of(net, 4) as observer:
        receipt = client.submit({"order": 7}, wait="read")
        for number in (1, 3):
            read_at(net, number, receipt.id)
        for question in Question:
            wait_until(partial(is_answered, client, question), f"all have answered {question}")
        wait_until(partial(is_answered, observer, Question.VERSION), "also to an observer")
        rows = members_of(net, 4)
        assert [row["state"] for row in rows.values()] == ["alive"] * 4
        assert rows["n4"]["roles"] == ["observer"]
        assert client.cluster()["members_live"] == 3
        with pytest.raises(Unavailable) as refused:
            observer.submit(1)
        assert refused.value.code == "not-a-member"


def test_one_left_alone_says_who_is_missing(net: Devnet) -> None:
    assert is_readable(net, 1)
    heard: list[dict[str, Any]] = []
    url = f"{net.node(1).api}/v1/stream?events=members"
    request = urllib.request.Request(url, headers={"Accept": "application/x-ndjson"})
    with urllib.request.urlopen(request, timeout=60) as stream, client_of(net, 1) as client:

        def listen() -> None:
            for line in stream:
                heard.append(json.loads(line))
                if sum(item["type"] == "member" for item in heard) == 2:
                    return

        listening = threading.Thread(daemon=True, target=listen)
        listening.start()
        done = quipu("leave", "--data-dir", str(net.data_of(net.node(2))))
        assert done.returncode == Exit.OK, done.stderr
        net.kill(3)
        wait_until(lambda: client.cluster()["members_live"] == 1, "the others are gone")
        assert not is_readable(net, 1)
        receipt = client.submit({"order": 8})
        explained = client.explain(receipt.id)
        (obstacle,) = explained["obstacles"]
        assert [member["name"] for member in obstacle["offline"]] == ["n2", "n3"]
        listening.join(timeout=60)
    told = {item["node_id"]: item["state"] for item in heard if item["type"] == "member"}
    assert told == {net.node(2).node_id: "left", net.node(3).node_id: "suspect"}
    rows = members_of(net, 1)
    assert (rows["n2"]["state"], rows["n2"]["trouble"]) == ("left", "")
    assert "cannot reach it" in rows["n3"]["trouble"]

    asked = quipu("query", "version", "--timeout", "1", "--url", net.node(1).api)
    assert asked.returncode == Exit.WAITED
    assert "1 of 3 answered" in asked.stdout

    net.start(2, 3)
    read_at(net, 3, receipt.id)
    assert is_readable(net, 1)
    assert members_of(net, 1)["n3"]["trouble"] == ""
