"""GET /v1/cluster/roster, POST …/roster:propose and …:recover: members by an operator's word.

What can be said at once is refused here; what only the cluster can find out, whether a nominee is
ready, it answers when the members have been asked.
"""

from collections.abc import Callable, Sequence
from typing import NoReturn

import msgspec
from msgspec import UNSET, UnsetType

from quipu.api.bodies import JSON, decoded
from quipu.api.calls import Call, Response
from quipu.api.codes import Code
from quipu.api.events import FOR_NOW
from quipu.api.problems import Problem, at, problem
from quipu.api.roster_models import (
    CandidateBody,
    RosterBody,
    RosterChange,
    RosterChangeBody,
    RosterEndBody,
    RosterProposed,
    RosterRecovered,
    RosterRecovery,
)
from quipu.api.times import time_text
from quipu.ledger import limits, quorum
from quipu.ledger.canonical import fits_bytes
from quipu.ledger.order.wishes import Candidate
from quipu.ledger.refusals import Refused
from quipu.ledger.words import NodeId
from quipu.node.change_service import ChangeEnded, ChangeProgress
from quipu.node.founding import MEMBER_ROLES
from quipu.node.service import Ledger, MemberRow
from quipu.p2p.addresses import SCHEME, BadUri, parse_uri
from quipu.p2p.words import Endpoint, PeerState, PeerView

ONE_DEAD_STOPS = (
    "With two members one that is dead stops finality: nothing becomes Read until it is back. "
    "Add a third one."
)
_changes = msgspec.json.Decoder(RosterChange)
_recoveries = msgspec.json.Decoder(RosterRecovery)


# --- what stands ----------------------------------------------------------------------------------
async def roster(call: Call) -> Response:
    ledger, shapes = call.ledger, call.face.shapes
    found, order = ledger.roster.status(), ledger.order.status()
    names = _names(ledger)
    following = order.next_serializers
    body = RosterBody(
        epoch=str(found.epoch),
        policy=found.policy,
        required=ledger.epoch.max_confirms,
        members=[shapes.member(row.number) for row in ledger.members()],
        serializers=shapes.members(order.serializers),
        next_serializers=None if following is None else shapes.members(following),
        change=None if found.change is None else _change(found.change, names),
        ended=None if found.ended is None else _end(found.ended, names),
        forced_epochs=[str(number) for number in found.forced],
        overruled_by=None if found.overruled_by is None else str(found.overruled_by),
    )
    return call.answer(body, headers=FOR_NOW)


def _change(change: ChangeProgress, names: dict[NodeId, str]) -> RosterChangeBody:
    named = {NodeId(c.node_id): c.name for c in change.candidates}
    return RosterChangeBody(
        id=change.id.hex() or None,
        stage=change.stage.value,
        begun=time_text(change.begun_ms),
        policy=change.policy,
        members=_bodies(list(named), named),
        missing=_bodies(change.missing, {**names, **named}),
    )


def _end(ended: ChangeEnded, names: dict[NodeId, str]) -> RosterEndBody:
    return RosterEndBody(ended.id.hex(), ended.how, _bodies(ended.nodes, names))


def _bodies(nodes: Sequence[NodeId], names: dict[NodeId, str]) -> list[CandidateBody]:
    return [CandidateBody(node.hex(), names.get(node, "")) for node in nodes]


def _names(ledger: Ledger) -> dict[NodeId, str]:
    named = {view.peer: view.name for view in ledger.peers()}
    return {**named, **{row.node_id: row.name for row in ledger.members()}}


# --- what shall be --------------------------------------------------------------------------------
async def propose_roster(call: Call) -> Response:
    if call.body_type != JSON:
        problem(Code.UNSUPPORTED_MEDIA_TYPE, f"{call.body_type} is not read here, {JSON} is")
    asked = decoded(_changes, await call.read_body(call.face.settings.body_bytes_max))
    ledger = call.ledger
    candidates = _Roster(ledger, asked).wanted()
    if asked.name is UNSET and await _meet(ledger, candidates):
        candidates = _Roster(ledger, asked).wanted()  # with the name that it gave itself
    policy = ledger.epoch.policy if asked.policy is UNSET else asked.policy
    _check_policy(policy, len(candidates))
    identity = await ledger.roster.propose(candidates, policy)
    grows = len(candidates) == 2 and len(ledger.members()) == 1
    body = RosterProposed(identity.hex(), ONE_DEAD_STOPS if grows else "")
    return call.answer(body, 202, FOR_NOW)


async def _meet(ledger: Ledger, candidates: Sequence[Candidate]) -> bool:
    """Whether one of them was found by its URI."""
    for one in candidates:
        if one.where is not None:
            if not await ledger.meet(NodeId(one.node_id), Endpoint(*one.where)):
                _unreachable(f"{one.node_id.hex()} at {':'.join(map(str, one.where))}")
            return True
    return False


