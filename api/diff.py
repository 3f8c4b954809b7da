"""GET /v1/dag/diff: what this node and another member hold differently, by their frontiers."""

import msgspec

from quipu.api.calls import Call, Response
from quipu.api.codes import Code
from quipu.api.events import FOR_NOW
from quipu.api.models import BranchSide, DiffRow, FrontierDiff, MemberRef
from quipu.api.problems import Problem, at, problem
from quipu.api.times import NotADuration, duration_ms, duration_text
from quipu.ledger.words import NodeNo
from quipu.node import limits as node_limits
from quipu.node.questions import CordRow, Cords, Question, cords_of
from quipu.node.service import MemberRow

MS_PER_S = 1_000
_answers = msgspec.json.Decoder(Cords)
Cord = tuple[int, int]  # author's number, journal


class DiffQuery(msgspec.Struct, kw_only=True):
    peer: str | None = None
    timeout: str = "5s"


async def diff(call: Call) -> Response:
    query = call.query(DiffQuery)
    timeout_ms = _timeout_ms(query.timeout)
    peer = _member(call, query.peer)
    there = await _cords(call, peer, timeout_ms)
    here = cords_of(call.ledger)
    start = max(here.from_journal, there.from_journal)
    items = [
        DiffRow(call.face.shapes.member(NodeNo(number)), str(journal), mine, theirs)
        for (number, journal), mine, theirs in differences(here, there)
    ]
    body = FrontierDiff(MemberRef(peer.number, peer.node_id.hex(), peer.name), str(start), items)
    return call.answer(body, headers=FOR_NOW)


def differences(here: Cords, there: Cords) -> list[tuple[Cord, list[BranchSide], list[BranchSide]]]:
    """By author and journal, as far back as both go."""
    start = max(here.from_journal, there.from_journal)
    mine, theirs = _by_cord(here, start), _by_cord(there, start)
    return [
        (cord, _sides(mine.get(cord, [])), _sides(theirs.get(cord, [])))
        for cord in sorted({*mine, *theirs})
        if mine.get(cord) != theirs.get(cord)
    ]


def _by_cord(cords: Cords, start: int) -> dict[Cord, list[CordRow]]:
    found: dict[Cord, list[CordRow]] = {}
    for row in sorted(cords.rows):  # the numbers of branches are each node's own
        if row.journal >= start:
            found.setdefault((row.author_no, row.journal), []).append(row)
    return found


def _sides(rows: list[CordRow]) -> list[BranchSide]:
    return [BranchSide(str(row.held_seq), row.held_id, str(row.read_seq)) for row in rows]


async def _cords(call: Call, peer: MemberRow, timeout_ms: int) -> Cords:
    ledger = call.ledger
    if peer.node_id == ledger.node_id:
        return cords_of(ledger)
    ended = await ledger.query(str(Question.CORDS), b"", timeout_ms / MS_PER_S, peer.node_id)
    if ended.answer is None:
        problem(Code.PEER_SILENT, f"{peer.name} has not answered within {timeout_ms} ms")
    try:
        return _answers.decode(ended.answer)
    except msgspec.DecodeError as error:
        detail = f"{peer.name} answers in another way: {ended.answer[:40].decode(errors='replace')}"
        raise Problem(Code.PEER_SILENT, detail) from error


def _member(call: Call, named: str | None) -> MemberRow:
    if not named:
        raise at(Code.INVALID_PARAMETER, "peer", "is needed: number, node id or name of a member")
    for row in call.ledger.members():
        if named in {row.node_id.hex(), str(row.number), row.name}:
            return row
    raise Problem(Code.PEER_NOT_FOUND, "no member has that number, node id or name")


def _timeout_ms(text: str) -> int:
    try:
        timeout_ms = duration_ms(text)
    except NotADuration as error:
        raise at(Code.INVALID_PARAMETER, "timeout", str(error)) from error
    if not 0 < timeout_ms <= node_limits.QUERY_MS_MAX:
        longest = duration_text(node_limits.QUERY_MS_MAX)
        raise at(Code.INVALID_PARAMETER, "timeout", f"more than 0, at most {longest}")
    return timeout_ms
