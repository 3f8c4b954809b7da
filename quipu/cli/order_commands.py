"""Commands about the one order of the cluster."""

import sys
from typing import Annotated, Any

import typer

from quipu.cli.remote import Output, Remote, remote

SequenceName = Annotated[str, typer.Argument(metavar="NAME", help="Of the sequence.")]
COLUMNS = ("index", "regime", "master", "items", "final")


@remote
def journal_status(of: Remote) -> None:
    """Show how far the order of the cluster is, and who leads it."""
    with of.client() as client:
        found = client.journal()
    if of.output is Output.TABLE:
        found["master"] = found["master"]["name"] if found["master"] else "none"
        for name in ("serializers", "next_serializers"):
            found[name] = ", ".join(member["name"] for member in found[name] or ())
    of.show(found)


@remote
def journal_entries(
    of: Remote,
    after: Annotated[int, typer.Option("--after", help="Only entries above this index.")] = 0,
    limit: Annotated[int, typer.Option("--limit", "-n", help="At most so many.")] = 100,
) -> None:
    """List entries of the log, the same on every node."""
    with of.client() as client:
        items = client.journal_entries(after=after, limit=limit)["items"]
    if of.output is Output.TABLE:
        for one in items:
            one["master"], one["items"] = one["master"]["name"], _told(one["items"])
    of.show_all(items, COLUMNS)


@remote
def journal_config(of: Remote) -> None:
    """Show which nodes are serializers, ingest, executor and config nodes, and the last change."""
    with of.client() as client:
        found = client.journal_config()
    if of.output is not Output.TABLE:
        of.show(found)
        return
    rows = [
        {
            "node": one["member"]["name"],
            "number": one["member"]["number"],
            "serializer": one["serializer"],
            "roles": ", ".join(one["roles"]),
            "blocked": one["blocked"],
        }
        for one in found["nodes"]
    ]
    of.show_all(rows, ("node", "number", "serializer", "roles", "blocked"))
    change = found["change"]
    if change is not None:
        names = ", ".join(member["name"] for member in change["nodes"])
        why = f" ({change['refusal']})" if change["refusal"] else ""
        print(f"{change['kind']} {names}: {change['stage']}{why}", file=sys.stderr)


def _told(items: list[dict[str, object]]) -> str:
    kinds = [str(item["kind"]) for item in items]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))


@remote
def sequence_show(
    of: Remote,
    name: SequenceName,
    linear: Annotated[
        bool, typer.Option("--linear", help="As acknowledged anywhere, not as applied here.")
    ] = False,
    number: Annotated[int | None, typer.Option("--number", help="One that was published.")] = None,
) -> None:
    """Show how far a sequence is, and who holds its lock; or what stands under one number."""
    with of.client() as client:
        if number is not None:
            held = client.sequence_number(name, number)
            if of.output is Output.TABLE:
                held["publisher"] = held["publisher"]["name"]
            of.show(held)
            return
        found = client.sequence(name, consistency="linear" if linear else "local")
    _show_sequence(of, found)


@remote
def sequence_publish(
    to: Remote,
    name: SequenceName,
    data: Annotated[str, typer.Argument(help="Text whose digest is published; - for stdin.")],
    token: Annotated[str | None, typer.Option("--token", help="Of the lock.")] = None,
    number: Annotated[str | None, typer.Option("--number", help="The next, with --token.")] = None,
) -> None:
    """Publish the next number: lock and publish in one, or under a lock."""
    raw = sys.stdin.buffer.read() if data == "-" else data.encode()
    with to.client() as client:
        to.show(client.sequence_publish(name, raw, token=token, number=number))


@remote
def sequence_lock(
    to: Remote,
    name: SequenceName,
    count: Annotated[int, typer.Option("--count", help="So many numbers, 1 to 64.")] = 1,
) -> None:
    """Lock the next numbers of a sequence for the token in the answer."""
    with to.client() as client:
        to.show(client.sequence_lock(name, count))


@remote
def sequence_release(
    to: Remote,
    name: SequenceName,
    token: Annotated[str, typer.Option("--token", help="Of the lock.")],
) -> None:
    """Give a lock back: what was not published is free."""
    with to.client() as client:
        _show_sequence(to, client.sequence_release(name, token))


def _show_sequence(of: Remote, found: dict[str, Any]) -> None:
    if of.output is Output.TABLE:
        found["holder"] = found["holder"]["name"] if found["holder"] else None
    of.show(found)
