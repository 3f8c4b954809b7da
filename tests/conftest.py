"""What the run as a whole says at its end."""

import pytest


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
