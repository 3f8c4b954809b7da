"""How the run as a whole is put together, and what it says at its end."""

import os
import re
from pathlib import Path

import hypothesis
import pytest

# How long an example takes is the machine's business: other tests run beside it.
hypothesis.settings.register_profile("shared-machine", deadline=None)
hypothesis.settings.load_profile("shared-machine")

TOGETHER = ("browser", "docker", "spark")  # folders: what they share is made once in a session
GROUP = re.compile(r"@[\w-]+$")  # that xdist puts behind the id of a test


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--failures-to", metavar="FILE", help="adds ids of failed tests to FILE")


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share what their module made stay on one worker: it is made once. xdist would make
    a group of its own of each pair of marks, so those that a folder puts together get no other."""
    for item in items:
        if item.get_closest_marker("xdist_group") or item.path.parent.name in TOGETHER:
            continue
        known = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
        if any(found.scope == "module" for several in known.values() for found in several):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


def pytest_collection_finish(session: pytest.Session) -> None:
    """What shares an engine or a JVM would otherwise run side by side, and nobody be told."""
    if getattr(session.config.option, "loadgroup", False):
        marked = [item for item in session.items if item.get_closest_marker("xdist_group")]
        alone = next((item.nodeid for item in marked if "@" not in item.nodeid), None)
        if alone is not None:
            raise pytest.UsageError(f"this xdist does not group tests: {alone}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many seeded worlds were run, and how many a minute one core runs."""
    reports = [r for found in terminalreporter.stats.values() for r in found]
    noted = [
        {name: str(value) for name, value in report.user_properties}
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
    ]
    seeds = sum(int(properties.get("seeds", "0")) for properties in noted)
    seconds = sum(float(properties.get("seed_seconds", "0")) for properties in noted)
    if seeds and seconds:
        terminalreporter.write_line(
            f"{seeds} seeded worlds, {seeds / seconds * 60:.0f} a minute and worker"
        )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """What a machine lacks may be left out, but not where the suite decides: CI skips nothing."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    bad = [one.nodeid for kind in ("failed", "error") for one in reporter.stats.get(kind, ())]
    if os.environ.get("CI") == "true" and reporter.stats.get("skipped"):
        reporter.write_line("tests were skipped, and CI may skip none", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        bad += [one.nodeid for one in reporter.stats["skipped"]]
    file = session.config.option.failures_to
    if file is not None:
        with Path(file).open("a") as failures:
            failures.writelines(sorted({f"{GROUP.sub('', nodeid)}\n" for nodeid in bad}))
