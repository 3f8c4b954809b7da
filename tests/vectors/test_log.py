"""The vectors of the log hold: a stranger agrees, and so do our own codecs."""

import json
from typing import Any

import pytest
from nacl.exceptions import BadSignatureError

from quipu.ledger.log.entry import decode_log_entry
from quipu.ledger.log.statements import decode_accepted, decode_promise
from quipu.ledger.order.changes import read_change
from quipu.ledger.order.discovering import decode_discovery
from quipu.ledger.order.items import read_item
from quipu.ledger.refusals import Reason, Refused
from tests.vectors.check_log import FOLDER, Wrong, check
from tests.vectors.generate import text_of
from tests.vectors.generate_log import log

ROWS: list[dict[str, Any]] = json.loads((FOLDER / "log.json").read_text())
DECODERS = {
    "entry": decode_log_entry,
    "accepted": decode_accepted,
    "promise": decode_promise,
    "discovery": decode_discovery,
}


def test_the_same_vectors_are_made_again() -> None:
    assert (FOLDER / "log.json").read_text() == text_of(log())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['kind']}: {row['name']}")
def test_a_stranger_agrees_and_sees_what_is_wrong(row: dict[str, Any]) -> None:
    check(row)
    if row["kind"] in {"item", "discovery"}:
        return  # nothing in it is signed or hashed
    half = len(row["hex"]) // 4 * 2
    changed = f"{int(row['hex'][half], 16) ^ 1:x}"
    spoiled = row | {"hex": row["hex"][:half] + changed + row["hex"][half + 1 :]}
    with pytest.raises((Wrong, BadSignatureError, ValueError)):
        check(spoiled)


@pytest.mark.parametrize("row", [r for r in ROWS if r["kind"] in DECODERS])
def test_our_codecs_take_them_and_nothing_longer(row: dict[str, Any]) -> None:
    data = bytes.fromhex(row["hex"])
    DECODERS[row["kind"]](data)  # refuses nothing of it
    with pytest.raises(Refused) as caught:
        DECODERS[row["kind"]](data + b"\0")
    assert caught.value.reason is Reason.MALFORMED


def test_items_are_read() -> None:
    items = [bytes.fromhex(row["hex"]) for row in ROWS if row["kind"] == "item"]
    assert read_item(items[0]) is None  # New Serializer Set is the log's own
    assert None not in [read_item(data) or read_change(data) for data in items[1:]]
