"""What is fuzzed: each decoder of the product beside a reader that shares no code with it."""

import json
from pathlib import Path
from typing import Any

from quipu import verify as offline
from quipu.api import ingest_frames
from quipu.api.problems import Problem
from quipu.ledger import bundle as bundles
from quipu.ledger import entry, epochs, event, evidence, inv, messages
from quipu.ledger.log.messages import decode_log_message
from quipu.ledger.order.discovering import decode_discovery
from quipu.ledger.refusals import Reason, Refused, refuse
from quipu.ledger.signing import verify
from tests.fuzz import apps, kept, ordered, repair
from tests.fuzz.mutate import Sample
from tests.fuzz.target import Target
from tests.peer_readers import READERS
from tests.vectors import check, check_peers, discovery, ingest, log_messages

FOLDER = Path(check.__file__).parent


# The product's functions are looked up at each call, so that a planted bug is met.
def own_body(header: bytes, body: bytes) -> None:
    event.decode_body(event.decode_header(header), body)


def own_signed_event(header: bytes, signature: bytes, body: bytes) -> None:
    if not event.has_valid_signature(event.decode_event(header, signature, body), verify):
        refuse(Reason.BAD_SIGNATURE)


def own_signed_inv(data: bytes) -> None:
    if not inv.has_valid_signature(inv.decode_inv(data), verify):
        refuse(Reason.BAD_SIGNATURE)


def own_proof(data: bytes, cluster_id: bytes) -> dict[str, object]:
    found = evidence.check_proof(data, cluster_id, verify)
    return {
        "culprit": found.culprit.hex(),
        "as_signer": found.as_signer,
        "journal": found.journal,
        "seq": found.seq,
        "low": found.low.hex(),
        "high": found.high.hex(),
    }


def own_bundle(data: bytes) -> dict[str, object]:
    found = bundles.check_bundle(data, verify)
    return {
        "cluster_id": found.cluster_id.hex(),
        "event": found.event.hex(),
        "index": found.entry_index,
        "data": found.entry.data.hex(),
        "epoch": found.epoch.number,
        "by": "cut" if found.by_cut else "receipts",
        "confirmed": list(found.confirmed),
        "required": found.required,
    }


def offline_bundle(data: bytes) -> dict[str, object]:
    try:
        found = offline.verify(data)
    except offline.VerificationFailed as failed:
        raise Refused(Reason.NO_PROOF, str(failed)) from failed
    return {
        "cluster_id": found.cluster_id.hex(),
        "event": found.event_id.hex(),
        "index": found.index,
        "data": found.entry.data.hex(),
        "epoch": found.epoch,
        "by": found.by,
        "confirmed": [member.number for member in found.confirmed_by],
        "required": found.required,
    }


def own_frame(data: bytes) -> dict[str, object]:
    try:
        frame = ingest_frames.read_frame(data)
    except Problem as found:
        raise Refused(Reason.MALFORMED, str(found)) from found
    items = [[i.data, i.stream, i.key, i.content_type, i.time] for i in frame.entries]
    return {"first": frame.first, "items": items}


def other_frame(data: bytes) -> dict[str, object]:
    first, items = ingest.frame(data)
    return {"first": first, "items": items}


def vectors(name: str) -> list[Any]:
    found: list[Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def valid(name: str) -> list[Sample]:
    return [[bytes.fromhex(item["hex"])] for item in vectors(name)]


def frames(kind: int) -> list[Sample]:
    return [sample for sample in valid("messages") if sample[0][1] == kind]


def sent_frames() -> list[Sample]:
    return [[bytes.fromhex(i["hex"])] for i in vectors("ingest") if i["from"] == "producer"]


def events() -> list[Sample]:
    keys = ("hex", "signature", "body")
    return [[bytes.fromhex(item[key]) for key in keys] for item in vectors("events")]


def refused(kind: str, name: str = "refused") -> list[Sample]:
    """What the vectors refuse is a start as good as any; the huge ones apart."""
    told = [item for item in vectors(name) if item["kind"] == kind and "cut" not in item]
    samples = [[check.joined(parts) for parts in item["inputs"]] for item in told]
    return [sample for sample in samples if sum(map(len, sample)) < 10_000]


def of_peers(kind: str) -> list[Sample]:
    told = [item["inputs"] for item in vectors("peers") if item["kind"] == kind]
    taken = [[bytes.fromhex(part) for part in inputs] for inputs in told]
    return taken * 4 + refused(kind, "peers_refused")


def peer_targets() -> list[Target]:
    repairs = {
        "cast": repair.cast,
        "frame": repair.frame,
        "hello": repair.hello,
        "endpoint": repair.endpoint,
        "gossip": repair.gossip,
    }
    return [
        Target(kind, READERS[kind], oracle, of_peers(kind), repairs.get(kind))
        for kind, oracle in check_peers.DECODERS.items()
    ]


def targets() -> list[Target]:
    made = events()
    proofs = [
        [bytes.fromhex(item["hex"]), bytes.fromhex(item["cluster_id"])]
        for item in vectors("proofs")
    ]
    proven = valid("bundles")
    oracles = check.DECODERS
    decode_message, oracle = own_message, oracles["message"]
    simple = [
        Target("entry", own_entry, oracles["entry"], valid("entries")),
        Target("header", own_header, oracles["header"], [[sample[0]] for sample in made]),
        Target("genesis", own_genesis, oracles["genesis"], valid("genesis")),
        Target("document", own_document, oracles["document"], valid("documents")),
        Target("inv", own_inv, oracles["inv"], valid("receipts")),
        Target("message", decode_message, oracle, valid("messages")),
    ]
    return [
        *[Target(t.name, t.product, t.oracle, t.corpus + refused(t.name)) for t in simple],
        Target("body", own_body, oracles["body"], [[s[0], s[2]] for s in made], repair.body),
        Target("event", own_event, oracles["event"], made, repair.event),
        Target("signed-event", own_signed_event, oracles["signed-event"], made, repair.event),
        Target("signed-inv", own_signed_inv, oracles["signed-inv"], valid("receipts"), repair.inv),
        Target("get-data", decode_message, oracle, frames(3)),
        Target("sync-event", decode_message, oracle, frames(4)),
        Target("answer", decode_message, oracle, frames(5)),
        Target("ingest-frame", own_frame, other_frame, sent_frames()),
        Target("proof", own_proof, oracles["proof"], proofs, repair.proof, share=4),
        Target("bundle", own_bundle, oracles["bundle"], proven, repair.bundle, share=4),
        Target("bundle-offline", offline_bundle, oracles["bundle"], proven, repair.bundle, share=4),
        Target("discovery", own_discovery, discovery.read_message, discovery.samples()),
        Target("log-message", own_log_message, log_messages.read_message, log_messages.samples()),
        *peer_targets(),
        *ordered.targets(),
        *kept.targets(),
        *apps.targets(),
    ]


def own_entry(data: bytes) -> None:
    entry.decode_entry(data)


def own_header(data: bytes) -> None:
    event.decode_header(data)


def own_event(header: bytes, signature: bytes, body: bytes) -> None:
    event.decode_event(header, signature, body)


def own_genesis(data: bytes) -> None:
    epochs.decode_genesis(data)


def own_document(data: bytes) -> None:
    epochs.decode_document(data)


def own_inv(data: bytes) -> None:
    inv.decode_inv(data)


def own_log_message(data: bytes) -> None:
    decode_log_message(data)


def own_discovery(data: bytes) -> None:
    decode_discovery(data)


def own_message(data: bytes) -> None:
    messages.decode_message(data)
