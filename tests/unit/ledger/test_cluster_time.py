from quipu.ledger import limits
from quipu.ledger.cluster_time import ClusterTime
from quipu.ledger.words import Hlc, NodeNo, Now, hlc_at

N2, N3, N4 = NodeNo(2), NodeNo(3), NodeNo(4)
WALL_MS = 1_000_000


def test_alone_it_is_ones_own_clock() -> None:
    assert ClusterTime().now_ms(Now(WALL_MS, 5)) == WALL_MS


def test_it_is_the_lower_median_of_the_members_heard_and_oneself() -> None:
    clock, now = ClusterTime(), Now(WALL_MS, 5)
    clock.hear(N2, WALL_MS + 50_000, now)
    assert clock.now_ms(now) == WALL_MS  # of two the lower
    clock.hear(N3, WALL_MS + 10_000, now)
    assert clock.now_ms(now) == WALL_MS + 10_000  # the middle of three
    clock.hear(N4, WALL_MS - 10_000, now)
    assert clock.now_ms(now) == WALL_MS  # of four the lower of the two in the middle


def test_a_clock_runs_on_after_it_was_heard() -> None:
    clock = ClusterTime()
    clock.hear(N2, WALL_MS - 700, Now(WALL_MS, 0))
    assert clock.now_ms(Now(WALL_MS + 300, 300)) == WALL_MS - 400


def test_a_clock_counts_for_five_seconds() -> None:
    clock = ClusterTime()
    clock.hear(N2, WALL_MS - 700, Now(WALL_MS, 0))
    age_ms = limits.CLOCK_SAMPLE_AGE_MS
    assert clock.now_ms(Now(WALL_MS + age_ms, age_ms)) == WALL_MS - 700 + age_ms
    assert clock.now_ms(Now(WALL_MS + age_ms + 1, age_ms + 1)) == WALL_MS + age_ms + 1


def test_a_member_has_one_clock_the_newest() -> None:
    clock, now = ClusterTime(), Now(WALL_MS, 5)
    clock.hear(N2, WALL_MS - 900, now)
    clock.hear(N2, WALL_MS - 100, now)
    assert clock.now_ms(now) == WALL_MS - 100


def test_a_clock_that_no_journal_could_hold_is_not_heard() -> None:
    clock, now = ClusterTime(), Now(WALL_MS, 5)
    for member in (N2, N3):
        clock.hear(member, limits.WALL_MS_MAX + 1, now)
    assert clock.now_ms(now) == WALL_MS
    for member in (N2, N3):
        clock.hear(member, limits.WALL_MS_MAX, now)
    assert clock.now_ms(now) == limits.WALL_MS_MAX


def test_due_is_two_seconds_beyond_cluster_now_and_beyond_the_cut() -> None:
    clock, now = ClusterTime(), Now(WALL_MS, 5)
    assert clock.due_until(now, Hlc(0)) == hlc_at(WALL_MS + 2_000)
    later = Hlc(hlc_at(WALL_MS + 60_000) + 7)
    assert clock.due_until(now, later) == later + hlc_at(2_000)
