"""GET /v1/entries, one entry, its status and its proof."""

import time
from typing import Annotated, NamedTuple

import msgspec
from aiohttp import web
from msgspec import UNSET, UnsetType

from quipu.api import limits
from quipu.api.bodies import NDJSON, StreamName
from quipu.api.calls import Call, Reply, Response
from quipu.api.codes import Code
from quipu.api.cursors import Cursor, read_cursor
from quipu.api.executing import is_executed, request_of, until_executed
from quipu.api.models import EntryBody, EntryPage, State
from quipu.api.pages import Filter, Page, Pages, seek
from quipu.api.problems import Problem, at
from quipu.api.shaping import FORMS, Form, read_entry_id
from quipu.api.times import NotATime, time_ms
from quipu.api.tokens import ENTRIES_READ
from quipu.api.unread import Walk, read_walk
from quipu.api.writing import reached_state, waited_ms
from quipu.ledger.entry import Entry, decode_entry, is_stream_name
from quipu.ledger.erasures import ERASED
from quipu.ledger.event import EventMeta
from quipu.ledger.holes import is_hole
from quipu.ledger.words import NodeNo
from quipu.node.service import EntryId, Ledger, Subscription

BUNDLE = "application/vnd.quipu.bundle"
FOR_EVER = "private, max-age=31536000, immutable"
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=limits.FILTER_BYTES_MAX)]
PageSize = Annotated[int, msgspec.Meta(ge=1, le=limits.PAGE_MAX)]


class ListQuery(msgspec.Struct, kw_only=True):
    after: str | None = None
    limit: PageSize = limits.PAGE_DEFAULT
    stream: StreamName | None = None
    author: Name | None = None
    submitter: Name | None = None
    client: Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)] | UnsetType = UNSET
    state: str = "read"
    since: str | None = None
    until: str | None = None
    order: str = "asc"
    wait: str | None = None
    idempotency_key: Name | None = None


class StatusQuery(msgspec.Struct, kw_only=True):
    wait: str | None = None
    state: str = "read"


def filter_of(call: Call, query: ListQuery) -> Filter:
    return Filter(
        readable_streams(call, query.stream),
        author_of(call.ledger, query.author),
        query.submitter,
        None if query.client is UNSET else query.client,
        _moment(query.since, "since") or 0,
        _moment(query.until, "until"),
    )


def readable_streams(call: Call, stream: str | None) -> frozenset[str] | None:
    """What the filter says, as far as the token allows."""
    if stream is not None and not is_stream_name(stream):
        raise at(Code.INVALID_PARAMETER, "stream", "is no name of a stream")
    allowed = call.principal.streams(ENTRIES_READ)
    if stream is None:
        return allowed
    if allowed is not None and stream not in allowed:
        raise Problem(Code.FORBIDDEN, f"the scope {ENTRIES_READ}:{stream} is needed")
    return frozenset([stream])


def author_of(ledger: Ledger, author: str | None) -> NodeNo | None:
    """By node id, number or name."""
    if author is None:
        return None
    for row in ledger.members():
        if author in {row.node_id.hex(), str(row.number), row.name}:
            return row.number
    raise at(Code.INVALID_PARAMETER, "author", "no member has that id, number or name")


def _moment(text: str | None, name: str) -> int | None:
    try:
        return None if text is None else time_ms(text)
    except NotATime as error:
        raise at(Code.INVALID_PARAMETER, name, str(error)) from error


def form_of(call: Call) -> Form:
    return FORMS.get(call.media_type, Form(lines=True))


async def list_entries(call: Call) -> Response:
    query = call.query(ListQuery)
    _check_choice("order", query.order, ("asc", "desc"))
    _check_choice("state", query.state, ("read", "stored"))
    if query.idempotency_key is not None:
        return _by_key(call, query, query.idempotency_key)
    pages = Pages(call.ledger, call.face.shapes, form_of(call), filter_of(call, query))
    if query.state == "stored":
        return _unread(call, pages, query)
    cursor = await start_of(call, query)
    page = pages.read(cursor, query.limit)
    if query.wait is not None and not page.items and not cursor.downwards:
        page = await _long_poll(call, pages, query, cursor)
    return _page_answer(call, page, cursor.text(call.ledger.node_id))


