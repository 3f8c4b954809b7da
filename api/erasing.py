"""DELETE /v1/entries/{id}: what an entry says goes, on every node; its place and its proof stay."""

import msgspec

from quipu.api.calls import Call, Response
from quipu.api.codes import Code
from quipu.api.models import EntryIdText
from quipu.api.problems import Problem
from quipu.api.reading import place_in
from quipu.api.writing import waited_ms
from quipu.ledger.erasures import ERASED, is_erasable
from quipu.node.eraser import Waits


class EraseQuery(msgspec.Struct, kw_only=True):
    timeout: str = "30s"


class ErasureBody(msgspec.Struct, frozen=True):
    """What became of an erasure. Where nothing is waited for, the entry is gone from this node."""

    id: EntryIdText
    erased: bool
    erased_by: EntryIdText | None  # the entry that asks for it; null: it was gone before
    waits_for: Waits | None


async def erase(call: Call) -> Response:
    query = call.query(EraseQuery)
    timeout_ms = waited_ms(query.timeout, "timeout")
    identity, _, entry = place_in(call, None)
    headers = {"Cache-Control": "no-store"}
    if entry is ERASED:
        return call.answer(ErasureBody(str(identity), True, None, None), headers=headers)
    if not is_erasable(entry):
        raise Problem(Code.NOT_ERASABLE, entry_id=str(identity))
    administration = call.face.administration
    assert administration is not None  # this endpoint is listed where there is one
    assert administration.eraser is not None  # of every node that runs
    by, waits = await administration.eraser.erase(identity, timeout_ms / 1_000)
    body = ErasureBody(str(identity), waits is None, str(by), waits)
    return call.answer(body, 200 if waits is None else 202, headers)
