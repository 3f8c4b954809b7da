"""All that can be wrong when a node is started: its exit code, a sentence, and what to do."""

import json
import os
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from quipu.node.exits import Exit
from quipu.storage.environment import lock_owner
from quipu.storage.records import guarded
from tests.process.command import ANY_PORTS, quipu
from tests.unit.storage.lmdb_files import overwrite_page, tampering

SEED = "0" * 64


class Case(NamedTuple):
    spoil: Callable[[Path], object]  # given a sound data directory
    code: Exit
    says: str
    advises: str
    options: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()


def nothing(data: Path) -> None:
    pass


def written(name: str, text: str, mode: int = 0o600) -> Callable[[Path], None]:
    def spoil(data: Path) -> None:
        (data / name).write_text(text)
        (data / name).chmod(mode)

    return spoil


def moded(name: str, mode: int) -> Callable[[Path], None]:
    return lambda data: (data / name).chmod(mode)


def gone(name: str) -> Callable[[Path], None]:
    return lambda data: (data / name).unlink()


def another_key(data: Path) -> None:
    (data / "node.key").write_text(f"quipu-node-key-1 {SEED}\n")


def folder_for_key(data: Path) -> None:
    (data / "node.key").unlink()
    (data / "node.key").mkdir()


def file_for_folder(data: Path) -> None:
    shutil.rmtree(data)
    data.write_text("mine")


def newer_format(data: Path) -> None:
    with tampering(data / "store") as (txn, tables):
        txn.put(b"format", guarded(b"format", b"\0\0\0\x63"), db=tables.meta)


def without_tables(data: Path) -> None:
    with tampering(data / "store") as (txn, tables):
        txn.drop(tables.feed)


def broken_pages(data: Path) -> None:
    for page in (0, 1):
        overwrite_page(data / "store", page, bytes(4_096))


def with_tokens(content: object, mode: int = 0o600) -> Callable[[Path], None]:
    text = content if isinstance(content, str) else json.dumps(content)
    return written("tokens.json", text, mode)


def config(text: str) -> Callable[[Path], None]:
    return written("q.toml", text)