async def start_of(call: Call, query: ListQuery) -> Cursor:
    downwards = query.order == "desc"
    if query.after is None:
        return Cursor(call.ledger.feed_number + 1 if downwards else 0, downwards=downwards)
    cursor = read_cursor(query.after, call.ledger.node_id, "after")
    if cursor.downwards != downwards:
        raise at(Code.INVALID_CURSOR, "after", "was given for the other order")
    await check_reach(call.ledger, cursor)
    return cursor


async def check_reach(ledger: Ledger, cursor: Cursor) -> None:
    refuse_beyond(ledger, cursor)
    await seek(ledger, cursor)


def refuse_beyond(ledger: Ledger, cursor: Cursor) -> None:
    if cursor.number > ledger.feed_number + (1 if cursor.downwards else 0):
        oldest = Cursor().text(ledger.node_id)
        detail = f"it is at {cursor.number}, and the feed of this node ends at {ledger.feed_number}"
        raise Problem(Code.CURSOR_GONE, detail, oldest=oldest)
    if not cursor.downwards and 0 < cursor.number < ledger.feed_first - 1:
        oldest = Cursor(ledger.feed_first - 1).text(ledger.node_id)
        detail = f"it is at {cursor.number}, and the feed of this node begins at "
        raise Problem(Code.CURSOR_GONE, f"{detail}{ledger.feed_first}", oldest=oldest)


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise at(Code.INVALID_PARAMETER, name, f"is one of {', '.join(choices)}")


async def _long_poll(call: Call, pages: Pages, query: ListQuery, cursor: Cursor) -> Page:
    """The next page with something in it, or an empty one when the time is over."""
    assert query.wait is not None
    page = Page()
    ends_s = time.monotonic() + waited_ms(query.wait, "wait") / 1_000
    news = call.ledger.subscribe(limits.STREAM_QUEUE_ITEMS)
    try:
        while not page.items:
            page = pages.read(cursor, query.limit)
            if not page.items and not page.more:
                left_s = ends_s - time.monotonic()
                if left_s <= 0 or not await call.face.unless_closing(_next(news), left_s):
                    break
    finally:
        news.close()
    return page


async def _next(news: Subscription) -> bool:
    """Whether there may be something new; False: the node stops."""
    try:
        await anext(news)
    except StopAsyncIteration:
        return False
    return True


def _page_answer(call: Call, page: Page, following: str) -> web.Response:
    link = call.request.rel_url.update_query({"after": following})
    headers = {"Link": f'<{link}>; rel="next"', "Cache-Control": "no-store"}
    if call.media_type == NDJSON:
        body = b"".join(msgspec.json.encode(item) + b"\n" for item in page.items)
        return web.Response(body=body, headers=headers, content_type=NDJSON)
    return call.answer(EntryPage(page.items, following, page.more), headers=headers)


def _unread(call: Call, pages: Pages, query: ListQuery) -> web.Response:
    """What is stored and not Read: by place in the DAG, for its order of becoming Read is open."""
    if query.wait is not None or query.order == "desc":
        raise at(Code.INVALID_PARAMETER, "state", "stored takes neither wait nor order=desc")
    walk = Walk() if query.after is None else read_walk(query.after, "after")
    page = walk.read(pages, query.limit)
    return _page_answer(call, page, walk.text())


def _by_key(call: Call, query: ListQuery, key: str) -> web.Response:
    """What a key was used for: how a caller finds out after an answer was lost."""
    stream = query.stream or "default"
    readable_streams(call, stream)
    submitter = query.submitter if query.submitter is not None else call.principal.name
    known = call.ledger.find_key(submitter, stream, key)
    if known is None:
        return call.answer(EntryPage([], "", False, []), headers={"Cache-Control": "no-store"})
    item = _shaped(call, known.entry, Form(packed=form_of(call).packed))
    later = [str(identity) for identity in known.duplicates]
    return call.answer(EntryPage([item], "", False, later), headers={"Cache-Control": "no-store"})


