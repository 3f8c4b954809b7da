"""Reading GET /v1/stream as NDJSON, one connection long."""

from collections.abc import AsyncIterator

import aiohttp
import msgspec

from quipu.client.errors import Unreachable, error_of
from quipu.client.models import Entry, Gap, StreamItem, entry_of
from quipu.client.transport import BROKEN, CONNECT_S, Transport, problem_of

SILENCE_S = 40.0  # a node says something every 15 s
LINE_BYTES_MAX = 16 << 20
_items = msgspec.json.Decoder(StreamItem)


class Ended(Exception):
    """The node said goodbye, or the line broke."""


async def items_of(
    transport: Transport, start: str, stream: str | None
) -> AsyncIterator[Entry | Gap | None]:
    """From a cursor, `now` or `start` on, until the node or the line ends it. None: a heartbeat."""
    params = {"from": start}
    if stream is not None:
        params["stream"] = stream
    url = transport.nodes[transport.current].rstrip("/") + "/v1/stream"
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=SILENCE_S)
    try:
        async with transport.session().get(
            url,
            params=params,
            headers={"Accept": "application/x-ndjson"},
            timeout=timeout,
            read_bufsize=LINE_BYTES_MAX,
        ) as response:
            if response.status != 200:
                raise error_of(problem_of(response.status, await response.read()), 0)
            async for line in response.content:
                item = _items.decode(line)
                if item.type == "entry" and item.entry is not None:
                    yield entry_of(item.entry, item.cursor)
                elif item.type == "gap":
                    yield Gap(item.missed, item.after, item.upto)
                elif item.type == "heartbeat":
                    yield None
                elif item.type == "goodbye":
                    break
    except (*BROKEN, msgspec.DecodeError) as error:
        raise Unreachable(f"{url}: {str(error) or type(error).__name__}") from error
    raise Ended
