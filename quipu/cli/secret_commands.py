"""`quipu secret …` changes the cluster's secret, `quipu debug bundle` shows none."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from quipu.cli.node_commands import ConfigFile, DataDir, Json, Set, explained, flags_of, load

Fingerprint = Annotated[
    str, typer.Argument(help="As `quipu keys` shows it, or how it begins: SHA256:…")
]


def new(
    target: Annotated[Path, typer.Argument(help="File to write; nobody else may read it.")],
    json: Json = False,
) -> None:
    """Make a new secret in a file, to be brought to every node as you would bring a password."""
    with explained():
        import secrets

        from quipu.cli.storing import show
        from quipu.ledger.signing import SEED_BYTES
        from quipu.node import secret_change

        made = secret_change.make(target, secrets.token_bytes(SEED_BYTES))
        show({"file": str(target), "fingerprint": made}, json)


def add(
    source: Annotated[Path, typer.Argument(help="What `quipu secret new` has written.")],
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """First step, on every node: accept the new secret, too; at once where the node runs."""
    from quipu.node import secret_change

    _change(lambda folder: secret_change.add(folder, source), data_dir, config, settings, json)


def lead(
    fingerprint: Fingerprint,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Second step, on every node: put a secret first, which is what invitations carry."""
    from quipu.node import secret_change

    _change(
        lambda folder: secret_change.lead(folder, fingerprint), data_dir, config, settings, json
    )


def drop(
    fingerprint: Fingerprint,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Last step, on every node: who has this secret alone is let in no more."""
    from quipu.node import secret_change

    _change(
        lambda folder: secret_change.drop(folder, fingerprint), data_dir, config, settings, json
    )


def _change(
    change: Callable[[Path], list[str]],
    data_dir: str | None,
    config: Path | None,
    settings: list[str] | None,
    json: bool,
) -> None:
    with explained():
        from quipu.cli.admin_socket import running_node
        from quipu.cli.storing import show

        found = load(config, flags_of(settings, data_dir=data_dir)).settings
        held = change(found.node.data_dir.absolute())
        node = running_node(found)
        faults = node.ask("POST", "/v1/admin/reload")["faults"] if node is not None else []
        takes = "; ".join(faults) or ("now" if node is not None else "at the next start")
        show({"secrets": held if json else " ".join(held), "takes effect": takes}, json)


def bundle(
    target: Annotated[Path, typer.Argument(help="File to write: .tar.gz.")],
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Gather what a report of a fault needs: settings, health, metrics, members, store, keys by
    fingerprint, the machine. No secret, no token and no entry is in it."""
    with explained():
        from quipu.cli.bundling import write_bundle

        write_bundle(load(config, flags_of(settings, data_dir=data_dir)), target, json)
