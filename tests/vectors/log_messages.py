"""The messages of the log read from outside, written from docs/order.md, and a sample of each."""

from typing import Any

from quipu.ledger.log import messages
from quipu.ledger.log.messages import LogMessage, encode_log_message
from tests.vectors.check import (
    MIB,
    U32,
    Form,
    exactly,
    flag,
    just,
    maybe,
    octets,
    of_kind,
    row,
    some,
    unpack,
    whole,
)

NUMBER, U32_FORM, U64_FORM, BYTES = whole(U32, 1), whole(U32), whole(), octets()
STATEMENTS, ENTRIES = some(BYTES, 28), some(BYTES, 4096)
FORMS: dict[int, Form] = {
    1: row(just(1), NUMBER, U64_FORM),
    2: row(just(2), NUMBER, flag, U32_FORM),
    3: row(just(3), NUMBER, U64_FORM),
    4: row(just(4), BYTES, ENTRIES),
    5: row(just(5), NUMBER, U32_FORM),
    6: row(just(6), NUMBER, U64_FORM, U64_FORM, exactly(32), ENTRIES, STATEMENTS, STATEMENTS),
    7: row(just(7), NUMBER, U64_FORM, U64_FORM, U64_FORM, maybe(BYTES), flag),
    8: row(just(8), NUMBER, U64_FORM, U32_FORM, U64_FORM),
    9: row(just(9), NUMBER, U64_FORM, BYTES, BYTES),
    10: row(just(10), U64_FORM),
    11: row(just(11), U64_FORM, U32_FORM, flag, U64_FORM, flag),
    12: row(just(12), U64_FORM),
    13: row(just(13), U64_FORM, maybe(U64_FORM)),
    14: row(just(14), U64_FORM, NUMBER, some(BYTES, 4096)),
    15: row(just(15), U64_FORM, U32_FORM, U64_FORM, U32_FORM),
    16: row(just(16), NUMBER),
    17: row(just(17), BYTES),
}
SAMPLES: tuple[LogMessage, ...] = (
    messages.PreVote(U32, 2**64 - 1),
    messages.PreVoteAnswer(1, True, 0),
    messages.Prepare(7, 8),
    messages.PromiseMessage(b"promise", [b"", b"x" * 300]),
    messages.PrepareRefused(3, 4),
    messages.Accept(2, 3, 4, bytes(32), [b"entry"], [b"accepted"], [b"promise", b"two"]),
    messages.AcceptedMessage(2, 3, 5, 4, b"accepted", True),
    messages.AcceptedMessage(2, 3, 5, 4, None, False),
    messages.AcceptRefused(2, 3, 9, 4),
    messages.BaseMessage(2, 3, b"base", b""),
    messages.RecoveryAsk(2**63),
    messages.RecoveryAnswer(5, 0, False, 70_000, True),
    messages.ReadAsk(1),
    messages.ReadAnswer(1, 300),
    messages.ReadAnswer(1, None),
    messages.Propose(6, 2, [b"one", b"two"]),
    messages.ProposeAnswer(6, 0, 0, 0),
    messages.HandOver(2),
    messages.LogEvidence(b"proof"),
)


def read_message(data: bytes) -> Any:
    value = unpack(data, 5 * MIB)
    of_kind(value, FORMS)
    return value


def samples() -> list[list[bytes]]:
    return [[encode_log_message(message)] for message in SAMPLES]
