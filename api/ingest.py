"""GET /v1/ingest: the upgrade. What happens on the line then is in `ingest_feed`."""

from contextlib import suppress

import msgspec

from quipu.api import limits
from quipu.api.bodies import MediaType, StreamName
from quipu.api.calls import Call, Response
from quipu.api.codes import Code
from quipu.api.ingest_entries import Entries, media_type
from quipu.api.ingest_feed import Feed, Line, Terms
from quipu.api.problems import Problem, at
from quipu.api.writing import waited_ms, waited_state


class IngestQuery(msgspec.Struct, kw_only=True):
    wait: str = "stored"
    timeout: str = "30s"
    stream: StreamName | None = None
    content_type: MediaType | None = None


async def ingest(call: Call) -> Response:
    if call.request.method == "HEAD":
        raise Problem(Code.METHOD_NOT_ALLOWED, "an upgrade has no HEAD", allow="GET")
    query = call.query(IngestQuery)
    if query.content_type is not None:
        try:
            media_type(query.content_type)
        except Problem as found:
            raise at(Code.INVALID_PARAMETER, "content_type", "is no media type") from found
    terms = Terms(
        waited_state(query.wait),
        waited_ms(query.timeout, "timeout"),
        Entries(query.stream, query.content_type),
    )
    with call.face.admitted(call, 0):
        pass  # a node that takes nothing says so with a status of its own
    counters = call.face.counters
    if counters.ingests >= limits.INGESTS_MAX:
        detail = f"{counters.ingests} connections of producers are open"
        raise Problem(Code.NODE_FULL, detail, retry_after_s=limits.RETRY_AFTER_S)
    line = Line(
        timeout=limits.INGEST_CLOSE_S,
        autoclose=False,
        autoping=False,
        compress=False,
        max_msg_size=limits.INGEST_FRAME_BYTES_MAX + 1,  # aiohttp refuses that many
        writer_limit=0,
    )
    line.headers["X-Request-Id"] = call.request_id
    if not line.can_prepare(call.request):
        raise Problem(Code.UPGRADE_REQUIRED)
    counters.ingests += 1
    try:
        with suppress(ConnectionError):  # whoever asked for it has gone meanwhile
            await line.prepare(call.request)
            await Feed(call, terms, line).run()
    finally:
        counters.ingests -= 1
    return line
