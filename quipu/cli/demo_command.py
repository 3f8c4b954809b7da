"""`quipu demo`: three nodes to look at, for a minute and a half."""

import signal
import sys
from types import FrameType
from typing import Annotated, NoReturn

import typer

from quipu.cli.node_commands import explained
from quipu.cli.remote import fail
from quipu.node.exits import Exit

SECONDS = 90.0


def demo(
    seconds: Annotated[
        float,
        typer.Option("--seconds", help="How long the story takes: 6 to 3600."),
    ] = SECONDS,
    opens: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Run three real nodes, write, kill one, cut the network, heal; the page shows it happen. It
    ends by itself, or on Ctrl-C, and leaves nothing behind."""
    from quipu.devnet import limits
    from quipu.devnet.demo import demo as staged

    if not limits.DEMO_S_MIN <= seconds <= limits.DEMO_S_MAX:
        fail(f"--seconds {seconds:g}: 6 to 3600 are a story", Exit.USAGE)

    signal.signal(signal.SIGTERM, _interrupt)
    is_equal = True
    with explained():
        try:
            _say("Three nodes are being made …")
            with staged(_say, seconds) as story:
                url = f"{story.net.nodes[0].api}/ui/#/quipu"
                print(url, flush=True)
                if opens and sys.stdout.isatty():
                    _open(url)
                is_equal = story.run()
        except KeyboardInterrupt:
            _say("Ended; nothing is left behind.")
    raise typer.Exit(int(Exit.OK if is_equal else Exit.FAILURE))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _open(url: str) -> None:
    import webbrowser

    webbrowser.open(url)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
