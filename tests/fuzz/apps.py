"""Targets: what apps send to a node, and what a node sends to its clients."""

import base64
import json
import math
import re
from random import Random
from typing import Any
from urllib.parse import urlsplit
from zlib import crc32

import msgpack
import msgspec

from quipu.api import bodies, cursors, unread
from quipu.api.problems import Problem
from quipu.client import frames
from quipu.ledger.refusals import Reason, Refused, refuse
from quipu.ledger.words import Cord, EventId, Journal, NodeId, NodeNo, Seq
from quipu.node.service import Mark
from quipu.p2p import addresses
from quipu.storage.executors import acl, interpreter, request
from quipu.storage.executors.outcome import MessageFailed
from tests.fuzz.kept import json_of
from tests.fuzz.mutate import Sample, fields_of
from tests.fuzz.ordered import characters
from tests.fuzz.target import Agreement, Reader, Target, Unsure
from tests.vectors import check, ingest
from tests.vectors.check import KIB, MIB, Bad, need, octets, row, some, unpack, whole
from tests.vectors.refused import pack

NODE = NodeId(bytes([1]) * 32)
DIGEST = bytes([9]) * 32


def problem_is_refused(reader: Reader) -> Reader:
    def read(*inputs: bytes) -> Any:
        try:
            return reader(*inputs)
        except Problem as found:
            raise Refused(Reason.MALFORMED, str(found)) from found

    return read


# --- bodies ---------------------------------------------------------------------------------------
def map_of(data: bytes) -> bytes:
    """An array of pairs becomes a map; what is none stays as it is."""
    fields = fields_of(data)
    if not fields or not all(isinstance(pair, list) and len(pair) == 2 for pair in fields):
        return data
    head = msgpack.Packer().pack_map_header(len(fields))
    return bytes(head) + b"".join(pack(part) for pair in fields for part in pair)


def own_entry_of(data: bytes, media_type: str) -> dict[str, object]:
    """What is shaped is an entry by anybody's reading, and says what the body says."""
    shaped = bodies.read_entry(data, media_type, bodies.Defaults())
    fields = check.entry(shaped.canonical)
    return {"stream": fields[2], "key": fields[6], "data": fields[9]}


def own_json_entry(data: bytes) -> dict[str, object]:
    told = own_entry_of(json_of(data), bodies.JSON)
    return {**told, "data": _parsed(told["data"])}


def _parsed(data: Any) -> str:
    """As a reader of JSON sees it; bytes of another kind as they are."""
    try:
        return repr(json.loads(data))
    except ValueError:
        return repr(data)
    except RecursionError:
        raise Unsure from None


def json_entry(data: bytes) -> dict[str, object]:
    try:
        told = json.loads(json_of(data))
    except (ValueError, RecursionError) as error:
        raise Bad(str(error)) from error
    need(type(told) is dict, "object")
    known = {"data", "data_base64", "stream", "content_type", "idempotency_key", "time"}
    need(set(told) <= known, "fields")
    need(("data" in told) != ("data_base64" in told), "data")
    shown = repr(told["data"]) if "data" in told else _parsed(_decoded(told["data_base64"]))
    stream, key = told.get("stream", "default"), told.get("idempotency_key")
    check.stream(stream)
    return {"stream": stream, "key": key, "data": shown}


def _decoded(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, TypeError) as error:
        raise Bad(str(error)) from error


def own_packed_entry(data: bytes) -> dict[str, object]:
    return own_entry_of(map_of(data), bodies.MSGPACK)


def packed_entry(data: bytes) -> dict[str, object]:
    """The bytes of `data` are found by what msgpack reads, up to where the value ends."""
    body = map_of(data)
    told: dict[Any, Any] = {}
    unpacker = msgpack.Unpacker(raw=False, strict_map_key=False, max_buffer_size=1 << 30)
    unpacker.feed(body)
    try:
        for _ in range(unpacker.read_map_header()):
            name = unpacker.unpack()
            start = unpacker.tell()
            if name == "data":
                unpacker.skip()
                told[name] = body[start : unpacker.tell()]
            else:
                told[name] = unpacker.unpack()
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise Bad(str(error)) from error
    need(unpacker.tell() == len(body), "the end")
    need(("data" in told) != ("data_base64" in told), "data")
    found = told["data"] if "data" in told else _decoded(told["data_base64"])
    if "data" in told and told.get("content_type", bodies.MSGPACK).lower() != bodies.MSGPACK:
        found = msgpack.unpackb(found)
    return {
        "stream": told.get("stream", "default"),
        "key": told.get("idempotency_key"),
        "data": found,
    }


def own_cloudevent(data: bytes) -> dict[str, object]:
    return {"data": own_entry_of(json_of(data), bodies.CLOUDEVENT)["data"]}