TOKENS = ("--set", "api.tokens_file=DATA/tokens.json")
CONFIG = ("--config", "DATA/q.toml")
ROW = {"name": "a", "sha256": SEED, "scopes": ["admin"], "created_ms": 0}
USAGE, CONFLICT, AUTH, FAILURE = Exit.USAGE, Exit.CONFLICT, Exit.AUTH, Exit.FAILURE
CASES = {
    # settings
    "no such file": Case(nothing, USAGE, "cannot read", "Name a file", CONFIG),
    "no TOML": Case(config("[api"), USAGE, "is not TOML", "Repair that line", CONFIG),
    "no UTF-8": Case(
        lambda data: (data / "q.toml").write_bytes(b"\xff"), USAGE, "not TOML", "Repair", CONFIG
    ),
    "section": Case(config("[apy]\n"), USAGE, "section apy", "Did you mean api?", CONFIG),
    "key": Case(
        config("[api]\nlisten_on=1"), USAGE, "api.listen_on", "Did you mean api.listen?", CONFIG
    ),
    "type": Case(config("[api]\nbody_s='x'"), USAGE, "a whole number", "Default: 30", CONFIG),
    "range": Case(config("[api]\nbody_s=0"), USAGE, "at least 1", "Default: 30", CONFIG),
    "choice": Case(nothing, USAGE, "one of debug", "Default", ("--set", "log.level=loud")),
    "address": Case(nothing, USAGE, "host:port", "Default", ("--api-listen", "8470")),
    "network": Case(
        nothing, USAGE, "10.0.0.0/33", "Default", ("--set", "api.trusted_proxies=10.0.0.0/33")
    ),
    "no value": Case(
        nothing, USAGE, "--set api.body_s", "section.name=value", ("--set", "api.body_s")
    ),
    "flag": Case(nothing, USAGE, "No such option", "Try 'quipu run", ("--no-such-flag",)),
    "variable": Case(
        nothing,
        USAGE,
        "QUIPU_API_LISTEM",
        "Did you mean QUIPU_API_LISTEN?",
        (),
        (("QUIPU_API_LISTEM", "x"),),
    ),
    "failpoint": Case(
        nothing, USAGE, "nowhere", "commit.begin", (), (("QUIPU_FAILPOINTS", "nowhere=kill"),)
    ),
    "genesis gone": Case(gone("genesis"), CONFLICT, "genesis is missing", "from a backup"),
    # keys
    "key readable by others": Case(moded("node.key", 0o640), AUTH, "mode 0640", "chmod 600"),
    "cluster key readable by others": Case(
        moded("cluster.key", 0o604), AUTH, "mode 0604", "chmod 600"
    ),
    "key of something else": Case(
        written("node.key", "-----BEGIN PRIVATE KEY-----"),
        AUTH,
        "is not a quipu-node-key-1 file",
        "Put the right file back",
    ),
    "empty key": Case(
        written("cluster.key", ""),
        AUTH,
        "is not a quipu-cluster-key-1 file",
        "Put the right file back",
    ),
    "short key": Case(
        written("node.key", "quipu-node-key-1 00"),
        AUTH,
        "is not a quipu-node-key-1 file",
        "Put the right file back",
    ),
    "key that is a folder": Case(
        folder_for_key, AUTH, "is not a regular file", "Put the key file itself there"
    ),
    "key gone": Case(gone("node.key"), CONFLICT, "node.key is missing", "from a backup"),
    "key of another node": Case(
        another_key, CONFLICT, "belongs to another node", "the store that belongs to these keys"
    ),
    "no genesis": Case(
        written("genesis", "x", 0o644), CONFLICT, "is not a genesis", "Put the right file back"
    ),
    # data directory
    "directory is a file": Case(file_for_folder, CONFLICT, "is not a directory", "--data-dir"),
    "store of a newer program": Case(
        newer_format, FAILURE, "format 99, this program knows", "a newer or an older"
    ),
    "store without a table": Case(
        without_tables, FAILURE, "a table is missing", "quipu store restore"
    ),
    "store that is broken": Case(
        broken_pages, FAILURE, "the store is damaged", "puts a backup in its place"
    ),
    # tokens
    "no tokens": Case(nothing, AUTH, "tokens.json", "quipu token new", TOKENS),
    "tokens readable by others": Case(
        with_tokens({}, 0o644), AUTH, "chmod 600", "quipu token new", TOKENS
    ),
    "tokens are no JSON": Case(
        with_tokens("{"), AUTH, "is no file of tokens", "quipu token new", TOKENS
    ),
    "tokens of a newer program": Case(
        with_tokens({"version": 2, "tokens": []}), AUTH, "has version 2", "quipu token new", TOKENS
    ),
    "no scope": Case(
        with_tokens({"version": 1, "tokens": [ROW | {"scopes": ["root"]}]}),
        AUTH,
        "'root' is no scope",
        "quipu token new",
        TOKENS,
    ),
    "no hash": Case(
        with_tokens({"version": 1, "tokens": [ROW | {"sha256": "x"}]}),
        AUTH,
        "is no file of tokens",
        "quipu token new",
        TOKENS,
    ),
    # listeners
    "public without tokens": Case(
        nothing, USAGE, "ask nobody for a token", "--insecure", ("--api-listen", "0.0.0.0:0")
    ),
    "address of another machine": Case(
        nothing,
        FAILURE,
        "cannot listen",
        "an address of this machine",
        ("--ops-listen", "192.0.2.1:1"),
    ),
    "certificate alone": Case(
        nothing,
        USAGE,
        "come together",
        "api.tls_key",
        ("--set", "api.tls_certificate=DATA/genesis"),
    ),
    "no certificate": Case(
        nothing,
        USAGE,
        "cannot be used",
        "PEM files",
        ("--set", "api.tls_certificate=DATA/genesis", "--set", "api.tls_key=DATA/node.key"),
    ),
    "socket is a file": Case(
        nothing, USAGE, "is no socket", "admin.socket=", ("--set", "admin.socket=DATA/genesis")
    ),
    "socket has a long name": Case(
        nothing, USAGE, "takes 107", "admin.socket=", ("--set", "admin.socket=DATA/" + "x" * 107)
    ),
    "socket in no folder": Case(
        nothing, USAGE, "/no is no directory", "admin.socket=", ("--set", "admin.socket=DATA/no/s")
    ),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "data"
    assert quipu("init", "--data-dir", str(folder)).returncode == Exit.OK
    return folder


@pytest.fixture
def data(sound: Path, tmp_path: Path) -> Path:
    shutil.copytree(sound, tmp_path / "d")
    return tmp_path / "d"


def started(data: Path, *options: str, **variables: str) -> tuple[int, str]:
    given = [option.replace("DATA", str(data)) for option in options]
    done = quipu("run", "--data-dir", str(data), *ANY_PORTS, *given, **variables)
    return done.returncode, done.stderr


@pytest.mark.parametrize("name", CASES)
def test_it_says_what_is_wrong_and_what_to_do(name: str, data: Path) -> None:
    case = CASES[name]
    case.spoil(data)
    code, said = started(data, *case.options, **dict(case.variables))
    assert "Traceback" not in said
    assert (code, case.says in said, case.advises in said) == (case.code, True, True), said


# --- what another holds ---------------------------------------------------------------------------
@contextmanager
def port_taken() -> Iterator[str]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield f"127.0.0.1:{other.getsockname()[1]}"


@pytest.mark.parametrize("flag", ["--api-listen", "--ops-listen"])
def test_a_port_that_is_taken(flag: str, data: Path) -> None:
    with port_taken() as address:
        code, said = started(data, flag, address)
    assert code == CONFLICT, said
    assert f"listens on {address} ({flag[2:5].upper()})" in said
    assert f"Stop it, or choose another address: {flag} 127." in said
    assert not (data / "admin.sock").exists()


def test_a_store_that_another_process_has_open(data: Path) -> None:
    lock = lock_owner(data / "store")
    code, said = started(data)
    os.close(lock)
    assert (code, f"open in process {os.getpid()}" in said) == (CONFLICT, True), said


def test_a_key_of_another_user(data: Path) -> None:
    if os.geteuid() != 0:
        return  # nobody else can give a file away
    os.chown(data / "node.key", 12_345, -1)
    code, said = started(data)
    assert (code, "belongs to user 12345" in said, "chown" in said) == (AUTH, True, True), said


def test_nothing_of_a_sound_directory_was_changed(sound: Path, data: Path) -> None:
    started(data, "--set", "admin.socket=DATA/genesis")
    for name in ("node.key", "cluster.key", "genesis"):
        assert (data / name).read_bytes() == (sound / name).read_bytes()
        assert stat.S_IMODE((data / name).stat().st_mode) in (0o600, 0o644)
