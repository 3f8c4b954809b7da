"""Connections: how many, how long silent, and that what is no HTTP is answered and closed."""

import asyncio
import contextlib
import itertools
import resource
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from quipu.api import limits
from quipu.api.accepting import Pace
from quipu.api.connections import Connection
from quipu.api.server import serve
from quipu.api.settings import Settings
from tests.api.one_node import OneNode
from tests.api.talk import Talk, talking, until

Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]
GET_NODE = b"GET /v1/node HTTP/1.1\r\nHost: x\r\n\r\n"


@asynccontextmanager
async def line(api: Talk, first: bytes = b"") -> AsyncIterator[Line]:
    host, port = api.running.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(first)
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def head_of(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


async def test_first_header_has_a_deadline() -> None:
    settings = Settings(port=0, ops_port=0, first_header_s=0.05)
    async with talking(settings) as api:
        for begun in (b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "):
            async with line(api, begun) as (reader, _):
                assert await reader.read() == b""
        async with line(api, GET_NODE) as (reader, writer):
            assert b" 200 " in await head_of(reader)
            await asyncio.wait_for(_closed_after(api, 0.1), 5)
            assert not writer.is_closing()


async def _closed_after(api: Talk, seconds: float) -> None:
    """One whose first header came stays."""
    ends = asyncio.get_running_loop().time() + seconds
    await until(lambda: asyncio.get_running_loop().time() > ends)
    assert api.running.face.counters.connections == 1


async def test_idle_connection_is_closed() -> None:
    settings = Settings(port=0, ops_port=0, keepalive_s=0.05)
    async with talking(settings) as api, line(api, GET_NODE) as (reader, _):
        head = await head_of(reader)
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(size)
        assert await reader.read() == b""


async def test_connection_above_the_number_waits_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quipu.api.limits.IDLE_S", 1e6)
    async with talking(Settings(port=0, ops_port=0, connections_max=2)) as api:
        counters = api.running.face.counters
        async with line(api, GET_NODE) as (one, _), line(api, GET_NODE) as (two, _):
            await head_of(one)
            await head_of(two)
            async with line(api, GET_NODE) as (three, _):
                await until(lambda: counters.waiting() == 1)
                asked = asyncio.create_task(head_of(three))
                assert (await api.ops("/livez")).status == 200  # another listener, other turns
                assert not asked.done()
                assert counters.requests["node", 200] == 2
                asked.cancel()
        await until(lambda: counters.connections + counters.waiting() == 0)


async def test_waiting_connection_is_read_when_one_leaves() -> None:
    async with talking(Settings(port=0, ops_port=0, connections_max=1)) as api:
        counters = api.running.face.counters
        async with line(api, GET_NODE) as (one, leaving):
            await head_of(one)
            async with line(api, GET_NODE) as (two, _):
                await until(lambda: counters.waiting() == 1)
                leaving.close()
                assert b" 200 " in await head_of(two)


async def test_silent_connection_leaves_its_place_to_one_that_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("quipu.api.limits.IDLE_S", 0.01)
    async with (
        talking(Settings(port=0, ops_port=0, connections_max=1)) as api,
        line(api, GET_NODE) as (one, _),
        line(api, GET_NODE) as (two, _),
    ):
        assert b" 200 " in await head_of(one)
        assert b" 200 " in await head_of(two)
        await one.read()  # it ends


async def test_share_of_one_address(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(port=0, ops_port=0, connections_per_address_max=2)
    async with talking(settings) as api:
        async with line(api) as _, line(api) as _, line(api, GET_NODE) as (reader, _):
            assert b" 200 " in await head_of(reader)  # loopback has no share
        monkeypatch.setattr("quipu.api.connections.is_loopback", lambda host: False)
        async with line(api) as _, line(api) as _, line(api) as (reader, _):
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 429 ")
            assert b"too-many-requests" in answer
            assert b"Retry-After: 1" in answer
        await until(lambda: api.running.face.counters.connections == 0)
        async with line(api, GET_NODE) as (reader, _):
            assert b" 200 " in await head_of(reader)


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 40_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /v1/entries HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/entries HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_a_problem_and_the_end(request_bytes: bytes) -> None:
    async with talking() as api, line(api, request_bytes) as (reader, _):
        answer = await reader.read()
        assert answer.startswith((b"HTTP/1.0 400 ", b"HTTP/1.1 400 "))
        assert b"application/problem+json" in answer
        assert b'"code":"bad-request"' in answer


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with talking() as api, line(api, GET_NODE * 40) as (reader, _):
        for _ in range(40):
            head = await head_of(reader)
            assert b" 200 " in head
            size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(size)


@pytest.mark.parametrize("length", [99, limits.BODY_AWAITED_BYTES_MAX + 1])
async def test_caller_that_leaves_in_the_middle_of_its_body(
    length: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It is no error of the node's, and not in its log."""
    async with talking() as api:
        begun = f"POST /v1/entries HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{{"
        async with line(api, begun.encode()) as (_, writer):
            await until(lambda: api.running.face.under_way == 1)
            writer.close()
            await until(lambda: api.running.face.under_way == 0)
        assert (await api.submit(1)).status == 201
    assert caplog.text == ""


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    folder.mkdir(exist_ok=True)
    certificate, key = folder / "node.pem", folder / "node.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, *names, *files], check=True, capture_output=True)
    return certificate, key


async def test_certificate_is_replaced_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What cannot be used is not: neither half a file nor a certificate of another key."""
    monkeypatch.setattr("quipu.api.server.CERTIFICATE_CHECK_S", 0.01)
    files = certificate(tmp_path, "first")
    settings = Settings(port=0, ops_port=0, tls_certificate=files[0], tls_key=files[1])
    running = await serve(OneNode(), settings)
    host, port = running.url.removeprefix("https://").split(":")
    assert running.ops_url is not None
    assert running.ops_url.startswith("https://")

    async def served() -> bytes:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        _, writer = await asyncio.open_connection(host, int(port), ssl=context)
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()
        return bytes(shown)

    try:
        before = await served()
        certificate(tmp_path, "second")
        while (second := await served()) == before:
            pass
        third = certificate(tmp_path / "other", "third")
        for wrong in ("broken", third[0].read_text()):
            caplog.clear()
            files[0].write_text(wrong)
            await until(lambda: "was not read again" in caplog.text)
            assert await served() == second
        files[1].write_text(third[1].read_text())
        while await served() == second:
            pass
    finally:
        await running.stop(0)


async def test_wrong_certificate_stops_the_start(tmp_path: Path) -> None:
    path = tmp_path / "node.pem"
    path.write_text("no certificate")
    with pytest.raises(ssl.SSLError):
        await serve(OneNode(), Settings(port=0, tls_certificate=path))


@contextmanager
def opened_by(api: Talk, count: int, address: str = "127.0.0.1") -> Iterator[list[socket.socket]]:
    """By the kernel alone: nobody has accepted them when this begins."""
    host, port = api.running.url.removeprefix("http://").split(":")
    with ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection((host, int(port)), 5, (address, 0)))
            for _ in range(count)
        ]


async def test_connections_are_taken_a_few_in_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quipu.api.limits.ACCEPTS_PER_TURN", 2)
    async with talking() as api:
        counters, steps = api.running.face.counters, [0]

        def all_are_in() -> bool:
            steps.append(counters.connections)
            return counters.connections == 40

        with opened_by(api, 40):
            await until(all_are_in)
            assert max(after - before for before, after in itertools.pairwise(steps)) <= 2


async def test_connections_are_taken_no_faster_than_a_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quipu.api.limits.ACCEPTS_BURST", 8.0)
    async with talking(Settings(port=0, ops_port=0, connections_per_s_max=1e-3)) as api:
        counters = api.running.face.counters
        with opened_by(api, 40):
            await until(lambda: counters.connections == 8)
            assert counters.waiting() == 32
            assert (await api.ops("/livez")).status == 200  # many turns of the loop
            assert (counters.connections, counters.waiting()) == (8, 32)


def test_a_pace_allows_a_burst_and_then_so_many_a_second() -> None:
    pace, taken, now_s = Pace(per_s=100.0, burst=10.0), 0, 1e6
    ends_s = now_s + 5
    while now_s < ends_s:
        wait_s = pace.wait_s(now_s)
        if wait_s:
            now_s += wait_s
        else:
            pace.spend(1.0)
            taken += 1
    assert 505 <= taken <= 515


async def test_no_more_files_is_no_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("quipu.api.limits.ACCEPT_PAUSE_S", 0.01)
    async with talking() as api:
        with opened_by(api, 2) as opened:
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (opened[0].fileno(), hard))
            try:
                await until(lambda: "no connection can be accepted" in caplog.text)
                assert api.running.face.counters.connections == 0
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            await until(lambda: api.running.face.counters.connections == 2)


async def test_a_flood_of_connections_leaves_room_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There are never more than there are places, the silent ones leave first, and somebody whose
    connection came after all of them is answered."""
    monkeypatch.setattr("quipu.api.limits.IDLE_S", 0.02)
    monkeypatch.setattr("quipu.api.limits.IDLE_LOOK_S", 0.01)
    async with talking(Settings(port=0, ops_port=0, connections_max=20)) as api:
        counters, most = api.running.face.counters, 0
        async with line(api, GET_NODE) as (admitted, _):
            assert b" 200 " in await head_of(admitted)
            with opened_by(api, 200):
                async with line(api, GET_NODE) as (late, _):
                    answer = asyncio.create_task(head_of(late))
                    while not answer.done():
                        most = max(most, counters.connections)
                        await asyncio.sleep(0)
                    assert b" 200 " in answer.result()
        assert most == 20


async def test_the_share_of_one_address_leaves_the_others_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever has used up its share is refused before anything is made for it."""
    monkeypatch.setattr("quipu.api.connections.is_loopback", lambda host: host == "127.0.0.1")
    settings = Settings(port=0, ops_port=0, connections_max=8, connections_per_address_max=3)
    async with talking(settings) as api:
        counters = api.running.face.counters
        with opened_by(api, 40, "127.0.0.2"):
            async with line(api, GET_NODE) as (other, _):
                assert b" 200 " in await head_of(other)
                assert counters.connections == 4
                assert counters.connections_refused == 37


async def test_a_connection_that_went_away_while_it_waited_is_not_opened() -> None:
    async with talking(Settings(port=0, ops_port=0, connections_max=1)) as api:
        counters = api.running.face.counters
        async with line(api, GET_NODE) as (one, _):
            await head_of(one)
            with opened_by(api, 5):
                await until(lambda: counters.waiting() == 5)
        await until(lambda: counters.waiting() == 0)
        async with line(api, GET_NODE) as (two, _):
            assert b" 200 " in await head_of(two)
            assert counters.connections == 1


async def test_a_handshake_takes_a_place_and_has_a_deadline(tmp_path: Path) -> None:
    files = certificate(tmp_path, "n1")
    settings = Settings(
        port=0, ops_port=0, tls_certificate=files[0], tls_key=files[1], first_header_s=0.1
    )
    running = await serve(OneNode(), settings)
    try:
        host, port = running.url.removeprefix("https://").split(":")
        with socket.create_connection((host, int(port))):
            await until(lambda: running.face.counters.connections == 1)
            await until(lambda: running.face.counters.connections == 0)
    finally:
        await running.stop(0)


def huge_request(size: int) -> bytes:
    return f"POST /v1/entries HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode()


@pytest.mark.parametrize("with_its_header", [0, 1 << 20])
async def test_a_huge_body_is_refused_and_left_unread(with_its_header: int) -> None:
    async with talking() as api:
        with opened_by(api, 1) as (huge,):
            huge.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(huge, huge_request(1 << 40) + bytes(with_its_header))
            assert b" 413 " in await loop.sock_recv(huge, 65_536)
            sent, silent_s = 0, loop.time()
            while loop.time() - silent_s < 0.2:  # nothing was taken for so long
                try:
                    sent += huge.send(bytes(1 << 20))
                    silent_s = loop.time()
                except BlockingIOError:
                    await asyncio.sleep(0)
                assert sent < 16 << 20  # as much as the kernel keeps


async def test_of_a_refused_body_a_piece_is_read_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that one who sends all of it before it looks for an answer comes to see it."""
    pieces: list[int] = []
    received = Connection.data_received

    def noted(self: Connection, data: bytes) -> None:
        pieces.append(len(data))
        received(self, data)

    monkeypatch.setattr(Connection, "data_received", noted)
    monkeypatch.setattr("quipu.api.limits.DRAIN_STEP_S", 0.002)
    async with talking() as api:
        with opened_by(api, 1) as (large,):
            large.setblocking(False)
            loop, size = asyncio.get_running_loop(), 8 << 20
            begun_s = loop.time()
            await asyncio.wait_for(loop.sock_sendall(large, huge_request(size) + bytes(size)), 5)
            assert b" 413 " in await loop.sock_recv(large, 65_536)
            assert await loop.sock_recv(large, 65_536) == b""
            lasted_s = loop.time() - begun_s
    drained = [piece for piece in pieces[4:] if piece]  # the first came before the answer
    assert sum(pieces) == len(huge_request(size)) + size
    assert len(drained) * 0.002 <= lasted_s


async def test_a_body_by_the_byte_wakes_nobody_before_it_is_whole() -> None:
    async with talking() as api:
        body = b'{"data": 7}'
        head = f"POST /v1/entries HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        async with line(api, head.encode()) as (reader, writer):
            await until(lambda: api.running.face.under_way == 1)
            for byte in body:
                writer.write(bytes([byte]))
                await writer.drain()
            assert b" 201 " in await head_of(reader)
