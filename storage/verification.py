"""Verifying a data directory from outside: read-only, whether a node is using it or not."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quipu.ledger import signing
from quipu.storage import environment, limits, ownership
from quipu.storage.environment import Snapshot, StoreDamaged, StoreMissing
from quipu.storage.scrub import Finding, Scrub, ScrubProgress
from quipu.storage.store import Owner, StoreCorrupt

Report = Callable[[ScrubProgress], None]


@dataclass(frozen=True, slots=True)
class Verification:
    """`found` counts all that is wrong; `findings` names the first ones."""

    path: Path
    owner: Owner | None
    events: int
    found: int
    findings: tuple[Finding, ...]
    seconds: float

    def facts(self) -> dict[str, Any]:
        return {
            "path": str(self.path),
            "cluster_id": self.owner.cluster_id.hex() if self.owner else None,
            "node_id": self.owner.node_id.hex() if self.owner else None,
            "events": self.events,
            "found": self.found,
            "findings": [one._asdict() for one in self.findings[: limits.FINDINGS_SAID_MAX]],
            "seconds": round(self.seconds, 3),
        }


def verify_store(
    path: Path,
    report: Report = lambda progress: None,
    *,
    signatures: bool = False,
    structure: bool = True,
) -> Verification:
    """Every page and, if these are sound, every record. A format that this program does not know
    is an error, not a finding: it cannot be judged."""
    began = time.monotonic()
    progress = ScrubProgress(phase="pages")
    owner = None
    try:
        env = environment.open_readonly(path)
    except StoreDamaged as damage:
        progress.add("pages", str(path), str(damage))
    else:
        snapshot = Snapshot(env, path)
        try:
            if structure:
                report(progress)
                with env.begin():  # pins the pages of the last commit while they are walked
                    for broken in environment.broken_pages(path):
                        progress.add("pages", str(path), broken)
            if not progress.found:  # reading through broken pages can kill the process
                owner = _verify_records(snapshot, progress, report, signatures)
        except (StoreDamaged, StoreCorrupt) as damage:
            progress.add("meta", str(path), str(damage))
        finally:
            snapshot.close()
            env.close()
    return Verification(
        path,
        owner,
        progress.events,
        progress.found,
        tuple(progress.findings),
        time.monotonic() - began,
    )


def _verify_records(
    snapshot: Snapshot, progress: ScrubProgress, report: Report, signatures: bool
) -> Owner:
    tables = environment.open_tables(snapshot.env, snapshot.path, create=False)
    with snapshot as txn:
        owner = ownership.read_owner(txn, tables, snapshot.path)
    if owner is None:
        raise StoreMissing(f"{snapshot.path} holds no store")
    verifier = signing.verify if signatures else None
    scrub = Scrub(snapshot, tables, owner.cluster_id, verifier)
    scrub.progress = progress
    for step in scrub.slices():
        report(step)
        snapshot.renew()  # so that the node's own commits can use the pages again
    return owner
