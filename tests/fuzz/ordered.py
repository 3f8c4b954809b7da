"""Targets: what stands in the order, what serializers sign, and the states that go with a base.

The other readers are written from docs/order.md, docs/executors.md and docs/cluster.md.
"""

import re
from collections.abc import Callable
from random import Random
from types import ModuleType
from typing import Any

from quipu.ledger import ready as readiness
from quipu.ledger.log import entry as log_entries
from quipu.ledger.log import evidence as log_evidence
from quipu.ledger.log import serializers, statements, suffix
from quipu.ledger.order import (
    changes,
    client_items,
    config_items,
    items,
    journal,
    marks,
    roster,
    wishes,
)
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.signing import verify
from quipu.ledger.words import NodeId, NodeNo
from tests.fuzz.mutate import Sample, fields_of
from tests.fuzz.repair import KEYS, MOSTLY
from tests.fuzz.target import Target
from tests.small_ledger import key_of
from tests.vectors.check import (
    KIB,
    MEMBER_ROW,
    MIB,
    U32,
    Form,
    document,
    exactly,
    flag,
    just,
    maybe,
    need,
    octets,
    of_kind,
    policy,
    rising,
    row,
    signed,
    some,
    text,
    unpack,
    whole,
)
from tests.vectors.refused import pack

CLUSTER_ID = bytes(range(32))
N1 = key_of("n1").node_id
N2 = key_of("n2").node_id
NUMBER, ID, ANY = whole(U32, 1), exactly(32), whole()
SIGNATURE = exactly(64)
NODES = some(NUMBER, 7)


def characters(most: int, least: int = 0) -> Form:
    """A text that is bounded in characters."""

    def check(value: Any) -> None:
        need(type(value) is str and least <= len(value) <= most, "text")

    return check


def sequence_name(value: Any) -> None:
    text(128)(value)
    need(re.fullmatch("[a-z0-9][a-z0-9._-]*", value) is not None, "name of a sequence")


def integer(value: Any) -> None:
    need(type(value) is int, "integer")


def one_of(*words: str) -> Form:
    return lambda value: need(type(value) is str and value in words, "word")


# --- items --------------------------------------------------------------------------------------
ITEMS = {
    2: row(just(2), NUMBER, ANY, ANY, ID),
    3: row(just(3), sequence_name, NUMBER, whole(64, 1), ANY),
    4: row(just(4), sequence_name, NUMBER, ANY, ANY, ID),
    5: row(just(5), sequence_name, NUMBER, ID),
    6: row(just(6), sequence_name, NUMBER, ANY),
}
CLIENT_ITEMS = {
    32: row(just(32), octets(128 * KIB)),
    33: row(just(33), exactly(15), whole(255), octets(128)),
    34: row(just(34), whole(U32)),
    35: row(just(35), whole(U32), ANY, ANY, octets(512)),
}
MARKS = {
    36: row(just(36), NUMBER, ANY, ID, ANY),
    37: row(just(37), NUMBER),
    38: row(just(38), NUMBER, ANY, ID, ID, characters(256), ANY, ID),
}
CANDIDATE = row(ID, text(128), some(text(128), 8), maybe(row(text(128), whole(65_535, 1))))
WISH = row(just(9), ANY, some(CANDIDATE, 32, 1), text(16))
ENDINGS = one_of("done", "replaced", "nominee-unreachable", "nominee-behind")
ROSTER_ITEMS = {
    7: row(just(7), ANY, octets(), some(octets(), 32)),
    8: row(
        just(8), octets(), some(octets(), 32), ANY, some(octets(), 32), some(octets(), 128),
        some(octets(), 32),
    ),
    9: WISH,
    10: row(just(10), ID, ENDINGS, some(ID, 32)),
}  # fmt: skip
CONFIG_ITEM = row(just(16), whole(7, 1), whole(7, 1), some(NUMBER, 7, 1))
SET_ITEM = row(just(1), whole(5, 1), some(NUMBER, 7, 1))


def reads(module: ModuleType, name: str) -> Callable[[bytes], None]:
    """The product's reader, looked up at each call, so that a planted bug is met. None is the word
    of some for a refusal."""

    def read(data: bytes) -> None:
        if getattr(module, name)(data) is None:
            refuse(Reason.MALFORMED)

    return read


def kinds(forms: dict[int, Form], bytes_max: int) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        of_kind(unpack(data, bytes_max), forms)

    return read


def own_roster_item(data: bytes) -> None:
    item = changes.read_change(data)
    if item is None:
        refuse(Reason.MALFORMED)
    if isinstance(item, wishes.Wish):
        wishes.check_wish(item)


