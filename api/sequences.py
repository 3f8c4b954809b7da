"""The sequences of a cluster (seed 000): lock the next numbers, publish them, in one order."""

import base64
import binascii
import re
from hashlib import sha256
from typing import Annotated, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from quipu.api import limits
from quipu.api.bodies import JSON, Base64
from quipu.api.calls import Call, Response
from quipu.api.codes import Code
from quipu.api.events import FOR_NOW
from quipu.api.faults import check_utf8, refuse_undecodable
from quipu.api.models import Hex32, MemberRef
from quipu.api.names import NAME_RULE, is_name
from quipu.api.order_models import LockBody, NumberBody, PublishedBody, SequenceBody, SequenceList
from quipu.api.problems import Problem, at, problem
from quipu.api.reading import PageSize
from quipu.api.tokens import ENTRIES_READ, ENTRIES_WRITE
from quipu.ledger import limits as ledger_limits
from quipu.node.order_service import SequenceState

T = TypeVar("T")
_NUMBER = re.compile(r"[0-9]{1,19}\Z", re.ASCII)
Whole = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,19}$")]
Count = Annotated[int, msgspec.Meta(ge=1, le=ledger_limits.SEQUENCE_LOCK_MAX)]


class SequenceQuery(msgspec.Struct, kw_only=True):
    consistency: str = "local"


class SequencesQuery(msgspec.Struct, kw_only=True):
    after: Annotated[str, msgspec.Meta(max_length=128)] = ""
    limit: PageSize = limits.PAGE_DEFAULT


class NewLock(msgspec.Struct, forbid_unknown_fields=True):
    """How many of the next numbers are wanted."""

    count: Count = 1


class NewRelease(msgspec.Struct, forbid_unknown_fields=True):
    """Which lock is given back: what was not published of its numbers is free again."""

    token: Whole


class NewNumber(msgspec.Struct, forbid_unknown_fields=True):
    """What is published: a digest, or what it is made of (`data` as the bytes that came, or
    `data_base64`). With `token` and `number` under a lock, else lock and publish in one."""

    digest: Hex32 | UnsetType = UNSET
    data: Raw | UnsetType = UNSET
    data_base64: Base64 | UnsetType = UNSET
    token: Whole | UnsetType = UNSET
    number: Whole | UnsetType = UNSET


_locks = msgspec.json.Decoder(NewLock)
_releases = msgspec.json.Decoder(NewRelease)
_numbers = msgspec.json.Decoder(NewNumber)


async def sequence(call: Call) -> Response:
    query, name = call.query(SequenceQuery), _name(call, ENTRIES_READ)
    if query.consistency not in ("local", "linear"):
        raise at(Code.INVALID_PARAMETER, "consistency", "is one of local, linear")
    if query.consistency == "linear":
        await call.ledger.order.linear()
    found = call.ledger.order.sequence(name)
    if found is None:
        raise Problem(Code.SEQUENCE_NOT_FOUND, f"nothing was locked or published as {name}")
    return call.answer(_body(call, found), headers=FOR_NOW)


async def sequence_number(call: Call) -> Response:
    text, _, digits = call.argument.partition("/")
    name, order = _checked(call, text, ENTRIES_READ), call.ledger.order
    if _NUMBER.match(digits) is None:
        problem(Code.INVALID_ID, "a number is written in digits")
    found = order.number(name, int(digits))
    if found is None:
        if order.sequence(name) is None:
            problem(Code.SEQUENCE_NOT_FOUND, f"nothing was locked or published as {name}")
        problem(Code.NUMBER_NOT_FOUND, f"{name} has no number {digits} yet")
    body = NumberBody(
        name,
        str(found.number),
        found.digest.hex(),
        found.running.hex(),
        call.face.shapes.member(found.publisher),
        str(found.log_index),
    )
    return call.answer(body)


async def sequences(call: Call) -> Response:
    query = call.query(SequencesQuery)
    allowed = call.principal.streams(ENTRIES_READ)
    found = call.ledger.order.sequences_after(query.after, query.limit + 1)
    shown = found[: query.limit]
    items = [_body(call, one) for one in shown if allowed is None or one.name in allowed]
    following = shown[-1].name if shown else query.after
    return call.answer(SequenceList(items, following, len(found) > query.limit), headers=FOR_NOW)


async def publish(call: Call) -> Response:
    name = _name(call, ENTRIES_WRITE)
    wanted = await _read(call, _numbers)
    digest = _digest(wanted)
    if (wanted.token is UNSET) != (wanted.number is UNSET):
        raise at(Code.INVALID_FIELD, "/token", "token and number go together")
    token = None if wanted.token is UNSET else int(wanted.token)
    number = 0 if wanted.number is UNSET else int(wanted.number)
    done = await call.ledger.order.publish(name, digest, token, number)
    body = PublishedBody(name, str(done.number), done.running.hex(), str(done.log_index))
    return call.answer(body, 201, FOR_NOW)


async def lock(call: Call) -> Response:
    name = _name(call, ENTRIES_WRITE)
    wanted = await _read(call, _locks)
    done = await call.ledger.order.lock(name, wanted.count)
    return call.answer(LockBody(name, str(done.token), str(done.first), str(done.last)), 201)


async def release(call: Call) -> Response:
    name = _name(call, ENTRIES_WRITE)
    wanted = await _read(call, _releases)
    await call.ledger.order.release(name, int(wanted.token))
    found = call.ledger.order.sequence(name)
    assert found is not None
    return call.answer(_body(call, found), headers=FOR_NOW)


def _name(call: Call, scope: str) -> str:
    return _checked(call, call.argument, scope)


def _checked(call: Call, name: str, scope: str) -> str:
    if not is_name(name):
        problem(Code.INVALID_ID, f"the name of a sequence {NAME_RULE}")
    if not call.principal.may(scope, name):
        raise Problem(Code.FORBIDDEN, f"the scope {scope}:{name} is needed")
    return name


async def _read(call: Call, decoder: "msgspec.json.Decoder[T]") -> T:
    if call.body_type != JSON:
        problem(Code.UNSUPPORTED_MEDIA_TYPE, f"the endpoint reads {JSON}")
    body = await call.read_body(call.face.settings.body_bytes_max)
    check_utf8(body, "")
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        refuse_undecodable(error, "")


def _digest(wanted: NewNumber) -> bytes:
    given = [one for one in (wanted.digest, wanted.data, wanted.data_base64) if one is not UNSET]
    if len(given) != 1:
        detail = "give one of digest, data and data_base64"
        raise at(Code.INVALID_FIELD, "/digest", detail)
    if isinstance(wanted.digest, str):
        return bytes.fromhex(wanted.digest)
    if isinstance(wanted.data, Raw):
        return sha256(wanted.data).digest()
    assert isinstance(wanted.data_base64, str)
    try:
        return sha256(base64.b64decode(wanted.data_base64, validate=True)).digest()
    except binascii.Error as error:
        raise at(Code.INVALID_FIELD, "/data_base64", str(error)) from error


def _body(call: Call, found: SequenceState) -> SequenceBody:
    holder: MemberRef | None = None
    if found.holder is not None:
        holder = call.face.shapes.member(found.holder)
    return SequenceBody(
        name=found.name,
        number=str(found.number),
        running_digest=found.running.hex(),
        holder=holder,
        token=None if holder is None else str(found.token),
        locked_upto=None if holder is None else str(found.last),
    )
