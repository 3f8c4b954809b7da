"""The reference pages, made from the code: `python -m tests.api.reference` writes them anew."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer
from prometheus_client.core import Metric

from quipu.api.calls import Endpoint
from quipu.api.codes import KINDS
from quipu.api.counters import Counters, LedgerFamilies
from quipu.api.openapi import path_parameters, query_parameters
from quipu.api.table import ADMIN, API, OPS
from quipu.cli.main import app
from tests import tree
from tests.small_node import running, small_node

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
- **Consumers** are named cursors that one node keeps: PUT answers when it is on the disk, a file
  each, one written at a time. With `If-Match` two processes of one consumer do not overwrite each
  other (412); a PUT of what is kept already succeeds whatever its condition, so one whose answer
  was lost can be sent again. 1,000 are kept, each for its `ttl` after the last PUT, 7 days unless
  said, at most 30. They are neither in a backup nor on other nodes.
- **`state=stored`** lists what is held and not final, by its place in the DAG. An entry that
  becomes final between two pages is not repeated; where its page had not come yet, the feed alone
  has it: a `/v1/stream` opened before the walk tells it. New entries of a cord that the walk has
  passed are in the next walk.
- **Many entries:** batches, NDJSON, or [stream ingest](ingest.md) over a WebSocket.
- **Tokens:** `Authorization: Bearer …`; `quipu token new` makes one. A listener on an address other
  than loopback is refused without a file of tokens, unless `--insecure` is spelled out.
- **Limits:** one entry 1 MiB, a request 1.5 MiB, a batch 16 MiB and 10,000 entries, an atomic batch
  4 MiB; the first header within 10 s, a body within 30 s; 1,000 connections, 256 of one address.
  429 and 503 carry `Retry-After` and are decided before the body is read. A burst of submissions is
  queued; where more than 160 are under way for longer than 250 ms, the rest is refused. A
  connection that was refused so is not read until its `Retry-After` is nearly over, and what it
  sent meanwhile is refused with 429 (connections of trusted proxies excepted).
"""


ADMIN_INTRODUCTION = """\
On the Unix socket `admin.sock` in the data directory, which its owner alone may open and where no
token is asked for; and on the API listener for callers on the same machine with a token of the
scope `admin`. The socket serves all of the API. A request that a proxy has handed on is not of this
machine.

```sh
curl --unix-socket var/admin.sock -X POST http://localhost/v1/admin/scrub
```

Long work is an operation: 202 with its id, one at a time of a kind. Operations are kept in memory;
stopping the node cancels those that run.
"""


def http_api() -> str:
    return "\n".join(["# HTTP API", "", MADE, "", INTRODUCTION, *_endpoints()])


def _endpoints() -> Iterator[str]:
    for title, endpoints in (("API listener", API), ("Admin verbs", ADMIN), ("OPS listener", OPS)):
        yield f"## {title}\n"
        if endpoints is ADMIN:
            yield ADMIN_INTRODUCTION
        for endpoint in endpoints:
            yield from _endpoint(endpoint)


def _endpoint(endpoint: Endpoint) -> Iterator[str]:
    yield f"### {endpoint.method} {endpoint.path}\n"
    scope = f"scope `{endpoint.scope}`" if endpoint.scope else "no token needed"
    narrow = ", or for single streams" if endpoint.by_stream else ""
    known_as = "Operation" if endpoint.is_local else "Client method"
    yield f"{endpoint.summary}. {known_as} `{endpoint.name}`; {scope}{narrow}.\n"
    parameters = path_parameters(endpoint) + query_parameters(endpoint)
    if parameters:
        yield "| parameter | form | default | |"
        yield "| --- | --- | --- | --- |"
        for one in parameters:
            schema = one["schema"]
            default = f"`{schema['default']}`" if "default" in schema else ""
            kind = schema["type"] if one["in"] == "query" else "in the path"
            yield f"| `{one['name']}` | {kind} | {default} | {one['description']} |"
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
        "`quipu --install-completion` teaches bash, zsh or fish to complete commands and options;",
        "`--show-completion` prints what it would install.",
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


def metrics() -> str:
    lines = ["# Metrics", "", MADE, ""]
    lines += [
        "`/metrics` of the OPS listener, in the text format of Prometheus. Counters begin at 0",
        "with every start; a histogram has `_bucket`, `_sum` and `_count`. Worth an alert:",
        "`quipu_scrub_findings > 0`, `quipu_store_full > 0`, and growing `quipu_events_unread`.",
        "",
        "| metric | type | labels | what it counts |",
        "| --- | --- | --- | --- |",
    ]
    for family in families():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = ", ".join(getattr(family, "_labelnames", ()))
        lines.append(f"| `{name}` | {family.type} | {labels} | {family.documentation} |")
    return "\n".join(lines)


def families() -> list[Metric]:
    """All that a real node shows."""
    found: list[Metric] = []

    async def collect() -> None:
        with TemporaryDirectory() as folder:
            async with small_node(Path(folder)) as node:
                found.extend(LedgerFamilies(node.ledger, Counters()).collect())

    running(collect)
    return found


def _commands(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    below = getattr(group, "commands", None)
    if below is None:
        yield prefix.strip(), group
        return
    for name, command in below.items():
        yield from _commands(command, f"{prefix} {name}")


PAGES = {
    "docs/http-api.md": http_api,
    "docs/problems.md": problems,
    "docs/commands.md": commands,
    "docs/metrics.md": metrics,
}

if __name__ == "__main__":
    for path, page in PAGES.items():
        (tree.ROOT / path).write_text(page().rstrip("\n") + "\n", encoding="utf-8")
