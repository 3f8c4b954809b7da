"""/v1/consumers: named cursors that programs keep with a node, one writer of each at a time."""

from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import UNSET, UnsetType

from quipu.api import limits
from quipu.api.bodies import JSON, StreamName, decoded
from quipu.api.calls import Call, Response
from quipu.api.codes import Code
from quipu.api.cursors import Cursor, read_cursor
from quipu.api.events import FOR_NOW
from quipu.api.models import ConsumerBody, ConsumerList
from quipu.api.names import NAME_RULE, is_name
from quipu.api.problems import at, problem
from quipu.api.reading import readable_streams, refuse_beyond
from quipu.api.streams import now_cursor
from quipu.api.times import NotADuration, duration_ms, duration_text, time_text
from quipu.api.tokens import ADMIN
from quipu.node.service import Consumer, ConsumerWish


class NewConsumer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a consumer stands: a cursor as an answer gave it, or `now` or `start`. It is kept for
    `ttl` after it was last put, at most 30 days; `stream` is what it follows."""

    cursor: Annotated[
        str,
        msgspec.Meta(min_length=1, max_length=limits.CURSOR_BYTES_MAX, examples=["start"]),
    ]
    ttl: Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,9}(ms|s|m|h|d)$", examples=["7d"])] = "7d"
    stream: StreamName | UnsetType = UNSET


_bodies = msgspec.json.Decoder(NewConsumer)


async def consumers(call: Call) -> Response:
    shown = [_body(one) for one in call.ledger.consumers.all() if _is_of(call, one)]
    return call.answer(ConsumerList(shown), headers=FOR_NOW)


async def consumer(call: Call) -> Response:
    return _answer(call, _own(call, call.ledger.consumers.find(_name(call))), 200)


async def keep_consumer(call: Call) -> Response:
    name = _name(call)
    asked = await _asked(call)
    stream = None if asked.stream is UNSET else asked.stream
    readable_streams(call, stream)
    cursor, feed_number = _cursor(call, asked.cursor)
    wanted = ConsumerWish(call.principal.name, cursor, stream, _ttl_ms(asked.ttl), feed_number)
    status = 200

    def wished(held: Consumer | None) -> ConsumerWish:
        nonlocal status
        if held is None:
            status = 201
            _check_conditions(call, held)
            return wanted
        if not _is_of(call, held):
            problem(Code.FORBIDDEN, "a consumer of that name belongs to another caller")
        wish = msgspec.structs.replace(wanted, owner=held.wish.owner)
        if wish != held.wish:  # else it is the same request again, after its answer was lost
            _check_conditions(call, held)
        return wish

    made = await call.ledger.consumers.change(name, wished)
    assert made is not None
    return _answer(call, made, status)


async def forget_consumer(call: Call) -> Response:
    def wished(held: Consumer | None) -> None:
        _check_conditions(call, _own(call, held))

    await call.ledger.consumers.change(_name(call), wished)
    return web.Response(status=204)


# --- what is asked --------------------------------------------------------------------------------
def _name(call: Call) -> str:
    if not is_name(call.argument):
        raise at(Code.INVALID_PARAMETER, "name", NAME_RULE)
    return call.argument


async def _asked(call: Call) -> NewConsumer:
    if call.body_type != JSON:
        problem(Code.UNSUPPORTED_MEDIA_TYPE, f"{call.body_type} is not read here, {JSON} is")
    return decoded(_bodies, await call.read_body(call.face.settings.body_bytes_max))


def _cursor(call: Call, text: str) -> tuple[str, int]:
    """As it is kept, and up to which number of this node's feed it has read."""
    ledger = call.ledger
    if text == "now":
        now = now_cursor(ledger)
        return now.text(ledger.node_id), now.number
    if text == "start":
        return Cursor().text(ledger.node_id), 0
    cursor = read_cursor(text, ledger.node_id, "/cursor")
    if cursor.downwards:
        raise at(Code.INVALID_CURSOR, "/cursor", "was given for order=desc")
    refuse_beyond(ledger, cursor)
    return text, cursor.number


def _ttl_ms(text: str) -> int:
    try:
        ttl_ms = duration_ms(text)
    except NotADuration as error:
        raise at(Code.INVALID_FIELD, "/ttl", str(error)) from error
    if not 0 < ttl_ms <= limits.CONSUMER_TTL_MS_MAX:
        longest = duration_text(limits.CONSUMER_TTL_MS_MAX)
        raise at(Code.INVALID_FIELD, "/ttl", f"more than 0, at most {longest}")
    return ttl_ms


# --- whose it is, and whether it is as they believe -----------------------------------------------
def _is_of(call: Call, one: Consumer) -> bool:
    return one.wish.owner == call.principal.name or call.principal.may(ADMIN)


def _own(call: Call, held: Consumer | None) -> Consumer:
    """One of another caller is not there, as entries are not that a caller may not read."""
    if held is None or not _is_of(call, held):
        problem(Code.CONSUMER_NOT_FOUND, f"no consumer {call.argument} is kept here")
    return held


def _check_conditions(call: Call, held: Consumer | None) -> None:
    headers = call.request.headers
    wanted, unwanted = headers.get("If-Match"), headers.get("If-None-Match")
    if wanted is not None and not _names(wanted, held):
        problem(Code.CONSUMER_CHANGED, "it is not as If-Match says" if held else "it is gone")
    if unwanted is not None and _names(unwanted, held):
        problem(Code.CONSUMER_CHANGED, "there is one already")


def _names(tags: str, held: Consumer | None) -> bool:
    if held is None:
        return False
    given = [tag.strip() for tag in tags.split(",")]
    return "*" in given or _tag(held) in given


def _tag(held: Consumer) -> str:
    return f'"{held.etag}"'


# --- answers --------------------------------------------------------------------------------------
def _answer(call: Call, found: Consumer, status: int) -> web.Response:
    return call.answer(_body(found), status, {**FOR_NOW, "ETag": _tag(found)})


def _body(found: Consumer) -> ConsumerBody:
    wish = found.wish
    return ConsumerBody(
        name=found.name,
        cursor=wish.cursor,
        stream=wish.stream,
        ttl=duration_text(wish.ttl_ms),
        owner=wish.owner,
        stored=time_text(found.stored_ms),
        expires=time_text(found.expires_ms),
        etag=_tag(found),
    )
