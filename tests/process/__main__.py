"""`python -m tests.process --kills 2000`: the kill test at length, in directories of 100 lives."""

import argparse
import random
import tempfile
import time
from pathlib import Path

from tests.process.lives import killed_lives

LIVES_PER_FOLDER = 100


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.process", description=__doc__)
    parser.add_argument("--kills", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    chosen = parser.parse_args()
    begun, done, acknowledged, slowest = time.monotonic(), 0, 0, 0.0
    print(f"seed {chosen.seed}", flush=True)
    while done < chosen.kills:
        count = min(LIVES_PER_FOLDER, chosen.kills - done)
        with tempfile.TemporaryDirectory(prefix="quipu-kill-") as folder:
            lives = killed_lives(Path(folder) / "data", chosen.seed + done, count)
        done += lives.kills
        acknowledged += len(lives.acknowledged)
        slowest = max(slowest, lives.slowest_start_s)
        print(
            f"{done:,} kills, {acknowledged:,} acknowledged, none lost, none twice; "
            f"slowest start {slowest:.2f} s; {time.monotonic() - begun:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
