"""The report as one page that needs nothing else: own styles, inline plots, light and dark."""

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

from quipu.spark_analytics.plots import bars, stamp, steps
from quipu.spark_analytics.report import AGREE, UNREADABLE, CheckResult, Report

STYLE = """
:root { color-scheme: light dark; --ink: #1d2327; --quiet: #5d666d; --paper: #fbfaf7;
  --line: #d5d1c6; --good: #1c7c43; --wait: #8a5a00; --bad: #b3261e; --mark: #3a63a8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e3da; --quiet: #a4aab0; --paper: #16191c; --line: #3c4247; --good: #62c48a;
    --wait: #e3b25c; --bad: #f2857c; --mark: #8fb1ee; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .4rem; }
p.note { color: var(--quiet); margin: .2rem 0 .6rem; }
.verdict { font-size: 1.15rem; border-left: .4rem solid var(--good); padding: .3rem .8rem; }
.verdict.bad { border-color: var(--bad); } .verdict.wait { border-color: var(--wait); }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; } th { color: var(--quiet); font-weight: 600; white-space: nowrap; }
th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.name { white-space: nowrap; } .good { color: var(--good); } .bad { color: var(--bad); }
code { font-size: .85em; } td code.long { overflow-wrap: anywhere; }
details { margin-top: .6rem; } summary { cursor: pointer; }
svg { width: 100%; height: auto; }
svg text { fill: var(--quiet); font: 11px system-ui, sans-serif; }
svg .axis { stroke: var(--line); } svg .bar { fill: var(--mark); }
svg .curve { stroke: var(--mark); fill: none; stroke-width: 2.5; }
"""
HEADINGS = {
    "as_of_ms": "as of",
    "author_no": "author",
    "from_no": "author",
    "to_no": "builds upon",
    "p50_ms": "p50 ms",
    "p95_ms": "p95 ms",
    "p99_ms": "p99 ms",
    "signer_no": "signer",
    "node_id": "node id",
}
IDS_SHOWN = 16  # characters of a node id
Row = dict[str, Any]


def as_html(report: Report) -> str:
    figures = report.measures
    timeline = figures.get("timeline", [])
    people = _named(report.nodes)
    parts = [
        f"<h1>Consistency of cluster <code>{escape(report.cluster_id[:IDS_SHOWN])}</code></h1>",
        _verdict(report),
        _section("Findings", _findings(report), "What was read and is wrong, with its culprits."),
        _section("Files", _files(report), "Where a dump is not what its manifest says."),
        _section("Copies", _table(map(_copy, report.copies))),
        _section("Epochs", _table(map(_epoch, report.epochs)), _about_force(report)),
        _section("Checks", _checks(report)),
        _section("Events over time", bars(timeline, "events")),
        _section(
            "Width of the graph",
            steps(timeline, "width", "events a level of depth"),
            "Events a level of depth: 1 is a chain, more are cords that grew beside each other.",
        ),
        _section("Authors", _table(map(people, figures.get("authors", [])))),
        _section(
            "Who builds upon whom",
            _table(map(people, figures.get("relays", []))),
            "How often one author named the events of another, and how long after.",
        ),
        _section("Communities", _communities(figures.get("communities", []), report.nodes)),
        _section("How one event spread", _spread(figures.get("spread", {}), people)),
        _section(
            "Receipts",
            _table(map(people, figures.get("signers", []))),
            "From an event to the first receipt of a signer that names it.",
        ),
        _section("How it was made", _made(report)),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>quipu: {escape(report.verdict)}</title><style>{STYLE}</style></head><body>"
        + "".join(parts)
        + "</body></html>\n"
    )


def _verdict(report: Report) -> str:
    mark, kind = {AGREE: ("✓", ""), UNREADABLE: ("◐", " wait")}.get(report.exit_code, ("✕", " bad"))
    return (
        f'<p class="verdict{kind}">{mark} {escape(report.verdict)}</p>'
        f'<p class="note">Made {stamp(report.made_ms)}; exit code {report.exit_code}.</p>'
    )


def _section(title: str, content: str, note: str = "") -> str:
    said = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<h2>{escape(title)}</h2>{said}{content}" if content else ""


# --- rows -----------------------------------------------------------------------------------------
def _named(nodes: dict[int, str]) -> Callable[[Row], Row]:
    """Names in place of the numbers of nodes."""

    def named(row: Row) -> Row:
        return {
            key: nodes.get(value, f"node {value}") if key.endswith("_no") else value
            for key, value in row.items()
        }

    return named


