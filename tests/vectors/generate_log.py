"""Vectors of the log, made by the product's codecs; `check_log.py` reads them from outside."""

from typing import Any

from quipu.ledger.canonical import encode
from quipu.ledger.log.entry import encode_log_entry, first_digest, next_digest
from quipu.ledger.log.evidence import prove
from quipu.ledger.log.serializers import Stage, encode_set
from quipu.ledger.log.statements import UNSIGNED, Promise, sign_accepted, sign_promise
from quipu.ledger.log.words import Index, Place, Regime
from quipu.ledger.order.changes import Close, Open, encode_change
from quipu.ledger.order.items import (
    EventReference,
    Lock,
    LockAndPublish,
    Publish,
    Release,
    encode_item,
)
from quipu.ledger.order.sequences import next_running
from quipu.ledger.ready import sign_ready
from quipu.ledger.words import EpochNo, NodeNo
from tests.small_ledger import key_of
from tests.vectors import discovery

Rows = list[dict[str, Any]]
CLUSTER_ID = bytes(range(32))
DIGEST = bytes([9]) * 32
EDGE = 2**32 - 1
DOCUMENT = b"document"  # its own vectors are in documents.json


def row(kind: str, name: str, data: bytes, **told: str) -> dict[str, Any]:
    return {"kind": kind, "name": name, "hex": data.hex(), **told}


def log() -> Rows:
    key = key_of("n1")
    public = key.node_id.hex()
    ready = sign_ready(key, CLUSTER_ID, 2, 2**40)
    items = {
        "new set": encode_set(Stage.IMPLEMENT, (NodeNo(1), NodeNo(EDGE))),
        "event": encode_item(EventReference(1, 2**64 - 1, 7, DIGEST)),
        "lock": encode_item(Lock("orders", 2, 64, 0)),
        "publish": encode_item(Publish("orders", 2, 9, 10, DIGEST)),
        "lock and publish": encode_item(LockAndPublish("orders", 2, DIGEST)),
        "release": encode_item(Release("orders", 2, 9)),
        "close": encode_change(Close(2**40, DOCUMENT, [ready])),
        "open": encode_change(Open(DOCUMENT, [b"seal"], 2**40, [b"proof"], [], [b"inv"])),
    }
    rows = [row("item", name, data) for name, data in items.items()]
    digest = first_digest(CLUSTER_ID)
    for index, (regime, held) in enumerate(
        ((1, []), (1, list(items.values())[1:]), (EDGE, [items["new set"]])), start=1
    ):
        place = Place(Regime(regime), Index(index))
        data = encode_log_entry(place, NodeNo(regime), held, final=index == 3)
        before, digest = digest, next_digest(digest, data)
        rows.append(row("entry", f"index {index}", data, before=before.hex(), digest=digest.hex()))
    place = Place(Regime(EDGE), Index(3))
    signed = sign_accepted(key, CLUSTER_ID, EpochNo(1), NodeNo(1), (place, digest))
    other = sign_accepted(key, CLUSTER_ID, EpochNo(1), NodeNo(1), (place, DIGEST))
    unsigned = Promise(
        1, 1, 5, EDGE, 2, 1, DIGEST, 3, digest, 7, 3, digest, [(2, 6), (3, 8)], UNSIGNED
    )
    promise = sign_promise(key, CLUSTER_ID, unsigned)
    rows.append(row("accepted", "at an edge", encode(signed), public=public))
    rows.append(row("promise", "with lives", encode(promise), public=public))
    rows.append(row("ready", "for epoch 2", ready, public=public))
    rows.append(row("proof", "two digests", prove(signed, other), public=public))
    rows += [row("discovery", name, encode(said)) for name, said in discovery.SAMPLES.items()]
    running = next_running(bytes(32), 1, DIGEST)
    rows.append(row("running", "number 1", DIGEST, digest=running.hex()))
    return rows
