"""The endpoints of named cursors: one part of the table."""

from quipu.api import consumers
from quipu.api.bodies import JSON
from quipu.api.calls import Answer, Endpoint, RequestBody
from quipu.api.codes import Code
from quipu.api.entry_table import CURSOR_CODES
from quipu.api.models import ConsumerBody, ConsumerList
from quipu.api.tokens import ENTRIES_READ

CONSUMERS = (
    Endpoint(
        "GET",
        "/v1/consumers",
        "consumers",
        "The named cursors of the caller on this node",
        ENTRIES_READ,
        consumers.consumers,
        (Answer(200, "By name; a token of scope admin sees those of all.", ConsumerList),),
        by_stream=True,
        tag="consumers",
    ),
    Endpoint(
        "GET",
        "/v1/consumers/{name}",
        "consumer",
        "Where a consumer goes on",
        ENTRIES_READ,
        consumers.consumer,
        (Answer(200, "As it was put last, with its ETag.", ConsumerBody),),
        (Code.CONSUMER_NOT_FOUND,),
        by_stream=True,
        tag="consumers",
    ),
    Endpoint(
        "PUT",
        "/v1/consumers/{name}",
        "keep_consumer",
        "Keep where a consumer goes on, durably",
        ENTRIES_READ,
        consumers.keep_consumer,
        (
            Answer(200, "Kept in place of the one before.", ConsumerBody),
            Answer(201, "There was none of that name; it belongs to the caller.", ConsumerBody),
        ),
        (
            Code.MALFORMED_BODY,
            Code.INVALID_FIELD,
            Code.UNKNOWN_FIELD,
            Code.BODY_TIMEOUT,
            Code.TOO_LARGE,
            Code.UNSUPPORTED_MEDIA_TYPE,
            *CURSOR_CODES,
            Code.CONSUMER_LIMIT,
            Code.CONSUMER_CHANGED,
            Code.STORAGE_FULL,
        ),
        body=RequestBody(consumers.NewConsumer, {JSON: {"cursor": "start", "ttl": "7d"}}, (JSON,)),
        by_stream=True,
        tag="consumers",
    ),
    Endpoint(
        "DELETE",
        "/v1/consumers/{name}",
        "forget_consumer",
        "Forget a consumer",
        ENTRIES_READ,
        consumers.forget_consumer,
        (Answer(204, "It is not kept any more."),),
        (Code.CONSUMER_NOT_FOUND, Code.CONSUMER_CHANGED, Code.STORAGE_FULL),
        by_stream=True,
        tag="consumers",
    ),
)
