"""Real nodes under faults: what was acknowledged stays, Models become equal, nobody is put out."""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quipu.devnet.processes import until
from quipu.p2p.words import PeerState
from tests.process.cluster import wait_until
from tests.process.faults import FAULTS, Faults, await_read, lasts, parted
from tests.process.shaken import AGAIN_S_MAX, Apps, Shaken, shaken

pytestmark = pytest.mark.alone

SEED = 5
LENGTHS_S = (1.0, 2.5)
SUSPECT_S = (5.0, 7.0)  # of silence, as the other one tells it
BACK_S_MAX = 3.0
CUT_S = 12.0  # long enough to be UNREACHABLE
ROUNDS = 5
ROUND_WRITES = 80
PAUSED_RATIO_MAX = 1.5
TRIES = 3  # one of them without another process in the way
NOISE_S = 0.005  # two medians on a machine with other work differ by that


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shaken]:
    with shaken(tmp_path_factory.mktemp("faults") / "net", 3, SEED) as found:
        yield found


@pytest.mark.parametrize("fault", FAULTS)
def test_after_each_fault_all_is_well(world: Shaken, fault: str) -> None:
    Faults(world, SEED, LENGTHS_S).one(fault)


def test_two_come_back_while_the_third_stays_dead(world: Shaken) -> None:
    apps = Apps(world.net, world.numbers)
    wait_until(lambda: len(apps.written) > 20, "some entries")
    world.net.kill(*world.numbers)
    written = apps.end()
    begun_s = time.monotonic()
    world.net.start(1, 2)
    await_read(world, AGAIN_S_MAX - (time.monotonic() - begun_s))
    world.await_equal(time.monotonic())
    read = [one for one in written if one.state == "read"]
    world.check_kept([one for one in read if one.node != 3])
    world.check_kept(read, ("read", "stored"))  # n3's own receipt for its last may be on n3 alone
    world.net.start(3)
    world.await_equal(time.monotonic())
    world.check_kept(written)


def test_a_minority_stores_and_never_says_read(world: Shaken) -> None:
    apps = Apps(world.net, world.numbers)
    with parted(world, [1, 2], [3]) as since_s:
        missed_s = world.missed_s(3, by=1)
        left_s = CUT_S - (time.monotonic() - since_s)
        wait_until(lambda: world.state_of(3, by=1) == "unreachable", "witnesses say so", CUT_S)
        lasts(left_s)
        parted_s = time.monotonic()
    wait_until(lambda: world.state_of(3, by=1) == PeerState.ALIVE, "n3 is back", BACK_S_MAX)
    written = apps.end()
    apart = [one for one in written if since_s < one.begun_s < parted_s - 1]
    assert {one.state for one in apart if one.node == 3} == {"stored"}
    assert {one.state for one in apart if one.node != 3} == {"read"}
    assert SUSPECT_S[0] <= missed_s <= SUSPECT_S[1]
    world.await_equal(parted_s)
    world.check_kept(written)
    assert world.farewells() == 0


def test_a_silent_node_is_missed_in_time_and_back_at_once(world: Shaken) -> None:
    tries = []
    for _ in range(TRIES):
        world.net.pause(2)
        missed_s = world.missed_s(2, by=1)
        world.net.resume(2)
        begun_s = time.monotonic()
        wait_until(lambda: world.state_of(2, by=1) == PeerState.ALIVE, "n2 is back")
        wait_until(lambda: world.state_of(1, by=2) == PeerState.ALIVE, "n1 for n2 too")
        tries.append((missed_s, time.monotonic() - begun_s))
        if SUSPECT_S[0] <= missed_s <= SUSPECT_S[1] and tries[-1][1] <= BACK_S_MAX:
            return
    raise AssertionError(f"missed after, back after: {tries}")


def test_one_that_is_paused_does_not_slow_the_majority(world: Shaken) -> None:
    """The p99 of each round, healthy and paused in turn."""
    healthy, crippled = [], []
    for _ in range(ROUNDS):
        healthy.append(_p99_s(world))
        world.net.pause(3)
        try:
            crippled.append(_p99_s(world))
        finally:
            world.net.resume(3)
        wait_until(lambda: until(world.are_equal, 1.0), "n3 has caught up")
    before_s, then_s = statistics.median(healthy), statistics.median(crippled)
    assert then_s <= PAUSED_RATIO_MAX * before_s + NOISE_S, (healthy, crippled)


def _p99_s(world: Shaken) -> float:
    apps = Apps(world.net, [1, 2])
    wait_until(lambda: len(apps.written) >= ROUND_WRITES, "enough writes")
    took_s = sorted(one.took_s for one in apps.end())
    return took_s[-1 - len(took_s) // 100]


def test_a_minority_of_five_waits_for_the_majority(tmp_path: Path) -> None:
    with shaken(tmp_path / "net", 5, SEED) as world:
        apps = Apps(world.net, world.numbers)
        with parted(world, [1, 2], [3, 4, 5]) as since_s:
            lasts(LENGTHS_S[1])
            parted_s = time.monotonic()
        written = apps.end()
        world.await_equal(parted_s)
        world.check_kept(written)
        apart = [one for one in written if since_s < one.begun_s < parted_s - 1]
        assert {one.state for one in apart if one.node > 2} == {"read"}
        assert {one.state for one in apart if one.node <= 2} == {"stored"}
