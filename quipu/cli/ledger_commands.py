"""Commands about entries and the node that holds them."""

import sys
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quipu.cli.remote import Output, Remote, fail, remote
from quipu.node.exits import Exit

if TYPE_CHECKING:
    from quipu.client import Client, Entry, Gap

MEMBER_COLUMNS = (
    "name",
    "role",
    "state",
    "order_state",
    "linked",
    "heard_ms_ago",
    "version",
    "uri",
    "trouble",
)
LINKS = {
    (True, True): "both ways",
    (True, False): "in",
    (False, True): "out",
    (False, False): "no",
}
CONSUMER_COLUMNS = ("name", "stream", "owner", "stored", "expires")
COLUMNS = ("id", "stream", "time", "author", "data")


class Wait(StrEnum):
    STORED = "stored"
    READ = "read"
    ORDERED = "ordered"


EntryArgument = Annotated[str, typer.Argument(metavar="ID", help="<64 hex digits>:<index>")]
StreamOption = Annotated[str | None, typer.Option("--stream", "-s", help="Name of the stream.")]
TimeoutOption = Annotated[float, typer.Option("--timeout", help="Seconds to wait at most.")]


@remote
def submit(
    to: Remote,
    data: Annotated[str, typer.Argument(help="JSON, or - for standard input.")],
    stream: StreamOption = None,
    wait: Annotated[Wait, typer.Option("--wait", help="State to wait for.")] = Wait.STORED,
    timeout: TimeoutOption = 30.0,
    key: Annotated[
        str | None,
        typer.Option("--key", help="Idempotency key; with --lines that of line n is KEY/n."),
    ] = None,
    content_type: Annotated[
        str | None, typer.Option("--content-type", help="Of bytes that are not JSON.")
    ] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Each line of input is an entry.")] = False,
) -> None:
    """Store an entry, or with --lines many over one connection. A load with --key can be run again:
    what is stored already is not stored twice. Exit code 8: stored, and the asked state was not
    reached in time; 10: some lines were refused."""
    options: dict[str, Any] = {
        "stream": stream or "default",
        "wait": wait.value,
        "timeout": timeout,
    }
    if lines:
        from quipu.cli.bulk import submit_lines

        submit_lines(to, data, options, key)
        return
    raw = sys.stdin.buffer.read() if data == "-" else data.encode()
    options |= {"idempotency_key": key, "content_type": content_type}
    value = raw if content_type is not None else _json(raw)
    with to.client() as client:
        receipt = client.submit(value, **options)
    from quipu.client.asynchronous import reached

    names = ("id", "state", "duplicate", "time")
    to.show({name: getattr(receipt, name) for name in names})
    if not reached(receipt.state, wait.value):
        raise typer.Exit(int(Exit.WAITED))


def _json(raw: bytes) -> Any:
    """The bytes themselves, where they are JSON."""
    import msgspec

    try:
        msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        detail = f"the data is not JSON ({error}): write '{{\"order\": 7}}', or give --content-type"
        fail(detail, Exit.USAGE)
    return msgspec.Raw(raw.strip())


@remote
def get(
    of: Remote,
    entry: EntryArgument,
    raw: Annotated[bool, typer.Option("--raw", help="Only the data, byte for byte.")] = False,
) -> None:
    """Show an entry."""
    with of.client() as client:
        found = client.get(entry)
    if raw:
        sys.stdout.buffer.write(found.raw)
        return
    of.show(entry_row(found))


def entry_row(entry: "Entry") -> dict[str, Any]:
    import base64

    row: dict[str, Any] = {
        "id": entry.id,
        "stream": entry.stream,
        "time": entry.time,
        "author": entry.author.name,
        "content_type": entry.content_type,
    }
    value = entry.data
    if isinstance(value, bytes):
        row["data_base64"] = base64.b64encode(value).decode()
    else:
        row["data"] = value
    for name in ("submitter", "client_id", "message_id", "idempotency_key"):
        if getattr(entry, name) is not None:
            row[name] = getattr(entry, name)
    return row


@remote
def list_(
    of: Remote,
    stream: StreamOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")] = 20,
    newest: Annotated[bool, typer.Option("--newest", help="The newest first.")] = False,
    since: Annotated[str | None, typer.Option("--since", help="RFC 3339 time.")] = None,
    unread: Annotated[
        bool, typer.Option("--unread", help="Those that are stored and not final yet.")
    ] = False,
) -> None:
    """List entries that are final, oldest first."""
    filters: dict[str, Any] = {"stream": stream, "since": since}
    if unread:
        filters["state"] = "stored"
    if newest:
        filters["order"] = "desc"
    with of.client() as client:
        found = islice(client.pages(limit=min(limit, 1_000), **filters), limit)
        of.show_all((entry_row(entry) for entry in found), COLUMNS)


@remote
def follow(
    of: Remote,
    stream: StreamOption = None,
    start: Annotated[str, typer.Option("--from", help="now, start, or a cursor.")] = "now",
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="End after so many.")
    ] = None,
    consumer: Annotated[
        str | None,
        typer.Option(
            "--consumer",
            help="Go on where this name has come to, kept by the first node; --from counts when "
            "there is none of that name yet.",
        ),
    ] = None,
) -> None:
    """Print entries as they become final, a line each, until Ctrl-C. Reconnects by itself."""
    lines = Remote(of.urls, of.token_file, of.ca_file, Output.NDJSON)
    with of.client() as client:
        items = client.follow(start=start, stream=stream, consumer=consumer, limit=limit)
        lines.show_all(_followed(client, items, stream, consumer), COLUMNS)


