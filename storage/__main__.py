"""`python -m quipu.storage`: verify a data directory, or copy one, also while a node uses it."""

import argparse
import json
import sys
from pathlib import Path

from quipu.storage.backup import copy_store
from quipu.storage.scrub import ScrubProgress
from quipu.storage.store import StoreError
from quipu.storage.verification import Verification, verify_store

FINE = 0
OTHER = 1
WRONG = 9  # something was read and is wrong; usage is 2, as argparse has it


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m quipu.storage", description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    verify = commands.add_parser("verify", help="check every page and record; changes nothing")
    verify.add_argument("directory", type=Path)
    verify.add_argument("--signatures", action="store_true", help="check every signature, too")
    verify.add_argument("--records-only", action="store_true", help="leave the walk over pages out")
    verify.add_argument("--json", action="store_true", help="print the result as JSON")
    backup = commands.add_parser("backup", help="copy the last commit; a node may be writing")
    backup.add_argument("directory", type=Path)
    backup.add_argument("target", type=Path)
    options = parser.parse_args(arguments)
    try:
        if options.command == "backup":
            copy_store(options.directory, options.target)
            return FINE
        return _verify(options)
    except (StoreError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return OTHER


def _verify(options: argparse.Namespace) -> int:
    shown = sys.stderr.isatty()
    result = verify_store(
        options.directory,
        _show if shown else lambda progress: None,
        signatures=options.signatures,
        structure=not options.records_only,
    )
    if shown:
        print(file=sys.stderr)
    print(_as_json(result) if options.json else _as_text(result))
    return WRONG if result.found else FINE


def _show(progress: ScrubProgress) -> None:
    count = f"{progress.done:,} of {progress.total:,}" if progress.total else ""
    line = f"{progress.phase:<8} {count}"
    print(f"\r{line:<50} {progress.found} wrong", end="", file=sys.stderr, flush=True)


def _as_text(result: Verification) -> str:
    lines = [str(finding) for finding in result.findings]
    if result.found > len(lines):
        lines.append(f"… and {result.found - len(lines):,} more")
    verdict = f"{result.found:,} wrong" if result.found else "fine"
    lines.append(f"{result.path}: {result.events:,} events, {verdict}, {result.seconds:.1f} s")
    return "\n".join(lines)


def _as_json(result: Verification) -> str:
    return json.dumps(
        {
            "path": str(result.path),
            "cluster_id": result.owner.cluster_id.hex() if result.owner else None,
            "node_id": result.owner.node_id.hex() if result.owner else None,
            "events": result.events,
            "fine": result.found == 0,
            "found": result.found,
            "findings": [finding._asdict() for finding in result.findings],
            "seconds": round(result.seconds, 3),
        }
    )


if __name__ == "__main__":
    sys.exit(main())
