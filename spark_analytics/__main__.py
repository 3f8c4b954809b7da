"""The pipeline as a plain job: `spark-submit quipu/spark_analytics/__main__.py DUMP --out DIR`."""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from quipu.spark_analytics import limits
from quipu.spark_analytics.requirements import Missing, check_pyspark

FAILED = 1
OF_THIS_MACHINE = re.compile(r"file:/+(.*)", re.DOTALL | re.IGNORECASE)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        check_pyspark()
        from quipu.spark_analytics.pipeline import Analysis, Order
        from quipu.spark_analytics.session import SparkWish

        wish = SparkWish(options.master, options.engine, options.jar, options.memory)
        order = Order(
            [*map(place_of, options.dumps)], options.out, wish, options.settle_s, options.event
        )
        made = Analysis(order, lambda what: print(what, "…", file=sys.stderr, flush=True)).run()
    except Missing as missing:
        print(f"{missing.what}\n  {missing.next_step}", file=sys.stderr)
        return FAILED
    print(made.verdict)
    for result in made.results:
        for example in result.examples:
            print(" ".join(part for part in example if part))
        if result.count > len(result.examples):
            print(f"… and {result.count - len(result.examples):,} more of {result.check}")
    print(options.out / "report.html", file=sys.stderr)
    return made.exit_code


def place_of(dump: str) -> str:
    """`file:` is this machine; another scheme is left to Hadoop."""
    address = OF_THIS_MACHINE.fullmatch(dump)
    return dump if address is None else "/" + address[1]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="quipu analyse", description="compare dumps")
    parser.add_argument("dumps", nargs="+", metavar="DUMP", help="a directory, or hdfs: or s3a:")
    parser.add_argument("--out", type=Path, required=True, help="where the report goes")
    parser.add_argument("--master", help="a Spark master; without it spark-submit's, else local[*]")
    parser.add_argument("--engine", choices=("graphframes", "dataframe"), default="graphframes")
    parser.add_argument("--jar", type=Path, help="a jar with GraphFrames")
    parser.add_argument("--memory", help="of the driver, as 3g")
    parser.add_argument("--settle-s", type=float, default=limits.SETTLE_S)
    parser.add_argument("--event", default="", help="also tell how this one spread: an id in hex")
    return parser


if __name__ == "__main__":
    sys.exit(main())
