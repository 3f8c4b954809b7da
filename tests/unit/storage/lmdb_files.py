"""Reaching under a store: its records as LMDB has them, its bytes as the disk has them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import PAGESIZE
from pathlib import Path

from quipu.storage import environment, limits
from quipu.storage.environment import DATA_FILE, Tables, WriteTxn


@contextmanager
def tampering(path: Path) -> Iterator[tuple[WriteTxn, Tables]]:
    """One write transaction on a store that nobody has open, with no rules."""
    env = environment.open_environment(path, limits.MAP_BYTES_FIRST)
    try:
        tables = environment.open_tables(env, path, create=False)
        with env.begin(write=True) as txn:
            yield txn, tables
    finally:
        env.close()


def flip(path: Path, table: str, key: bytes, at: int) -> None:
    """One bit of one value, as a bad sector would have it: LMDB notices nothing."""
    with tampering(path) as (txn, tables):
        value = bytearray(txn.get(key, b"", db=getattr(tables, table)))
        value[at] ^= 1
        txn.put(key, bytes(value), db=getattr(tables, table))


def page_numbers(path: Path, flag: int) -> list[int]:
    """Pages of one kind that hold something: 1 branch, 2 leaf."""
    data = (path / DATA_FILE).read_bytes()
    return [
        number
        for number in range(2, len(data) // PAGESIZE)
        if int.from_bytes(data[number * PAGESIZE : number * PAGESIZE + 8], "little") == number
        and int.from_bytes(data[number * PAGESIZE + 10 : number * PAGESIZE + 12], "little") == flag
    ]


def pages_with(path: Path, content: bytes) -> list[int]:
    """Pages that hold these bytes, be they in use or free."""
    data = (path / DATA_FILE).read_bytes()
    pages, at = [], data.find(content)
    while at >= 0:
        pages.append(at // PAGESIZE)
        at = data.find(content, at + 1)
    return pages


def overwrite_page(path: Path, number: int, content: bytes) -> None:
    fd = os.open(path / DATA_FILE, os.O_RDWR)
    try:
        os.pwrite(fd, content, number * PAGESIZE)
    finally:
        os.close(fd)
