"""`quipu check`: one look at a node, in the form that a monitor reads."""

import json
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from quipu.cli.remote import CaOption, trusted
from quipu.node.exits import Exit

if TYPE_CHECKING:
    import ssl

OPS_URL = "http://127.0.0.1:8472"
NAMES = {
    "livez": "live",
    "readyz": "ready",
    "readyz?for=read": "finality",
    "readyz?for=store": "store",
}
ANSWER_S = 5.0
NAGIOS_OK, NAGIOS_WARNING, NAGIOS_CRITICAL = 0, 1, 2


class Format(StrEnum):
    JSON = "json"
    PROMETHEUS = "prometheus"
    NAGIOS = "nagios"


class Only(StrEnum):
    LIVE = "live"
    READY = "ready"
    FINALITY = "finality"
    STORE = "store"


class Probed(NamedTuple):
    name: str
    passes: bool
    detail: str


def check(
    ops_url: Annotated[
        str, typer.Option("--ops-url", envvar="QUIPU_OPS_URL", help="A node's OPS listener.")
    ] = OPS_URL,
    form: Annotated[Format, typer.Option("--format", help="Who reads it.")] = Format.JSON,
    only: Annotated[
        list[Only] | None,
        typer.Option("--only", help="This alone: live, ready, finality or store. Repeatable."),
    ] = None,
    ca_file: CaOption = None,
) -> None:
    """Ask whether a node is alive, takes entries, can make them final, and has a sound store."""
    tls = trusted(ca_file)
    asked = {str(one) for one in only or Only}
    found = [probe(ops_url, path, tls) for path, name in NAMES.items() if name in asked]
    failing = [one for one in found if not one.passes]
    match form:
        case Format.JSON:
            print(json.dumps({one.name: one._asdict() for one in found}, indent=2))
        case Format.PROMETHEUS:
            for one in found:
                print(f'quipu_check{{check="{one.name}"}} {int(one.passes)}')
        case Format.NAGIOS:
            raise typer.Exit(_nagios(found, failing))
    if failing:
        for one in failing:
            print(f"quipu: {one.name}: {one.detail}", file=sys.stderr)
        unreachable = all(one.detail.startswith("no answer") for one in failing)
        if unreachable:
            print("  --ops-url names the OPS listener of a node that runs.", file=sys.stderr)
        raise typer.Exit(int(Exit.UNREACHABLE if unreachable else Exit.FAILURE))


def _nagios(found: list[Probed], failing: list[Probed]) -> int:
    """Its own exit codes: 1 where entries are taken and cannot become final, 2 for the rest."""
    if not failing:
        print("QUIPU OK - " + ", ".join(one.name for one in found))
        return NAGIOS_OK
    said = "; ".join(f"{one.name}: {one.detail}" for one in failing)
    if {one.name for one in failing} == {"finality"}:
        print(f"QUIPU WARNING - {said}")
        return NAGIOS_WARNING
    print(f"QUIPU CRITICAL - {said}")
    return NAGIOS_CRITICAL


def probe(ops_url: str, path: str, tls: "ssl.SSLContext | None" = None) -> Probed:
    from urllib.error import HTTPError, URLError
    from urllib.request import urlopen

    name = NAMES[path]
    if not ops_url.startswith(("http://", "https://")):
        return Probed(name, False, f"no answer: {ops_url} is no http address")
    try:
        url = f"{ops_url.rstrip('/')}/{path}"
        with urlopen(url, timeout=ANSWER_S, context=tls) as answer:  # noqa: S310
            answer.read()
            return Probed(name, True, "")
    except HTTPError as error:
        with error:
            return Probed(name, False, _said(error.read()))
    except (URLError, OSError) as error:
        return Probed(name, False, f"no answer: {getattr(error, 'reason', error)}")


def _said(body: bytes) -> str:
    try:
        checks = json.loads(body)["checks"]
        return ", ".join(f"{one['name']} {one['detail']}".strip() for one in checks)
    except (ValueError, KeyError, TypeError):
        return "an answer that is not a node's"