def _copy(row: Row) -> Row:
    return {**row, "node_id": row["node_id"][:IDS_SHOWN] + "…", "as_of_ms": stamp(row["as_of_ms"])}


def _epoch(row: Row) -> Row:
    how = "✕ by force" if row["forced"] else "genesis" if not row["seals"] else "sealed"
    return {**{key: value for key, value in row.items() if key != "forced"}, "opened": how}


def _about_force(report: Report) -> str:
    if not report.forced:
        return ""
    return (
        "An epoch opened by force had not enough seals: what only lost members had signed for may"
        " be missing, and nobody can tell from what is left."
    )


def _communities(parts: Sequence[Sequence[int]], nodes: dict[int, str]) -> str:
    rows = [{"authors": ", ".join(nodes.get(one, f"node {one}") for one in part)} for part in parts]
    return _table(rows)


def _spread(found: Row, people: Callable[[Row], Row]) -> str:
    if not found:
        return ""
    upto = "" if found["is_whole"] else f" up to {found['levels']} levels of depth"
    said = f"Upon {found['event']} were built {found['events_above']:,} events{upto}."
    tables = _table(found["by_hops"]) + _table(map(people, found["tree"]))
    return f"<p>{escape(said)}</p>{tables}"


def _made(report: Report) -> str:
    facts = {
        "engine": report.engine,
        "settled after": f"{report.settle_s:g} s",
        "took": ", ".join(f"{name} {spent:.1f} s" for name, spent in report.seconds.items()),
        "algorithms": ", ".join(f"{name}: {n:,} rows" for name, n in report.algorithms.items()),
        "not checked": "; ".join(report.skipped),
    }
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(said)}</td></tr>"
        for name, said in facts.items()
        if said
    )
    return f"<table>{rows}</table>"


def _table(rows: Iterable[Row]) -> str:
    rows = list(rows)
    if not rows:
        return ""
    head = "".join(
        f"<th{_kind(value)}>{escape(HEADINGS.get(name, name.replace('_', ' ')))}</th>"
        for name, value in rows[0].items()
    )
    body = "".join("<tr>" + "".join(map(_cell, row.values())) + "</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _kind(value: object) -> str:
    return ' class="n"' if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _cell(value: object) -> str:
    if isinstance(value, bool):
        value = "yes" if value else "no"
    if isinstance(value, float):
        return f'<td class="n">{value:.3f}</td>'
    if isinstance(value, int):
        return f'<td class="n">{value:,}</td>'
    return f"<td>{escape('' if value is None else str(value))}</td>"


# --- checks ---------------------------------------------------------------------------------------
def _findings(report: Report) -> str:
    rows = [
        f'<tr><td class="name bad">✕ <code>{escape(result.check)}</code></td>'
        f'<td class="n">{result.count:,}</td><td>{_examples(result)}</td></tr>'
        for result in report.results
        if result.count
    ]
    head = '<tr><th>check</th><th class="n">found</th><th>where: what</th></tr>'
    return f'<div class="wide"><table>{head}{"".join(rows)}</table></div>' if rows else ""


def _examples(result: CheckResult) -> str:
    said = [
        f'{escape(one.copy)} <code class="long">{escape(one.subject)}</code> {escape(one.detail)}'
        for one in result.examples
    ]
    if result.count > len(said):
        said.append(f"and {result.count - len(said):,} more, in <code>violations/</code>")
    return "<br>".join(said)


def _files(report: Report) -> str:
    return _table([problem._asdict() for problem in report.problems])


def _checks(report: Report) -> str:
    held = sum(1 for result in report.results if not result.count)
    rows = "".join(
        f'<tr><td class="name {"bad" if one.count else "good"}">{"✕" if one.count else "✓"} '
        f"<code>{escape(one.check)}</code></td><td>{escape(one.meaning)}</td></tr>"
        for one in report.results
        if not _is_left_out(report, one.check)
    )
    left = sum(1 for result in report.results if _is_left_out(report, result.check))
    not_made = f"; {left} were not made" if left else ""
    return (
        f"<details open><summary>{held - left} of {len(report.results) - left} hold{not_made}"
        f'</summary><div class="wide"><table>{rows}</table></div></details>'
    )


def _is_left_out(report: Report, check: str) -> bool:
    """A check that was not made does not hold."""
    return any(
        check == name or (name.endswith("*") and check.startswith(name[:-1]))
        for name in (said.partition(":")[0] for said in report.skipped)
    )