def roster_item(data: bytes) -> None:
    value = unpack(data, 4 * MIB)
    if of_kind(value, ROSTER_ITEMS) == 9:
        check_wish(value)


def check_wish(value: Any) -> None:
    nodes = [candidate[0] for candidate in value[2]]
    need(len(set(nodes)) == len(nodes), "a member stands twice")
    policy(value[3], len(nodes))


def config_item(data: bytes) -> None:
    value = unpack(data, KIB)
    CONFIG_ITEM(value)
    rising(value[3], "nodes")
    need(value[1] == 1 or len(value[3]) == 1, "one node")


def set_item(data: bytes) -> None:
    SET_ITEM(unpack(data, 4 * KIB))


# --- entries of the log, what is signed, bases ----------------------------------------------------
LOG_ENTRY = row(just(1), NUMBER, whole(least=1), NUMBER, flag, some(octets(), 4_096))
ACCEPTED = row(ANY, NUMBER, NUMBER, ANY, ID, SIGNATURE)
LIVES = some(row(NUMBER, ANY), 64)
PROMISE = row(
    ANY, NUMBER, ANY, NUMBER, NUMBER, ANY, ID, ANY, ID, whole(U32), ANY, ID, LIVES, SIGNATURE,
)  # fmt: skip
BASE = row(ANY, ID, whole(U32), NODES, maybe(NODES), maybe(whole(5, 1)), NODES)
READY = row(just(1), ID, ANY, ANY, SIGNATURE)
LOG_PROOF = row(octets(), octets(), flag)


def log_entry(data: bytes) -> None:
    LOG_ENTRY(unpack(data, 4 * MIB))


def accepted(data: bytes) -> Any:
    value = unpack(data, 4 * KIB)
    ACCEPTED(value)
    return value


def promise(data: bytes) -> Any:
    value = unpack(data, 4 * KIB)
    PROMISE(value)
    rising([life[0] for life in value[12]], "lives")
    need(value[7] >= value[5], "the log ends before it begins")
    return value


def base(data: bytes) -> None:
    value = unpack(data, 4 * KIB)
    BASE(value)
    for nodes in (value[3], [1] if value[4] is None else value[4]):
        rising(nodes, "serializers")
        need(len(nodes) > 0, "serializers")


def own_ready(data: bytes) -> None:
    readiness.check_ready(data, CLUSTER_ID, verify)


def ready(data: bytes) -> None:
    value = unpack(data, 256)
    READY(value)
    need(signed_by(value[1], "ready", value), "signature")


def signed_by(public: bytes, tag: str, value: list[Any]) -> bool:
    return signed(public, tag, pack([CLUSTER_ID, *value[:-1]]), value[-1])


def own_log_proof(data: bytes) -> dict[str, object]:
    keys = {NodeNo(1): NodeId(N1), NodeNo(2): NodeId(N2)}
    convicted = log_evidence.check_log_proof(data, CLUSTER_ID, keys, verify)
    return {"culprit": convicted.culprit, "lie": str(convicted.lie)}


def log_proof(data: bytes) -> dict[str, object]:
    value = unpack(data, 16 * KIB)
    LOG_PROOF(value)
    one = accepted(value[0])
    other = promise(value[1]) if value[2] else accepted(value[1])
    need(one[1] == other[1], "two signers")
    lie = promise_lie(one, other) if value[2] else "two-digests"
    if not value[2]:
        need(one[2:4] == other[2:4] and one[4] != other[4], "no lie")
    public = {1: N1, 2: N2}.get(one[1])
    need(public is not None, "signer")
    assert public is not None
    need(signed_by(public, "accepted", one), "signature")
    need(signed_by(public, "promise" if value[2] else "accepted", other), "signature")
    return {"culprit": one[1], "lie": lie}


def promise_lie(one: list[Any], other: list[Any]) -> str:
    """The promise names as the greatest place that it accepted one that is not the greatest."""
    need(one[2] < other[3], "no lie")
    place, told = (one[2], one[3]), (other[9], other[10])
    need(place > told or (place == told and one[4] != other[11]), "no lie")
    return "promise-hides" if place > told else "promise-changes"


