"""What goes into `quipu debug bundle`: only what may be shown. What cannot be had says why, and
the others are written all the same."""

import io
import json
import platform
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from quipu.cli.admin_socket import AdminSocket, running_node
from quipu.cli.checking import NAMES, probe
from quipu.cli.storing import show
from quipu.node.config import Config, shown
from quipu.node.data_directory import STORE_FOLDER, read_directory
from quipu.node.doctor import examine
from quipu.node.exits import CannotStart, DirectoryTaken
from quipu.node.key_list import key_rows
from quipu.node.settings import Address, Settings
from quipu.storage.counting import read_stats
from quipu.storage.store import StoreError

FILE_MODE = 0o600
ANSWER_S = 5.0
# By the admin socket: nothing of them tells what an entry says.
ASKED = {
    "node.json": "/v1/node",
    "cluster.json": "/v1/cluster",
    "members.json": "/v1/cluster/members",
    "journal.json": "/v1/journal",
    "evidence.json": "/v1/evidence",
    "operations.json": "/v1/admin/operations",
}
PACKAGES = ("quipu", "aiohttp", "lmdb", "msgspec", "pyzmq", "PyNaCl", "uvloop")


def write_bundle(config: Config, target: Path, as_json: bool) -> None:
    names: list[str] = []
    try:
        with target.open("xb") as file:
            target.chmod(FILE_MODE)
            with tarfile.open(fileobj=file, mode="w:gz") as archive:
                for name, content in parts(config):
                    item = tarfile.TarInfo(f"quipu-debug/{name}")
                    item.size, item.mode, item.mtime = len(content), FILE_MODE, int(time.time())
                    archive.addfile(item, io.BytesIO(content))
                    names.append(name)
    except FileExistsError as error:
        raise DirectoryTaken(f"{target} is there already", "Name another file.") from error
    except OSError as error:
        raise CannotStart(
            f"cannot write {target}: {error.strerror}", "Name another file."
        ) from error
    show({"file": str(target), "parts": names if as_json else " ".join(names)}, as_json)


def parts(config: Config) -> Iterator[tuple[str, bytes]]:
    settings = config.settings
    folder = settings.node.data_dir.absolute()
    yield "machine.json", _told(machine)
    yield "settings.json", _told(lambda: _settings(config))
    yield "doctor.json", _told(lambda: [one._asdict() for one in examine(settings)])
    yield "keys.json", _told(lambda: _keys(settings, folder))
    yield "files.json", _told(lambda: _files(folder))
    yield "store.json", _told(lambda: read_stats(folder / STORE_FOLDER))
    ops = _ops_url(settings.ops.listen, settings.api.tls_certificate is not None)
    yield "health.json", _told(lambda: [probe(ops, path)._asdict() for path in NAMES])
    yield "metrics.txt", _told(lambda: _fetched(f"{ops}/metrics"))
    node = running_node(settings)
    for name, path in ASKED.items():
        yield name, _told(lambda path=path: _asked(node, path))  # type: ignore[misc]


def machine() -> dict[str, Any]:
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "system": platform.platform(),
        "python": sys.version,
        "packages": {name: metadata.version(name) for name in PACKAGES},
    }


def _settings(config: Config) -> dict[str, dict[str, str]]:
    """Secrets are files and no settings, so the settings may be shown."""
    return {
        key: {"value": shown(value.value), "origin": value.origin}
        for key, value in config.values.items()
    }


def _keys(settings: Settings, folder: Path) -> list[dict[str, str]]:
    return [row._asdict() for row in key_rows(settings, read_directory(folder))]


def _files(folder: Path) -> list[dict[str, Any]]:
    return [
        {
            "name": str(file.relative_to(folder)),
            "bytes": file.lstat().st_size,
            "mode": f"{file.lstat().st_mode & 0o7777:04o}",
        }
        for file in sorted(folder.rglob("*"))
    ]


def _asked(node: AdminSocket | None, path: str) -> Any:
    if node is None:
        raise OSError("no node runs here")
    return node.ask("GET", path)


def _ops_url(listen: Address, is_tls: bool) -> str:
    host = "127.0.0.1" if listen.host in {"0.0.0.0", "::"} else listen.host  # noqa: S104
    return f"{'https' if is_tls else 'http'}://{Address(host, listen.port)}"


def _fetched(url: str) -> str:
    from urllib.request import urlopen

    with urlopen(url, timeout=ANSWER_S) as answer:  # noqa: S310  # of this node's own settings
        content: bytes = answer.read()
    return content.decode()


def _told(find: Callable[[], Any]) -> bytes:
    try:
        found = find()
    except (OSError, CannotStart, StoreError, ValueError) as error:
        found = {"cannot be told": f"{type(error).__name__}: {error}"}
    except SystemExit:  # a node that does not answer ends other commands
        found = {"cannot be told": "the node does not answer"}
    if isinstance(found, str):
        return found.encode()
    return json.dumps(found, indent=1, default=str).encode() + b"\n"
