"""The endpoints of entries: one part of the table."""

from quipu.api import batches, cluster, ingest, reading, streams, writing
from quipu.api.bodies import CLOUDEVENT, CLOUDEVENTS, JSON, MSGPACK, NDJSON, NewEntry
from quipu.api.calls import Answer, Endpoint, RequestBody
from quipu.api.codes import Code
from quipu.api.models import (
    BatchAnswer,
    EntryBody,
    EntryPage,
    Receipt,
    StatusBody,
    StreamItem,
    StreamList,
    Verdict,
)
from quipu.api.tokens import ENTRIES_READ, ENTRIES_WRITE

ENTRY_BODIES = (JSON, MSGPACK, CLOUDEVENT)
BODY_CODES = (
    Code.MALFORMED_BODY,
    Code.INVALID_FIELD,
    Code.UNKNOWN_FIELD,
    Code.INVALID_HEADER,
    Code.BODY_TIMEOUT,
    Code.TOO_LARGE,
    Code.UNSUPPORTED_MEDIA_TYPE,
    Code.KEY_REUSED,
)
STORE_CODES = (
    Code.KEY_IN_FLIGHT,
    Code.TOO_MANY_REQUESTS,
    Code.NODE_FULL,
    Code.UNREAD_BACKLOG,
    Code.CATCHING_UP,
    Code.NOT_A_MEMBER,
    Code.OVERRULED,
    Code.NOT_INGEST_NODE,
    Code.DRAINING,
    Code.OUTCOME_UNKNOWN,
    Code.STORAGE_FULL,
)
CURSOR_CODES = (Code.INVALID_CURSOR, Code.CURSOR_GONE)
ENTRY_CODES = (Code.INVALID_ID, Code.ENTRY_NOT_FOUND, Code.PRUNED, Code.ERASED)
AN_ENTRY = {"data": {"order": 7}, "stream": "orders"}
A_CLOUDEVENT = {
    "specversion": "1.0",
    "id": "A-1",
    "source": "/shop",
    "type": "order.made",
    "data": {"order": 7},
}
_ENTRY_BODY = RequestBody(NewEntry, {JSON: AN_ENTRY, CLOUDEVENT: A_CLOUDEVENT}, ENTRY_BODIES)
_BATCH_BODY = RequestBody(
    list[NewEntry],
    {JSON: [AN_ENTRY], CLOUDEVENTS: [A_CLOUDEVENT]},
    (JSON, MSGPACK, CLOUDEVENTS, NDJSON),
)

WRITING = (
    Endpoint(
        "POST",
        "/v1/entries",
        "submit",
        "Store one entry",
        ENTRIES_WRITE,
        writing.submit,
        (
            Answer(201, "The asked state was reached.", Receipt),
            Answer(202, "It is stored; the asked state was not reached in time.", Receipt),
            Answer(200, "The same was stored before; this is the first answer.", Receipt),
        ),
        BODY_CODES + STORE_CODES,
        writing.SubmitQuery,
        _ENTRY_BODY,
        by_stream=True,
    ),
    Endpoint(
        "POST",
        "/v1/entries:batch",
        "submit_batch",
        "Store many entries",
        ENTRIES_WRITE,
        batches.submit_batch,
        (
            Answer(201, "All were stored.", BatchAnswer),
            Answer(
                200, "All were stored before; or the results of NDJSON, a line each.", BatchAnswer
            ),
            Answer(202, "All are stored; not all reached the asked state in time.", BatchAnswer),
            Answer(207, "Each result says what became of its item.", BatchAnswer),
        ),
        BODY_CODES + STORE_CODES,
        batches.BatchQuery,
        _BATCH_BODY,
        by_stream=True,
    ),
    Endpoint(
        "GET",
        "/v1/ingest",
        "ingest",
        "Store many entries over one WebSocket",
        ENTRIES_WRITE,
        ingest.ingest,
        (
            Answer(
                101,
                "The connection is a WebSocket from here on: binary messages of msgpack, entries "
                "in, one answer for each, as docs/ingest.md describes them.",
            ),
        ),
        (Code.METHOD_NOT_ALLOWED, Code.UPGRADE_REQUIRED, *STORE_CODES),
        ingest.IngestQuery,
        by_stream=True,
    ),
    Endpoint(
        "POST",
        "/v1/entries:validate",
        "validate",
        "Say what would happen, and store nothing",
        ENTRIES_WRITE,
        writing.validate,
        (Answer(200, "It would be taken.", Verdict),),
        BODY_CODES + STORE_CODES,
        writing.ValidateQuery,
        _ENTRY_BODY,
        by_stream=True,
    ),
)
READING = (
    Endpoint(
        "GET",
        "/v1/entries",
        "list",
        "Entries in the order in which they became final here",
        ENTRIES_READ,
        reading.list_entries,
        (Answer(200, "A page; `next` and the Link header lead on.", EntryPage),),
        CURSOR_CODES,
        reading.ListQuery,
        offers=(JSON, MSGPACK, NDJSON),
        by_stream=True,
    ),
    Endpoint(
        "GET",
        "/v1/entries/{id}",
        "get",
        "One entry, as it stays for ever",
        ENTRIES_READ,
        reading.entry,
        (Answer(200, "The entry.", EntryBody), Answer(304, "It is the one that you have.")),
        ENTRY_CODES,
        by_stream=True,
    ),
    Endpoint(
        "GET",
        "/v1/entries/{id}/status",
        "status",
        "How far an entry has come",
        ENTRIES_READ,
        reading.status,
        (Answer(200, "Its state now, or when `wait` was over.", StatusBody),),
        ENTRY_CODES,
        reading.StatusQuery,
        by_stream=True,
    ),
    Endpoint(
        "GET",
        "/v1/entries/{id}/proof",
        "proof",
        "The finality bundle: one file that anybody can verify offline",
        ENTRIES_READ,
        reading.proof,
        (Answer(200, "The bundle.", bytes),),
        (*ENTRY_CODES, Code.NOT_READ),
        offers=(reading.BUNDLE,),
        by_stream=True,
    ),
    Endpoint(
        "GET",
        "/v1/stream",
        "follow",
        "Entries as they become final",
        ENTRIES_READ,
        streams.stream,
        (Answer(200, "Server-sent events, or one StreamItem a line.", StreamItem),),
        (*CURSOR_CODES, Code.METHOD_NOT_ALLOWED, Code.NODE_FULL, Code.DRAINING),
        streams.StreamQuery,
        offers=(streams.SSE, NDJSON),
        by_stream=True,
    ),
    Endpoint(
        "GET",
        "/v1/streams",
        "streams",
        "The streams with counts and times",
        ENTRIES_READ,
        cluster.list_streams,
        (Answer(200, "By name.", StreamList),),
        by_stream=True,
    ),
)
