"""docs/figures.csv: what was measured, when, and on which commit."""

import csv
import subprocess
from datetime import UTC, datetime
from pathlib import Path

FIGURES_PATH = Path(__file__).parent.parent / "docs" / "figures.csv"
COLUMNS = ("date", "commit", "command", "figure", "value")


def commit_now() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(
        command, cwd=FIGURES_PATH.parent, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def note_figure(command: str, figure: str, value: float | str) -> None:
    is_new = not FIGURES_PATH.exists()
    with FIGURES_PATH.open("a", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        if is_new:
            rows.writerow(COLUMNS)
        shown = f"{value:.4g}" if isinstance(value, float) else value
        date = datetime.now(UTC).strftime("%Y-%m-%d")
        rows.writerow((date, commit_now(), command, figure, shown))
