"""Commands that need no node: verify, errors lookup, token."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quipu.cli.remote import JsonOption, Output, Remote, fail
from quipu.node.exits import Exit

if TYPE_CHECKING:
    from quipu.api.tokens import TokenRecord

TOKENS = Path("var/tokens.json")
TokensFile = Annotated[
    Path, typer.Option("--file", envvar="QUIPU_API_TOKENS_FILE", help="The node's file of tokens.")
]


def verify(
    file: Annotated[Path, typer.Argument(help="A bundle that `quipu proof` wrote.")],
    genesis: Annotated[
        Path | None, typer.Option("--genesis", help="The cluster's genesis, or its id in hex.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Verify a finality bundle offline. Exit code 9: it does not prove what it should."""
    from quipu.verify.__main__ import main

    arguments = [str(file), *(["--genesis", str(genesis)] if genesis else [])]
    raise typer.Exit(main([*arguments, *(["--json"] if json else [])]))


def lookup(
    code: Annotated[str | None, typer.Argument(help="A code; without it, all of them.")] = None,
    json: JsonOption = False,
) -> None:
    """Say what a problem code means and what to do."""
    from quipu.api.codes import KINDS, Code

    shown = Remote((), None, None, Output.JSON if json else Output.TABLE)
    if code is None:
        rows = [{"code": str(c), "status": k.status, "title": k.title} for c, k in KINDS.items()]
        shown.show_all(rows, ("code", "status", "title"))
        return
    try:
        kind = KINDS[Code(code.removeprefix("/problems/"))]
    except ValueError:
        from difflib import get_close_matches

        near = get_close_matches(code, [str(known) for known in KINDS], n=1)
        advice = f"is it {near[0]}?" if near else "`quipu errors lookup` lists all of them"
        fail(f"there is no code {code!r}; {advice}", Exit.NOT_FOUND)
    shown.show(
        {
            "code": code,
            "status": kind.status,
            "title": kind.title,
            "meaning": kind.meaning,
            "what to do": kind.remedy,
            "worth another try": "yes" if kind.retryable else "no",
        }
    )


def token_new(
    name: Annotated[str, typer.Argument(help="Name of the caller: the submitter of its entries.")],
    scope: Annotated[
        list[str],
        typer.Option("--scope", help="entries:write[:STREAM], entries:read[:STREAM], …"),
    ],
    file: TokensFile = TOKENS,
    days: Annotated[
        int | None, typer.Option("--days", min=1, help="It expires after so many.")
    ] = None,
) -> None:
    """Make a token and print it, once: only its hash is kept. A node takes it within a second."""
    import time

    from quipu.api.tokens import TokensUnusable, WrongToken, new_token

    expires_ms = None if days is None else int(time.time() * 1_000) + days * 86_400_000
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        print(new_token(file, name, scope, expires_ms))
    except (WrongToken, TokensUnusable, OSError) as error:
        fail(str(error), Exit.USAGE)


def token_list(file: TokensFile = TOKENS, json: JsonOption = False) -> None:
    """List the tokens: names and scopes, never the tokens themselves."""
    shown = Remote((), None, None, Output.JSON if json else Output.TABLE)
    rows = [_row(record) for record in _records(file)]
    shown.show_all(rows, ("name", "scopes", "created", "expires"))


def _row(record: "TokenRecord") -> dict[str, object]:
    from quipu.api.times import time_text

    return {
        "name": record.name,
        "scopes": " ".join(record.scopes),
        "created": time_text(record.created_ms),
        "expires": None if record.expires_ms is None else time_text(record.expires_ms),
    }


def _records(file: Path) -> "list[TokenRecord]":
    from quipu.api.tokens import TokensUnusable, read_tokens

    try:
        return read_tokens(file)
    except TokensUnusable as error:
        fail(f"{error}\n  `quipu token new` writes such a file; --file names it.", Exit.USAGE)


def token_revoke(
    name: Annotated[str, typer.Argument(help="Name of the token.")], file: TokensFile = TOKENS
) -> None:
    """Take a token away. A running node refuses it within a second."""
    from quipu.api.tokens import revoke_token

    _records(file)
    if not revoke_token(file, name):
        fail(f"there is no token {name!r} in {file}: see `quipu token list`", Exit.NOT_FOUND)
    print(f"revoked {name}", file=sys.stderr)