# --- states that go with a base -------------------------------------------------------------------
TIPS = some(row(NUMBER, ANY, ANY, ID))
SEQUENCES = some(row(sequence_name, ANY, ID, ANY, whole(U32), ANY), 10_000)
PARTS = some(row(characters(1 << 30), octets()), 32)
FIRST_RECORD = row(ANY, ANY, TIPS, SEQUENCES)
RECORD = row(just(2), ANY, TIPS, SEQUENCES, PARTS)
REGISTRY = row(
    some(exactly(15), 10_000),
    some(row(exactly(15), whole(255), octets(), flag), 10_000),
)
REFUSALS = one_of("", "change-in-flight", "already-so", "not-caught-up", "last-node", "wrong-stage")
CHANGE = row(ANY, whole(7, 1), some(NUMBER), characters(1 << 30), ANY, REFUSALS)
ROLE = one_of("executor", "ingest", "config")
CONFIG = row(just(1), some(row(NUMBER, ROLE, flag), 1_024), maybe(CHANGE))
MEMBERS = some(row(NUMBER, *MEMBER_ROW))
ROSTER_FIELDS: tuple[Form, ...] = (
    ANY, ID, characters(1 << 30), some(row(NUMBER, ID, characters(128, 1),
    some(characters(128, 1), 8))), some(characters(1 << 30)), ANY, some(row(integer, ID)),
    maybe(row(octets(), integer)), maybe(WISH),
    maybe(row(ID, characters(1 << 30), some(ID))),
)  # fmt: skip


def journal_record(data: bytes) -> None:
    if not data:
        return
    value = unpack(data, 4 * MIB)
    if data[:2] == b"\x94\x01":
        FIRST_RECORD(value)
        return
    RECORD(value)
    names = [part[0] for part in value[4]]
    rising(names, "parts")
    need(set(names) <= {"clients", "config", "roster"}, "part")
    for name, state in value[4]:
        if state and name == "clients":
            REGISTRY(unpack(state, 4 * MIB))
        elif state and name == "config":
            CONFIG(unpack(state, 4 * MIB))


def own_roster_record(data: bytes) -> None:
    roster.RosterState.decode(data, CLUSTER_ID)


def roster_record(data: bytes) -> None:
    forced = (some(integer), some(integer)) if data[:1] == b"\x9c" else ()
    value = unpack(data, MIB)
    row(*ROSTER_FIELDS, *forced)(value)
    if value[7] is not None:
        document(value[7][0])


# --- samples ------------------------------------------------------------------------------------
DIGEST, OTHER = bytes([9]) * 32, bytes([8]) * 32
MARGIN = 2**63
DOCUMENT = pack(
    [1, CLUSTER_ID, 2, CLUSTER_ID, 0, "majority", [[1, N1, "n1", ["member"]]], [], [], 0]
)
CANDIDATES = [[N1, "n1", ["member"], None], [N2, "n2", [], ["n2.example", 8471]]]
WISHED = [9, 2**40, CANDIDATES, "majority"]
CHANGED = [3, 2, [1, 2], "catchup", 4, ""]
CONFIGURED = [1, [[1, "executor", True], [2, "ingest", False]], CHANGED]
REGISTERED = [[bytes(15), b"\1" * 15], [[bytes(15), 1, N1, False]]]
SEQUENCE = ["orders", 7, DIGEST, 3, 1, 64]
PLAIN = [1, 5, [[1, 2, 3, DIGEST]], [SEQUENCE]]
PARTED = [["clients", pack(REGISTERED)], ["config", pack(CONFIGURED)], ["roster", b"roster"]]
WHOLE = [2, 2, [[1, 2, 3, DIGEST], [2, 1, 1, OTHER]], [SEQUENCE], PARTED]
ROSTER = [
    3, DIGEST, "majority", [[1, N1, "n1", ["member"]], [2, N2, "n2", []]], ["secret"], 2**60,
    [[1, N1], [2, N2]], [DOCUMENT, 2**40], WISHED, [DIGEST, "done", [N1]],
]  # fmt: skip


def said(tag: str, *fields: Any) -> list[Any]:
    """Signed by n1."""
    value = pack([CLUSTER_ID, *fields])
    return [*fields, key_of("n1").sign(f"quipu/sig/{tag}/1".encode() + b"\0" + value)]


ONE = said("accepted", 1, 1, 2, 3, DIGEST)
ANOTHER = said("accepted", 1, 1, 2, 3, OTHER)
HIDES = said("promise", 1, 1, 0, 5, 2, 0, DIGEST, 2, DIGEST, 1, 2, DIGEST, [[2, 7]])
CHANGES = said("promise", 1, 1, 4, 5, 2, 0, DIGEST, 3, DIGEST, 2, 3, OTHER, [[1, 1], [2, 7]])
READIED = said("ready", 1, N1, 2, 2**40)


def packed(*values: Any) -> list[Sample]:
    return [[pack(value)] for value in values]