def cloudevent(data: bytes) -> dict[str, object]:
    try:
        told = json.loads(json_of(data))
    except (ValueError, RecursionError) as error:
        raise Bad(str(error)) from error
    need(type(told) is dict and told.get("specversion") == "1.0", "specversion")
    need(all(type(told.get(name)) is str for name in ("id", "source", "type")), "attributes")
    return {"data": json_of(data).strip()}


def own_batch(data: bytes) -> dict[str, object]:
    items = bodies.read_array(json_of(data), bodies.JSON)
    return {"items": [_parsed(item) for item in items]}


def batch(data: bytes) -> dict[str, object]:
    try:
        told = json.loads(json_of(data))
    except ValueError as error:
        raise Bad(str(error)) from error
    except RecursionError:
        raise Unsure from None
    need(type(told) is list, "array")
    return {"items": [repr(item) for item in told]}


# --- cursors --------------------------------------------------------------------------------------
def checked_text(data: bytes) -> str:
    whole_data = data + crc32(data).to_bytes(4, "big")
    return base64.urlsafe_b64encode(whole_data).rstrip(b"=").decode()


def own_cursor(data: bytes) -> None:
    """Read, and written anew, it says the same."""
    found = cursors.read_cursor(checked_text(data), NODE, "from")
    again = cursors.read_cursor(found.text(NODE), NODE, "from")
    assert found.downwards or again == found


def own_walk(data: bytes) -> None:
    found = unread.read_walk(checked_text(data), "from")
    assert unread.read_walk(found.text(), "from") == found


def own_cursor_text(data: bytes) -> None:
    cursors.read_cursor(data.decode("latin-1"), NODE, "from")


def an_array(data: bytes) -> None:
    try:
        value = msgpack.unpackb(data, strict_map_key=False)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise Bad(str(error)) from error
    need(type(value) is list and value[:1] == [1], "version")


def a_checked_text(data: bytes) -> None:
    try:
        found = base64.urlsafe_b64decode(data + b"=" * (-len(data) % 4))
    except ValueError as error:
        raise Bad(str(error)) from error
    need(len(found) >= 4 and crc32(found[:-4]).to_bytes(4, "big") == found[-4:], "checksum")


def cursor_samples() -> list[bytes]:
    vector = {Cord(NodeNo(1), Journal(2**60)): Seq(7), Cord(NodeNo(2), Journal(9)): Seq(2**40)}
    made = [
        cursors.Cursor(7, EventId(DIGEST), 3, False, False, vector),
        cursors.Cursor(0, EventId(b""), 0, True),
        cursors.Cursor(),
    ]
    return [cursor.text(NODE).encode() for cursor in made]


def inside(text: bytes) -> bytes:
    return base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))[:-4]


def walk_samples() -> list[Sample]:
    place = Cord(NodeNo(3), Journal(2**50))
    made = [unread.Walk(), unread.Walk(Mark(place, Seq(4), EventId(DIGEST)), 2)]
    return [[inside(walk.text().encode())] for walk in made]


# --- requests of clients --------------------------------------------------------------------------
INTEGERS = range(-(2**63), 2**63)


def own_statement(data: bytes) -> dict[str, object]:
    try:
        found = interpreter.decode_statement(request.Message(request.STATEMENT, data))
    except MessageFailed as failed:
        raise Refused(Reason.MALFORMED, str(failed)) from failed
    return {"sql": found.sql, "parameters": repr(list(found.parameters))}


def statement(data: bytes) -> dict[str, object]:
    try:
        value = msgpack.unpackb(data, strict_map_key=False)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise Bad(str(error)) from error
    need(type(value) is list and 1 <= len(value) <= 2 and type(value[0]) is str, "statement")
    parameters = value[1] if len(value) == 2 else []
    need(type(parameters) is list and len(parameters) <= 10_000, "parameters")
    for one in parameters:
        need(type(one) in (type(None), str, bytes, int, float), "type")
        need(type(one) is not int or one in INTEGERS, "64 bits")
        need(type(one) is not float or not math.isnan(one), "NaN")
    return {"sql": value[0], "parameters": repr(parameters)}


MESSAGES = some(row(whole(255), octets()))
RULES = row(some(row(characters(128, 1), whole(7)), 1_000))


def own_messages(data: bytes) -> None:
    request.decode_messages(data)


def messages(data: bytes) -> None:
    MESSAGES(unpack(data, MIB))


def own_acl(data: bytes) -> None:
    found = acl.decode_acl(data)
    for rule in found.rules:
        found.grants(rule.tables, acl.Right.READ)


def access_list(data: bytes) -> None:
    RULES(unpack(data, 128 * KIB))


# --- what a client reads --------------------------------------------------------------------------
def own_answer(data: bytes) -> None:
    try:
        found = frames.decode_answer(data)
    except msgspec.DecodeError as error:
        raise Refused(Reason.MALFORMED, str(error)) from error
    if isinstance(found, frames.Stored):
        for run in found.runs:
            frames.time_text(run.hlc)