def _unreachable(text: str) -> NoReturn:
    problem(Code.NOMINEE_UNREACHABLE, f"this node has no link to {text}")


async def recover_roster(call: Call) -> Response:
    """By force. That the other members are lost for ever nobody can know but an operator."""
    if call.body_type != JSON:
        problem(Code.UNSUPPORTED_MEDIA_TYPE, f"{call.body_type} is not read here, {JSON} is")
    decoded(_recoveries, await call.read_body(call.face.settings.body_bytes_max))
    found = await call.ledger.roster.recover()
    return call.answer(RosterRecovered(str(found.epoch), found.followed), headers=FOR_NOW)


def _check_policy(policy: str, members: int) -> None:
    try:
        quorum.max_confirms(policy, members)
    except Refused as refused:
        problem(Code.POLICY_UNFIT, f"{members} member{'s' * (members > 1)}: {refused.detail}")


class _Roster:
    """The members that there are, and what is asked of them."""

    def __init__(self, ledger: Ledger, asked: RosterChange) -> None:
        self._ledger, self._asked = ledger, asked
        self._rows = list(ledger.members())

    def wanted(self) -> list[Candidate]:
        asked, present = self._asked, [_as_is(row) for row in self._rows]
        match asked.change:
            case "add-member":
                comes = self._nominee(asked.node, "/node")
                if len(present) >= limits.MEMBERS_MAX:
                    problem(Code.ROSTER_FULL, f"{limits.MEMBERS_MAX} members are there")
                return [*present, comes]
            case "remove-member":
                goes = self._member(asked.node)
                if len(present) == 1:
                    problem(Code.LAST_MEMBER, f"{goes.name} is the only member")
                return [one for one in present if one.node_id != goes.node_id]
            case "replace-member":
                goes, comes = self._member(asked.node), self._nominee(asked.by, "/by")
                return [*(one for one in present if one.node_id != goes.node_id), comes]
        for field, value in (("node", asked.node), ("by", asked.by)):
            if value is not UNSET:
                raise at(Code.INVALID_FIELD, f"/{field}", f"{asked.change} names no node")
        return present

    def _member(self, said: str | UnsetType) -> MemberRow:
        text = self._given(said, "/node")
        node_id = _uri(text)[0] if text.startswith(SCHEME) else None
        for row in self._rows:
            if row.node_id == node_id or text.lower() == row.node_id.hex() or text == row.name:
                return row
        raise Problem(Code.MEMBER_UNKNOWN, f"{text} is none of the members of epoch {self._epoch}")

    @property
    def _epoch(self) -> int:
        return self._ledger.epoch.number

    def _nominee(self, said: str | UnsetType, pointer: str) -> Candidate:
        text = self._given(said, pointer)
        if text.startswith(SCHEME):
            node_id, endpoint = _uri(text)
            view = self._view(lambda view: view.peer == node_id)
        else:
            view = self._view(lambda view: text.lower() == view.peer.hex() or text == view.name)
            if view is None or view.endpoint is None:
                _unreachable(text)
            node_id, endpoint = view.peer, Endpoint(*view.endpoint)
        if node_id in {row.node_id for row in self._rows}:
            problem(Code.ALREADY_A_MEMBER, f"{text} is a member of epoch {self._epoch}")
        if view is not None and view.state in (PeerState.DEAD, PeerState.LEFT):
            _unreachable(text)
        name = self._name(view, node_id)
        return Candidate(node_id, name, list(MEMBER_ROLES), (endpoint.host, endpoint.port))

    def _name(self, view: PeerView | None, node_id: NodeId) -> str:
        if self._asked.name is not UNSET:
            if not fits_bytes(self._asked.name, limits.NAME_BYTES_MAX):
                raise at(Code.INVALID_FIELD, "/name", f"takes {limits.NAME_BYTES_MAX} bytes")
            return self._asked.name
        return (view.name if view is not None else "") or node_id.hex()[:16]

    def _view(self, fits: Callable[[PeerView], bool]) -> PeerView | None:
        return next((view for view in self._ledger.peers() if fits(view)), None)

    def _given(self, said: str | UnsetType, pointer: str) -> str:
        if said is UNSET:
            raise at(Code.INVALID_FIELD, pointer, f"{self._asked.change} needs it")
        takes_by = self._asked.change == "replace-member"
        if not takes_by and self._asked.by is not UNSET:
            raise at(Code.INVALID_FIELD, "/by", "replace-member alone takes it")
        return said


def _as_is(row: MemberRow) -> Candidate:
    return Candidate(row.node_id, row.name, list(row.roles))


def _uri(text: str) -> tuple[NodeId, Endpoint]:
    try:
        return parse_uri(text)
    except BadUri as error:
        raise at(Code.INVALID_FIELD, "/node", str(error)) from error
