"""Clients of seed 001 over HTTP: who they are, what they ask, what they are told; and queries."""

import base64
import binascii
from contextlib import suppress
from typing import Annotated, TypeVar

import msgspec
from msgspec import UNSET

from quipu.api import limits
from quipu.api.bodies import JSON, MSGPACK
from quipu.api.calls import Call, Response
from quipu.api.client_models import (
    ClientBody,
    ClientList,
    ExecutedBody,
    ExecutorBody,
    KeptBody,
    NewClient,
    NewRequest,
    NewRights,
    NewSql,
    ResultsBody,
    RightName,
    RuleBody,
    TableBody,
    Whole,
)
from quipu.api.codes import Code
from quipu.api.events import FOR_NOW
from quipu.api.executing import executed_within
from quipu.api.faults import check_utf8, refuse_undecodable
from quipu.api.models import State
from quipu.api.problems import Problem, at, problem
from quipu.api.reading import PageSize
from quipu.api.sql_values import result_bodies, rows_of, value_of
from quipu.api.writing import WAIT, check_stream, reached_state, state_now, waited_ms
from quipu.ledger.entry import ContentType, Entry, EntryKind, encode_entry
from quipu.node.client_service import ClientRequest, ClientView, Executed, NoExecutor
from quipu.node.service import EntryId
from quipu.storage.executors.acl import EVERYTHING, Acl, Right, Rule, decode_acl, encode_acl

T = TypeVar("T")
STREAM = "clients"  # of the entries that clients sign
STATES: tuple[State, ...] = ("stored", "read", "ordered", "executed")
_RIGHTS: dict[RightName, Right] = {
    "read": Right.READ,
    "write": Right.WRITE,
    "schema": Right.SCHEMA,
}
_new_clients = msgspec.json.Decoder(NewClient)
_new_requests = msgspec.json.Decoder(NewRequest)
_new_rights = msgspec.json.Decoder(NewRights)
_new_sql = msgspec.json.Decoder(NewSql)


class MessagesQuery(msgspec.Struct, kw_only=True):
    wait: str = "stored"
    timeout: str = WAIT
    again: bool = False


class ResultsQuery(msgspec.Struct, kw_only=True):
    upto: Whole
    have: Whole = "0"
    signature: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{128}$")]


class ClientsQuery(msgspec.Struct, kw_only=True):
    after: Whole = "0"
    limit: PageSize = limits.PAGE_DEFAULT


class SqlQuery(msgspec.Struct, kw_only=True):
    consistency: str = "local"


# --- who ------------------------------------------------------------------------------------------
async def new_client(call: Call) -> Response:
    wanted = await _read(call, _new_clients)
    rules, acl = _granted(wanted)
    added = await call.ledger.clients.add(bytes.fromhex(wanted.public_key), rules, acl)
    headers = {"Location": f"/v1/clients/{added.number}", **FOR_NOW}
    return call.answer(await _body(call, added), 201, headers)


async def clients(call: Call) -> Response:
    query, ledger = call.query(ClientsQuery), call.ledger.clients
    first = int(query.after) + 1
    found = [ledger.find(number) for number in range(first, first + query.limit + 1)]  # no hole
    items = [await _body(call, one) for one in found[: query.limit] if one is not None]
    last = str(items[-1].client) if items else query.after
    return call.answer(ClientList(items, last, found[-1] is not None), headers=FOR_NOW)


async def client(call: Call) -> Response:
    return call.answer(await _body(call, _found(call)), headers=FOR_NOW)


async def change_rights(call: Call) -> Response:
    wanted = await _read(call, _new_rights)
    if wanted.rights is UNSET and wanted.acl_id is UNSET:
        raise at(Code.INVALID_FIELD, "/rights", "give rights or acl_id")
    changed = await call.ledger.clients.change_rights(_found(call).number, *_granted(wanted))
    return call.answer(await _body(call, changed), headers=FOR_NOW)


def _granted(wanted: NewClient | NewRights) -> tuple[bytes, bytes | None]:
    """Rules, and in their place the list that is named."""
    if wanted.rights is not UNSET and wanted.acl_id is not UNSET:
        raise at(Code.INVALID_FIELD, "/acl_id", "give rights or acl_id, not both")
    acl = None if wanted.acl_id is UNSET else bytes.fromhex(wanted.acl_id)
    rules = EVERYTHING if wanted.rights is UNSET else Acl(tuple(map(_rule, wanted.rights)))
    return encode_acl(rules), acl


async def remove_client(call: Call) -> Response:
    removed = await call.ledger.clients.remove(_found(call).number)
    return call.answer(await _body(call, removed), headers=FOR_NOW)


def _found(call: Call) -> ClientView:
    number = call.argument
    if not number.isascii() or not number.isdecimal() or len(number) > limits.CLIENT_DIGITS_MAX:
        problem(Code.INVALID_ID, "a client is a number")
    found = call.ledger.clients.find(int(number))
    if found is None:
        raise Problem(Code.CLIENT_NOT_FOUND, f"client {number} is not there, as applied here")
    return found


async def _body(call: Call, found: ClientView) -> ClientBody:
    standing = None
    with suppress(NoExecutor):
        standing = await call.ledger.clients.standing(found.number)
    is_over = standing is not None and standing.proof
    return ClientBody(
        client=found.number,
        state="removed" if found.removed else "terminated" if is_over else "active",
        public_key=found.public.hex(),
        signature_type=found.sig_type,
        acl_id=found.acl.hex(),
        rights=None if standing is None else _rules(standing.rules),
        next_message_id=None if standing is None else str(standing.next_id),
        have=None if standing is None else str(standing.have),
        proof_base64=base64.b64encode(standing.proof).decode() if standing and is_over else None,
    )


