"""Carrying a pruning out on a store that nobody has open: `quipu store prune`, node not running."""

from pathlib import Path
from typing import Any, NamedTuple

from quipu.ledger.effects import DropFeed, DropInvs, Durable, PutBranch, PutOwnState
from quipu.ledger.history import Saved
from quipu.ledger.inputs import HistoryPruned
from quipu.ledger.pruning import let_go
from quipu.node.clock import wall_ms
from quipu.node.consumers import KeptConsumers
from quipu.node.data_directory import DataDirectory
from quipu.node.pruning import Hold, Plan, Retention, archived_upto, holds_of
from quipu.node.view import View
from quipu.storage.lmdb_store import LmdbStore, open_store
from quipu.storage.scrub import ScrubProgress
from quipu.storage.store import Owner
from quipu.storage.verification import Report


def holds_in(folder: Path, archived_only: bool) -> list[Hold]:
    """Who still needs what, as the files of the data directory say."""
    holds = holds_of(KeptConsumers.of(folder, wall_ms).all())
    if archived_only:
        holds.append(Hold("the archive: export first", archived_upto(folder)))
    return holds


class PruneOrder(NamedTuple):
    retention: Retention
    archived_only: bool
    dry_run: bool


def prune_directory(directory: DataDirectory, order: PruneOrder, report: Report) -> dict[str, Any]:
    """Raises StoreError; what had been let go by then is gone, and the store is whole."""
    store = open_store(directory.store_path, Owner(directory.cluster_id, directory.key.node_id))
    try:
        saved = store.saved()
        view = View.of(directory.genesis, saved, 0)
        plan = Plan(
            store,
            saved,
            order.retention,
            holds_in(directory.path, order.archived_only),
            wall_ms(),
            has_log=directory.key.node_id in view.epoch.numbers,
        )
        plan.prepare()
        progress = ScrubProgress("prune", 0, store.stats().events)
        for step in plan.steps():
            if not order.dry_run:
                store.commit(durable_of(step, saved))
            progress.done = plan.events
            report(progress)
        return plan.facts() | {"dry_run": order.dry_run} | _left(store)
    finally:
        store.close()


def durable_of(step: HistoryPruned, saved: Saved) -> list[Durable]:
    records = {record.key: record for record in saved.branches}
    durable: list[Durable] = []
    for key, upto in step.rows:
        dropped = let_go(records[key], upto)
        if dropped is not None:
            durable += [dropped, PutBranch(records[key].copy())]
    if step.feed_upto:
        durable.append(DropFeed(step.feed_upto))
    durable += [DropInvs(signer, below) for signer, below in step.invs]
    saved.pruned_to = max(saved.pruned_to, step.epoch)
    durable.append(PutOwnState(saved.newest_journal_own, saved.recovering, saved.pruned_to))
    return durable


def _left(store: LmdbStore) -> dict[str, int]:
    stats = store.stats()
    return {
        "events_left": stats.events,
        "live_bytes": stats.live_bytes,
        "file_bytes": stats.file_bytes,
    }
