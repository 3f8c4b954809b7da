"""The report as one page that needs nothing else: own styles, inline plots, light and dark."""

from collections.abc import Sequence
from html import escape
from typing import Any

from quipu.spark_analytics.report import AGREE, Report

WIDTH, HEIGHT, MARGIN = 640.0, 160.0, 32.0
STYLE = """
:root { color-scheme: light dark; --ink: #1d2327; --paper: #fbfaf7; --line: #c9c5ba;
  --good: #1c7c43; --bad: #b3261e; --mark: #3a63a8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e3da; --paper: #16191c; --line: #454b50; --good: #62c48a; --bad: #f2857c;
    --mark: #8fb1ee; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.verdict { font-size: 1.1rem; border-left: .4rem solid var(--good); padding: .3rem .8rem; }
.verdict.bad { border-color: var(--bad); }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .2rem .5rem;
  border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
td.n { text-align: right; font-variant-numeric: tabular-nums; } .bad { color: var(--bad); }
code { font-size: .85em; } svg { width: 100%; height: auto; } svg text { fill: var(--ink);
  font: 11px system-ui, sans-serif; } svg .axis { stroke: var(--line); }
svg .bar { fill: var(--mark); } svg .curve { stroke: var(--mark); fill: none; stroke-width: 2; }
"""


def as_html(report: Report) -> str:
    bad = "" if report.exit_code == AGREE else " bad"
    parts = [
        f"<h1>Consistency of cluster <code>{escape(report.cluster_id[:16])}</code></h1>",
        f'<p class="verdict{bad}">{escape(report.verdict)}</p>',
        _section("Copies", _table(report.copies)),
        _section("Checks", _checks(report)),
        _section("Files", _table([problem._asdict() for problem in report.problems])),
        _section("Events over time", _bars(report.measures.get("timeline", []), "events")),
        _section("Width of the graph over time", _curve(report.measures.get("timeline", []))),
        _section("Authors", _table(report.measures.get("authors", []))),
        _section("Authors that build upon each other", _table(report.measures.get("relays", []))),
        _section("Communities of authors", _communities(report.measures.get("communities", []))),
        _section("How one event spread", _spread(report.measures.get("spread", {}))),
        _section(
            "Receipts: from an event to who names it", _table(report.measures.get("signers", []))
        ),
        _section("How it was made", _table([_made(report)])),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>quipu: {escape(report.verdict)}</title><style>{STYLE}</style></head><body>"
        + "".join(parts)
        + "</body></html>\n"
    )


def _section(title: str, content: str) -> str:
    return f"<h2>{escape(title)}</h2>{content}" if content else ""


def _made(report: Report) -> dict[str, Any]:
    return {
        "engine": report.engine,
        "settle_s": report.settle_s,
        "seconds": " ".join(f"{name} {spent:.1f}" for name, spent in report.seconds.items()),
        "algorithms": " ".join(f"{name} {rows}" for name, rows in report.algorithms.items()),
        "not checked": "; ".join(report.skipped),
    }


def _table(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(str(name))}</th>" for name in rows[0])
    body = "".join(
        "<tr>" + "".join(_cell(value) for value in row.values()) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _communities(parts: Sequence[Sequence[int]]) -> str:
    return _table([{"authors": " ".join(map(str, part))} for part in parts])


def _spread(found: dict[str, Any]) -> str:
    if not found:
        return ""
    upto = "" if found["is_whole"] else f" up to {found['levels']} levels of depth"
    said = f"Upon {found['event']} were built {found['events_above']:,} events{upto}."
    return f"<p>{escape(said)}</p>" + _table(found["by_hops"]) + _table(found["tree"])


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f'<td class="n">{value:.3f}</td>'
    if isinstance(value, int):
        return f'<td class="n">{value:,}</td>'
    return f"<td>{escape('' if value is None else str(value))}</td>"


def _checks(report: Report) -> str:
    rows = []
    for result in report.results:
        named = "<br>".join(f"<code>{escape(' '.join(e[1:]))}</code>" for e in result.examples)
        mark = ' class="bad"' if result.count else ""
        rows.append(
            f"<tr><td><code>{escape(result.check)}</code></td><td>{escape(result.meaning)}</td>"
            f'<td class="n"><span{mark}>{result.count:,}</span></td><td>{named}</td></tr>'
        )
    head = "<tr><th>check</th><th>holds when</th><th>found</th><th>examples</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


# --- plots ----------------------------------------------------------------------------------------
def _frame(content: str, most: float, label: str) -> str:
    bottom = HEIGHT - MARGIN
    return (
        f'<svg viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" aria-label="{escape(label)}">'
        f'<line class="axis" x1="{MARGIN}" y1="{bottom}" x2="{WIDTH}" y2="{bottom}"/>'
        f'<text x="0" y="{MARGIN}">{most:g}</text><text x="0" y="{bottom}">0</text>{content}</svg>'
    )


def _bars(rows: Sequence[dict[str, Any]], name: str) -> str:
    if not rows:
        return ""
    most = max(row[name] for row in rows) or 1
    step = (WIDTH - MARGIN) / len(rows)
    room = HEIGHT - 2 * MARGIN
    bars = "".join(
        f'<rect class="bar" x="{MARGIN + at * step:.1f}" width="{max(step - 1, 0.5):.1f}" '
        f'y="{HEIGHT - MARGIN - room * row[name] / most:.1f}" '
        f'height="{room * row[name] / most:.1f}">'
        f"<title>{row[name]}</title></rect>"
        for at, row in enumerate(rows)
    )
    return _frame(bars, most, f"{name} over time, at most {most}")


def _curve(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return ""
    most = max(row["width"] for row in rows) or 1
    step = (WIDTH - MARGIN) / max(1, len(rows) - 1)
    room = HEIGHT - 2 * MARGIN
    points = " ".join(
        f"{MARGIN + at * step:.1f},{HEIGHT - MARGIN - room * row['width'] / most:.1f}"
        for at, row in enumerate(rows)
    )
    label = f"events a level of depth, at most {most}"
    return _frame(f'<polyline class="curve" points="{points}"/>', most, label)
