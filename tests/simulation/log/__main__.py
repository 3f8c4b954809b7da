"""`python -m tests.simulation.log --seeds 100 [--first 1]`: worlds of logs, one a seed."""

import argparse

from tests.simulation.log.runs import generate, run


def main() -> None:
    parser = argparse.ArgumentParser(description="run seeded worlds of logs")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    asked = parser.parse_args()
    failed = 0
    for seed in range(asked.first, asked.first + asked.seeds):
        done = run(generate(seed))
        if done.broken is not None:
            failed += 1
            print(f"seed {seed}: {done.detail}\n  {'; '.join(done.faults)}", flush=True)
        else:
            print(f"seed {seed}: {done.chosen} entries, {done.regimes} regimes", flush=True)
    print(f"{failed} of {asked.seeds} failed")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
