"""An answered entry is durable: nodes die by kill -9 under load, and nothing is lost or doubled.

kill -9 keeps the page cache: what a loss of power does is shown in `test_power.py`.
`make kill-test` does the same at length.
"""

import signal
from pathlib import Path

import pytest

from quipu.node import failpoints
from tests.process.apps import Apps, missing
from tests.process.command import WAIT_S, RunningCommand
from tests.process.lives import START_SITES, Lives, killed_lives

CHECKPOINT_SITES = ("checkpoint.sealed", "checkpoint.opened")
TURN_SITES = {site for site in failpoints.SITES if site.startswith(("turn.", "commit.", "drain."))}


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_acknowledged_is_lost_by_kills(seed: int, tmp_path: Path) -> None:
    lives = killed_lives(tmp_path / "data", seed, kills=20)
    assert lives.kills == 20
    assert set(START_SITES) <= set(lives.fired)
    assert lives.acknowledged


def test_every_failpoint_ends_a_life(tmp_path: Path) -> None:
    lives = Lives(tmp_path / "data", seed=3)
    for site in sorted(TURN_SITES):
        lives.live_and_die(site)
    lives.live_and_stop()
    assert set(lives.fired) >= TURN_SITES


@pytest.mark.parametrize("site", CHECKPOINT_SITES)
def test_a_crash_within_a_checkpoint_is_made_good(site: str, tmp_path: Path) -> None:
    lives = Lives(tmp_path / "data", seed=4)
    while not lives.fired[site]:
        assert lives.kills < 20, "eight journals make a checkpoint due"
        lives.live_and_die(site)
    lives.live_and_stop()
    lives.live_and_stop()


def test_the_command_itself_keeps_what_it_acknowledged_over_http(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    for site in ("", "commit.durable=kill@9", "turn.committed=kill@9"):
        with RunningCommand(tmp_path / "data", QUIPU_FAILPOINTS=site) as node:
            assert missing(node.facts["api"], acknowledged) == []
            apps = Apps(node.facts["api"])
            if not site:
                assert apps.enough.wait(WAIT_S)
                node.process.kill()
            assert node.process.wait(WAIT_S) == -signal.SIGKILL
            apps.end()
            acknowledged += apps.acknowledged
    with RunningCommand(tmp_path / "data") as node:
        assert missing(node.facts["api"], acknowledged) == []
    assert acknowledged
