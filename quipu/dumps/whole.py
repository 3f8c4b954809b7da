"""A file that is there whole and durable, or as it was before."""

import os
from hashlib import sha256
from pathlib import Path

from quipu.dumps import limits

PARTIAL_END = ".partial"


def write_whole(path: Path, data: bytes) -> None:
    partial = path.with_name(path.name + PARTIAL_END)
    partial.write_bytes(data)
    put_in_place(partial, path)


def put_in_place(partial: Path, path: Path) -> None:
    """Gives a finished file its name, both durable."""
    for place in (partial, path.parent):
        if place == path.parent:
            partial.replace(path)
        fd = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def sha256_of(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while piece := file.read(limits.HASH_BYTES_READ):
            digest.update(piece)
    return digest.hexdigest()
