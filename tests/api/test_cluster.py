"""/v1/cluster: what a node says of the others, questions to all of them, members in the stream."""

import base64
from pathlib import Path

import pytest

from quipu.api.members import answer_in
from quipu.api.settings import Settings
from quipu.api.tokens import new_token
from quipu.ledger import signing
from quipu.ledger.words import NodeId
from quipu.node.service import Draining, Overloaded, PeerMoved
from quipu.p2p.gossip import Gossip, decode_content, has_valid_signature, join_content
from quipu.p2p.words import Endpoint, PeerState, PeerView, PoolName, Start
from tests.api.one_node import OneNode
from tests.api.talk import talking, until
from tests.api.test_stream import listening
from tests.small_ledger import key_of

OTHER = key_of("n2").node_id
STRANGER = key_of("n9").node_id


def view(peer: NodeId, state: PeerState = PeerState.ALIVE, **more: object) -> PeerView:
    where, pools = Endpoint("127.0.0.1", 9471), (PoolName("lamps"),)
    plain = PeerView(peer, state, where, 40, Start(1), pools, True, True, "0.9", "n9")
    return plain._replace(**more)  # type: ignore[arg-type]


def three() -> OneNode:
    return OneNode(3)


async def test_which_cluster_it_is() -> None:
    async with talking(node=three()) as api:
        api.node.views = (view(OTHER), view(STRANGER))
        told = (await api.get("/v1/cluster")).json
        assert told["cluster_id"] == api.node.cluster_id.hex()
        assert (told["members"], told["members_live"]) == (3, 2)
        assert (told["policy"], told["max_confirms"], told["safe"]) == ("majority", 1, True)
        assert told["epoch"] == "1"


async def test_the_members_and_who_else_is_there() -> None:
    async with talking(node=three()) as api:
        api.node.views = (
            view(OTHER, PeerState.SUSPECT, linked_out=False, trouble="cannot reach it"),
            view(STRANGER),
        )
        items = (await api.get("/v1/cluster/members")).json["items"]
        own, other, silent, observer = items
        assert (own["is_self"], own["state"], own["uri"]) == (
            True,
            "alive",
            f"quipu://127.0.0.1:8471/{api.node.node_id.hex()}",
        )
        assert (other["number"], other["state"], other["trouble"]) == (
            2,
            "suspect",
            "cannot reach it",
        )
        assert (other["linked_in"], other["linked_out"], other["heard_ms_ago"]) == (True, False, 40)
        assert (silent["state"], silent["endpoint"]) == ("unknown", None)
        assert (observer["number"], observer["roles"], observer["name"]) == (
            None,
            ["observer"],
            "n9",
        )
        assert (observer["version"], observer["pools"]) == ("0.9", ["lamps"])


@pytest.mark.parametrize(
    ("question", "argument", "answer"),
    [
        ("version", "", "0.1.0"),
        ("read-count", "", "0"),
        ("health", "", "ok"),
        ("who-are-you", "", "unknown-question"),
        ("version", "7", "bad-argument"),
        ("time", "0", "bad-argument"),
        ("time", "soon", "bad-argument"),
    ],
)
async def test_a_question_and_its_signed_answers(question: str, argument: str, answer: str) -> None:
    async with talking() as api:
        asked = {"question": question, "argument": argument}
        reply = await api.post("/v1/cluster/queries", asked)
        assert reply.status == 200, reply.body
        told = reply.json
        assert (told["verdict"], told["answer"]) == ("agreed", answer)
        (one,) = told["answers"]
        assert (one["node_id"], one["answer"]) == (api.node.node_id.hex(), answer)
        signed = base64.b64decode(one["signed_base64"])
        (message,) = decode_content(join_content([signed]))
        assert isinstance(message, Gossip)
        assert has_valid_signature(message, api.node.cluster_id, signing.verify)
        assert answer_in(signed).decode() == answer


async def test_too_few_answers() -> None:
    async with talking(node=three()) as api:
        told = (await api.post("/v1/cluster/queries", {"question": "version"})).json
        assert (told["verdict"], told["answer"], told["asked"], told["answered"]) == (
            "timeout",
            None,
            3,
            1,
        )


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"question": ""}, "/question"),
        ({"question": "q" * 129}, "/question"),
        ({"question": "a\u0000b"}, "/question"),
        ({"question": "version", "timeout": "0s"}, "/timeout"),
        ({"question": "version", "timeout": "61s"}, "/timeout"),
        ({"question": "version", "argument": "é"}, "/argument"),
    ],
)
async def test_a_question_that_makes_no_sense(body: dict[str, str], pointer: str) -> None:
    async with talking() as api:
        reply = await api.post("/v1/cluster/queries", body)
        assert (reply.status, reply.code, reply.pointers) == (400, "invalid-field", [pointer])


async def test_a_node_that_cannot_ask() -> None:
    async with talking() as api:
        for fault, code in ((Overloaded(1, "busy"), "node-full"), (Draining("ends"), "draining")):
            api.node.fault = fault
            reply = await api.post("/v1/cluster/queries", {"question": "version"})
            assert (reply.status, reply.code) == (503, code)


async def test_members_that_move_are_told_to_who_asks_for_it() -> None:
    async with talking() as api, listening(api, "events=members,status") as stream:
        await until(lambda: api.node.listeners == 1)
        moved = PeerMoved(OTHER, PeerState.ALIVE, PeerState.SUSPECT, "silence")
        api.node.tell(moved)
        told = await stream.of("member")
        assert told.data == {
            "type": "member",
            "node_id": OTHER.hex(),
            "before": "alive",
            "state": "suspect",
            "reason": "silence",
        }


async def test_members_are_for_who_may_read_the_cluster(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    text = new_token(path, "app", ["entries:read"])
    async with talking(Settings(port=0, ops_port=0, tokens_file=path)) as api:
        api.headers["Authorization"] = f"Bearer {text}"
        for url in ("/v1/stream?events=members", "/v1/cluster", "/v1/cluster/members"):
            assert (await api.get(url)).code == "forbidden"
        reply = await api.post("/v1/cluster/queries", {"question": "version"})
        assert reply.code == "forbidden"
