"""The frames of stream ingest, byte for byte: `python -m tests.api.test_ingest_frames` writes the
vectors anew. The node's codec, the client's, and a reader without either agree on them."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from quipu.api.codes import Code
from quipu.api.idempotency import Outcome
from quipu.api.ingest_frames import (
    Answer,
    Goodbye,
    Refused,
    Stored,
    StoredRun,
    Welcome,
    encode_answer,
    read_frame,
    refused_runs,
    stored_runs,
)
from quipu.api.problems import Problem
from quipu.client import frames as of_client
from quipu.ledger.words import EventId, Hlc
from quipu.node.service import EntryId
from tests import tree
from tests.vectors import ingest
from tests.vectors.check import Bad, plain
from tests.vectors.refused import DEEP, FLOAT_2_64, Raw, pack

PATH = Path(ingest.__file__).with_name("ingest.json")
EVENT = EventId(bytes(range(32)))
HLC = Hlc(1_790_000_000_000 << 16 | 3)
SENT: dict[str, tuple[int, list[of_client.Item]]] = {
    "one entry": (0, [of_client.item_of(b"hello", None, None, None, None)]),
    "every field": (
        7,
        [
            of_client.item_of(
                b'{"order":7}', "orders", "order-7", "application/json", 1_790_000_000_000
            ),
            of_client.item_of(b"", "orders", None, None, None),
            of_client.item_of(b"a,b", None, "k", "text/csv", None),
        ],
    ),
    "the last numbers": (2**64 - 2, [(b"x",), (b"y",)]),
}
REFUSAL = Problem(Code.KEY_REUSED, "other bytes", entry_id=str(EntryId(EVENT, 5)))
ANSWERS: dict[str, Answer] = {
    "welcome": Welcome(1, 8_192, 8 << 20, 64, 2_048, 2 << 20, 1 << 20, 15_000),
    "stored": Stored(
        [
            StoredRun(7, 2, EVENT, 12, HLC, "stored", False),
            StoredRun(9, 1, EVENT, 5, HLC, "read", True),
        ]
    ),
    "refused": Refused(refused_runs(7, [REFUSAL, REFUSAL])),
    "goodbye": Goodbye(503, "draining", True, "the node is stopping"),
}
WHOLE = pack([7, [[b"x", "orders", "k", "a/b", 5], [b"y"]]])
NO_FRAMES = {
    **{f"cut at {size}": WHOLE[:size] for size in range(len(WHOLE))},
    "a trailing byte": WHOLE + b"\0",
    "twice": WHOLE + WHOLE,
    "a map": pack({"first": 0}),
    "a map as an item": Raw(b"\x92\x00\x91\x80"),
    "one field": pack([0]),
    "three fields": pack([0, [[b"x"]], 0]),
    "no items": pack([0, []]),
    "too many items": pack([0, [[b""]] * 2_049]),
    "a number below zero": pack([-1, [[b"x"]]]),
    "a number as a float": pack([1.0, [[b"x"]]]),
    "a number beyond u64": pack([Raw(FLOAT_2_64), [[b"x"]]]),
    "numbers that end beyond u64": pack([2**64 - 1, [[b"x"], [b"y"]]]),
    "true as a number": pack([True, [[b"x"]]]),
    "an item that is data": pack([0, [b"x"]]),
    "an item without data": pack([0, [[]]]),
    "an item of six fields": pack([0, [[b"x", None, None, None, None, None]]]),
    "text as data": pack([0, [["x"]]]),
    "nil as data": pack([0, [[None]]]),
    "an extension as data": pack([0, [[Raw(b"\xd4\x01\x00")]]]),
    "bytes as a stream": pack([0, [[b"x", b"orders"]]]),
    "a number as a key": pack([0, [[b"x", None, 7]]]),
    "no UTF-8": pack([0, [[b"x", Raw(b"\xa2\xc3\x28")]]]),
    "half a surrogate": pack([0, [[b"x", Raw(b"\xa3\xed\xa0\x80")]]]),
    "a time before 1970": pack([0, [[b"x", None, None, None, -1]]]),
    "a time as text": pack([0, [[b"x", None, None, None, "now"]]]),
    "deep": pack([0, [[Raw(b"\x91" * DEEP + b"\x90")]]]),
    "many announced": Raw(b"\x92\x00\xdd\xff\xff\xff\xff"),
    "large": pack([0, [[bytes(2 << 20)]]]),
}
EXAMPLE = re.compile(r"^([0-9a-f]{2}(?: [0-9a-f]{2})*)$", re.MULTILINE)


def made() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, (first, items) in SENT.items():
        data = of_client.encode_frame(first, items)
        told = {"name": name, "from": "producer", "hex": data.hex()}
        rows.append({**told, "value": plain(ingest.frame(data))})
    for name, said in ANSWERS.items():
        data = encode_answer(said)
        told = {"name": name, "from": "node", "hex": data.hex()}
        rows.append({**told, "value": plain(ingest.answer(data))})
    return rows


def text_of(rows: list[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(json.dumps(item, separators=(",", ":")) for item in rows) + "\n]\n"


def vectors(sender: str) -> list[Any]:
    rows = json.loads(PATH.read_text(encoding="ascii"))
    return [pytest.param(item, id=item["name"]) for item in rows if item["from"] == sender]


def test_the_same_vectors_are_made_again() -> None:
    assert PATH.read_text(encoding="ascii") == text_of(made())


@pytest.mark.parametrize("item", vectors("producer"))
def test_the_node_reads_what_a_producer_sends(item: dict[str, Any]) -> None:
    frame = read_frame(bytes.fromhex(item["hex"]))
    found = [frame.first, [list(msgspec.structs.astuple(one)) for one in frame.entries]]
    assert plain(found) == item["value"]


@pytest.mark.parametrize("item", vectors("node"))
def test_the_client_reads_what_a_node_says(item: dict[str, Any]) -> None:
    said = of_client.decode_answer(bytes.fromhex(item["hex"]))
    assert plain(msgspec.to_builtins(said, builtin_types=(bytes,))) == item["value"]


def test_a_client_passes_over_what_a_newer_node_adds() -> None:
    data = msgspec.msgpack.encode([3, 503, "draining", True, "bye", "more"])
    assert of_client.decode_answer(data) == of_client.Goodbye(503, "draining", True, "bye")


@pytest.mark.parametrize(
    "data",
    [
        b"\xc1",
        b"\x95\x03\xcd\x01\xf4\xa2\xc3\x28\xc2\xa0",  # its code is not UTF-8
        b"\x96\x03\xcd\x01\xf4\xa1a\xc2\xa0" + b"\x91" * 100_000,  # a newer node's field
    ],
    ids=["nothing", "text", "nested"],
)
def test_a_client_refuses_every_wrong_answer_in_one_way(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        of_client.decode_answer(data)


def test_a_time_beyond_every_calendar_is_told() -> None:
    assert of_client.time_text(2**64 - 1) == "9999-12-31T23:59:59.999Z"
    assert of_client.time_text(0) == "1970-01-01T00:00:00.000Z"


@pytest.mark.parametrize("data", NO_FRAMES.values(), ids=list(NO_FRAMES))
def test_what_is_no_frame_is_refused_by_both(data: bytes) -> None:
    with pytest.raises(Problem):
        read_frame(data)
    with pytest.raises(Bad):
        ingest.frame(data)


def test_runs_end_where_anything_changes() -> None:
    other = EventId(bytes(32))
    told = [(EVENT, 3, False), (EVENT, 4, False), (EVENT, 6, False), (other, 7, False)]
    told += [(other, 8, True), (other, 9, True)]
    outcomes = [Outcome(EntryId(event, index), HLC, again) for event, index, again in told]
    states = dict.fromkeys((EVENT, other), "stored")
    runs = stored_runs(20, outcomes, states)  # type: ignore[arg-type]
    shown = [(run.first, run.count, run.index) for run in runs]
    assert shown == [(20, 2, 3), (22, 1, 6), (23, 1, 7), (24, 2, 8)]


def test_the_bytes_shown_in_the_document_are_the_vectors() -> None:
    rows = {item["name"]: item["hex"] for item in made()}
    shown = [line.replace(" ", "") for line in EXAMPLE.findall(tree.read("docs/ingest.md"))]
    assert shown == [
        rows[name] for name in ("one entry", "every field", "stored", "refused", "goodbye")
    ]


if __name__ == "__main__":
    PATH.write_text(text_of(made()), encoding="ascii")
