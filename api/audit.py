"""Who asked for which admin verb, and what became of it: one line each, at every log level."""

import logging
import os
import socket
import struct

from aiohttp import web

from quipu.api.callers import caller_of
from quipu.api.calls import Endpoint
from quipu.api.settings import Settings
from quipu.api.tokens import Principal
from quipu.node.logs import AUDIT, FACTS

log = logging.getLogger(AUDIT)
NOBODY = "nobody"  # a token was asked for and none was good
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


def noted(
    endpoint: Endpoint, request: web.BaseRequest, who: str, status: int, identity: str
) -> None:
    facts = {
        "verb": endpoint.name,
        "who": who,
        "asked": f"{request.method} {request.rel_url.path_qs}",
        "status": status,
        "request": identity,
    }
    log.info("admin verb", extra={FACTS: facts})


def who(request: web.BaseRequest, principal: Principal | None, settings: Settings) -> str:
    """The user of the process at the other end of the socket; else the token and the address."""
    address = caller_of(request, settings.trusted_proxies)
    if address:
        name = NOBODY if principal is None or principal.name is None else principal.name
        return f"token {name} from {address}"
    found = request.transport.get_extra_info("socket") if request.transport is not None else None
    if found is None:
        return "admin socket"
    with socket.socket(fileno=os.dup(found.fileno())) as end:
        told = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(told)
    return f"admin socket, uid {uid}, pid {pid}"
