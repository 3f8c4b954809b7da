import pytest

from quipu.ledger import limits
from quipu.ledger.past import Past
from quipu.ledger.words import EventId, NodeNo
from tests.small_ledger import SmallLedger


def test_what_a_turn_has_decided_is_there_before_the_commit_and_gone_from_memory_after() -> None:
    ledger, empty = SmallLedger(), SmallLedger()
    event = ledger.write(1)
    meta, inv = ledger.metas[event.id], ledger.sign(2, event)
    past = Past(empty)
    assert past.meta(event.id) is None
    past.remember(event, meta)
    past.remember_inv(NodeNo(2), inv)
    assert past.meta(event.id) == past.held(event.id) == meta
    assert past.meta_by_prefix(event.id[:16]) == meta
    assert past.id_at(meta.slot) == event.id
    assert past.event(event.id) == event
    assert past.inv(NodeNo(2), inv.number) == inv.data
    past.turn_begins()
    assert past.event(event.id) is None  # History has it, once it is committed
    assert past.inv(NodeNo(2), inv.number) is None
    assert past.meta(event.id) == meta


def test_what_is_committed_is_read_from_history() -> None:
    ledger = SmallLedger()
    event = ledger.write(1)
    meta, inv = ledger.metas[event.id], ledger.sign(2, event)
    past = Past(ledger)
    assert past.meta(event.id) == meta
    assert past.meta_by_prefix(event.id[:16]) == meta
    assert past.id_at(meta.slot) == event.id
    assert past.event(event.id) == event
    assert past.inv(NodeNo(2), inv.number) == inv.data
    with pytest.raises(AssertionError):
        past.held(EventId(bytes(32)))


def test_summaries_of_the_newest_events_alone_stay_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "METAS_RECENT_MAX", 2)
    ledger, empty = SmallLedger(), SmallLedger()
    events = [ledger.write(1) for _ in range(4)]
    past = Past(empty)
    for event in events:
        past.remember(event, ledger.metas[event.id])
    assert all(past.meta(event.id) for event in events)  # nothing of this turn is let go
    past.turn_begins()
    assert [past.meta(event.id) is not None for event in events] == [False, False, True, True]
    assert [past.meta_by_prefix(event.id[:16]) is not None for event in events][1:3] == [
        False,
        True,
    ]
    slots = [ledger.metas[event.id].slot for event in events]
    assert [past.id_at(slot) is not None for slot in slots] == [False, False, True, True]
