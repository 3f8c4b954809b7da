"""`quipu analyse`, and `quipu dumps explain|diff`, which need no Spark."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from quipu.cli.remote import fail
from quipu.node.exits import Exit

if TYPE_CHECKING:
    from quipu.cli.admin_socket import AdminSocket

Dumps = Annotated[list[Path], typer.Argument(metavar="DUMP…", help="What `quipu export` wrote.")]
WAY_OUT = "Install what the analysis needs: pip install 'quipu[analytics]'"


def analyse(
    dumps: Dumps,
    out: Annotated[Path, typer.Option("--out", help="Directory for the report.")],
    master: Annotated[
        str | None, typer.Option("--master", help="A Spark master; local[*] by default.")
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="graphframes, or dataframe, which needs no jar.")
    ] = "graphframes",
    jar: Annotated[Path | None, typer.Option("--jar", help="A jar with GraphFrames.")] = None,
    memory: Annotated[str | None, typer.Option("--memory", help="Of the driver, as 3g.")] = None,
    settle: Annotated[
        float,
        typer.Option("--settle", help="Seconds that what is final may take to be everywhere."),
    ] = 60.0,
    event: Annotated[
        str, typer.Option("--event", help="Also tell how this one spread: an id in hex.")
    ] = "",
    publish: Annotated[
        list[Path] | None,
        typer.Option(
            "--publish",
            help="Data directory of a node that runs here: its page shows the report. Repeatable.",
        ),
    ] = None,
) -> None:
    """Compare dumps of a cluster: is every copy sound, and do they agree? Exit code 9: something is
    wrong, 10: something could not be read and the rest agrees."""
    nodes = [_node_in(folder) for folder in publish or ()]  # before the long work, not after it
    main = _main()
    given = {"--master": master, "--engine": engine, "--jar": jar, "--memory": memory}
    given |= {"--event": event}
    options = [part for name, value in given.items() if value for part in (name, str(value))]
    options += ["--settle-s", str(settle), "--out", str(out)]
    code = main([*map(str, dumps), *options])
    if code != Exit.FAILURE:  # else it ended before it had a report
        _publish((out / "report.json").read_bytes(), nodes)
    raise typer.Exit(code)


def _main() -> Callable[[list[str]], int]:
    try:
        from quipu.spark_analytics.__main__ import main
    except ImportError as error:
        fail(f"{error}\n  {WAY_OUT}", Exit.FAILURE)
    return main


def _publish(report: bytes, nodes: list["AdminSocket"]) -> None:
    for node in nodes:
        node.ask("PUT", "/v1/reports/last", json.loads(report))


def _node_in(folder: Path) -> "AdminSocket":
    from quipu.cli.admin_socket import running_node
    from quipu.cli.node_commands import explained, flags_of, load

    with explained():
        node = running_node(load(None, flags_of(None, data_dir=str(folder))).settings)
    if node is None:
        fail(
            f"no node runs with the data directory {folder}: start it, or name another", Exit.USAGE
        )
    return node


def explain(
    event: Annotated[str, typer.Argument(help="An event's id in hex, or how it begins.")],
    dumps: Dumps,
) -> None:
    """Tell of one event what every dump says: where it is Read, who names it, who signed for it."""
    tracing = _tracing()
    try:
        start = bytes.fromhex(event.partition(":")[0])
    except ValueError:
        fail(f"{event[:80]!r} is no id: an even number of hex digits", Exit.USAGE)
    with _readable():
        for line in tracing.explain(start, dumps):
            print(line)


def diff(
    one: Annotated[Path, typer.Argument(help="A dump.")],
    other: Annotated[Path, typer.Argument(help="Another dump of the same cluster.")],
) -> None:
    """List the events that two dumps do not hold alike. Exit code 9: there are some."""
    with _readable():
        found = _tracing().diff(one, other)
    for line in found:
        print(f"{line.event} {line.one} {line.other}")
    raise typer.Exit(int(Exit.NOT_VERIFIED if found else Exit.OK))


def _tracing() -> ModuleType:
    try:
        from quipu.dumps import tracing
    except ImportError as error:
        fail(f"{error}\n  {WAY_OUT}", Exit.FAILURE)
    return tracing


@contextmanager
def _readable() -> Iterator[None]:
    from quipu.dumps.manifest import ManifestUnreadable, ManifestWrong

    try:
        yield
    except (ManifestUnreadable, OSError) as error:
        fail(f"a dump cannot be read: {error}", Exit.PARTLY)
    except ManifestWrong as error:
        fail(f"a dump is wrong: {error}", Exit.NOT_VERIFIED)
