"""Who calls, where a proxy stands between."""

import asyncio
from dataclasses import replace
from ipaddress import ip_network

import pytest

from quipu.api.callers import first_untrusted
from quipu.api.settings import Settings
from quipu.cli.faces import api_settings
from quipu.node.settings import Settings as NodeSettings
from tests.api.talk import FREE, talking, until

PROXIES = (ip_network("10.0.0.0/8"), ip_network("127.0.0.1"))


@pytest.mark.parametrize(
    ("headers", "caller"),
    [
        ([], "10.0.0.1"),
        (["192.0.2.7"], "192.0.2.7"),
        (["203.0.113.9, 192.0.2.7"], "192.0.2.7"),
        (["203.0.113.9", "192.0.2.7, 10.0.0.2"], "192.0.2.7"),
        (["2001:db8::1,10.1.1.1"], "2001:db8::1"),
        (["10.0.0.3,10.0.0.2"], "10.0.0.3"),
        (["nobody"], "10.0.0.1"),
        (["192.0.2.7, unknown, 10.0.0.2"], "10.0.0.2"),
    ],
)
def test_the_nearest_address_that_is_no_proxy(headers: list[str], caller: str) -> None:
    assert first_untrusted("10.0.0.1", headers, PROXIES) == caller


async def shares(settings: Settings) -> tuple[int, int]:
    """The answers to one more submission of a caller whose share is used up, and of another."""
    async with talking(settings) as api:
        api.node.paused = asyncio.Event()
        held = asyncio.create_task(
            api.post("/v1/entries", {"data": 1}, X_Forwarded_For="192.0.2.1")
        )
        await until(lambda: api.running.face.pressure.total == 1)
        same = await api.post("/v1/entries", {"data": 2}, X_Forwarded_For="192.0.2.1")
        other = asyncio.create_task(
            api.post("/v1/entries", {"data": 3}, X_Forwarded_For="192.0.2.2")
        )
        await until(lambda: api.running.face.pressure.total == 2 or other.done())
        api.node.paused.set()
        await held
        return same.status, (await other).status


async def test_callers_behind_a_trusted_proxy_have_a_share_each() -> None:
    settings = replace(FREE, in_flight_per_caller_max=1)
    assert await shares(replace(settings, trusted_proxies=PROXIES)) == (429, 201)


async def test_nobody_else_is_believed() -> None:
    settings = replace(FREE, in_flight_per_caller_max=1)
    assert await shares(settings) == (429, 429)


async def test_sizes_are_settings() -> None:
    async with talking(replace(FREE, body_bytes_max=100, batch_bytes_max=200)) as api:
        assert (await api.submit("x" * 100)).code == "too-large"
        items = [{"data": "x" * 10}] * 10
        assert (await api.post("/v1/entries:batch", items)).code == "too-large"
        limits = (await api.get("/v1/node")).json["limits"]
        assert (limits["body_bytes"], limits["batch_bytes"]) == (100, 200)


def test_defaults_of_the_node_are_those_of_the_api() -> None:
    socket = NodeSettings().admin_socket
    assert api_settings(NodeSettings()) == Settings(admin_socket=socket)
