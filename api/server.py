"""The running server: two listeners on the node's own event loop.

running = await serve(ledger, Settings(port=8470))
...
await running.stop(drain_s=10)
"""

import asyncio
import logging
import ssl
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec
from aiohttp import web

from quipu.api import limits
from quipu.api.connections import Door
from quipu.api.counters import Counters
from quipu.api.express import Express, ExpressConnection
from quipu.api.face import Face
from quipu.api.openapi import document
from quipu.api.routes import Routes
from quipu.api.settings import PublicWithoutAuth, Settings
from quipu.api.table import API, OPS
from quipu.node.service import Ledger

__all__ = ["PublicWithoutAuth", "Running", "Settings", "serve"]

log = logging.getLogger("quipu.api")
CERTIFICATE_CHECK_S = 1.0
SHUTDOWN_S = 0.5  # for connections that are idle or already told


@dataclass(slots=True)
class Running:
    """Invariant: its listeners answer until `stop` has returned."""

    face: Face
    url: str
    ops_url: str | None
    _runners: list[web.ServerRunner]
    _sites: list[web.TCPSite]
    watch: "asyncio.Task[None] | None" = None
    _stopped: bool = field(default=False)

    def abort(self) -> None:
        """As when the process ends by force: connections break, and nobody is told why."""
        for runner in self._runners:
            for connection in runner.server.connections if runner.server is not None else ():
                if connection.transport is not None:
                    connection.transport.abort()

    async def stop(self, drain_s: float = limits.DRAIN_S) -> None:
        """Takes nothing new, says goodbye to streams, finishes what is under way."""
        if self._stopped:
            return
        self._stopped = True
        self.face.close()
        if self.watch is not None:
            self.watch.cancel()
        for site in self._sites:
            await site.stop()
        await self.face.drained(drain_s)
        for runner in self._runners:
            await runner.cleanup()


async def serve(ledger: Ledger, settings: Settings) -> Running:
    """Raises `PublicWithoutAuth`, `TokensUnusable`, `ssl.SSLError` or `OSError` (a port that is
    taken), each before anything answers."""
    settings.refuse_public_without_auth()
    face = Face.of(ledger, settings, Routes(API), msgspec.json.encode(document(API)))
    if face.tokens is not None:
        face.tokens.require()
    context = _tls(settings)
    runners: list[web.ServerRunner] = []
    sites: list[web.TCPSite] = []

    async def listen(routes: Routes, counters: Counters, host: str, port: int) -> int:
        door = Door(
            partial(face.serve, routes),
            settings,
            counters,
            partial(ExpressConnection, Express(face)) if routes is face.routes else None,
        )
        runner = web.ServerRunner(door, handle_signals=False, shutdown_timeout=SHUTDOWN_S)
        await runner.setup()
        runners.append(runner)
        site = web.TCPSite(runner, host, port, backlog=limits.BACKLOG, ssl_context=context)
        await site.start()
        sites.append(site)
        found: int = runner.addresses[0][1]
        return found

    scheme = "http" if context is None else "https"
    ops_url = None
    try:
        if settings.ops_port is not None:
            port = await listen(Routes(OPS), Counters(), settings.ops_host, settings.ops_port)
            ops_url = f"{scheme}://{_shown(settings.ops_host)}:{port}"
        port = await listen(face.routes, face.counters, settings.host, settings.port)
    except BaseException:
        for runner in runners:
            await runner.cleanup()
        raise
    running = Running(face, f"{scheme}://{_shown(settings.host)}:{port}", ops_url, runners, sites)
    if context is not None:
        running.watch = asyncio.create_task(_reload(context, settings))
    return running


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _tls(settings: Settings) -> ssl.SSLContext | None:
    if settings.tls_certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load(context, settings)
    return context


def _load(context: ssl.SSLContext, settings: Settings) -> None:
    """Tried elsewhere first: a pair that does not match would leave the context without a key."""
    assert settings.tls_certificate is not None
    for one in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), context):
        one.load_cert_chain(settings.tls_certificate, settings.tls_key)


def _stamp(path: Path | None) -> tuple[int, int] | None:
    if path is None:
        return None
    found = path.stat()
    return found.st_mtime_ns, found.st_ino


async def _reload(context: ssl.SSLContext, settings: Settings) -> None:
    """A certificate that was replaced is used for the connections that come after."""
    files = (settings.tls_certificate, settings.tls_key)
    seen = tuple(map(_stamp, files))
    while True:
        await asyncio.sleep(CERTIFICATE_CHECK_S)
        try:
            now = tuple(map(_stamp, files))
            if now == seen:
                continue
            _load(context, settings)
            seen = now
            log.info("the certificate was read again")
        except (OSError, ssl.SSLError) as error:
            log.warning("the certificate was not read again: %s", error)
