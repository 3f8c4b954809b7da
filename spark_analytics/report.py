"""What is said in the end: a verdict, the findings, and the same for machines."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from quipu.dumps.checking import Problem
from quipu.spark_analytics.findings import CHECKS, Finding

REPORT_VERSION = 1
CHECKS_NAMED_MAX = 6  # in the verdict: a sentence to read, the table below has them all
AGREE, WRONG, UNREADABLE = 0, 9, 10


@dataclass(slots=True)
class CheckResult:
    check: str
    count: int = 0
    examples: list[Finding] = field(default_factory=list)

    @property
    def meaning(self) -> str:
        return CHECKS[self.check]


@dataclass(slots=True)
class Report:
    made_ms: int
    engine: str
    settle_s: float
    cluster_id: str
    copies: list[dict[str, Any]]
    epochs: list[dict[str, Any]]
    nodes: dict[int, str]  # names by node number
    results: list[CheckResult]
    problems: list[Problem]
    measures: dict[str, Any]
    algorithms: dict[str, int]  # of GraphFrames: rows of what each answered
    skipped: list[str]  # checks that were not made, and why
    seconds: dict[str, float]

    @property
    def found(self) -> int:
        return sum(result.count for result in self.results)

    @property
    def forced(self) -> list[int]:
        """Epochs that an operator opened without enough seals: what only lost members had signed
        for may be missing from them, and nobody can tell. Said for ever, and no fault."""
        return [one["epoch"] for one in self.epochs if one["forced"]]

    @property
    def _forced(self) -> str:
        if not self.forced:
            return ""
        which = ", ".join(map(str, self.forced))
        return f"; {'epoch' if len(self.forced) == 1 else 'epochs'} {which} opened by force"

    @property
    def exit_code(self) -> int:
        unreadable = [problem for problem in self.problems if problem.is_unreadable]
        if self.found > len(unreadable):
            return WRONG
        return UNREADABLE if unreadable else AGREE

    @property
    def _wrong(self) -> str:
        checks = [result.check for result in self.results if result.count]
        more = len(checks) - CHECKS_NAMED_MAX
        named = ", ".join(checks[:CHECKS_NAMED_MAX])
        return f"{named} and {more} more checks" if more > 1 else ", ".join(checks)

    @property
    def verdict(self) -> str:
        copies = len(self.copies)
        events = self.measures.get("events", 0)
        of = f"{copies} {'copy' if copies == 1 else 'copies'} of {events:,} events"
        unreadable = sum(problem.is_unreadable for problem in self.problems)
        files = "file" if unreadable == 1 else "files"
        unread = f"; {unreadable} {files} could not be read" if unreadable else ""
        if self.exit_code == WRONG:
            findings = "finding" if self.found == 1 else "findings"
            return f"{of}: {self.found:,} {findings} in {self._wrong}{unread}{self._forced}."
        if self.exit_code == UNREADABLE and not copies:
            return f"Nothing was checked{unread}."
        if self.exit_code == UNREADABLE:
            return f"{of}: what could be read agrees{unread}{self._forced}."
        return f"{of} agree; every check passed{self._left_out}{self._forced}."

    @property
    def _left_out(self) -> str:
        names = [said.partition(":")[0] for said in self.skipped]
        return f", but for what was not checked: {', '.join(names)}" if names else ""


def as_json(report: Report) -> dict[str, Any]:
    return {
        "version": REPORT_VERSION,
        "verdict": report.verdict,
        "exit_code": report.exit_code,
        "made_ms": report.made_ms,
        "engine": report.engine,
        "settle_s": report.settle_s,
        "cluster_id": report.cluster_id,
        "copies": report.copies,
        "epochs": report.epochs,
        "nodes": {str(number): name for number, name in sorted(report.nodes.items())},
        "findings": report.found,
        "checks": [
            {
                "check": result.check,
                "meaning": result.meaning,
                "count": result.count,
                "examples": [example._asdict() for example in result.examples],
            }
            for result in report.results
        ],
        "problems": [problem._asdict() for problem in report.problems],
        "measures": report.measures,
        "algorithms": report.algorithms,
        "skipped": report.skipped,
        "seconds": report.seconds,
    }


def as_junit(report: Report) -> bytes:
    failures = str(sum(1 for result in report.results if result.count))
    suite = ET.Element(
        "testsuite", name="quipu analyse", tests=str(len(report.results)), failures=failures
    )
    for result in report.results:
        case = ET.SubElement(suite, "testcase", classname="quipu", name=result.check)
        if result.count:
            failure = ET.SubElement(
                case, "failure", message=f"{result.count} findings: not {result.meaning}"
            )
            failure.text = "\n".join(" ".join(example) for example in result.examples)
    made: bytes = ET.tostring(suite, encoding="utf-8", xml_declaration=True)
    return made


def as_prometheus(report: Report) -> str:
    lines = [
        "# HELP quipu_analysis_findings Culprits found by a check of the last analysis.",
        "# TYPE quipu_analysis_findings gauge",
    ]
    lines += [f'quipu_analysis_findings{{check="{r.check}"}} {r.count}' for r in report.results]
    for name, value, meaning in (
        ("exit_code", report.exit_code, "0 agree, 9 wrong, 10 not all could be read."),
        ("copies", len(report.copies), "Dumps compared."),
        ("forced_epochs", len(report.forced), "Epochs opened without enough seals."),
        ("events", report.measures.get("events", 0), "Distinct events in them."),
        ("made_seconds", report.made_ms // 1_000, "When it was made."),
    ):
        lines += [
            f"# HELP quipu_analysis_{name} {meaning}",
            f"# TYPE quipu_analysis_{name} gauge",
            f"quipu_analysis_{name} {value}",
        ]
    return "\n".join(lines) + "\n"


def write(report: Report, out: Path) -> None:
    from quipu.spark_analytics.page import as_html

    out.mkdir(parents=True, exist_ok=True)
    (out / "report.json").write_text(json.dumps(as_json(report), indent=1) + "\n")
    (out / "junit.xml").write_bytes(as_junit(report))
    (out / "quipu_analysis.prom").write_text(as_prometheus(report))
    (out / "report.html").write_text(as_html(report), encoding="utf-8")
