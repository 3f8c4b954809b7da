"""The HTTP faces of a node, as `quipu run` starts them."""

import asyncio
import errno
import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any, Protocol

from quipu.node.exits import BadSetting, CannotStart, PortTaken
from quipu.node.program import Faces
from quipu.node.service import Ledger
from quipu.node.settings import Address, Settings

SERVER = "quipu.api.server"


class UrlFaces(Faces, Protocol):
    @property
    def api_url(self) -> str: ...

    @property
    def ops_url(self) -> str: ...


async def start_faces(ledger: Ledger, settings: Settings) -> UrlFaces:
    """Raises `CannotStart`."""
    if importlib.util.find_spec("quipu.api") is None:
        return await _start_livez(settings)
    server = importlib.import_module(SERVER)
    try:
        running = await server.serve(ledger, _api_settings(server, settings))
    except server.PublicWithoutAuth as error:
        raise BadSetting(
            str(error), "A token file: --set api.tokens_file=FILE. Without: --insecure."
        ) from error
    except OSError as error:
        raise _cannot_listen(settings, error) from error
    return HttpFaces(running)


@dataclass(frozen=True, slots=True)
class HttpFaces:
    running: Any

    @property
    def api_url(self) -> str:
        return str(self.running.url)

    @property
    def ops_url(self) -> str:
        return str(self.running.ops_url)

    async def stop(self, grace_s: float) -> None:
        await self.running.stop(grace_s)


def _api_settings(server: Any, settings: Settings) -> Any:
    api, ops = settings.api, settings.ops
    return server.Settings(
        host=api.listen.host,
        port=api.listen.port,
        ops_host=ops.listen.host,
        ops_port=ops.listen.port,
        tokens_file=api.tokens_file,
        insecure=api.insecure,
        tls_certificate=api.tls_certificate,
        tls_key=api.tls_key,
    )


def _cannot_listen(settings: Settings, error: OSError) -> CannotStart:
    addresses = f"{settings.api.listen} (API) or {settings.ops.listen} (OPS)"
    if error.errno == errno.EADDRINUSE:
        return PortTaken(
            f"another program listens on {addresses}: {error.strerror}",
            "Stop it, or choose others: --api-listen 127.0.0.1:9470 --ops-listen 127.0.0.1:9472",
        )
    return CannotStart(
        f"cannot listen on {addresses}: {error.strerror}",
        "Name an address of this machine and a port that this user may take (above 1023).",
    )


# --- until the API is in the tree -----------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class LivezOnly:
    api_url: str
    ops_url: str
    servers: tuple[asyncio.Server, ...]

    async def stop(self, grace_s: float) -> None:
        for server in self.servers:
            server.close()


async def _start_livez(settings: Settings) -> LivezOnly:
    urls: list[str] = []
    servers: list[asyncio.Server] = []
    for address in (settings.api.listen, settings.ops.listen):
        try:
            server = await asyncio.start_server(_answer, address.host, address.port)
        except OSError as error:
            raise _cannot_listen(settings, error) from error
        port = server.sockets[0].getsockname()[1]
        urls.append(f"http://{Address(address.host, port)}")
        servers.append(server)
    return LivezOnly(urls[0], urls[1], tuple(servers))


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readline()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n")
    await writer.drain()
    writer.close()
