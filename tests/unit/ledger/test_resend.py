import itertools

from quipu.ledger import limits
from quipu.ledger.history import BranchRecord
from quipu.ledger.resend import Resend
from quipu.ledger.words import BranchKey, EventId, Hlc, Journal, NodeId, NodeNo, Now, Seq

ME = NodeId(b"m" * 32)
KEY = BranchKey(NodeNo(2), Journal(7), 0)


def at(ms: int) -> Now:
    return Now(0, ms)


def branch(held: int, read: int = 0) -> BranchRecord:
    return BranchRecord(KEY, Seq(0), 0, Seq(held), EventId(b""), Hlc(0), read_seq=Seq(read))


def times(resend: Resend, record: BranchRecord, upto_ms: int) -> list[tuple[int, bool]]:
    """When something is due, as a shell that keeps to the deadline sees it."""
    found: list[tuple[int, bool]] = []
    now_ms = 0
    while True:
        deadline_ms = resend.next_deadline()
        if deadline_ms is None or deadline_ms > upto_ms:
            return found
        now_ms = max(now_ms, deadline_ms)
        found += [(now_ms, is_relay) for _, is_relay in resend.due({KEY: record}, at(now_ms))]


def test_sent_on_once_after_half_a_second_then_again_with_doubling_waits() -> None:
    resend, record = Resend(ME), branch(held=3)
    resend.note(record, at(0))
    found = times(resend, record, 200_000)
    assert found[0] == (limits.RELAY_AFTER_MS, True)
    assert not any(is_relay for _, is_relay in found[1:])
    moments = [0, *(ms for ms, _ in found[1:])]
    waits = [later - earlier for earlier, later in itertools.pairwise(moments)]
    for wait_ms, interval_ms in zip(waits, [1, 2, 4, 8, 16, 30, 30, 30], strict=False):
        assert interval_ms * 1_000 <= wait_ms < interval_ms * 1_125
    assert len(waits) >= 8


def test_jitter_differs_by_node() -> None:
    found: list[tuple[tuple[int, bool], ...]] = []
    for name in (b"a", b"b", b"c"):
        resend, record = Resend(NodeId(name * 32)), branch(held=3)
        resend.note(record, at(0))
        found.append(tuple(times(resend, record, 20_000)))
    assert len(set(found)) == 3


def test_a_read_branch_has_no_mark() -> None:
    resend, record = Resend(ME), branch(held=3)
    resend.note(record, at(0))
    record.read_seq = Seq(3)
    assert resend.due({KEY: record}, at(10)) == []
    assert resend.next_deadline() is None


def test_what_was_held_later_has_its_own_time() -> None:
    resend, record = Resend(ME), branch(held=3)
    resend.note(record, at(0))
    record.held_seq = Seq(5)
    resend.note(record, at(900))  # the mark of the older ones stands
    record.read_seq = Seq(3)
    assert resend.due({KEY: record}, at(950)) == []
    deadline_ms = resend.next_deadline()
    assert deadline_ms == 950 + limits.RELAY_AFTER_MS
    assert resend.due({KEY: record}, at(deadline_ms)) == [(KEY, True)]


def test_nothing_is_due_before_its_time() -> None:
    resend, record = Resend(ME), branch(held=3)
    resend.note(record, at(0))
    assert resend.due({KEY: record}, at(limits.RELAY_AFTER_MS - 1)) == []
    assert Resend(ME).next_deadline() is None


def test_of_all_holders_one_is_chosen_for_each_member() -> None:
    holders = [(NodeNo(n), NodeId(bytes([n]) * 32)) for n in (3, 4, 5)]
    parts = {
        (member, seq): [
            Resend(node_id).is_my_part(NodeNo(member), holders, Seq(seq)) for _, node_id in holders
        ]
        for member in (6, 7, 8)
        for seq in range(1, 9)
    }
    assert all(sum(chosen) == 1 for chosen in parts.values())
    assert len({tuple(chosen) for chosen in parts.values()}) == 3  # not always the same one
    assert not Resend(ME).is_my_part(NodeNo(6), holders, Seq(1))
    assert not Resend(ME).is_my_part(NodeNo(6), [], Seq(1))
