"""Commands about the store of a node of this machine, and the node's own: drain, keys.

Where the node runs it is asked over its admin socket; where it does not, the work is done here.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from quipu.cli.node_commands import ConfigFile, DataDir, Json, Set, explained, flags_of, load


class Level(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


Signatures = Annotated[
    bool, typer.Option("--signatures", help="Check every signature, too: far slower.")
]


def stats(
    data_dir: DataDir = None, config: ConfigFile = None, settings: Set = None, json: Json = False
) -> None:
    """Say what is in the store; beside a running node, too."""
    with explained():
        from quipu.cli import storing

        found = load(config, flags_of(settings, data_dir=data_dir)).settings
        storing.show_stats(found, json)


def verify(
    path: Annotated[
        Path | None, typer.Argument(help="A store or a backup; without it, the node's store.")
    ] = None,
    signatures: Signatures = False,
    records_only: Annotated[
        bool, typer.Option("--records-only", help="Leave the walk over pages out.")
    ] = False,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Check a store or a backup and change nothing. Exit code 9: something is wrong."""
    with explained():
        from quipu.cli import storing

        found = load(config, flags_of(settings, data_dir=data_dir)).settings
        wanted = storing.Wanted(path, signatures, records_only)
        raise typer.Exit(int(storing.verify(found, wanted, json)))


