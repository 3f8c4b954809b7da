"""A member whose store is damaged comes back as after a lost disk, and nothing Read is lost."""

import json
import random
from collections.abc import Callable
from contextlib import suppress
from mmap import PAGESIZE
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from quipu.client import Client
from quipu.devnet import Devnet, DevnetFailed
from quipu.storage.environment import DATA_FILE
from tests.process.cluster import client_of, cluster, read_at, wait_until
from tests.unit.storage.lmdb_files import overwrite_page, page_numbers

SEED = 4
EVENTS = 60  # enough for a tree with branches
BRANCH, DAMAGED = 1, 2


def meta_pages(store: Path) -> None:
    for page in (0, 1):
        overwrite_page(store, page, bytes(PAGESIZE))


def branch_pages(store: Path) -> None:
    """Bits flipped, as a bad sector would have it."""
    rng = random.Random(SEED)
    data = bytearray((store / DATA_FILE).read_bytes())
    pages = page_numbers(store, BRANCH)
    assert pages
    for page in pages:
        for _ in range(4):
            data[page * PAGESIZE + rng.randrange(8, 80)] ^= 1 << rng.randrange(8)
    (store / DATA_FILE).write_bytes(data)


def written(client: Client, count: int) -> list[str]:
    return [client.submit({"text": "x" * 900}, stream="kept").id for _ in range(count)]


def started_again(net: Devnet, number: int) -> None:
    """LMDB may end the process where it meets the damage: once, for the next start looks first."""
    with suppress(DevnetFailed):
        net.start(number)
        return
    net.start(number)


def asked(net: Devnet, number: int, path: str) -> Any:
    with urlopen(net.node(number).api + path) as answer:
        return json.load(answer)


def are_equal(net: Devnet) -> bool:
    first, *others = (asked(net, number, "/v1/dag/frontier") for number in (1, 2, 3))
    return all(other == first for other in others)


@pytest.mark.parametrize("damage", [meta_pages, branch_pages])
def test_a_member_with_a_damaged_store_comes_back(
    damage: Callable[[Path], None], tmp_path: Path
) -> None:
    with cluster(tmp_path) as net:
        identities: list[str] = []
        for number in (1, 2, 3):
            with client_of(net, number) as client:
                identities += written(client, EVENTS // 3)
        for identity in identities:
            read_at(net, DAMAGED, identity)
        net.kill(DAMAGED)
        data = net.data_of(net.node(DAMAGED))
        damage(data / "store")
        spoiled = (data / "store" / DATA_FILE).read_bytes()

        started_again(net, DAMAGED)
        assert (data / "store.aside-1" / DATA_FILE).read_bytes() == spoiled
        log = net.log_of(net.node(DAMAGED)).read_text()
        assert "set aside" in log
        assert str(data / "store.aside-1") in log

        for number in (1, DAMAGED):
            with client_of(net, number) as client:
                identities += written(client, 3)
        for number in (1, 2, 3):
            for identity in identities:
                read_at(net, number, identity)
        wait_until(lambda: are_equal(net), "all are equal")
        for number in (1, 2, 3):
            assert asked(net, number, "/v1/evidence")["items"] == []
