"""What may go: as somebody asks for it, and who still needs it."""

from pathlib import Path

import pytest

from quipu.ledger.canonical import encode
from quipu.ledger.effects import PutBranch, StoreEpoch
from quipu.ledger.epochs import CutRow, EpochDocument, Member
from quipu.ledger.event import EventMeta
from quipu.ledger.words import EpochNo, Seq
from quipu.node.pruned_store import durable_of
from quipu.node.pruning import (
    DAY_MS,
    MIB,
    Hold,
    Plan,
    Retention,
    archived_upto,
    note_archived,
    retention_of,
)
from quipu.node.settings import StoreSettings
from quipu.storage.memory_store import MemoryStore
from tests.made_events import CREATED_MS, MadeCluster, lived_through

TURNS = 30
MIDDLE = 20  # of these events the cut of epoch 2 consists


def lived() -> MemoryStore:
    """Two epochs after the genesis; the first cut has the first events of each cord."""
    cluster = MadeCluster()
    store = MemoryStore(cluster.owner())
    for batch in lived_through(cluster, TURNS):
        store.commit(batch)
    fed = [store.meta(identity) for _, identity in store.feed(0, MIDDLE)]
    tips: dict[int, EventMeta] = {m.slot.author_no: m for m in fed if m is not None}
    members = [Member(n, key.node_id, f"n{n}", []) for n, key in enumerate(cluster.keys, start=1)]
    previous = cluster.cluster_id
    for number, chosen in ((2, list(tips.values())), (3, [])):
        rows = sorted((*meta.branch.cord, meta.seq, meta.id) for meta in chosen)
        hlc = max(meta.hlc for meta in tips.values())
        cut = [CutRow(*row) for row in rows]
        document = EpochDocument(
            1, cluster.cluster_id, number, previous, 1, "majority", members, [], cut, hlc
        )
        store.commit([StoreEpoch(EpochNo(number), encode(document), ())])
    for record in store.saved().branches:
        record.cut_seq = Seq(tips[record.key.author_no].seq)
        store.commit([PutBranch(record)])
    return store


def planned(
    store: MemoryStore, retention: Retention, *holds: Hold, now_ms: int = CREATED_MS
) -> Plan:
    saved = store.saved()
    plan = Plan(store, saved, retention, list(holds), now_ms, has_log=False)
    plan.prepare()
    for step in plan.steps():
        store.commit(durable_of(step, saved))
    return plan


def test_all_below_the_checkpoint_goes_but_its_tips() -> None:
    store = lived()
    plan = planned(store, Retention(keep_ms=0), now_ms=CREATED_MS + DAY_MS)
    assert (plan.epoch, plan.events, plan.held_by) == (2, MIDDLE - 3, "the checkpoint")
    assert store.stats().feed_first == MIDDLE + 1
    assert all(record.gone_upto == record.cut_seq - 1 for record in store.saved().branches)
    again = planned(store, Retention(keep_ms=0), now_ms=CREATED_MS + DAY_MS)
    assert again.events == 0


def test_what_is_younger_stays() -> None:
    store = lived()
    plan = planned(store, Retention(keep_ms=DAY_MS), now_ms=CREATED_MS + DAY_MS // 2)
    assert (plan.epoch, plan.events, plan.held_by) == (0, 0, "no checkpoint is old enough")


def test_the_slowest_reader_holds_the_rest() -> None:
    store = lived()
    holds = Hold("consumer quick", 15), Hold("consumer slow", 7)
    plan = planned(store, Retention(keep_ms=0), *holds, now_ms=CREATED_MS + DAY_MS)
    assert plan.held_by == "consumer slow"
    assert store.stats().feed_first == 8


def test_by_size_the_oldest_go_until_it_fits() -> None:
    store = lived()
    live = store.stats().live_bytes
    assert planned(store, Retention(keep_bytes=2 * live)).events == 0
    plan = planned(store, Retention(keep_bytes=live - 1_500))
    assert 0 < plan.events < MIDDLE - 3
    assert plan.held_by == "retention"


@pytest.mark.parametrize(
    ("keep", "keep_mib", "expected"),
    [
        (None, None, Retention(2 * DAY_MS, 5 * MIB)),
        ("36h", None, Retention(36 * 3_600_000)),
        ("0s", None, Retention(0)),
        (None, 7, Retention(None, 7 * MIB)),
    ],
)
def test_what_is_asked_for_counts_before_the_settings(
    keep: str | None, keep_mib: int | None, expected: Retention
) -> None:
    assert retention_of(StoreSettings(keep_days=2, keep_mib=5), keep, keep_mib) == expected


def test_without_a_word_everything_is_kept_and_nonsense_is_refused() -> None:
    assert not retention_of(StoreSettings()).prunes
    with pytest.raises(ValueError, match="30d"):
        retention_of(StoreSettings(), "a month")


def test_the_mark_of_the_archive_never_goes_back(tmp_path: Path) -> None:
    assert archived_upto(tmp_path) == 0
    note_archived(tmp_path, 9, tmp_path / "dump")
    note_archived(tmp_path, 4, tmp_path / "other")
    assert archived_upto(tmp_path) == 9
