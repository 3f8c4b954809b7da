"""What a devnet is made of, and the file that remembers it."""

import os
from pathlib import Path

import msgspec

from quipu.devnet import limits
from quipu.devnet.failures import NoDevnet
from quipu.devnet.ports import HOST

STATE_FILE = "devnet.json"
LOG_FILE = "log"
BLOCKED_FILE = "blocked"
DATA_FOLDER = "data"


class Running(msgspec.Struct, frozen=True):
    """A process is one of ours if its start is that one too: numbers are used again."""

    pid: int
    begun_ticks: int


class NodePlan(msgspec.Struct):
    name: str
    node_id: str
    is_member: bool
    api_port: int
    p2p_port: int
    ops_port: int
    running: Running | None = None
    listen_port: int | None = None  # where it listens itself; others dial p2p_port, a proxy

    @property
    def api(self) -> str:
        return f"http://{HOST}:{self.api_port}"

    @property
    def ops(self) -> str:
        return f"http://{HOST}:{self.ops_port}"

    @property
    def uri(self) -> str:
        return f"quipu://{HOST}:{self.p2p_port}/{self.node_id}"


class Plan(msgspec.Struct):
    """The nodes in order; node I of the commands is `nodes[I - 1]`."""

    version: int
    cluster_id: str
    nodes: list[NodePlan]
    settings: list[str] = []  # section.name=value, given to each node
    groups: list[list[int]] = []  # parted from each other; empty: nobody is


def folder_of(folder: Path, node: NodePlan) -> Path:
    return folder / node.name


def read_plan(folder: Path) -> Plan:
    """Raises `NoDevnet`."""
    file = folder / STATE_FILE
    try:
        with file.open("rb") as opened:
            return msgspec.json.decode(opened.read(limits.STATE_BYTES_MAX), type=Plan)
    except FileNotFoundError as error:
        raise NoDevnet(
            f"{folder} holds no devnet", f"`quipu devnet up --data-dir '{folder}'` makes one."
        ) from error
    except (OSError, msgspec.DecodeError) as error:
        raise NoDevnet(
            f"cannot read {file}: {error}", "Put it back, or make a devnet in another folder."
        ) from error


def write_plan(folder: Path, plan: Plan) -> None:
    write_whole(folder / STATE_FILE, msgspec.json.format(msgspec.json.encode(plan)) + b"\n")


def write_whole(file: Path, data: bytes) -> None:
    """Who reads it sees all of the old or all of the new."""
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    beside.write_bytes(data)
    beside.replace(file)
