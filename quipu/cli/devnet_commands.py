"""`quipu devnet`: a cluster of real nodes on this machine."""

import json as json_form
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quipu.cli.node_commands import Json, explained, flags_of, load

if TYPE_CHECKING:
    from quipu.devnet import Devnet

Folder = Annotated[
    Path, typer.Option("--data-dir", help="Folder of the devnet: data and log of each node.")
]
Number = Annotated[int, typer.Argument(metavar="I", help="The node, counted from 1.")]
FOLDER = Path("devnet")

devnet = typer.Typer(
    help="A cluster of real nodes on this machine, to develop and test against.",
    epilog="Example: `quipu devnet up -n 3 --data-dir devnet`",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def up(
    members: Annotated[
        int | None, typer.Option("-n", "--members", help="Founding members; 3 where not said.")
    ] = None,
    observers: Annotated[
        int | None, typer.Option("--observers", help="Nodes outside of the roster besides.")
    ] = None,
    data_dir: Folder = FOLDER,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Setting of every node: section.name=value. Repeatable."),
    ] = None,
    auto: Annotated[
        bool,
        typer.Option("--auto", help="Make each observer a member at once, without a word more."),
    ] = False,
    json: Json = False,
) -> None:
    """Make a cluster and start it, or start again what is stopped of the one that is there."""
    with explained():
        from quipu.devnet import Devnet

        with _alone(data_dir):
            if (data_dir / "devnet.json").exists():
                net = Devnet.open(data_dir)
                net.check_same(members, observers, settings)
                net.up()
            else:
                net = Devnet.make(
                    data_dir, 3 if members is None else members, observers or 0, settings or []
                )
            if auto:
                _enrol(net)
        _show(net, json)
        if not json:
            print(f"\nIts end: quipu devnet down --data-dir '{data_dir}'", file=sys.stderr)


def _enrol(net: "Devnet") -> None:
    """Elsewhere it takes an operator: else whoever has the secret would have a vote."""
    from quipu.cli import changing

    one = net.node(1)
    flags = flags_of(net.socket_setting(one), data_dir=str(net.data_of(one)))
    found = load(None, flags).settings
    changing.enrol(found, [node.uri for node in net.nodes])


def ps(data_dir: Folder = FOLDER, json: Json = False) -> None:
    """The nodes, and whether each runs."""
    with explained():
        from quipu.devnet import Devnet

        _show(Devnet.open(data_dir), json)


def start(number: Number, data_dir: Folder = FOLDER) -> None:
    """Start a node that is stopped, with its old data; waits until it is linked."""
    with _opened(data_dir) as net:
        net.start(number)


def stop(number: Number, data_dir: Folder = FOLDER) -> None:
    """Stop a node by SIGTERM: it finishes what it has taken."""
    with _opened(data_dir) as net:
        net.stop(number)


def kill(number: Number, data_dir: Folder = FOLDER) -> None:
    """Kill a node by SIGKILL, as a crash would."""
    with _opened(data_dir) as net:
        net.kill(number)


def pause(number: Number, data_dir: Folder = FOLDER) -> None:
    """Freeze a node by SIGSTOP: its connections stay, it says nothing."""
    with _opened(data_dir) as net:
        net.pause(number)


def resume(number: Number, data_dir: Folder = FOLDER) -> None:
    """Let a frozen node go on, by SIGCONT."""
    with _opened(data_dir) as net:
        net.resume(number)


def partition(
    groups: Annotated[str, typer.Argument(metavar="A|B", help="As '1,2|3', in quotes.")],
    data_dir: Folder = FOLDER,
) -> None:
    """Part the nodes: those of different groups do not hear each other. Frames are dropped in the
    nodes themselves; connections stay, so it is no test of TCP."""
    with _opened(data_dir) as net:
        net.partition(*_groups(groups))


def heal(data_dir: Folder = FOLDER) -> None:
    """End a partition; waits until the nodes are linked again."""
    with _opened(data_dir) as net:
        net.heal()


def down(data_dir: Folder = FOLDER) -> None:
    """Stop all nodes. Their data stays: remove the folder where you want it no more."""
    with _opened(data_dir) as net:
        net.down()


for command, example in (
    (up, "up -n 3 --data-dir devnet --json"),
    (ps, "ps --data-dir devnet"),
    (start, "start 2"),
    (stop, "stop 2"),
    (kill, "kill 2"),
    (pause, "pause 2"),
    (resume, "resume 2"),
    (partition, "partition '1,2|3'"),
    (heal, "heal"),
    (down, "down"),
):
    devnet.command(command.__name__, epilog=f"Example: `quipu devnet {example}`")(command)


# ------------------------------------------------------------------------------------------------
@contextmanager
def _opened(folder: Path) -> "Iterator[Devnet]":
    with explained():
        from quipu.devnet import Devnet

        Devnet.open(folder)  # before a folder is made to be locked
        with _alone(folder):
            yield Devnet.open(folder)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One command at a time: two would each write the file of the plan."""
    import fcntl
    import os

    from quipu.devnet import DevnetTaken

    try:
        folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise DevnetTaken(f"cannot use {folder}: {error.strerror}", "Name another.") from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise DevnetTaken(
            f"another command is at work on {folder}", "Wait for it to end."
        ) from error
    finally:
        os.close(fd)


def _groups(text: str) -> list[list[int]]:
    from quipu.devnet import WrongNode

    try:
        return [[int(name) for name in group.split(",")] for group in text.split("|")]
    except ValueError as error:
        raise WrongNode(
            f"{text!r} names no groups of nodes", "Write numbers, as '1,2|3', in quotes."
        ) from error


def _show(net: "Devnet", json: bool) -> None:
    rows = net.rows()
    if json:
        print(json_form.dumps({"nodes": rows}, indent=2))
        return
    for row in rows:
        print(f"{row['name']:<4} {row['role']:<9} {row['state']:<8} {row['pid'] or '-':>8}", end="")
        print(f"  {row['api']}  {row['p2p']}")
