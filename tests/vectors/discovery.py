"""The messages of discovery (seed 000) read from outside, written from docs/order.md, and a sample
of each."""

from typing import Any

from quipu.ledger.canonical import encode
from quipu.ledger.order.discovering import (
    Discovered,
    DscReq,
    DscRes,
    Mark,
    Neighbour,
    Seq,
    SeqRes,
    StateNo,
)
from tests.vectors.check import (
    KIB,
    U32,
    Form,
    exactly,
    just,
    octets,
    of_kind,
    row,
    some,
    unpack,
    whole,
)

STATE, NODE, ID = whole(3, 1), whole(U32, 1), exactly(32)
FORMS: dict[int, Form] = {
    18: row(just(18), NODE, ID, STATE),
    19: row(just(19), STATE, some(row(NODE, ID), 256)),
    20: row(just(20), STATE),
    21: row(just(21), whole(), ID, some(octets(), 28), whole(), some(row(whole(), ID), 4)),
}
DIGEST = bytes([9]) * 32
SAMPLES: dict[str, Discovered] = {
    "dscreq": DscReq(1, DIGEST, StateNo.DSC),
    "dscreq at an edge": DscReq(U32, bytes(32), StateNo.ERR),
    "dscres alone": DscRes(StateNo.DSC, []),
    "dscres": DscRes(StateNo.WRK, [Neighbour(1, DIGEST), Neighbour(U32, bytes(32))]),
    "seqres": SeqRes(StateNo.WRK),
    "seq of nothing": Seq(0, bytes(32), [], 0, []),
    "seq": Seq(
        2**64 - 1, DIGEST, [b"accepted", b"two"], 300, [Mark(256, DIGEST), Mark(512, bytes(32))]
    ),
}


def read_message(data: bytes) -> Any:
    value = unpack(data, 64 * KIB)
    of_kind(value, FORMS)
    return value


def samples() -> list[list[bytes]]:
    return [[encode(message)] for message in SAMPLES.values()]
