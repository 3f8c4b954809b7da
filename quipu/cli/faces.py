"""The HTTP faces of a node, as `quipu run` starts them."""

import errno
import os
import ssl
from dataclasses import dataclass

from quipu.api import server
from quipu.api.sockets import SocketPathTooLong, SocketPathUnusable
from quipu.api.tokens import TokensUnusable
from quipu.node.administration import Administration
from quipu.node.exits import BadSetting, CannotStart, KeyExposed, PortTaken
from quipu.node.secret_files import check_private
from quipu.node.service import Ledger
from quipu.node.settings import ApiSettings, Settings


@dataclass(frozen=True, slots=True)
class HttpFaces:
    running: server.Running

    @property
    def urls(self) -> dict[str, str]:
        return {"api": self.running.url, "ops": self.running.ops_url or ""}

    def reload(self) -> list[str]:
        return self.running.reload()

    async def stop(self, grace_s: float) -> None:
        await self.running.stop(grace_s)


async def start_faces(
    ledger: Ledger, settings: Settings, administration: Administration
) -> HttpFaces:
    """Raises `CannotStart`."""
    try:
        return HttpFaces(await server.serve(ledger, api_settings(settings), administration))
    except (SocketPathTooLong, SocketPathUnusable) as error:
        raise BadSetting(
            f"the admin socket cannot be made: {error}",
            "Name another place: --set admin.socket=/run/quipu/admin.sock (107 bytes at most).",
        ) from error
    except TokensUnusable as error:
        raise KeyExposed(str(error), "`quipu token new` writes such a file.") from error
    except ssl.SSLError as error:
        raise BadSetting(
            f"the certificate and its key cannot be used: {error}",
            "api.tls_certificate and api.tls_key name PEM files that belong together.",
        ) from error
    except OSError as error:
        raise _cannot_listen(settings, error) from error


def check_faces(settings: Settings) -> None:
    """What is wrong with them whatever node they are of: said before one is made. Raises
    `CannotStart`."""
    _check_tls_files(settings.api)
    try:
        api_settings(settings).refuse_public_without_auth()
    except server.PublicWithoutAuth as error:
        raise BadSetting(
            str(error), "With a file of tokens: --set api.tokens_file=FILE. Without: --insecure."
        ) from error


def _check_tls_files(api: ApiSettings) -> None:
    if (api.tls_certificate is None) != (api.tls_key is None):
        raise BadSetting(
            "a certificate and its key come together", "Set api.tls_certificate and api.tls_key."
        )
    for path in (api.tls_certificate, api.tls_key):
        if path is not None and not os.access(path, os.R_OK):
            raise BadSetting(f"cannot read {path}", "Name a PEM file that this user may read.")
    if api.tls_key is not None:
        check_private(api.tls_key)


def api_settings(settings: Settings) -> server.Settings:
    api, ops = settings.api, settings.ops
    return server.Settings(
        host=api.listen.host,
        port=api.listen.port,
        ops_host=ops.listen.host,
        ops_port=ops.listen.port,
        admin_socket=settings.admin_socket,
        tokens_file=api.tokens_file,
        insecure=api.insecure,
        tls_certificate=api.tls_certificate,
        tls_key=api.tls_key,
        trusted_proxies=api.trusted_proxies,
        connections_max=api.connections_max,
        connections_per_s_max=api.connections_per_s_max,
        connections_per_address_max=api.connections_per_address_max,
        in_flight_per_caller_max=api.in_flight_per_caller_max,
        body_bytes_max=api.body_bytes_max,
        batch_bytes_max=api.batch_bytes_max,
        first_header_s=api.first_header_s,
        body_s=api.body_s,
    )


def _cannot_listen(settings: Settings, error: OSError) -> CannotStart:
    where = error.filename or settings.api.listen
    face, other = "api", "127.0.0.1:9470"
    if error.filename == str(settings.ops.listen):
        face, other = "ops", "127.0.0.1:9472"
    if error.errno == errno.EADDRINUSE:
        return PortTaken(
            f"another program listens on {where} ({face.upper()})",
            f"Stop it, or choose another address: --{face}-listen {other}",
        )
    return CannotStart(
        f"cannot listen on {where} ({face.upper()}): {error.strerror}",
        "Name an address of this machine and a port that this user may take (above 1023).",
    )