def _followed(
    client: "Client", items: "Iterator[Entry | Gap]", stream: str | None, consumer: str | None
) -> Iterator[dict[str, Any]]:
    from quipu.client import Gap

    for item in items:
        if isinstance(item, Gap):
            print(f"quipu: {item.missed} news were missed, reading them again", file=sys.stderr)
            of_stream = stream if consumer is None else client.consumer(consumer).stream
            filters = {} if of_stream is None else {"stream": of_stream}
            for entry in client.missed(item, **filters):
                yield entry_row(entry)
        else:
            yield {**entry_row(item), "cursor": item.cursor}


@remote
def consumers_list(of: Remote) -> None:
    """List the named cursors that the first node keeps for you."""
    with of.client() as client:
        rows = [
            {name: getattr(one, name) for name in one.__struct_fields__}
            for one in client.consumers()
        ]
    of.show_all(rows, CONSUMER_COLUMNS)


@remote
def consumers_delete(
    of: Remote, name: Annotated[str, typer.Argument(help="Of the consumer.")]
) -> None:
    """Forget a named cursor."""
    with of.client() as client:
        client.forget_consumer(name)
    of.show({"deleted": name})


@remote
def proof(
    of: Remote,
    entry: EntryArgument,
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write; - for standard output.")
    ] = None,
    wait: Annotated[float, typer.Option("--wait", help="Seconds to wait until it is final.")] = 0.0,
) -> None:
    """Write the finality bundle of an entry to a file, for `quipu verify`."""
    with of.client() as client:
        if wait:
            client.wait(entry, "read", wait)
        bundle = client.proof(entry)
    if out == Path("-"):
        sys.stdout.buffer.write(bundle)
        return
    path = out or Path(f"{entry[:16]}-{entry.partition(':')[2]}.quipu")
    path.write_bytes(bundle)
    of.show({"file": str(path), "bytes": len(bundle)})


@remote
def explain(of: Remote, entry: EntryArgument) -> None:
    """Say why an entry is final or not: whose receipts are missing, and why."""
    with of.client() as client:
        found = client.explain(entry)
    if of.output is not Output.TABLE:
        of.show(found)
        return
    print(found["sentence"])
    for one in found["obstacles"]:
        names = ", ".join(member["name"] for member in one["members"])
        offline = ", ".join(member["name"] for member in one["offline"])
        print(f"- {one['meaning']}" + (f": {names}" if names else ""))
        if offline:
            print(f"  not connected: {offline}")


@remote
def status(
    of: Remote,
    entry: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="An entry; else the node.")
    ] = None,
    wait: Annotated[float, typer.Option("--wait", help="Seconds to wait until it is final.")] = 0.0,
) -> None:
    """Show how a node is, or how far an entry has come."""
    with of.client() as client:
        if entry is None:
            _node_status(of, client)
            return
        found = client.wait(entry, "read", wait) if wait else client.status(entry)
    from quipu.client.asynchronous import reached

    of.show(
        {
            "id": found.id,
            "state": found.state,
            "confirmations": found.confirmations,
            "required": found.required,
            "confirmed_by": [member.name for member in found.confirmed_by],
            "stored_at": found.stored_at,
            "read_at": found.read_at,
        }
    )
    if wait and not reached(found.state, "read"):
        raise typer.Exit(int(Exit.WAITED))


@remote
def members(of: Remote) -> None:
    """Show the nodes of the cluster as one of them sees them, and what is wrong with a link."""
    with of.client() as client:
        found = client.members()
    items = found["items"]
    rows = [
        row
        | {
            "role": "observer" if row["number"] is None else f"member {row['number']}",
            "linked": "self" if row["is_self"] else LINKS[row["linked_in"], row["linked_out"]],
        }
        for row in items
    ]
    of.show_all(rows if of.output is Output.TABLE else items, MEMBER_COLUMNS)
    if found["forced_epochs"]:
        epochs = ", ".join(found["forced_epochs"])
        print(f"! opened by force: epoch {epochs} (quipu members recover)", file=sys.stderr)


@remote
def query(
    of: Remote,
    question: Annotated[
        str,
        typer.Argument(help="version, time, frontier, read-count, epoch or health."),
    ],
    argument: Annotated[str, typer.Argument(help="time takes milliseconds to round to.")] = "",
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds to wait for all.")] = 5.0,
) -> None:
    """Ask all members, and count their answers: agreed, contested or timeout."""
    with of.client() as client:
        found = client.query(question, argument, timeout=timeout)
    if of.output is Output.TABLE:
        counted = f"{found['answered']} of {found['asked']} answered"
        of.show({"verdict": found["verdict"], "answer": found["answer"], "members": counted})
        of.show({one["name"] or one["node_id"][:16]: one["answer"] for one in found["answers"]})
    else:
        of.show(found)
    if found["verdict"] != "agreed":
        raise typer.Exit(int(Exit.WAITED if found["verdict"] == "timeout" else Exit.CONFLICT))


def _node_status(of: Remote, client: "Client") -> None:
    node = client.node()
    if of.output is not Output.TABLE:
        of.show(node)
        return
    names = ", ".join(member["name"] for member in node["members"])
    of.show(
        {
            "node": f"{node['name']} ({node['node_id'][:16]})",
            "version": node["version"],
            "cluster": f"{node['cluster_name']} ({node['cluster_id'][:16]})",
            "members": f"{len(node['members'])}: {names}",
            "policy": f"{node['policy']}, {node['required']} confirmations",
            "takes entries": "yes" if node["ready"] else "no",
            "finality": "possible" if node["finality"] else "not possible now",
            "final events": node["feed_number"],
        }
    )
    for row in client.members()["items"]:
        if row["trouble"]:
            print(f"! {row['name'] or row['node_id'][:16]}: {row['trouble']}")
