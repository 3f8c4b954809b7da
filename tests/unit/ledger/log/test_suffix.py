import pytest

from quipu.ledger.canonical import encode
from quipu.ledger.log.quorum import Voters
from quipu.ledger.log.serializers import SET_ITEM, Stage, encode_set
from quipu.ledger.log.suffix import decode_base
from quipu.ledger.refusals import Reason, Refused
from quipu.ledger.words import NodeNo
from tests.unit.ledger.log.made import entry, log_of, place

NEW = (NodeNo(3), NodeNo(4), NodeNo(5))
OLD = (NodeNo(1), NodeNo(2), NodeNo(3))


def test_entries_follow_without_holes_and_regimes_never_fall() -> None:
    log = log_of(1, 1, 3)
    assert log.last_place == place(3, 3)
    for data, reason in (
        (entry(3, 5), Reason.BAD_INDEX),
        (entry(3, 3), Reason.BAD_INDEX),
        (entry(2, 4), Reason.BAD_REGIME),
    ):
        with pytest.raises(Refused) as caught:
            log.append(data)
        assert caught.value.reason is reason
        assert log.last_place == place(3, 3)


def test_a_node_goes_by_the_newest_implement_or_confirm_and_back_when_it_is_dropped() -> None:
    log = log_of(1)
    for index, stage in enumerate((Stage.NOMINATE, Stage.IMPLEMENT), start=2):
        log.append(entry(1, index, encode_set(stage, NEW)))
    assert log.voters == Voters(OLD, NEW)
    log.append(entry(1, 4))
    log.append(entry(1, 5, encode_set(Stage.CONFIRM, NEW)))
    assert log.voters == Voters(NEW)
    assert [(s.start, s.voters) for s in log.segments] == [
        (1, Voters(OLD)),
        (3, Voters(OLD, NEW)),
        (6, Voters(NEW)),
    ]
    log.append(entry(1, 6))
    log.drop_from(6)
    assert log.voters == Voters(NEW)
    log.drop_from(5)
    assert log.voters == Voters(OLD, NEW)
    log.drop_from(3)
    assert log.voters == Voters(OLD)
    assert log.newest_change is not None
    assert log.newest_change.stage is Stage.NOMINATE


def test_what_is_no_change_is_none_for_every_node() -> None:
    log = log_of(1)
    good = encode_set(Stage.IMPLEMENT, NEW)
    confirm = encode_set(Stage.CONFIRM, NEW)
    unsorted = encode([SET_ITEM, 3, [4, 3]])
    for index, items in enumerate(
        ([good, b"x"], [good[:-1]], [unsorted], [confirm], [encode([SET_ITEM, 9, [3]])]), start=2
    ):
        log.append(entry(1, index, *items))
        assert log.voters == Voters(OLD)


@pytest.mark.parametrize("upto", range(8))
def test_a_log_that_forgets_its_beginning_says_the_same_of_its_end(upto: int) -> None:
    whole = log_of(1, 1)
    whole.append(entry(2, 3, encode_set(Stage.NOMINATE, NEW)))
    whole.append(entry(2, 4, encode_set(Stage.IMPLEMENT, NEW)))
    whole.append(entry(2, 5, encode_set(Stage.CONFIRM, NEW)))
    whole.append(entry(2, 6))
    whole.append(entry(2, 7))
    short = whole.trimmed(upto)
    assert decode_base(encode(short.base)) == short.base
    assert short.last_place == whole.last_place
    assert short.digest_at(7) == whole.digest_at(7)
    assert short.voters == whole.voters
    for index in range(upto, 8):
        assert short.voters_above(index) == whole.voters_above(index)
        assert short.digest_at(index) == whole.digest_at(index)
    assert short.digest_at(upto - 1) is None
    if upto < 4:
        short.drop_from(max(upto + 1, 4))
        assert short.voters == Voters(OLD)
