"""The reference pages, made from the code: `python -m tests.api.reference` writes them anew."""

from collections.abc import Iterator
from typing import Any

import typer

from quipu.api.calls import Endpoint
from quipu.api.codes import KINDS
from quipu.api.openapi import query_parameters
from quipu.api.table import API, OPS
from quipu.cli.main import app
from tests import tree

MADE = "Made from the code by `make reference`; a test holds it against the code."
INTRODUCTION = """\
JSON by default; `application/msgpack`, `application/x-ndjson` and CloudEvents by content type.
Unknown fields and parameters are refused. u64 fields are text, times are RFC 3339 in UTC,
durations carry their unit (`500ms`, `30s`, `2m`). What goes wrong is `application/problem+json`
with a `code` of a [closed list](problems.md). The whole interface as OpenAPI 3.1 is served at
`/openapi.json`.

- **`data` comes back byte for byte.** Give `data` (any JSON value) or `data_base64` with its
  `content_type`. Where an answer is made of lines, a value that holds line breaks comes as
  `data_base64`. In msgpack `data` is any msgpack value, or a bin where `content_type` says
  otherwise.
- **A wait that runs out is no error:** 202 with the id and the state reached so far.
- **Same bytes again give the first answer,** with no time window, where they carry an
  `Idempotency-Key` (or `idempotency_key`, or are a CloudEvent: source and id). The key counts
  within token and stream. Other bytes under it: 422 `key-reused`.
- **Cursors** are opaque; the one of a page leads on in a stream and the other way round, also on
  another node of the cluster, which looks back no further than to the oldest entry that is new to
  the caller. A cursor carries 64 cords at most: what lies in others is given again there. A gap is
  said, never silent: `GET /v1/entries?after=` with the `after` of the gap gives what was missed,
  up to its `upto`.
- **`state=stored`** lists what is held and not final, by its place in the DAG. An entry that
  becomes final between two pages is not repeated; where its page had not come yet, the feed alone
  has it: a `/v1/stream` opened before the walk tells it. New entries of a cord that the walk has
  passed are in the next walk.
- **Tokens:** `Authorization: Bearer …`; `quipu token new` makes one. A listener on an address other
  than loopback is refused without a file of tokens, unless `--insecure` is spelled out.
- **Limits:** one entry 1 MiB, a request 1.5 MiB, a batch 16 MiB and 10,000 entries, an atomic batch
  4 MiB; the first header within 10 s, a body within 30 s; 1,000 connections, 256 of one address.
  429 and 503 carry `Retry-After` and are decided before the body is read.
"""


def http_api() -> str:
    return "\n".join(["# HTTP API", "", MADE, "", INTRODUCTION, *_endpoints()])


def _endpoints() -> Iterator[str]:
    for title, endpoints in (("API listener", API), ("OPS listener", OPS)):
        yield f"## {title}\n"
        for endpoint in endpoints:
            yield from _endpoint(endpoint)


def _endpoint(endpoint: Endpoint) -> Iterator[str]:
    yield f"### {endpoint.method} {endpoint.path}\n"
    scope = f"scope `{endpoint.scope}`" if endpoint.scope else "no token needed"
    narrow = ", or for single streams" if endpoint.by_stream else ""
    yield f"{endpoint.summary}. Client method `{endpoint.name}`; {scope}{narrow}.\n"
    parameters = query_parameters(endpoint)
    if parameters:
        yield "| parameter | form | default | |"
        yield "| --- | --- | --- | --- |"
        for one in parameters:
            schema = one["schema"]
            default = f"`{schema['default']}`" if "default" in schema else ""
            described = one.get("description", "")
            yield f"| `{one['name']}` | {schema['type']} | {default} | {described} |"
        yield ""
    yield "| status | |"
    yield "| --- | --- |"
    for answer in endpoint.answers:
        yield f"| {answer.status} | {answer.meaning} |"
    for code in endpoint.codes:
        yield f"| {KINDS[code].status} | [`{code}`](problems.md#{code}) |"
    yield ""


def problems() -> str:
    lines = ["# Problems", "", MADE, ""]
    lines += [
        "Every answer that is no success is `application/problem+json` (RFC 9457) with `type`,",
        "`title`, `status`, `detail`, `code`, `retryable`, `request_id`, where it helps `errors`",
        "(`pointer` and `detail` of each place) and `entry_id`. The list of codes is closed. A",
        "node serves these pages at `/problems/{code}`; `quipu errors lookup CODE` prints them.",
        "",
    ]
    for code, kind in KINDS.items():
        retry = "worth another try" if kind.retryable else "the same again will fail again"
        lines += [
            f"## {code}",
            "",
            f"{kind.status}: {kind.title}; {retry}.",
            "",
            kind.meaning,
            "",
            f"What to do: {kind.remedy}",
            "",
        ]
    return "\n".join(lines)


def commands() -> str:
    root = typer.main.get_command(app)
    lines = ["# Commands", "", MADE, ""]
    lines += [
        "stdout is data, stderr is talk. Exit codes: 0 ok, 1 failure, 2 usage, 3 unreachable,",
        "4 not found, 5 rejected, 6 conflict, 7 auth, 8 waited and not there yet, 9 verification",
        "failed, 10 partly done. `quipu check --format nagios` alone uses the codes of Nagios.",
        "",
    ]
    for name, command in _commands(root, ""):
        lines += [f"## quipu {name}", "", " ".join((command.help or "").split()), ""]
        lines += ["| option | |", "| --- | --- |"]
        for parameter in command.params:
            shown = ", ".join(f"`{one}`" for one in parameter.opts)
            described = getattr(parameter, "help", None) or ""
            lines.append(f"| {shown} | {described} |")
        lines += ["", str(command.epilog), ""]
    return "\n".join(lines)


def _commands(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    below = getattr(group, "commands", None)
    if below is None:
        yield prefix.strip(), group
        return
    for name, command in below.items():
        yield from _commands(command, f"{prefix} {name}")


PAGES = {"docs/http-api.md": http_api, "docs/problems.md": problems, "docs/commands.md": commands}

if __name__ == "__main__":
    for path, page in PAGES.items():
        (tree.ROOT / path).write_text(page().rstrip("\n") + "\n", encoding="utf-8")
