"""One piece of work on a store, in a process of its own beside the node that writes to it.

It speaks JSON lines: how far it is, and last `{"result": …}` or `{"error": …}`. People use
`quipu store`. With --leash it ends when its standard input does: when the node that asked is gone.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any

from quipu.dumps.manifest import ENTRIES_CHOICES
from quipu.storage import limits
from quipu.storage.backup import copy_store
from quipu.storage.scrub import ScrubProgress
from quipu.storage.store import StoreError
from quipu.storage.verification import Report, verify_store


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.leash:
        Thread(target=_end_with_input, daemon=True).start()
    os.nice(limits.BESIDE_NICE)
    try:
        result = _run(options, reporter())
    except (StoreError, OSError) as error:
        _say({"error": f"{type(error).__name__}: {error}"})
        return 1
    _say({"result": result})
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m quipu.storage", description=__doc__)
    parser.add_argument("--leash", action="store_true", help="end when standard input does")
    commands = parser.add_subparsers(required=True, dest="command")
    scrub = commands.add_parser("scrub", help="check every page and record; changes nothing")
    scrub.add_argument("directory", type=Path)
    scrub.add_argument("--signatures", action="store_true", help="check every signature, too")
    backup = commands.add_parser("backup", help="copy the last commit")
    backup.add_argument("directory", type=Path)
    backup.add_argument("target", type=Path)
    backup.add_argument("--also", type=Path, action="append", default=[], help="a file beside it")
    backup.add_argument("--executor", type=Path, help="the directory of the executor")
    export = commands.add_parser("export", help="a dump; all of it but the signature")
    export.add_argument("directory", type=Path)
    export.add_argument("target", type=Path)
    export.add_argument("--genesis", type=Path, required=True)
    export.add_argument("--executor", type=Path, help="the folder of the node's executor")
    export.add_argument("--entries", choices=ENTRIES_CHOICES, default=ENTRIES_CHOICES[0])
    return parser


def _run(options: argparse.Namespace, report: Report) -> dict[str, Any]:
    if options.command == "backup":
        given = (options.directory, options.target, report, options.also, options.executor)
        return copy_store(*given)
    if options.command == "export":
        from quipu.storage.export import ExportOrder, export_store

        genesis = options.genesis.read_bytes()
        order = ExportOrder(
            options.directory, options.target, genesis, options.entries, executor=options.executor
        )
        return export_store(order, report)
    return verify_store(options.directory, report, signatures=options.signatures).facts()


def reporter() -> Report:
    said_s = 0.0

    def report(progress: ScrubProgress) -> None:
        nonlocal said_s
        now_s = time.monotonic()
        if now_s - said_s >= limits.REPORT_INTERVAL_S:
            said_s = now_s
            _say(progress.facts())

    return report


def _say(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


def _end_with_input() -> None:
    while os.read(sys.stdin.fileno(), 1):  # a buffered read would hold up the end of this process
        pass
    os._exit(1)  # at once, whatever LMDB is doing: it only reads


if __name__ == "__main__":
    sys.exit(main())