def _rule(body: RuleBody) -> Rule:
    rights = Right(0)
    for name in body.rights:
        rights |= _RIGHTS[name]
    return Rule(body.tables, int(rights))


def _rules(rules: bytes) -> list[RuleBody]:
    return [
        RuleBody(rule.tables, [name for name, right in _RIGHTS.items() if rule.rights & right])
        for rule in decode_acl(rules).rules
    ]


# --- what they ask --------------------------------------------------------------------------------
async def client_messages(call: Call) -> Response:
    query = call.query(MessagesQuery)
    wanted, timeout_ms = _state(query.wait), waited_ms(query.timeout, "timeout")
    check_stream(call, STREAM)
    clients, bytes_max = call.ledger.clients, call.face.settings.body_bytes_max
    with call.face.admitted(call, bytes_max):
        request = await _request(call)
        known = await clients.check(request, is_again=query.again)
        if known is not None:
            return call.answer(_executed(call, request, None, known), 200)
        waiting = clients.when_executed(request) if wanted == "executed" else None
        try:
            stored = await call.ledger.submit((_entry(call, request),))
        except BaseException:
            if waiting is not None:
                waiting.cancel()
            raise
    identity = EntryId(stored.event_id, stored.index)
    reached: State = "stored"
    if waiting is not None:
        done = await executed_within(call, stored.event_id, waiting, timeout_ms)
        if done is not None:
            return call.answer(_executed(call, request, identity, done), 201, FOR_NOW)
        reached = state_now(call, stored.event_id)
    elif wanted != "stored":
        reached = await reached_state(call, stored.event_id, timeout_ms, wanted)
    body = ExecutedBody(request.client, str(request.message_id), reached, str(identity), None, [])
    return call.answer(body, 201 if reached == wanted else 202, FOR_NOW)


def _state(text: str) -> State:
    for known in STATES:
        if text == known:
            return known
    raise at(Code.INVALID_PARAMETER, "wait", "is one of stored, read, ordered, executed")


async def _request(call: Call) -> ClientRequest:
    body = await _read(call, _new_requests)
    return ClientRequest(
        _found(call).number,
        int(body.message_id),
        _bytes(body.messages_base64, "/messages_base64"),
        body.signature_type,
        _bytes(body.signature_base64, "/signature_base64"),
    )


def _bytes(text: str, pointer: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise at(Code.INVALID_FIELD, pointer, str(error)) from error


def _entry(call: Call, request: ClientRequest) -> bytes:
    entry = Entry(
        salt=None,
        kind=EntryKind.DATA,
        stream=STREAM,
        submitter=call.principal.name,
        client_id=request.client,
        message_id=request.message_id,
        idempotency_key=None,
        time=None,
        content_type=ContentType.MSGPACK,
        data=request.data,
        sig_type=request.sig_type,
        signature=request.signature,
    )
    return encode_entry(entry)


def _executed(
    call: Call, request: ClientRequest, identity: EntryId | None, done: Executed
) -> ExecutedBody:
    return ExecutedBody(
        request.client,
        str(request.message_id),
        "executed",
        None if identity is None else str(identity),
        str(done.outcome.code),
        result_bodies(done.outcome, packed=call.media_type == MSGPACK),
    )


# --- what they are told ---------------------------------------------------------------------------
async def client_results(call: Call) -> Response:
    query, found = call.query(ResultsQuery), _found(call)
    upto, have = int(query.upto), int(query.have)
    answer = await call.ledger.clients.results(
        found.number, upto, have, bytes.fromhex(query.signature)
    )
    packed = call.media_type == MSGPACK
    items = [
        KeptBody(
            str(kept.message_id),
            str(kept.outcome.code),
            result_bodies(kept.outcome, packed=packed),
        )
        for kept in answer.kept
    ]
    standing = await call.ledger.clients.standing(found.number)
    executed = 0 if standing is None else standing.next_id - 1
    body = ResultsBody(
        found.number,
        str(answer.code),
        items,
        str(answer.upto),
        str(answer.released),
        answer.upto < min(upto, executed),
    )
    return call.answer(body, headers=FOR_NOW)


async def sql(call: Call) -> Response:
    query = call.query(SqlQuery)
    if query.consistency not in ("local", "linear"):
        raise at(Code.INVALID_PARAMETER, "consistency", "is one of local, linear")
    wanted = await _read(call, _new_sql)
    parameters = [value_of(v, f"/parameters/{n}") for n, v in enumerate(wanted.parameters)]
    if query.consistency == "linear":
        await call.ledger.clients.linear()
    of = None if wanted.client is UNSET else wanted.client
    found = await call.ledger.clients.query(wanted.sql, parameters, of)
    body = TableBody(
        list(found.columns),
        rows_of(found.rows, packed=call.media_type == MSGPACK),
        found.complete,
        str(found.applied.at),
    )
    return call.answer(body, headers=FOR_NOW)


async def executor(call: Call) -> Response:
    found = call.ledger.clients.status()
    body = ExecutorBody(
        found.state,  # type: ignore[arg-type]  # one of the states, which a test holds
        found.detail,
        found.engine,
        str(found.applied),
        found.digest.hex(),
        found.behind,
    )
    return call.answer(body, headers=FOR_NOW)


async def _read(call: Call, decoder: "msgspec.json.Decoder[T]") -> T:
    if call.body_type != JSON:
        problem(Code.UNSUPPORTED_MEDIA_TYPE, f"the endpoint reads {JSON}")
    body = await call.read_body(call.face.settings.body_bytes_max)
    check_utf8(body, "")
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        refuse_undecodable(error, "")
