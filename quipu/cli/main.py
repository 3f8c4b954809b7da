"""The commands and their help. Everything heavy is imported by the command that needs it."""

import sys

import typer

from quipu.cli import node_commands

app = typer.Typer(
    name="quipu",
    help="A replicated, tamper-evident, append-only ledger.",
    epilog="Example: `quipu run --data-dir var` starts a node; a second terminal: `quipu doctor`.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rendering help with rich costs 100 ms at every --help
    context_settings={"help_option_names": ["-h", "--help"]},
)
config = typer.Typer(
    help="Settings and where they come from.",
    epilog="Example: `quipu config show --origin`",
    no_args_is_help=True,
    rich_markup_mode=None,
)

app.command("run", epilog="Example: `quipu run --data-dir var --api-listen 127.0.0.1:8470`")(
    node_commands.run
)
app.command("init", epilog="Example: `quipu init --data-dir var --name n1`")(node_commands.init)
app.command("doctor", epilog="Example: `quipu doctor --data-dir var`")(node_commands.doctor)
config.command("show", epilog="Example: `quipu config show --origin --json`")(node_commands.show)
app.add_typer(config, name="config")


def main() -> None:
    app(prog_name="quipu")
    sys.exit(0)
