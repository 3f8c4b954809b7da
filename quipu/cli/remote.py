"""Commands that ask a node: the options they share, and what an error of it means here."""

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from quipu.node.exits import Exit

if TYPE_CHECKING:
    import ssl

    from quipu.client import AsyncClient, Client

URL = "http://127.0.0.1:8470"


class Output(StrEnum):
    TABLE = "table"
    JSON = "json"
    NDJSON = "ndjson"


UrlOption = Annotated[
    list[str],
    typer.Option("--url", envvar="QUIPU_URL", help="A node's API; repeat it to name several."),
]
TokenOption = Annotated[
    Path | None,
    typer.Option("--token-file", envvar="QUIPU_TOKEN_FILE", help="File that holds the token."),
]
CaOption = Annotated[
    Path | None,
    typer.Option("--ca-file", envvar="QUIPU_CA_FILE", help="Certificates to trust for https."),
]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="Form of the data.")]
JsonOption = Annotated[bool, typer.Option("--json", help="The same as -o json.")]


@dataclass(frozen=True, slots=True)
class Remote:
    """Which node is asked, as whom, and in what form its answer is shown."""

    urls: Sequence[str]
    token_file: Path | None
    ca_file: Path | None
    output: Output

    @contextmanager
    def client(self) -> "Iterator[Client]":
        from quipu.client import Client

        self._check_urls()
        with Client(self.urls, token=self._token(), tls=trusted(self.ca_file)) as client:
            yield client

    def async_client(self) -> "AsyncClient":
        from quipu.client import AsyncClient

        self._check_urls()
        return AsyncClient(self.urls, token=self._token(), tls=trusted(self.ca_file))

    def _check_urls(self) -> None:
        for url in self.urls:
            if not url.startswith(("http://", "https://")):
                fail(f"{url} is no address of a node: write it as http://n1:8470", Exit.USAGE)

    def _token(self) -> str | None:
        if self.token_file is None:
            return None
        try:
            return self.token_file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not ASCII"
            advice = "name the file that holds what `quipu token new` printed"
            fail(f"cannot read the token in {self.token_file}: {why}; {advice}", Exit.USAGE)

    def show(self, value: Mapping[str, Any]) -> None:
        """One thing."""
        if self.output is Output.TABLE:
            width = max(map(len, value), default=0)
            for name, item in value.items():
                print(f"{name:<{width}}  {_cell(item)}")
        else:
            _print_json(value, indent=self.output is Output.JSON)

    def show_all(self, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
        """Many things, each as soon as it is there unless columns have to be aligned."""
        match self.output:
            case Output.NDJSON:
                for row in rows:
                    _print_json(row, indent=False)
            case Output.JSON:
                _print_json(list(rows), indent=True)
            case Output.TABLE:
                _print_table([[_cell(row.get(name)) for name in columns] for row in rows], columns)


def trusted(ca_file: Path | None) -> "ssl.SSLContext | None":
    """What `--ca-file` names; None: what the system trusts."""
    if ca_file is None:
        return None
    import ssl

    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except OSError as error:
        fail(f"{ca_file} is no PEM file of certificates: {error}", Exit.USAGE)


def _print_json(value: object, indent: bool) -> None:
    import json

    print(json.dumps(value, indent=2 if indent else None, ensure_ascii=False), flush=True)


def _print_table(rows: list[list[str]], columns: Sequence[str]) -> None:
    shown = [list(columns), *rows]
    widths = [max(len(row[at]) for row in shown) for at in range(len(columns))]
    for row in shown:
        print(
            "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        )


def _cell(value: object) -> str:
    """One line without what a terminal would obey."""
    if value is None:
        return "-"
    if isinstance(value, dict | list):
        import json

        value = json.dumps(value, ensure_ascii=False)
    text = str(value)
    return text if text.isprintable() else ascii(text)


def fail(what: str, code: Exit) -> NoReturn:
    print(f"quipu: {what}", file=sys.stderr)
    raise typer.Exit(int(code))


def remote(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the shared options: it takes them as its first parameter, a `Remote`."""

    @wraps(command)
    def run(
        url: list[str],
        token_file: Path | None,
        ca_file: Path | None,
        output: Output,
        json: bool,
        **own: Any,
    ) -> None:
        asked = Remote(url or [URL], token_file, ca_file, Output.JSON if json else output)
        with explained():
            command(asked, **own)

    shared = {
        "url": (UrlOption, [URL]),
        "token_file": (TokenOption, None),
        "ca_file": (CaOption, None),
        "output": (OutputOption, Output.TABLE),
        "json": (JsonOption, False),
    }
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [parameter.replace(kind=keyword) for parameter in own] + [
        inspect.Parameter(name, keyword, default=default, annotation=kind)
        for name, (kind, default) in shared.items()
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    del run.__wrapped__  # its signature is not the one that counts
    return run


@contextmanager
def explained() -> Iterator[None]:
    """An error is one line on stderr, one of what to do next, and an exit code."""
    from quipu.client import QuipuError, Unreachable

    try:
        yield
    except QuipuError as error:
        problem = error.problem
        print(f"quipu: {error}", file=sys.stderr)
        if isinstance(error, Unreachable):
            print("  `quipu run` starts a node; --url names another one.", file=sys.stderr)
        if problem is not None:
            for place in problem.errors if len(problem.errors) > 1 else ():  # one is said already
                print(
                    f"  {place.get('pointer') or '(body)'}: {place.get('detail')}", file=sys.stderr
                )
            print(f"  more: quipu errors lookup {problem.code}", file=sys.stderr)
        raise typer.Exit(int(exit_code(error))) from error
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(int(Exit.OK)) from None


def exit_code(error: Exception) -> Exit:
    from quipu import client

    families = (
        (client.Unreachable, Exit.UNREACHABLE),
        (client.NotFound, Exit.NOT_FOUND),
        (client.Rejected, Exit.REJECTED),
        (client.Conflict, Exit.CONFLICT),
        (client.Unauthorized, Exit.AUTH),
    )
    code = getattr(error, "code", None)
    if code == "not-read":
        return Exit.WAITED
    return next((found for kind, found in families if isinstance(error, kind)), Exit.FAILURE)


def progress(done: int, unit: str) -> None:
    """On a terminal alone."""
    if sys.stderr.isatty():
        print(f"\r{done} {unit}", end="", file=sys.stderr, flush=True)


def progress_ends() -> None:
    if sys.stderr.isatty():
        print(file=sys.stderr)
