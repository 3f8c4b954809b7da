"""A process dies by kill -9 at each place that is named, and what it did is done, or is not.

Those of a running node's turns, its start, checkpoints and drain: `test_kill.py`.
"""

import signal
from pathlib import Path
from typing import get_args

import pytest

from quipu.storage.failpoints import KINDS, SITES
from quipu.storage.store import Kept
from tests.process.failing import (
    WORKS,
    begin_store,
    content_of,
    kill_at,
    made_batches,
    work_at,
    write_kind,
)
from tests.process.test_kill import CHECKPOINT_SITES, TURN_SITES

OF_TRANSACTIONS = [site for site in SITES if site.startswith(("store.", "stored."))]
OF_WORKS = [site for site in SITES if work_at(site) is not None]


@pytest.mark.parametrize("site", OF_WORKS)
def test_a_work_that_was_cut_short_can_be_done_again(site: str, tmp_path: Path) -> None:
    work = work_at(site)
    assert work is not None
    work.prepare(tmp_path)
    assert kill_at(site, work.act, tmp_path) == -signal.SIGKILL, "the site is passed"
    work.check(tmp_path, site)
    work.act(tmp_path)
    work.done(tmp_path)


@pytest.mark.parametrize("site", OF_TRANSACTIONS)
def test_a_transaction_is_there_whole_or_not_at_all(site: str, tmp_path: Path) -> None:
    """And it is there once the site after it is passed: somebody may have been told."""
    folder, twin = tmp_path / site, tmp_path / f"twin.{site.partition('.')[2]}"
    for one in (folder, twin):
        one.mkdir()
        begin_store(one)
    before = content_of(twin)
    write_kind(twin)
    after = content_of(twin)
    assert before != after
    assert kill_at(site, write_kind, folder) == -signal.SIGKILL, "the site is passed"
    assert content_of(folder) == (after if site.startswith("stored.") else before)


def test_every_site_is_passed_by_a_test_that_kills_there() -> None:
    killed_in_lives = {*TURN_SITES, *CHECKPOINT_SITES, "start.store"}
    assert {*OF_WORKS, *OF_TRANSACTIONS, *killed_in_lives} == set(SITES)
    assert set(made_batches()[1]) == set(KINDS.values())
    assert set(KINDS) == set(get_args(Kept)), "what a store keeps has its sites"
    assert len(SITES) >= 50
    assert WORKS
