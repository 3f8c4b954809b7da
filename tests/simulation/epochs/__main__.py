"""`python -m tests.simulation.epochs --seeds 100 [--first 1] [--only KIND] [--trace]`."""

import argparse

from tests.simulation.epochs.runs import KINDS, generate, run_scenario


def main() -> None:
    parser = argparse.ArgumentParser(description="run seeded worlds of epochs over the log")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--only", choices=KINDS, default="")
    parser.add_argument("--trace", action="store_true")
    asked = parser.parse_args()
    failed = 0
    for seed in range(asked.first, asked.first + asked.seeds):
        lines: list[str] | None = [] if asked.trace else None
        done = run_scenario(generate(seed, asked.only), lines=lines)
        failed += done.broken is not None
        print(f"seed {seed}: {done.epochs} epochs, {done.events} events; {done.describe}")
        if done.broken is not None:
            print(f"  {done.detail}", flush=True)
            print("\n".join(lines or ()))
    print(f"{failed} of {asked.seeds} failed")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
