"""Readers of a real node while many write: everything once, and a slow one slows nobody."""

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from urllib.parse import urlsplit

import pytest

from quipu import Client, Gap
from quipu.pytest_plugin import NewNode
from quipu.testing import LocalNode

WRITERS = 4
ENTRIES_EACH = 60
WIDE_BYTES = 20_000
READER_BYTES = 4_096


def write(node: LocalNode, writer: int) -> list[str]:
    """Some alone, some in batches, some that must be one event."""
    ids: list[str] = []
    with Client(node.url) as ledger:
        while len(ids) < ENTRIES_EACH:
            ids.append(ledger.submit([writer, len(ids)], stream=f"s{writer % 2}").id)
            items = [{"n": n} for n in range(3)]
            answer = ledger.submit_batch(items, stream="batch", atomic=len(ids) % 2 == 0)
            ids += [result.id for result in answer.results if result.id]
    return ids


def walk(node: LocalNode, limit: int, total: int) -> list[str]:
    """Page after page, until everything has been seen."""
    seen: list[str] = []
    after = None
    with Client(node.url) as ledger:
        while len(seen) < total:
            page = ledger.list(after=after, limit=limit, wait="1s")
            seen += [entry.id for entry in page.items]
            after = page.next
    return seen


def follow(node: LocalNode, total: int) -> list[str]:
    """What is said to be in a gap is read again, at once and exactly."""
    seen: list[str] = []
    with Client(node.url) as ledger:
        for item in ledger.follow(start="start"):
            if isinstance(item, Gap):
                seen += [entry.id for entry in ledger.missed(item)]
            else:
                seen.append(item.id)
            if len(seen) >= total:
                break
    return seen


def test_pages_and_streams_under_writers_hold_everything_once(quipu_node: LocalNode) -> None:
    total = WRITERS * ENTRIES_EACH
    with ThreadPoolExecutor(WRITERS + 3) as pool:
        walked = [pool.submit(walk, quipu_node, limit, total) for limit in (1, 50)]
        followed = pool.submit(follow, quipu_node, total)
        written = [pool.submit(write, quipu_node, writer) for writer in range(WRITERS)]
        everything = sorted(identity for one in written for identity in one.result())
        assert len(everything) == len(set(everything)) == total
        for reader in (*walked, followed):
            assert sorted(reader.result()) == everything
    with Client(quipu_node.url) as ledger:
        assert [e.id for e in ledger.pages(order="desc")][::-1] == [e.id for e in ledger.pages()]


def asleep(node: LocalNode) -> socket.socket:
    """Somebody who opens the stream and then reads nothing."""
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, READER_BYTES)
    address = urlsplit(node.url)
    slow.connect((address.hostname, address.port))
    slow.settimeout(60)
    slow.sendall(b"GET /v1/stream HTTP/1.1\r\nHost: x\r\n\r\n")
    assert slow.recv(1) == b"H"
    return slow


def told(slow: socket.socket) -> Iterator[dict[str, str]]:
    waiting = b""
    while True:
        piece = slow.recv(1 << 16)
        assert piece, "the node ended the stream"
        *lines, waiting = (waiting + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))


@pytest.mark.alone
def test_reader_that_sleeps_slows_nobody_and_gets_exactly_what_it_missed(
    quipu_new_node: NewNode,
) -> None:
    """Two nodes under the same load at the same time, one of them with such a reader."""
    plain, watched = quipu_new_node(), quipu_new_node()
    slow = asleep(watched)
    wide = "x" * WIDE_BYTES
    took_s: dict[str, list[float]] = {plain.url: [], watched.url: []}
    ids: list[str] = []
    for n in range(400):  # 8 MB: beyond what kernel, transport and queue hold for a reader
        for node in (plain, watched):
            begun = time.perf_counter()
            identity = node.client.submit({"n": n, "wide": wide}).id
            took_s[node.url].append(time.perf_counter() - begun)
            if node is watched:
                ids.append(identity)
    assert median(took_s[watched.url]) < 1.5 * median(took_s[plain.url]) + 0.001
    seen: list[str] = []
    gaps = 0
    for item in told(slow):
        if item.get("type") == "gap":
            gaps += 1
            gap = Gap(int(item["missed"]), item["after"], item["upto"])
            seen += [entry.id for entry in watched.client.missed(gap)]
        else:
            seen.append(item["id"])
        if len(seen) >= len(ids):
            break
    slow.close()
    assert gaps >= 1
    assert seen == ids, "all of it, once, in its order"
