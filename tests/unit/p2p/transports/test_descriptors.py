"""A number that libzmq told may be another's by now: a file, and nothing happens to it."""

import fcntl
import os
import socket
import subprocess
import sys
from pathlib import Path

from quipu.p2p.transports.descriptors import Descriptor

IS_LOCKED = """
import fcntl, sys
try:
    fcntl.lockf(open(sys.argv[1], "r+b"), fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    sys.exit(7)
"""


def is_locked(file: Path) -> bool:
    """As another process sees it."""
    done = subprocess.run([sys.executable, "-c", IS_LOCKED, str(file)], check=False)
    assert done.returncode in (0, 7)
    return done.returncode == 7


def test_a_file_keeps_its_locks(tmp_path: Path) -> None:
    """POSIX lets them go where any descriptor of the file is closed, of this process."""
    path = tmp_path / "lock.mdb"
    path.touch()
    with path.open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        assert Descriptor.of(file.fileno(), lambda _: True) is None
        assert is_locked(path)


def test_a_number_of_nothing_is_nothing() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    os.close(writing)
    assert Descriptor.of(reading, lambda _: True) is None
    assert Descriptor.of(1 << 30, lambda _: True) is None


def test_another_connection_under_the_same_number_is_another_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        first = socket.create_connection(server.getsockname())
        known = Descriptor.of(first.fileno(), lambda _: True)
        assert known is not None
        assert known.bytes_received() == 0
        number = first.fileno()
        with socket.create_connection(server.getsockname()) as second:
            os.dup2(second.fileno(), number)
            assert known.bytes_received() is None
            known.shut()
            second.send(b"still there")
        first.close()
