"""GET /v1/cluster and /v1/cluster/members, POST /v1/cluster/queries: the nodes among themselves."""

import asyncio
import base64
from collections.abc import Mapping
from typing import Annotated, cast

import msgspec
from msgspec import UNSET, UnsetType

from quipu import __version__
from quipu.api.bodies import JSON, decoded
from quipu.api.calls import Call, Response
from quipu.api.codes import Code
from quipu.api.events import FOR_NOW
from quipu.api.models import (
    ClusterBody,
    MemberBody,
    MemberList,
    QueryAnswer,
    QueryResult,
    QueryVerdict,
)
from quipu.api.problems import at, problem
from quipu.api.times import NotADuration, duration_ms, duration_text
from quipu.ledger.words import NodeId
from quipu.node import limits as node_limits
from quipu.node.service import Ledger, MemberRow
from quipu.p2p import limits as peer_limits
from quipu.p2p.addresses import uri_of
from quipu.p2p.bodies import Answer
from quipu.p2p.gossip import Gossip, body_of, decode_content, join_content
from quipu.p2p.words import Endpoint, PeerState, PeerView

MS_PER_S = 1_000


class NewQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question to all members. Which ones there are: docs/cluster.md."""

    question: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=peer_limits.QUESTION_BYTES_MAX,
            pattern=r"^[ -~]+$",
            examples=["version"],
        ),
    ]
    argument: (
        Annotated[str, msgspec.Meta(max_length=peer_limits.ARGUMENT_BYTES_MAX, pattern=r"^[ -~]*$")]
        | UnsetType
    ) = UNSET
    timeout: Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,5}(ms|s|m)$", examples=["5s"])] = "5s"
    everybody: bool = False  # the answer of each live member is wanted, whatever is decided before


_queries = msgspec.json.Decoder(NewQuery)


async def cluster(call: Call) -> Response:
    ledger = call.ledger
    epoch, live = ledger.epoch, _live(ledger)
    body = ClusterBody(
        cluster_id=ledger.cluster_id.hex(),
        cluster_name=ledger.cluster_name,
        epoch=str(epoch.number),
        policy=epoch.policy,
        members=len(epoch.members),
        members_live=sum(node_id in live for node_id in epoch.numbers),
        max_confirms=epoch.max_confirms,
        safe=epoch.max_confirms >= len(epoch.members) // 2,
        finality=ledger.health().is_readable,
        streams_erasable=sorted(epoch.streams_erasable),
    )
    return call.answer(body, headers=FOR_NOW)


async def members(call: Call) -> Response:
    """The roster by number; then the others that this node knows, by node id."""
    ledger = call.ledger
    views = {view.peer: view for view in ledger.peers()}
    roster = {row.node_id: row for row in ledger.members()}
    others = sorted({*views, ledger.node_id} - set(roster))
    items = [
        _member(ledger, node_id, roster.get(node_id), views.get(node_id))
        for node_id in (*roster, *others)
    ]
    forced = [str(number) for number in ledger.roster.status().forced]
    return call.answer(MemberList(items, forced), headers=FOR_NOW)


def _live(ledger: Ledger) -> frozenset[NodeId]:
    up = (view.peer for view in ledger.peers() if is_up(view))
    return frozenset((ledger.node_id, *up))


def is_up(view: PeerView) -> bool:
    return view.state is PeerState.ALIVE and view.linked_in and view.linked_out


def _own_trouble(ledger: Ledger) -> str:
    by = ledger.roster.status().overruled_by
    if by is None:
        return ""
    return f"the cluster went on by force without this node (epoch {by}): it stands still"


def _member(
    ledger: Ledger, node_id: NodeId, row: MemberRow | None, view: PeerView | None
) -> MemberBody:
    is_self = node_id == ledger.node_id
    endpoint = ledger.endpoint if is_self else view and view.endpoint
    name = row.name if row is not None else ledger.name if is_self else view and view.name
    return MemberBody(
        node_id=node_id.hex(),
        name=name or "",
        number=None if row is None else row.number,
        roles=["observer"] if row is None else list(row.roles),
        is_self=is_self,
        state=PeerState.ALIVE if is_self else view.state if view else PeerState.UNKNOWN,
        endpoint=None if endpoint is None else str(endpoint),
        uri=None if endpoint is None else uri_of(node_id, Endpoint(*endpoint)),
        heard_ms_ago=0 if is_self else view and view.heard_ms_ago,
        version=__version__ if is_self else view.version if view else "",
        pools=[] if view is None else list(view.pools),
        linked_in=is_self or (view is not None and view.linked_in),
        linked_out=is_self or (view is not None and view.linked_out),
        trouble=_own_trouble(ledger) if is_self else "" if view is None else view.trouble,
        order_state=None if row is None else ledger.order.states().get(row.number),  # type: ignore[arg-type]
    )


# --- queries --------------------------------------------------------------------------------------
async def query(call: Call) -> Response:
    asked = await _asked(call)
    timeout_ms = _timeout_ms(asked.timeout)
    argument = "" if asked.argument is UNSET else asked.argument
    ended = await call.ledger.query(asked.question, argument.encode(), timeout_ms / MS_PER_S)
    said = dict(ended.answers)
    if asked.everybody:
        said |= await _others(call.ledger, asked.question, argument.encode(), timeout_ms, said)
    names = {row.node_id: row.name for row in call.ledger.members()}
    answers = [
        QueryAnswer(
            node_id=node_id.hex(),
            name=names.get(node_id, ""),
            answer=_text(answer_in(signed)),
            signed_base64=base64.b64encode(signed).decode(),
        )
        for node_id, signed in said.items()
    ]
    body = QueryResult(
        question=asked.question,
        argument=argument,
        verdict=cast(QueryVerdict, str(ended.verdict)),
        answer=None if ended.answer is None else _text(ended.answer),
        asked=ended.asked,
        answered=len(answers),
        answers=answers,
    )
    return call.answer(body, headers=FOR_NOW)


async def _others(
    ledger: Ledger, question: str, argument: bytes, timeout_ms: int, said: Mapping[NodeId, bytes]
) -> dict[NodeId, bytes]:
    """A tally ends as soon as it is decided; the live members that were not needed for it are
    asked one by one, side by side."""
    members = ledger.epoch.numbers
    wanted = [peer for peer in _live(ledger) if peer in members and peer not in said]
    asked = (ledger.query(question, argument, timeout_ms / MS_PER_S, peer) for peer in wanted)
    return {peer: signed for one in await asyncio.gather(*asked) for peer, signed in one.answers}


async def _asked(call: Call) -> NewQuery:
    if call.body_type != JSON:
        problem(Code.UNSUPPORTED_MEDIA_TYPE, f"{call.body_type} is not read here, {JSON} is")
    return decoded(_queries, await call.read_body(call.face.settings.body_bytes_max))


def _timeout_ms(text: str) -> int:
    try:
        timeout_ms = duration_ms(text)
    except NotADuration as error:
        raise at(Code.INVALID_FIELD, "/timeout", str(error)) from error
    if not 0 < timeout_ms <= node_limits.QUERY_MS_MAX:
        longest = duration_text(node_limits.QUERY_MS_MAX)
        raise at(Code.INVALID_FIELD, "/timeout", f"more than 0, at most {longest}")
    return timeout_ms


def answer_in(signed: bytes) -> bytes:
    """What stands in a message that was counted: it was looked at before it was."""
    (message,) = decode_content(join_content([signed]))
    assert isinstance(message, Gossip)
    body = body_of(message)
    assert isinstance(body, Answer)
    return body.answer


def _text(answer: bytes) -> str:
    """Of this program always text; another one's is shown as far as it is."""
    return answer.decode(errors="replace")