def _shaped(call: Call, identity: EntryId, form: Form) -> EntryBody:
    held = call.ledger.entry(identity.event, identity.index)
    meta = call.ledger.meta(identity.event)
    assert held is not None
    assert meta is not None
    return call.face.shapes.entry(identity, meta, held, form)


# --- one entry ------------------------------------------------------------------------------------
class Held(NamedTuple):
    id: EntryId
    meta: EventMeta
    entry: Entry


def held_entry(call: Call) -> Held:
    """The entry that the path names, where the caller may see it."""
    found = held_place(call)
    if found.entry is ERASED:
        raise Problem(Code.ERASED, entry_id=str(found.id))
    return found


def held_place(call: Call) -> Held:
    """The same; of one that is gone its place, for who may read every stream."""
    return place_in(call, call.principal.streams(ENTRIES_READ))


def place_in(call: Call, allowed: frozenset[str] | None) -> Held:
    """In one of these streams; None: in any."""
    identity = read_entry_id(call.argument)
    found = call.ledger.entries(identity.event, identity.index, 1)
    may_know = allowed is None  # of what is gone the stream is not known any more
    if found is not None and found[1] and is_hole(found[1][0]):
        if may_know:
            return Held(identity, found[0], ERASED)
    elif found is not None and found[1]:
        meta, entry = found[0], decode_entry(found[1][0])
        if allowed is None or entry.stream in allowed:
            return Held(identity, meta, entry)
    if found is None and may_know and call.ledger.was_pruned(identity.event):
        raise Problem(Code.PRUNED, entry_id=str(identity))
    raise Problem(Code.ENTRY_NOT_FOUND, entry_id=str(identity))


async def entry(call: Call) -> Response:
    found = entry_reply(call)
    tag = found.headers["ETag"]
    if call.request.headers.get("If-None-Match") in {tag, "*"}:
        return web.Response(status=304, headers=found.headers)
    return found.response()


def entry_reply(call: Call) -> Reply:
    identity, meta, entry = held_entry(call)
    form = form_of(call)
    tag = f'"{identity}.{"m" if form.packed else "j"}"'
    keep = FOR_EVER if entry.salt is None else "private, no-cache"  # it may be erased one day
    headers = {"ETag": tag, "Cache-Control": keep, "Vary": "Accept, Authorization"}
    return call.reply(call.face.shapes.opened(identity, meta, entry, form), headers=headers)


async def status(call: Call) -> Response:
    query = call.query(StatusQuery)
    identity, _, entry = held_place(call)
    _check_choice("state", query.state, ("read", "ordered", "executed"))
    if query.state == "executed" and entry.client_id is None:
        raise at(Code.INVALID_PARAMETER, "state", "only what a client has signed is executed")
    if query.wait is not None:
        timeout_ms = waited_ms(query.wait, "wait")
        wanted: State = "read" if query.state == "read" else "ordered"
        if query.state == "executed":
            await until_executed(call, identity.event, request_of(entry), timeout_ms)
        else:
            await reached_state(call, identity.event, timeout_ms, wanted)
    found = call.ledger.status(identity.event)
    assert found is not None
    body = call.face.shapes.status(identity, found)
    if found.ordered and is_executed(call, entry):
        body = msgspec.structs.replace(body, state="executed")
    return call.answer(body, headers={"Cache-Control": "no-store"})


async def proof(call: Call) -> Response:
    identity = held_place(call).id
    bundle = call.ledger.proof(identity.event, identity.index)
    name = f"{identity.event.hex()[:16]}-{identity.index}.quipu"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return web.Response(body=bundle, headers=headers, content_type=BUNDLE)