# --- what gets a changed statement past its signature --------------------------------------------
def signed_again(tag: str, public: Callable[[list[Any]], Any]) -> Callable[[Any, Any], Any]:
    def repair(random: Random, data: Any) -> Any:
        fields = fields_of(data) if type(data) is bytes else None
        if not fields or random.random() > MOSTLY:
            return data
        node = public(fields)
        key = KEYS.get(node) if type(node) is bytes else None
        if key is None:
            return data
        value = pack([CLUSTER_ID, *fields[:-1]])
        fields[-1] = key.sign(f"quipu/sig/{tag}/1".encode() + b"\0" + value)
        return pack(fields)

    return repair


def _signer(fields: list[Any]) -> Any:
    number = fields[1] if len(fields) > 1 else None
    return {1: N1, 2: N2}.get(number) if type(number) is int else None


_ready = signed_again("ready", lambda fields: fields[1] if len(fields) == 5 else None)
_accepted, _promise = signed_again("accepted", _signer), signed_again("promise", _signer)


def repair_ready(random: Random, sample: Sample) -> Sample:
    return [_ready(random, sample[0])]


def repair_log_proof(random: Random, sample: Sample) -> Sample:
    fields = fields_of(sample[0])
    if fields is None or len(fields) != 3:
        return sample
    other = _promise if fields[2] is True else _accepted
    return [pack([_accepted(random, fields[0]), other(random, fields[1]), fields[2]])]


def targets() -> list[Target]:
    item_samples = packed(
        [2, 1, 2, 3, DIGEST], [3, "orders", 1, 64, 0], [4, "orders", 1, 9, 7, DIGEST],
        [5, "a.b-c_d", U32, OTHER], [6, "o" * 128, 2, MARGIN],
    )  # fmt: skip
    client_samples = packed(
        [32, b"rules"], [33, bytes(15), 1, N1], [34, 7], [35, 7, 300, 299, bytes(64)]
    )
    mark_samples = packed(
        [36, 1, 128, DIGEST, 130], [37, 2], [38, 3, 640, DIGEST, OTHER, "sql/1", 4096, DIGEST]
    )
    roster_samples = packed(
        [7, 2**40, DOCUMENT, [pack(READIED)]],
        [8, DOCUMENT, [b"seal"], 2**40, [], [b"receipt"], [b"inv"]],
        WISHED,
        [10, DIGEST, "replaced", [N1, N2]],
    )
    config_samples = packed([16, 1, 1, [1, 2, 3]], [16, 2, 2, [4]], [16, 5, 5, [1]])
    proofs = packed(
        [pack(ONE), pack(ANOTHER), False], [pack(ONE), pack(HIDES), True],
        [pack(ONE), pack(CHANGES), True],
    )  # fmt: skip
    return [
        Target("order-item", reads(items, "read_item"), kinds(ITEMS, KIB),
               item_samples),
        Target("client-item", reads(client_items, "read_client_item"),
               kinds(CLIENT_ITEMS, 129 * KIB), client_samples),
        Target("executor-mark", reads(marks, "read_mark"), kinds(MARKS, KIB),
               mark_samples),
        Target("roster-item", own_roster_item, roster_item, roster_samples),
        Target("config-item", reads(config_items, "read_config"), config_item,
               config_samples),
        Target("serializer-set", reads(serializers, "read_set"), set_item,
               packed([1, 1, [1, 2, 3]], [1, 5, [2]])),
        Target("log-entry", reads(log_entries, "decode_log_entry"), log_entry,
               packed([1, 2, 3, 1, False, [b"item", b""]], [1, 1, 1, 1, True, []])),
        Target("accepted", reads(statements, "decode_accepted"), accepted,
               packed(ONE, ANOTHER)),
        Target("promise", reads(statements, "decode_promise"), promise,
               packed(HIDES, CHANGES)),
        Target("log-base", reads(suffix, "decode_base"), base,
               packed([0, DIGEST, 0, [1, 2, 3], None, None, []],
                      [300, DIGEST, 7, [1, 2], [1, 2, 3], 3, [1, 2, 3]])),
        Target("ready", own_ready, ready, packed(READIED), repair_ready),
        Target("log-proof", own_log_proof, log_proof, proofs, repair_log_proof),
        Target("journal-record", reads(journal, "decode_record"), journal_record,
               [[b""], *packed(PLAIN, WHOLE)]),
        Target("roster-record", own_roster_record, roster_record,
               packed(ROSTER, [*ROSTER, [1], [2]], [*ROSTER[:7], None, None, None])),
    ]  # fmt: skip
