"""`quipu analyse`, and `quipu dumps explain|diff`, which need no Spark."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from quipu.cli.remote import fail
from quipu.node.exits import Exit

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
) -> None:
    """Compare dumps of a cluster: is every copy sound, and do they agree? Exit code 9: something is
    wrong, 10: something could not be read and the rest agrees."""
    try:
        from quipu.spark_analytics.__main__ import main
    except ImportError as error:
        fail(f"{error}\n  {WAY_OUT}", Exit.FAILURE)
    given = {"--master": master, "--engine": engine, "--jar": jar, "--memory": memory}
    given |= {"--event": event}
    options = [part for name, value in given.items() if value for part in (name, str(value))]
    options += ["--settle-s", str(settle), "--out", str(out)]
    raise typer.Exit(main([*map(str, dumps), *options]))


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