def scrub(
    signatures: Signatures = False,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Check the node's store and keep the outcome for health and metrics. Exit code 9: wrong."""
    with explained():
        from quipu.cli import storing

        found = load(config, flags_of(settings, data_dir=data_dir)).settings
        raise typer.Exit(int(storing.scrub(found, signatures, json)))


def backup(
    target: Annotated[Path, typer.Argument(help="A directory that is empty or not there.")],
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Copy the last commit and the genesis while the node goes on. The keys are not in it."""
    with explained():
        from quipu.cli import storing

        found = load(config, flags_of(settings, data_dir=data_dir)).settings
        storing.backup(found, target, json)


def restore(
    source: Annotated[Path, typer.Argument(metavar="BACKUP", help="What `backup` made.")],
    set_aside: Annotated[
        bool, typer.Option("--set-aside", help="Keep the store that is there under another name.")
    ] = False,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Put a checked backup in the place of the store, beside its keys; the node must not run."""
    with explained():
        from quipu.cli import storing

        found = load(config, flags_of(settings, data_dir=data_dir)).settings
        storing.restore(found, source, set_aside, json)


def compact(
    data_dir: DataDir = None, config: ConfigFile = None, settings: Set = None, json: Json = False
) -> None:
    """Give the disk back what the store needs no more; the node must not run."""
    with explained():
        from quipu.cli import storing

        found = load(config, flags_of(settings, data_dir=data_dir)).settings
        storing.compact(found, json)


def prune(
    keep: Annotated[
        str | None, typer.Option("--keep", help="Keep what is younger: 30d, 12h, 0s.")
    ] = None,
    keep_mib: Annotated[
        int | None, typer.Option("--keep-mib", help="Let the oldest go above so many MiB.", min=1)
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would go, and change nothing.")
    ] = False,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Let events go that lie below a checkpoint and that nobody needs any more; without --keep and
    --keep-mib, by the settings store.keep_days and store.keep_mib. Beside a running node, too;
    `compact` then gives the disk back."""
    with explained():
        from quipu.cli import storing

        found = load(config, flags_of(settings, data_dir=data_dir)).settings
        storing.prune(found, storing.PruneWish(keep, keep_mib, dry_run), json)


def erase(
    entry: Annotated[str, typer.Argument(metavar="ENTRY", help="The id of an entry.")],
    timeout: Annotated[
        str, typer.Option("--timeout", help="How long to wait for its end.")
    ] = "30s",
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Erase what an entry of an erasable stream says, on every node and for ever; its place, its
    receipts and its proof stay. The node must run; `compact` then takes it out of the file, too.
    Exit code 8: it is asked for, and waits for what the answer says."""
    with explained():
        from quipu.cli import storing

        found = load(config, flags_of(settings, data_dir=data_dir)).settings
        raise typer.Exit(int(storing.erase(found, entry, timeout, json)))


def repair(
    data_dir: DataDir = None, config: ConfigFile = None, settings: Set = None, json: Json = False
) -> None:
    """Set a damaged store aside, so that the next start fetches everything from the other members.
    The node must not run. Refused where no other member is known to hold the rest."""
    with explained():
        from quipu.cli import storing

        found = load(config, flags_of(settings, data_dir=data_dir)).settings
        storing.repair(found, json)


def export(
    target: Annotated[Path, typer.Argument(help="A new directory, or a dump of this node.")],
    entries: Annotated[
        str, typer.Option("--entries", help="described, with data, or none.")
    ] = "described",
    verify: Annotated[
        bool, typer.Option("--verify", help="Write nothing: check the dump that is there.")
    ] = False,
    signatures: Signatures = False,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Write a signed dump of the ledger for `quipu analyse`, or add to one what is new; beside a
    running node or alone. With --verify, exit code 9: a dump is wrong, 10: it cannot be read."""
    with explained():
        from quipu.cli import exporting

        if verify:
            raise typer.Exit(int(exporting.verify(target, signatures, json)))
        found = load(config, flags_of(settings, data_dir=data_dir)).settings
        exporting.export(found, target, entries, json)


def drain(
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds to wait at most.")] = 30.0,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Let the node finish what it has taken, and end. Exit code 8: it has not yet."""
    with explained():
        from quipu.cli import storing

        found = load(config, flags_of(settings, data_dir=data_dir)).settings
        raise typer.Exit(int(storing.drain(found, timeout, json)))


def leave(
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds to wait at most.")] = 30.0,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Say goodbye to the other nodes, signed, and end: to them it is LEFT at once, not silent. It
    stays a member of the roster; the next start brings it back."""
    drain(timeout, data_dir, config, settings, json)


def reload(
    data_dir: DataDir = None, config: ConfigFile = None, settings: Set = None, json: Json = False
) -> None:
    """Let the node read its tokens, its certificate, the cluster's secrets and its log level again,
    as SIGHUP does. Exit code 1: something could not be read, and goes on as it was."""
    with explained():
        from quipu.cli import storing

        found = load(config, flags_of(settings, data_dir=data_dir)).settings
        raise typer.Exit(int(storing.reload(found, json)))


def log_level(
    level: Annotated[Level, typer.Argument(help="The least that is written.")],
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Let the node write more to its log, or less, until its next start or reload."""
    with explained():
        from quipu.cli import storing

        found = load(config, flags_of(settings, data_dir=data_dir)).settings
        storing.set_log_level(found, level, json)


def journal_recover(
    data_dir: DataDir = None, config: ConfigFile = None, settings: Set = None, json: Json = False
) -> None:
    """Let the node vote in the log again though its disk was lost or set back. It does so by itself
    where enough others answer: this is for a lone node, and for when they never will."""
    with explained():
        from quipu.cli import storing

        found = load(config, flags_of(settings, data_dir=data_dir)).settings
        storing.recover_journal(found, json)


def journal_propose(
    kind: Annotated[
        str, typer.Argument(help="serializers, or add- or remove- with executor, ingest, config.")
    ],
    nodes: Annotated[list[str], typer.Argument(help="Names or numbers of members.")],
    timeout: Annotated[
        str, typer.Option("--timeout", help="How long to wait for its end.")
    ] = "30s",
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Change the configuration of the cluster: which nodes are serializers, and what each one does.
    Asked of the node with this data directory; one change is in flight at a time."""
    with explained():
        from quipu.cli import storing

        found = load(config, flags_of(settings, data_dir=data_dir)).settings
        storing.propose_change(found, (kind, nodes, timeout), json)


def keys(
    data_dir: DataDir = None, config: ConfigFile = None, settings: Set = None, json: Json = False
) -> None:
    """List the node's keys: public parts, fingerprints, modes; never a secret."""
    with explained():
        from quipu.cli import storing

        found = load(config, flags_of(settings, data_dir=data_dir)).settings
        storing.show_keys(found, json)
