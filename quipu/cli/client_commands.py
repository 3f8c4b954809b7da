"""Commands about clients of the order, their requests, and the database of executors."""

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quipu.cli.remote import Output, Remote, fail, remote
from quipu.node.exits import Exit

if TYPE_CHECKING:
    from quipu.client import Client, Outcome, Session

Number = Annotated[int, typer.Argument(metavar="NUMBER", help="Of the client.")]
State = Annotated[
    Path,
    typer.Option("--state", help="File of the client: its key, its ids, what is under way."),
]
Sql = Annotated[str, typer.Argument(metavar="SQL", help="One statement, with ? for values.")]
Values = Annotated[
    list[str] | None,
    typer.Argument(metavar="VALUE", help="For each ?: JSON, or a text as it is."),
]
ALL = ("read", "write", "schema")
SHOWN = ("client", "state", "next_message_id", "have", "public_key")


@remote
def new(
    to: Remote,
    state: Annotated[
        Path | None,
        typer.Option("--state", help="Make this file with a key of its own, and register that."),
    ] = None,
    public_key: Annotated[
        str | None, typer.Option("--public-key", help="Register this Ed25519 key, in hex.")
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", help="TABLES=read,write,schema; repeat it. Without it: all."),
    ] = None,
) -> None:
    """Register a client: whoever has its key may submit requests. Takes a token of scope admin."""
    if (state is None) == (public_key is None):
        fail("give --state for a key of its own, or --public-key", Exit.USAGE)
    rights = None if allow is None else [_rule(text) for text in allow]
    with to.client() as client:
        if state is None:
            assert public_key is not None
            rules = None if rights is None else [{"tables": t, "rights": r} for t, r in rights]
            to.show(client.new_client(public_key, rights=rules))
            return
        with _session(client, state) as session:
            to.show(client.client(session.register(rights)))


def _rule(text: str) -> tuple[str, list[str]]:
    tables, equals, names = text.partition("=")
    rights = names.split(",")
    if not equals or not tables or not set(rights) <= set(ALL):
        fail(f"{text} is no rule: write it as stock*=read,write", Exit.USAGE)
    return tables, rights


def _session(client: "Client", state: Path) -> "Session":
    from quipu.client import SessionInUse

    try:
        return client.session(state)
    except SessionInUse as error:
        fail(f"{error}\n  One process at a time may use it; end the other one.", Exit.CONFLICT)


@remote
def every(
    of: Remote,
    after: Annotated[int, typer.Option("--after", help="Only numbers above this one.")] = 0,
    limit: Annotated[int, typer.Option("--limit", help="At most so many.")] = 100,
) -> None:
    """List the clients: what each may do and how far it is."""
    with of.client() as client:
        of.show_all(client.clients(after=after, limit=limit)["items"], SHOWN)


@remote
def show(of: Remote, number: Number) -> None:
    """Show who a client is, what it may do, and how far it is."""
    with of.client() as client:
        of.show(client.client(number))


@remote
def rights(
    of: Remote,
    number: Number,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", help="TABLES=read,write,schema; repeat it."),
    ] = None,
    nothing: Annotated[bool, typer.Option("--nothing", help="It may do nothing more.")] = False,
) -> None:
    """Give a client other rights in place of those it has; its ids and results stay."""
    if (not allow) == (not nothing):
        fail("give --allow for each rule that it has from now on, or --nothing", Exit.USAGE)
    rules = [{"tables": tables, "rights": names} for tables, names in map(_rule, allow or ())]
    with of.client() as client:
        of.show(client.change_rights(number, rights=rules))


@remote
def remove(of: Remote, number: Number) -> None:
    """Remove a client: its results are deleted, its number is never given again."""
    with of.client() as client:
        of.show(client.remove_client(number))


@remote
def execute(to: Remote, sql: Sql, values: Values = None, *, state: State) -> None:
    """Have one statement executed on every executor: exactly once, however often it is sent."""
    with to.client() as client, _session(client, state) as session:
        _registered(session, state)
        for done in session.recover():
            _tell(f"request {done.message_id}, which was under way: {done.code}")
        outcome = session.execute((sql, *map(_value, values or ())))
        _show_outcome(to, outcome)
    if not outcome.ok:
        raise typer.Exit(int(Exit.REJECTED))


def _registered(session: "Session", state: Path) -> None:
    if session.client is None:
        fail(f"{state} is not registered: quipu client new --state {state}", Exit.USAGE)


@remote
def results(of: Remote, state: State) -> None:
    """List the results that the executors keep for a client."""
    with of.client() as client, _session(client, state) as session:
        _registered(session, state)
        rows = [
            {"message_id": one.message_id, "code": one.code, "rows": _plain(one.rows)}
            for one in session.results()
        ]
    of.show_all(rows, ("message_id", "code", "rows"))


@remote
def executor(of: Remote) -> None:
    """Show how far the executor of a node is."""
    with of.client() as client:
        of.show(client.executor())


@remote
def sql(
    of: Remote,
    sql: Sql,
    values: Values = None,
    linear: Annotated[
        bool, typer.Option("--linear", help="With all that was acknowledged anywhere before.")
    ] = False,
    as_client: Annotated[
        int | None, typer.Option("--client", help="With the rights of this client.")
    ] = None,
) -> None:
    """Query the database of a node's executor; nothing can be written."""
    with of.client() as client:
        found = client.sql(
            sql,
            *map(_value, values or ()),
            consistency="linear" if linear else "local",
            client=as_client,
        )
    _show_rows(of, found["columns"], found["rows"])
    if not found["complete"]:
        _tell("there is more than one answer holds: add LIMIT and go on from there")


def _show_outcome(to: Remote, outcome: "Outcome") -> None:
    last = outcome.results[-1] if outcome.results else None
    if to.output is Output.TABLE and outcome.ok and last is not None and last.columns:
        _show_rows(to, last.columns, last.rows)
        return
    shown: dict[str, Any] = {"message_id": outcome.message_id, "code": outcome.code}
    if last is not None:
        shown |= {"changes": last.changes, "rows": _plain(last.rows), "detail": last.detail}
    to.show(shown)


def _show_rows(of: Remote, columns: list[str], rows: list[list[Any]]) -> None:
    named = [dict(zip(columns, row, strict=True)) for row in _plain(rows)]
    of.show_all(named, columns)


def _plain(rows: list[list[Any]]) -> list[list[Any]]:
    return [[v.hex() if isinstance(v, bytes) else v for v in row] for row in rows]


def _value(text: str) -> Any:
    try:
        value = json_module.loads(text)
    except ValueError:
        return text
    return text if isinstance(value, bool | dict | list) else value


def _tell(text: str) -> None:
    typer.echo(f"quipu: {text}", err=True)
