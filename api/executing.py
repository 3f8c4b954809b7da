"""Whether the request in an entry is executed, and waiting for it."""

import asyncio
from contextlib import suppress

from quipu.api.calls import Call
from quipu.ledger.entry import Entry
from quipu.ledger.words import EventId
from quipu.node.client_service import ClientRefused, ClientRequest, Executed, NoExecutor
from quipu.node.service import Overloaded


def request_of(entry: Entry) -> ClientRequest:
    """Of an entry that a client has signed."""
    assert entry.client_id is not None
    signature, message_id = entry.signature or b"", entry.message_id or 0
    return ClientRequest(entry.client_id, message_id, entry.data, entry.sig_type, signature)


def is_executed(call: Call, entry: Entry) -> bool:
    if entry.client_id is None or entry.message_id is None:
        return False
    return call.ledger.clients.is_executed(entry.client_id, entry.message_id)


async def until_executed(
    call: Call, event: EventId, request: ClientRequest, timeout_ms: int
) -> None:
    """Or until the time is over, or it is known that it never will be."""
    clients = call.ledger.clients
    if not clients.is_executed(request.client, request.message_id):
        with suppress(ClientRefused, NoExecutor):
            await executed_within(call, event, clients.when_executed(request), timeout_ms)


async def executed_within(
    call: Call, event: EventId, waiting: "asyncio.Future[Executed]", timeout_ms: int
) -> Executed | None:
    """None: the time is over, or the node stops. Raises `ClientRefused`."""
    hurried: asyncio.Future[bool] | None = None
    with suppress(Overloaded):  # then it comes in its time
        hurried = call.ledger.order.when_ordered(event)
    try:
        with suppress(TimeoutError, NoExecutor):
            async with asyncio.timeout(timeout_ms / 1_000):
                return await waiting
    finally:
        if hurried is not None:
            hurried.cancel()
    return None
