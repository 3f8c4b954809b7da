"""What is in a store, without walking through it."""

from pathlib import Path

import lmdb

from quipu.storage import environment, letting_go
from quipu.storage.environment import ReadTxn, Snapshot, Tables
from quipu.storage.store import StoreStats


def count(env: lmdb.Environment, txn: ReadTxn, tables: Tables, path: Path) -> StoreStats:
    info = env.info()
    entries = {name: txn.stat(table)["entries"] for name, table in tables.named}
    trees = [txn.stat(table) for _, table in tables.named]
    pages = sum(t["branch_pages"] + t["leaf_pages"] + t["overflow_pages"] for t in trees)
    feed_first, feed_last = letting_go.feed_ends(txn, tables)
    return StoreStats(
        entries["events"],
        feed_last,
        entries["invs"],
        entries["branches"],
        entries["proofs"],
        entries["epochs"],
        entries.get("log", 0),
        used_bytes=(info["last_pgno"] + 1) * env.stat()["psize"],
        file_bytes=(path / environment.DATA_FILE).stat().st_size,
        map_bytes=info["map_size"],
        feed_first=feed_first,
        pruned=letting_go.pruned_count(txn, tables),
        live_bytes=pages * env.stat()["psize"],
    )


def read_stats(path: Path) -> StoreStats:
    """Beside a node that is writing, or alone. Raises StoreError."""
    env = environment.open_readonly(path)
    snapshot = Snapshot(env, path)
    try:
        tables = environment.open_tables(env, path, create=False)
        with snapshot as txn:
            return count(env, txn, tables, path)
    finally:
        snapshot.close()
        env.close()
