"""Writes the vectors: `python -m tests.vectors.generate [FOLDER]`. The same bytes every time.

What is valid is made by the product's own codecs; `check.py` then recomputes it from outside.
Why something is refused is written down here by hand, in `refused.py`.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import msgspec

from quipu.ledger import merkle
from quipu.ledger.bundle import check_bundle
from quipu.ledger.bundle_build import build_bundle
from quipu.ledger.canonical import encode
from quipu.ledger.entry import ContentType, Entry, EntryKind, data_entry, encode_entry
from quipu.ledger.epochs import (
    FORCED_VERSION,
    close_hash,
    cluster_id_of,
    decode_document,
    decode_genesis,
    document_hash,
)
from quipu.ledger.event import SignedEvent, decode_body
from quipu.ledger.evidence import SignerProof, check_proof, prove_author
from quipu.ledger.inv import Inv
from quipu.ledger.messages import (
    Answer,
    CoverWant,
    EpochMessage,
    EpochOffer,
    EpochWant,
    EventMessage,
    EvidenceMessage,
    GetData,
    InvMessage,
    InvWant,
    Message,
    Pruned,
    RangeWant,
    ReadyMessage,
    ReadyWant,
    ReceiptRow,
    SyncEvent,
    SyncRow,
    bytes_of,
    encode_message,
)
from quipu.ledger.ready import sign_ready
from quipu.ledger.signing import verify
from tests.small_ledger import JOURNAL, START_MS, SmallLedger, key_of, seed_of
from tests.vectors.check import plain

Rows = list[dict[str, Any]]
MEMBERS = 5
MERKLE_SIZES = (*range(21), 255, 256, 257, 10_000)
SOME_PATHS = {255: (0, 127, 128, 254), 256: (0, 255), 257: (0, 255, 256)}


def fields_of(data: bytes) -> Any:
    return plain(msgspec.msgpack.decode(data))


def keys() -> Rows:
    names = [f"n{i}" for i in range(1, MEMBERS + 1)]
    return [{"name": n, "seed": seed_of(n).hex(), "public": key_of(n).node_id.hex()} for n in names]


def plain_entry(**changes: object) -> Entry:
    return msgspec.structs.replace(data_entry(b"hello"), **changes)


ENTRIES: dict[str, Entry] = {
    "smallest": data_entry(b""),
    "json": data_entry(b'{"a":1}', stream="orders", content_type=ContentType.JSON),
    "own media type": data_entry(b"a,b\n", content_type="text/csv; charset=utf-8"),
    "salted": data_entry(b"secret", stream="gdpr", salt=bytes(range(16))),
    "with submitter and key": data_entry(b"x", submitter="shop", idempotency_key="order-1"),
    "texts beyond ASCII": data_entry(b"x", submitter="Zoë", idempotency_key="č" * 128),
    "longest names": plain_entry(stream="a" * 128, submitter="s" * 128, content_type="t" * 128),
    "of a client": plain_entry(
        client_id=2**32 - 1, message_id=2**64 - 1, time=START_MS, sig_type=255, signature=b"s" * 512
    ),
    "config": plain_entry(kind=EntryKind.CONFIG),
    "void": plain_entry(kind=EntryKind.VOID),
    "integer 127": plain_entry(client_id=127),
    "integer 128": plain_entry(client_id=128),
    "integer 255": plain_entry(client_id=255),
    "integer 256": plain_entry(client_id=256),
    "integer 65535": plain_entry(client_id=65535),
    "integer 65536": plain_entry(client_id=65536),
    "integer 2^32": plain_entry(message_id=2**32),
    "text of 31 bytes": plain_entry(stream="a" * 31),
    "text of 32 bytes": plain_entry(stream="a" * 32),
    "data of 255 bytes": plain_entry(data=b"d" * 255),
    "data of 256 bytes": plain_entry(data=b"d" * 256),
    "data of 65536 bytes": plain_entry(data=b"d" * 65536),
}


def entries() -> Rows:
    rows = []
    for name, entry in ENTRIES.items():
        data = encode_entry(entry)
        leaf = merkle.leaf_hash(data).hex()
        rows.append({"name": name, "hex": data.hex(), "value": fields_of(data), "leaf": leaf})
    return rows


def merkle_trees() -> Rows:
    rows = []
    for size in MERKLE_SIZES:
        leaves = [merkle.leaf_hash(b"leaf %d" % i) for i in range(size)]
        indices = range(size) if size <= 20 else SOME_PATHS.get(size, (0, 8191, 8192, 9999))
        paths = [
            {"index": i, "path": [step.hex() for step in merkle.path_of(leaves, i)]}
            for i in indices
        ]
        rows.append({"size": size, "root": merkle.root_of(leaves).hex(), "paths": paths})
    return rows


class World:
    """A small history: three members, a fork, then five members, then a checkpoint."""

    def __init__(self) -> None:
        self.alone = SmallLedger(1)
        self.first = self.alone.write(1, ["alone"])
        self.alone.sign(1, self.first)
        self.ledger = ledger = SmallLedger(3)
        a1 = ledger.write(1, ["a", "b", "c"])
        b1 = ledger.write(2, ["d"])
        c1 = ledger.write(3, [f"entry {i}" for i in range(20)], parents=[a1, b1])
        a2 = ledger.write(1, ["e"], parents=[b1, c1])
        a3 = ledger.write(1, ["f", "g"])
        self.events: dict[str, SignedEvent] = {
            "first of a cord": a1,
            "of another author": b1,
            "with two parents": c1,
            "second of a cord": a2,
            "without parents": a3,
        }
        self.receipts: dict[str, Inv] = {
            "of the author, three cords": ledger.sign(1, a3, b1, c1),
            "of another member": ledger.sign(2, a2, b1),
            "of a third": ledger.sign(3, a3, c1),
            "without rows": ledger.sign(3),
        }
        self.fork_headers(a2)
        self.grow(a3)

    def fork_headers(self, a2: SignedEvent) -> None:
        """Author 2 writes two second events; member 3 acknowledges both, one by a row above."""
        ledger = SmallLedger(3)
        first = ledger.write(2, ["d"])
        one, other = ledger.write(2, ["left"], prev=first), ledger.write(2, ["right"], prev=first)
        low, high = sorted((one, other), key=lambda event: event.id)
        above = ledger.write(2, ["on"], prev=high)
        inv_low, inv_high = ledger.sign(3, low), ledger.sign(3, above)
        self.author_proof = prove_author(
            (one.header_bytes, one.signature, one.id),
            (other.header_bytes, other.signature, other.id),
        )
        self.signer_parts = SignerProof(
            2, JOURNAL, low.header.seq, inv_low.data, [], inv_high.data, [above.header_bytes]
        )
        self.fork_cluster = ledger.cluster_id
        assert a2.header.cluster_id == ledger.cluster_id

    def grow(self, a3: SignedEvent) -> None:
        ledger = self.ledger
        # Their author dies before it signs for them: only the seals of the others make them Read.
        self.below_cut = ledger.write(1, ["late"])
        self.at_cut = ledger.write(1, ["last"])
        other = ledger.write(2, ["meanwhile"], parents=[a3])
        second = ledger.document([1, 2, 3, 4, 5], "two-thirds", [self.at_cut, other])
        ledger.open(second, ledger.seal(second, [2, 3]))
        self.grown = ledger.write(4, ["by a new member"], parents=[other])
        above = ledger.write(4, ["one more"])
        for signer in (2, 3, 4):
            ledger.sign(signer, self.grown)
        self.seal = ledger.sign(5, above)
        third = ledger.document([2, 3, 4, 5], "2")
        ledger.open(third, ledger.seal(third, [2, 3, 4, 5]))


def events(world: World) -> Rows:
    rows = []
    for name, event in world.events.items():
        author = next(k["name"] for k in keys() if k["public"] == event.header.author.hex())
        rows.append(
            {
                "name": name,
                "hex": event.header_bytes.hex(),
                "value": fields_of(event.header_bytes),
                "id": event.id.hex(),
                "signer": author,
                "signature": event.signature.hex(),
                "body": event.body.hex(),
                "entries": [item.hex() for item in decode_body(event.header, event.body)],
                "root": event.header.entries_root.hex(),
            }
        )
    return rows


def geneses(world: World) -> Rows:
    found = {"one member": world.alone.genesis, "three members": world.ledger.genesis}
    for policy in ("two-thirds", "all", "3"):
        found[f"five members, policy {policy}"] = SmallLedger(5, policy).genesis
    plain = decode_genesis(world.alone.genesis)
    streams = ["gdpr", "people.eu"]
    found["erasable streams"] = encode(msgspec.structs.replace(plain, streams_erasable=streams))
    return [
        {
            "name": name,
            "hex": data.hex(),
            "value": fields_of(data),
            "cluster_id": cluster_id_of(data).hex(),
        }
        for name, data in found.items()
    ]


def documents(world: World) -> Rows:
    return [
        {
            "name": f"epoch {number}",
            "hex": data.hex(),
            "value": fields_of(data),
            "hash": document_hash(data).hex(),
            "close": close_hash(decode_document(data)).hex(),
        }
        for number, data in [
            *enumerate((data for data, _ in world.ledger.documents), start=2),
            ("2, opened by force", _forced(world.ledger.documents[0][0])),
        ]
    ]


def _forced(document: bytes) -> bytes:
    return encode(msgspec.structs.replace(decode_document(document), version=FORCED_VERSION))


def receipts(world: World) -> Rows:
    rows = []
    for name, inv in {**world.receipts, "of epoch 2": world.seal}.items():
        signer = next(k["name"] for k in keys() if k["public"] == inv.signer.hex())
        rows.append(
            {
                "name": name,
                "hex": inv.data.hex(),
                "value": fields_of(inv.data),
                "id": inv.id.hex(),
                "signer": signer,
            }
        )
    return rows


def proofs(world: World) -> Rows:
    rows = []
    signer_proof = encode(world.signer_parts)
    for name, data in (("author", world.author_proof), ("signer", signer_proof)):
        found = check_proof(data, world.fork_cluster, verify)
        proves = {
            "culprit": found.culprit.hex(),
            "as_signer": found.as_signer,
            "journal": found.journal,
            "seq": found.seq,
            "low": found.low.hex(),
            "high": found.high.hex(),
        }
        cluster = world.fork_cluster.hex()
        value = fields_of(data)
        rows.append(
            {
                "name": name,
                "hex": data.hex(),
                "value": value,
                "cluster_id": cluster,
                "proves": proves,
            }
        )
    return rows


def messages_of(world: World) -> dict[str, Message]:
    a1, b1 = world.events["first of a cord"], world.events["of another author"]
    inv = world.receipts["of another member"]
    anchors = [(3, a1.id[:16]), (1, b1.id[:16])]
    return {
        "event": EventMessage(bytes_of(a1)),
        "inv": InvMessage(inv.data),
        "get, empty": GetData(0, [], [], [], [], 0),
        "get": GetData(
            7,
            [a1.id, b1.id],
            [RangeWant(1, JOURNAL, anchors, 9, a1.id[:16])],
            [InvWant(2, inv.number)],
            [CoverWant(1, JOURNAL, 2, a1.id[:16])],
            1 << 20,
        ),
        "sync, empty": SyncEvent(1, 0, 0, [], 0, [], [], 1, bytes(32), bytes(16), 0, False),
        "sync": SyncEvent(
            3,
            2,
            1,
            [a1.id],
            70,
            [SyncRow(1, JOURNAL, 2, a1.id[:16], 1), SyncRow(2, JOURNAL, 1, b1.id[:16], 0)],
            [ReceiptRow(2, inv.number, inv.id[:16])],
            1,
            inv.id,
            inv.id[16:],
            START_MS,
            True,
        ),
        "answer": Answer(7, [inv.data], [bytes_of(a1), bytes_of(b1)], [inv.id], True),
        "answer, nothing": Answer(7, [], [], [], False),
        "evidence": EvidenceMessage(world.author_proof),
        "epoch wanted": EpochWant(2),
        "epoch": EpochMessage(world.ledger.documents[0][0], list(world.ledger.documents[0][1])),
        "epoch offered": EpochOffer(
            world.ledger.documents[0][0], list(world.ledger.documents[0][1])
        ),
        "ready wanted": ReadyWant(2**32 - 1),
        "pruned": Pruned(7, 2),
        "ready": ReadyMessage(sign_ready(key_of("n1"), world.ledger.cluster_id, 2, START_MS)),
    }


def messages(world: World) -> Rows:
    encoded = {name: encode_message(m) for name, m in messages_of(world).items()}
    return [
        {"name": name, "hex": data.hex(), "value": fields_of(data)}
        for name, data in encoded.items()
    ]


def bundles_of(world: World) -> dict[str, bytes]:
    of = world.events
    ledger, lineage = world.ledger, world.ledger.lineage
    alone = world.alone
    return {
        "one member": build_bundle(alone, alone.lineage, world.first.id, 0),
        "no headers between": build_bundle(ledger, lineage, of["without parents"].id, 1),
        "headers between": build_bundle(ledger, lineage, of["first of a cord"].id, 2),
        "one of many entries": build_bundle(ledger, lineage, of["with two parents"].id, 19),
        "by the second epoch": build_bundle(ledger, lineage, world.grown.id, 0),
        "by a cut": build_bundle(ledger, lineage, world.at_cut.id, 0),
        "below a cut": build_bundle(ledger, lineage, world.below_cut.id, 0),
        **forced_bundles(),
    }


def forced_bundles() -> dict[str, bytes]:
    """Two of three are lost for ever: the third goes on alone."""
    ledger = SmallLedger(3)
    left = ledger.write(1, ["only one held it"])
    document = msgspec.structs.replace(
        ledger.document([1], "majority", [left]), version=FORCED_VERSION
    )
    ledger.open(document, ledger.seal(document, [1]))
    after = ledger.write(1, ["by force"])
    ledger.sign(1, after)
    return {
        "by the cut of a forced epoch": build_bundle(ledger, ledger.lineage, left.id, 0),
        "of a forced epoch": build_bundle(ledger, ledger.lineage, after.id, 0),
    }


def bundles(world: World) -> Rows:
    rows = []
    for name, data in bundles_of(world).items():
        found = check_bundle(data, verify)
        proves = {
            "cluster_id": found.cluster_id.hex(),
            "event": found.event.hex(),
            "index": found.entry_index,
            "data": found.entry.data.hex(),
            "epoch": found.epoch.number,
            "by": "cut" if found.by_cut else "receipts",
            "confirmed": list(found.confirmed),
            "required": found.required,
        }
        rows.append({"name": name, "hex": data.hex(), "proves": proves})
    return rows


def everything() -> dict[str, Rows]:
    from tests.vectors.generate_log import log
    from tests.vectors.generate_peers import peers
    from tests.vectors.refused import refused  # it takes the world from here
    from tests.vectors.refused_peers import refused_peers

    world = World()
    return {
        "keys": keys(),
        "entries": entries(),
        "events": events(world),
        "merkle": merkle_trees(),
        "genesis": geneses(world),
        "documents": documents(world),
        "receipts": receipts(world),
        "proofs": proofs(world),
        "messages": messages(world),
        "bundles": bundles(world),
        "refused": refused(world),
        "peers": peers(),
        "peers_refused": refused_peers(),
        "log": log(),
    }


def text_of(rows: Rows) -> str:
    """One vector a line: a change shows as the lines of what changed."""
    lines = [json.dumps(row, ensure_ascii=True, separators=(",", ":")) for row in rows]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="write the vectors")
    parser.add_argument("folder", type=Path, nargs="?", default=Path(__file__).parent)
    folder = parser.parse_args().folder
    for name, rows in everything().items():
        (folder / f"{name}.json").write_text(text_of(rows))


if __name__ == "__main__":
    main()
