"""What an operator may choose about the HTTP face. The node fills it from its configuration."""

import ipaddress
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import TypeAlias

from quipu.api import limits

Network: TypeAlias = IPv4Network | IPv6Network


class PublicWithoutAuth(Exception):
    """The API would be reachable from outside, and nobody would be asked for a token."""


@dataclass(frozen=True, slots=True)
class Settings:
    host: str = "127.0.0.1"
    port: int = 8470  # 0: any free one
    ops_host: str = "127.0.0.1"
    ops_port: int | None = 8472  # None: no such listener
    admin_socket: Path | None = None  # None: no such listener
    tokens_file: Path | None = None  # None: nobody is asked for a token
    insecure: bool = False  # spelled out: a public address without tokens
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    trusted_proxies: tuple[Network, ...] = ()  # what they say about who calls is believed
    connections_max: int = limits.CONNECTIONS_MAX
    connections_per_s_max: float = limits.CONNECTIONS_PER_S_MAX
    connections_per_address_max: int = limits.CONNECTIONS_PER_ADDRESS_MAX
    in_flight_max: int = limits.IN_FLIGHT_MAX
    in_flight_per_caller_max: int = limits.IN_FLIGHT_PER_CALLER_MAX
    body_bytes_max: int = limits.BODY_BYTES_MAX
    batch_bytes_max: int = limits.BATCH_BYTES_MAX
    first_header_s: float = limits.FIRST_HEADER_S
    body_s: float = limits.BODY_S
    heartbeat_s: float = limits.HEARTBEAT_S
    keepalive_s: float = limits.KEEPALIVE_S
    stream_queue_items: int = limits.STREAM_QUEUE_ITEMS
    stream_write_bytes: int = limits.STREAM_WRITE_BYTES

    def refuse_public_without_auth(self) -> None:
        if self.tokens_file is None and not self.insecure and not is_loopback(self.host):
            raise PublicWithoutAuth(
                f"the API would listen on {self.host} and ask nobody for a token: name a file of "
                "tokens (`quipu token new`), bind 127.0.0.1, or spell out --insecure"
            )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name may lead anywhere
