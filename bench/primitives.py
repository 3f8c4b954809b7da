"""What the machine itself takes for the primitives that everything is made of."""

import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import lmdb

from quipu.ledger import signing
from quipu.ledger.canonical import encode
from quipu.ledger.entry import data_entry, decode_entry, encode_entry

LEAF_TAG_BYTES = 1
NODE_BYTES = 65


def cpu_us(action: Callable[[], object], seconds: float = 0.4) -> float:
    """CPU microseconds of one call, on average: the runs beside it are averages as well, and a
    machine that is shared slows both."""
    count = 1
    spent = 0.0
    while spent < seconds:
        count *= 2
        start = time.process_time()
        for _ in range(count):
            action()
        spent = time.process_time() - start
    return spent / count * 1e6


def signature_us() -> tuple[float, float]:
    """Sign and verify 50 bytes."""
    key = signing.KeyPair.from_seed(bytes(32))
    message = bytes(50)
    signature = key.sign(message)
    return (
        cpu_us(lambda: key.sign(message)),
        cpu_us(lambda: signing.verify(key.node_id, message, signature)),
    )


def hash_us(size: int) -> float:
    data = bytes(size)
    return cpu_us(lambda: sha256(data).digest())


def entry_us(size: int) -> tuple[float, float]:
    """Encode one entry; decode it and check it is canonical."""
    entry = data_entry(bytes(size))
    data = encode_entry(entry)
    return cpu_us(lambda: encode_entry(entry)), cpu_us(lambda: decode_entry(data))


def body_us(count: int, size: int) -> float:
    entries = [bytes(size)] * count
    return cpu_us(lambda: encode(entries))


def commit_us(folder: Path, size: int, rounds: int = 200) -> tuple[float, float]:
    """One LMDB put of `size` bytes and a commit with fsync: CPU and wall microseconds."""
    with tempfile.TemporaryDirectory(dir=folder) as path:
        env = lmdb.open(path, map_size=1 << 30, sync=True, metasync=True, writemap=False)
        value = bytes(size)
        cpu, wall = [], []
        for number in range(rounds):
            start, start_cpu = time.perf_counter(), time.process_time()
            with env.begin(write=True) as txn:
                txn.put(number.to_bytes(8), value, append=True)
            cpu.append(time.process_time() - start_cpu)
            wall.append(time.perf_counter() - start)
        env.close()
    return sum(cpu) / rounds * 1e6, sorted(wall)[rounds // 2] * 1e6
