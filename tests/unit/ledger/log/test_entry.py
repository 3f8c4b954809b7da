import pytest

from quipu.ledger import limits
from quipu.ledger.canonical import encode
from quipu.ledger.log.entry import (
    LogEntry,
    decode_log_entry,
    first_digest,
    next_digest,
)
from quipu.ledger.refusals import Reason, Refused
from tests.unit.ledger.log.made import CLUSTER_ID, entry


def test_an_entry_comes_back_from_its_bytes() -> None:
    data = entry(7, 9, b"one", b"two")
    assert decode_log_entry(data) == LogEntry(1, 7, 9, 1, False, [b"one", b"two"])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (LogEntry(2, 1, 1, 1, False, []), Reason.UNKNOWN_VERSION),
        (LogEntry(1, 1, 0, 1, False, []), Reason.BAD_INDEX),
        (LogEntry(1, 0, 1, 1, False, []), Reason.MALFORMED),
        (LogEntry(1, limits.REGIME_MAX + 1, 1, 1, False, []), Reason.MALFORMED),
        (LogEntry(1, 1, 1, 0, False, []), Reason.MALFORMED),
        (LogEntry(1, 1, 1, 1, False, [b""] * (limits.LOG_ITEMS_MAX + 1)), Reason.MALFORMED),
        (LogEntry(1, 1, 1, 1, False, [bytes(limits.LOG_ENTRY_BYTES_MAX)]), Reason.TOO_LARGE),
    ],
)
def test_what_is_no_entry_is_refused(value: LogEntry, reason: Reason) -> None:
    with pytest.raises(Refused) as caught:
        decode_log_entry(encode(value))
    assert caught.value.reason is reason


def test_the_digest_covers_the_cluster_and_everything_before() -> None:
    one, two = entry(1, 1, b"a"), entry(1, 2, b"b")
    start = first_digest(CLUSTER_ID)
    whole = next_digest(next_digest(start, one), two)
    assert whole != next_digest(next_digest(first_digest(bytes(32)), one), two)
    assert whole != next_digest(next_digest(start, entry(1, 1, b"c")), two)
    assert whole != next_digest(next_digest(start, entry(2, 1, b"a")), two)