def answers() -> list[Sample]:
    return [
        [pack([0, 1, 10_000, 2**23, 64, 2_048, 2**21, 2**20, 5_000])],
        [
            pack(
                [1, [[7, 2, DIGEST, 0, 2**56, "stored", False], [9, 1, DIGEST, 3, 5, "read", True]]]
            )
        ],
        [pack([2, [[1, 1, 503, "unread-backlog", True, "later", ""]]])],
        [pack([3, 503, "draining", True, "the node stops"])],
    ]


def own_uri(data: bytes) -> dict[str, object]:
    try:
        node_id, endpoint = addresses.parse_uri(data.decode("latin-1"))
    except addresses.BadUri as bad:
        raise Refused(Reason.MALFORMED, str(bad)) from bad
    again = addresses.parse_uri(addresses.uri_of(node_id, endpoint))
    assert again == (node_id, endpoint)
    return {"host": endpoint.host.lower(), "port": endpoint.port, "node": node_id.hex()}


def uri(data: bytes) -> dict[str, object]:
    """As the standard library splits it."""
    try:
        split = urlsplit(data.decode("latin-1"))
        host, port = split.hostname, split.port
    except ValueError as error:
        raise Bad(str(error)) from error
    node = split.path.removeprefix("/")
    need(split.scheme == "quipu" and re.fullmatch("[0-9a-fA-F]{64}", node) is not None, "uri")
    need(host is not None and bool(port), "where")
    return {"host": host, "port": port, "node": node.lower()}


def repair_uri(random: Random, sample: Sample) -> Sample:
    """With the whole of a node id behind it, mostly."""
    if random.random() < 0.3:
        return sample
    where = sample[0].rpartition(b"/")[0] or sample[0]
    return [where + b"/" + DIGEST.hex().encode()]


def targets() -> list[Target]:
    narrower = Agreement.NARROWER
    node = DIGEST.hex().encode()
    entry = [["data", [["item", "a"], ["count", 3]]], ["stream", "orders"],
             ["idempotency_key", "k-1"], ["time", "2026-01-31T12:00:00Z"]]  # fmt: skip
    encoded = [["data_base64", "AAEC"], ["content_type", "application/x-thing"]]
    event = [["specversion", "1.0"], ["id", "1"], ["source", "/s"], ["type", "t"],
             ["time", "2026-01-31T12:00:00.5+02:00"], ["data", [["a", [1, None]]]]]  # fmt: skip
    raw = [b'{"data":{"a":[1,2.5,null,"\\u00e9"]},"stream":"a"}', b'{"data":"\\ud83d\\ude00"}']
    return [
        Target("json-entry", problem_is_refused(own_json_entry), json_entry,
               [[pack(entry)], [pack(encoded)], *([one] for one in raw)], agreement=narrower),
        Target("packed-entry", problem_is_refused(own_packed_entry), packed_entry,
               [[pack(entry)], [pack(encoded)], [map_of(pack(entry))]], agreement=narrower),
        Target("cloudevent", problem_is_refused(own_cloudevent), cloudevent,
               [[pack(event)], [json_of(pack(event))]], agreement=narrower),
        Target("batch", problem_is_refused(own_batch), batch,
               [[b'[{"data":1},{"data":"a"}]'], [b" [ 1 , [2] ,\n{} ] "]], agreement=narrower),
        Target("cursor", problem_is_refused(own_cursor), an_array,
               [[inside(text)] for text in cursor_samples()], agreement=narrower),
        Target("cursor-text", problem_is_refused(own_cursor_text), a_checked_text,
               [[text] for text in cursor_samples()], agreement=narrower),
        Target("unread-cursor", problem_is_refused(own_walk), an_array, walk_samples(),
               agreement=narrower),
        Target("statement", own_statement, statement,
               [[pack(["INSERT INTO t VALUES (?, ?, ?)", [1, "a", b"\0"]])],
                [pack(["SELECT 1"])], [pack(["SELECT ?", [1.5, None, -(2**63), 2**63 - 1]])]]),
        Target("messages", own_messages, messages,
               [[pack([])], [pack([[1, b"body"], [2, b""], [255, b"x" * 300]])]]),
        Target("access-list", own_acl, access_list,
               [[pack([[]])], [pack([[["*", 7], ["orders", 1], ["o*", 3]]])]]),
        Target("ingest-answer", own_answer, ingest.answer, answers(), agreement=Agreement.WIDER),
        Target("uri", own_uri, uri,
               [[b"quipu://n1.example:8471/" + node], [b"quipu://[::1]:1/" + node],
                [b"quipu://10.0.0.1:65535/" + node.upper()]], repair_uri, agreement=narrower),
    ]  # fmt: skip


__all__ = ["refuse", "targets"]
