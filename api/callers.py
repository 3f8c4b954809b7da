"""Who calls: the address of a connection, or what a trusted proxy says about it."""

import ipaddress
from collections.abc import Sequence
from functools import lru_cache

from aiohttp import web

from quipu.api.settings import Network, is_loopback

FORWARDED = ("X-Forwarded-For", "Forwarded")


@lru_cache(maxsize=4_096)
def is_trusted(address: str, proxies: tuple[Network, ...]) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(found in network for network in proxies)


def caller_of(request: web.BaseRequest, proxies: tuple[Network, ...]) -> str:
    """The address nearest to the caller that only trusted proxies have vouched for."""
    address = request.remote or ""
    if not proxies or not is_trusted(address, proxies):
        return address
    return first_untrusted(address, request.headers.getall("X-Forwarded-For", ()), proxies)


def first_untrusted(address: str, headers: Sequence[str], proxies: tuple[Network, ...]) -> str:
    """Read from the right: each proxy adds whom it heard. What stands left of the first address
    that is no proxy of ours was written by that one, and may be anything."""
    named = ",".join(headers).split(",")
    for text in reversed(named):
        try:
            address = str(ipaddress.ip_address(text.strip()))
        except ValueError:
            break
        if not is_trusted(address, proxies):
            break
    return address


def is_of_this_machine(request: web.BaseRequest) -> bool:
    """Over loopback, and not handed on by a proxy that runs here."""
    if any(name in request.headers for name in FORWARDED):
        return False
    return is_loopback(request.remote or "")
