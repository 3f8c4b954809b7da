"""`quipu doctor`."""

import json
import sys

from quipu.node.doctor import examine
from quipu.node.exits import Exit
from quipu.node.settings import Settings


def examine_node(settings: Settings, as_json: bool) -> Exit:
    findings = list(examine(settings))
    if as_json:
        print(json.dumps([finding._asdict() for finding in findings], indent=2))
    else:
        for finding in findings:
            print(f"{'ok  ' if finding.is_fine else 'BAD '} {finding.check:<15} {finding.what}")
            if not finding.is_fine:
                print(f"{'':<21}{finding.next_step}")
    wrong = sum(not finding.is_fine for finding in findings)
    if wrong:
        print(f"{wrong} of {len(findings)} checks found something", file=sys.stderr)
    return Exit.FAILURE if wrong else Exit.OK
