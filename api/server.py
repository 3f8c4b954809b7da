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
from quipu.api.accepting import Acceptor
from quipu.api.connections import Door
from quipu.api.counters import Counters
from quipu.api.express import Express, ExpressConnection
from quipu.api.face import Face
from quipu.api.openapi import document
from quipu.api.page import PAGE
from quipu.api.routes import Routes
from quipu.api.settings import PublicWithoutAuth, Settings
from quipu.api.sockets import PrivateSite
from quipu.api.table import ADMIN, API, OPS
from quipu.api.tokens import TokensUnusable
from quipu.node.administration import Administration
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
    _listeners: "Listeners"
    context: ssl.SSLContext | None = None
    watch: "asyncio.Task[None] | None" = None
    _stopped: bool = field(default=False)

    def abort(self) -> None:
        """As when the process ends by force: connections break, and nobody is told why."""
        for runner in self._listeners.runners:
            for connection in runner.server.connections if runner.server is not None else ():
                if connection.transport is not None:
                    connection.transport.abort()

    def reload(self) -> list[str]:
        """Tokens and certificate are read again now; says what could not be, and goes on with the
        old."""
        faults = []
        try:
            if self.face.tokens is not None:
                self.face.tokens.reread()
        except TokensUnusable as error:
            faults.append(f"tokens: {error}")
        try:
            if self.context is not None:
                _load(self.context, self.face.settings)
        except (OSError, ssl.SSLError) as error:
            faults.append(f"certificate: {error}")
        return faults

    async def stop(self, drain_s: float = limits.DRAIN_S) -> None:
        """Takes nothing new, says goodbye to streams, finishes what is under way."""
        if self._stopped:
            return
        self._stopped = True
        self.face.close()
        if self.watch is not None:
            self.watch.cancel()
        await self._listeners.stop()
        await self.face.drained(drain_s)
        await self._listeners.close()


@dataclass(slots=True)
class Listeners:
    """Each opened in turn; whoever meets an error closes all of them."""

    face: Face
    settings: Settings
    context: ssl.SSLContext | None
    runners: list[web.ServerRunner] = field(default_factory=list)
    sites: list[Acceptor | PrivateSite] = field(default_factory=list)

    async def open(self, routes: Routes, counters: Counters, host: str, port: int) -> str:
        """Its URL."""
        door, _ = await self._door(routes, counters)
        acceptor = Acceptor(door, self.context)
        try:
            port = await acceptor.start(host, port)
        except OSError as error:
            where = f"{_shown(host)}:{port}"
            raise OSError(error.errno, error.strerror or str(error), where) from error
        self.sites.append(acceptor)
        counters.waiting = acceptor.waiting
        scheme = "http" if self.context is None else "https"
        return f"{scheme}://{_shown(host)}:{port}"

    async def open_private(self, path: Path) -> None:
        routes = Routes(self.face.routes.endpoints, is_private=True)
        _, runner = await self._door(routes, Counters())
        site = PrivateSite(runner, path)
        await site.start()
        self.sites.append(site)

    async def stop(self) -> None:
        for site in self.sites:
            await site.stop()
        self.sites.clear()

    async def close(self) -> None:
        await self.stop()
        for runner in self.runners:
            await runner.cleanup()

    async def _door(self, routes: Routes, counters: Counters) -> tuple[Door, web.ServerRunner]:
        face = self.face
        express = partial(ExpressConnection, Express(face)) if routes is face.routes else None
        door = Door(partial(face.serve, routes), self.settings, counters, express)
        runner = web.ServerRunner(door, handle_signals=False, shutdown_timeout=SHUTDOWN_S)
        await runner.setup()
        self.runners.append(runner)
        return door, runner


async def serve(
    ledger: Ledger, settings: Settings, administration: Administration | None = None
) -> Running:
    """Without an administration there are no admin verbs. Raises `PublicWithoutAuth`,
    `TokensUnusable`, `ssl.SSLError` or `OSError` (its file name: the address that cannot be had),
    each before anything answers."""
    settings.refuse_public_without_auth()
    listed = API if administration is None else API + ADMIN
    face = Face.of(ledger, settings, Routes(listed + PAGE), msgspec.json.encode(document(listed)))
    face.administration = administration
    if face.tokens is not None:
        face.tokens.require()
    context = _tls(settings)
    listeners = Listeners(face, settings, context)
    ops_url = None
    try:
        if settings.admin_socket is not None and administration is not None:
            await listeners.open_private(settings.admin_socket)
        if settings.ops_port is not None:
            ops = Routes(OPS)
            ops_url = await listeners.open(ops, Counters(), settings.ops_host, settings.ops_port)
        url = await listeners.open(face.routes, face.counters, settings.host, settings.port)
    except BaseException:
        await listeners.close()
        raise
    running = Running(face, url, ops_url, listeners, context)
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
