"""The log's vectors read from outside: msgpack, hashlib and PyNaCl, nothing of quipu.

`python -m tests.vectors.check_log [FOLDER]`, written from docs/order.md.
"""

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgpack
from nacl.signing import VerifyKey

FOLDER = Path(__file__).parent
CLUSTER_ID = bytes(range(32))
FIELDS = {
    "item": (3, 5, 6, 4, 7),
    "entry": (6,),
    "accepted": (6,),
    "promise": (14,),
    "ready": (5,),
    "proof": (3,),
    "discovery": (2, 3, 4, 6),
}


class Wrong(ValueError):
    """A vector is not what the page says."""


def need(fine: bool, what: str) -> None:
    if not fine:
        raise Wrong(what)


def unpacked(kind: str, data: bytes) -> list[Any]:
    value = msgpack.unpackb(data)
    need(msgpack.packb(value) == data, f"{kind}: not the shortest bytes")
    need(len(value) in FIELDS[kind], f"{kind}: {len(value)} fields")
    return list(value)


def check_signed(tag: bytes, value: list[Any], public: bytes) -> None:
    message = tag + msgpack.packb([CLUSTER_ID, *value[:-1]])
    VerifyKey(public).verify(message, value[-1])


def check_discovery(value: list[Any]) -> None:
    """DSCREQ, DSCRES, SEQRES and SEQ: kind, and the fields of docs/order.md."""
    kind, *fields = value
    if kind == 18:
        number, node_id, state = fields
        need(number > 0 and len(node_id) == 32, "who asks")
    elif kind == 19:
        state, known = fields
        need(all(no > 0 and len(node_id) == 32 for no, node_id in known), "neighbours")
    elif kind == 20:
        (state,) = fields
    else:
        number, digest, certificate, applied, marks = fields
        state = 1
        need(kind == 21 and number >= 0 <= applied and len(digest) == 32, "how far")
        need(all(isinstance(one, bytes) for one in certificate), "certificate")
        need(all(len(said) == 32 for _, said in marks), "marks")
    need(state in {1, 2, 3}, "state")


def check(row: dict[str, Any]) -> None:
    kind, data = row["kind"], bytes.fromhex(row["hex"])
    public = bytes.fromhex(row.get("public", ""))
    if kind == "running":
        found = sha256(b"quipu/sequence/1\0" + bytes(32) + (1).to_bytes(8, "big") + data)
        need(found.hexdigest() == row["digest"], "running digest")
        return
    value = unpacked(kind, data)
    if kind == "item":
        need(1 <= value[0] <= 8, "kind of an item")
    elif kind == "discovery":
        check_discovery(value)
    elif kind == "entry":
        need(value[0] == 1, "version")
        before = bytes.fromhex(row["before"])
        if value[2] == 1:
            need(before == sha256(b"quipu/log/1\0" + CLUSTER_ID).digest(), "first digest")
        found = sha256(b"quipu/log/1\0" + before + data)
        need(found.hexdigest() == row["digest"], "digest")
    elif kind == "proof":
        one, other = unpacked("accepted", value[0]), unpacked("accepted", value[1])
        need(value[2] is False and one[1:4] == other[1:4] and one[4] != other[4], "no lie")
        for statement in (one, other):
            check_signed(b"quipu/sig/accepted/1\0", statement, public)
    else:
        check_signed(b"quipu/sig/" + kind.encode() + b"/1\0", value, public)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    rows = json.loads((folder / "log.json").read_text())
    for row in rows:
        check(row)
    print(f"{len(rows)} vectors hold")


if __name__ == "__main__":
    main()
