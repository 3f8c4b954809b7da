"""`quipu members`: who is a member, and changing that by an operator's word."""

from typing import Annotated

import typer

from quipu.cli import ledger_commands
from quipu.cli.node_commands import ConfigFile, DataDir, Json, Set, explained, flags_of, load
from quipu.cli.remote import (
    CaOption,
    JsonOption,
    Output,
    OutputOption,
    TokenOption,
    UrlOption,
)

WHO = "URI (`quipu keys` there shows it), node id or name."
Who = Annotated[str, typer.Argument(metavar="NODE", help=WHO)]
PolicyOption = Annotated[
    str | None, typer.Option("--policy", help="majority, two-thirds, all or a number; as it is.")
]
Timeout = Annotated[
    float, typer.Option("--timeout", help="Seconds to wait until it is so; it goes on after it.")
]
NameOption = Annotated[
    str | None, typer.Option("--as", help="Its name in the roster; what it calls itself.")
]

members = typer.Typer(
    help="Show who is a member; add, remove and replace members.",
    epilog="Example: `quipu members`, or `quipu members add quipu://10.0.0.4:8471/NODE-ID`",
    invoke_without_command=True,
    rich_markup_mode=None,
)


@members.callback()
def listed(
    context: typer.Context,
    url: UrlOption = [],  # noqa: B006 - typer reads it and changes nothing
    token_file: TokenOption = None,
    ca_file: CaOption = None,
    output: OutputOption = Output.TABLE,
    json: JsonOption = False,
) -> None:
    """Show the nodes of the cluster as one of them sees them, and what is wrong with a link."""
    if context.invoked_subcommand is None:
        ledger_commands.members(
            url=url, token_file=token_file, ca_file=ca_file, output=output, json=json
        )


@members.command("add", epilog="Example: `quipu members add quipu://10.0.0.4:8471/NODE-ID`")
def add(
    node: Who,
    name: NameOption = None,
    policy: PolicyOption = None,
    timeout: Timeout = 120.0,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Make a node that has joined a member: it writes, confirms and may vote from then on."""
    said = {"node": node, "name": name, "policy": policy}
    _change("add-member", said, timeout, (data_dir, config, settings, json))


@members.command("remove", epilog="Example: `quipu members remove n4`")
def remove(
    node: Who,
    policy: PolicyOption = None,
    timeout: Timeout = 120.0,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Take a member out of the roster, alive or dead: what it wrote and was Read stays."""
    said = {"node": node, "policy": policy}
    _change("remove-member", said, timeout, (data_dir, config, settings, json))


@members.command("replace", epilog="Example: `quipu members replace n2 quipu://10.0.0.4:8471/ID`")
def replace(
    node: Who,
    by: Annotated[str, typer.Argument(metavar="BY", help=WHO)],
    name: NameOption = None,
    policy: PolicyOption = None,
    timeout: Timeout = 120.0,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Put a node that has joined into the place of a member, dead or alive, in one change."""
    said = {"node": node, "by": by, "name": name, "policy": policy}
    _change("replace-member", said, timeout, (data_dir, config, settings, json))


@members.command("policy", epilog="Example: `quipu members policy two-thirds`")
def policy(
    policy: Annotated[str, typer.Argument(help="majority, two-thirds, all or a number.")],
    timeout: Timeout = 120.0,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Change how many members have to confirm an entry."""
    _change("policy", {"policy": policy}, timeout, (data_dir, config, settings, json))


@members.command("checkpoint", epilog="Example: `quipu members checkpoint --data-dir var`")
def checkpoint(
    timeout: Timeout = 120.0,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Make a checkpoint now: a new epoch with the same members. The cluster makes them itself."""
    _change("checkpoint", {}, timeout, (data_dir, config, settings, json))


@members.command("changes", epilog="Example: `quipu members changes --data-dir var --json`")
def changes(
    data_dir: DataDir = None, config: ConfigFile = None, settings: Set = None, json: Json = False
) -> None:
    """Show the change that is under way, whom it waits for, and how the last one ended."""
    with explained():
        from quipu.cli import changing

        changing.show(load(config, flags_of(settings, data_dir=data_dir)).settings, json)


@members.command("recover", epilog="Example: `quipu members recover --force --data-dir var`")
def recover(
    force: Annotated[
        bool,
        typer.Option("--force", help="The word itself: the others are lost for ever."),
    ] = False,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Go on with this node alone after all others were lost for ever, beyond what finality bears.

    Say it on one node, the one that has most: it alone is a member then, and others are added as
    ever. What only the lost ones held is lost. The epoch is marked as forced for ever. Where
    another member has gone on and left this one out, this one follows it.
    """
    with explained():
        from quipu.cli import changing

        found = load(config, flags_of(settings, data_dir=data_dir)).settings
        changing.recover(found, force, json)


Place = tuple[DataDir, ConfigFile, Set, Json]


def _change(change: str, said: dict[str, str | None], timeout_s: float, place: Place) -> None:
    data_dir, config, settings, json = place
    with explained():
        from quipu.cli import changing

        found = load(config, flags_of(settings, data_dir=data_dir)).settings
        asked = {name: value for name, value in said.items() if value is not None}
        changing.change(found, {"change": change, **asked}, timeout_s, json)
