import pytest

from quipu.ledger.log.words import Index
from quipu.ledger.order.items import (
    Lock,
    LockAndPublish,
    Publish,
    Release,
    encode_item,
    read_item,
)
from quipu.ledger.order.sequences import (
    Freed,
    Granted,
    Published,
    SequenceRefusal,
    Sequences,
    next_running,
)

DIGEST = bytes(range(32))
NAME = "orders"


def lock(holder: int, count: int = 1, over: int = 0) -> Lock:
    return Lock(NAME, holder, count, over)


def publish(holder: int, token: int, number: int) -> Publish:
    return Publish(NAME, holder, token, number, DIGEST)


def test_a_lock_on_a_range_is_used_up_in_order() -> None:
    sequences = Sequences()
    assert sequences.apply(lock(1, 2), Index(5)) == Granted(NAME, Index(5), 1, 2)
    first = next_running(bytes(32), 1, DIGEST)
    assert sequences.apply(publish(1, 5, 2), Index(6)) is SequenceRefusal.NOT_NEXT
    assert sequences.apply(publish(1, 5, 1), Index(6)) == Published(NAME, 1, first)
    assert sequences.apply(lock(2), Index(7)) is SequenceRefusal.LOCKED
    second = next_running(first, 2, DIGEST)
    assert sequences.apply(publish(1, 5, 2), Index(8)) == Published(NAME, 2, second)
    assert sequences.apply(publish(1, 5, 3), Index(9)) is SequenceRefusal.STALE
    assert sequences.apply(lock(2), Index(9)) == Granted(NAME, Index(9), 3, 3)


def test_a_name_ends_with_its_last_character() -> None:
    """`$` in a pattern takes a line break behind it."""
    assert read_item(encode_item(lock(1))) == lock(1)
    assert read_item(encode_item(Lock(NAME + "\n", 1, 1, 0))) is None


def test_a_lock_is_taken_over_by_naming_its_token_and_the_old_one_is_worth_nothing() -> None:
    sequences = Sequences()
    sequences.apply(lock(1, 3), Index(1))
    assert sequences.apply(publish(1, 1, 1), Index(2)) != SequenceRefusal.STALE
    assert sequences.apply(lock(2, 2, over=9), Index(3)) is SequenceRefusal.LOCKED
    assert sequences.apply(lock(2, 2, over=1), Index(3)) == Granted(NAME, Index(3), 2, 3)
    assert sequences.apply(lock(3, 2, over=1), Index(4)) is SequenceRefusal.LOCKED
    assert sequences.apply(publish(1, 1, 2), Index(5)) is SequenceRefusal.STALE
    assert sequences.apply(publish(1, 3, 2), Index(5)) is SequenceRefusal.NOT_HOLDER
    assert isinstance(sequences.apply(publish(2, 3, 2), Index(6)), Published)


def test_one_entry_gives_out_one_token_of_a_name() -> None:
    """The token is the index alone: two of one index could not be told apart."""
    sequences = Sequences()
    sequences.apply(lock(1), Index(4))
    assert sequences.apply(Release(NAME, 1, 4), Index(4)) == Freed(NAME)
    assert sequences.apply(lock(2), Index(4)) is SequenceRefusal.LOCKED
    assert isinstance(sequences.apply(lock(2), Index(5)), Granted)


def test_those_who_publish_without_a_lock_share_an_entry() -> None:
    """None of them leaves a lock behind, so nothing has to tell them apart."""
    sequences = Sequences()
    both = LockAndPublish(NAME, 1, DIGEST)
    found = [sequences.apply(both, Index(4)) for _ in range(3)]
    assert [one.number for one in found if isinstance(one, Published)] == [1, 2, 3]
    assert sequences.apply(lock(2), Index(4)) is SequenceRefusal.LOCKED
    assert sequences.apply(publish(1, 4, 4), Index(4)) is SequenceRefusal.STALE
    assert sequences.apply(lock(2), Index(5)) == Granted(NAME, Index(5), 4, 4)
    assert sequences.apply(both, Index(5)) is SequenceRefusal.LOCKED


def test_release_gives_back_what_was_not_published() -> None:
    sequences = Sequences()
    sequences.apply(lock(1, 3), Index(1))
    sequences.apply(publish(1, 1, 1), Index(2))
    assert sequences.apply(Release(NAME, 2, 1), Index(3)) is SequenceRefusal.NOT_HOLDER
    assert sequences.apply(Release(NAME, 1, 9), Index(3)) is SequenceRefusal.STALE
    assert sequences.apply(Release(NAME, 1, 1), Index(3)) == Freed(NAME)
    assert sequences.apply(Release(NAME, 1, 1), Index(4)) is SequenceRefusal.STALE
    assert sequences.apply(lock(2), Index(4)) == Granted(NAME, Index(4), 2, 2)


def test_lock_and_publish_may_be_one() -> None:
    sequences = Sequences()
    both = LockAndPublish(NAME, 1, DIGEST)
    assert sequences.apply(both, Index(1)) == Published(NAME, 1, next_running(bytes(32), 1, DIGEST))
    sequences.apply(lock(2), Index(2))
    assert sequences.apply(both, Index(3)) is SequenceRefusal.LOCKED
    assert sequences.of(NAME).number == 1


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    from quipu.ledger import limits

    monkeypatch.setattr(limits, "SEQUENCES_MAX", 1)
    monkeypatch.setattr(limits, "SEQUENCE_NUMBER_MAX", 2)
    sequences = Sequences()
    assert sequences.apply(lock(1, 3), Index(1)) is SequenceRefusal.EXHAUSTED
    assert isinstance(sequences.apply(lock(1, 2), Index(2)), Granted)
    other = Lock("another", 1, 1, 0)
    assert sequences.apply(other, Index(3)) is SequenceRefusal.TOO_MANY


@pytest.mark.parametrize(
    "item", [lock(1, 64), publish(2, 3, 4), LockAndPublish(NAME, 1, DIGEST), Release(NAME, 1, 2)]
)
def test_an_item_comes_back_from_its_bytes(item: Lock | Publish | LockAndPublish | Release) -> None:
    assert read_item(encode_item(item)) == item


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"plain bytes",
        encode_item(lock(1, 65)),
        encode_item(lock(1, 0)),
        encode_item(lock(0)),
        encode_item(Lock("Upper", 1, 1, 0)),
        encode_item(Lock("a" * 129, 1, 1, 0)),
        encode_item(lock(1)) + b"\0",
    ],
)
def test_what_is_no_item_is_passed_over(data: bytes) -> None:
    assert read_item(data) is None
