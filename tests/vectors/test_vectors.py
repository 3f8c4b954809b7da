"""The vectors hold: made again they are the same, a stranger agrees, and so do our own codecs."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quipu import verify as offline
from quipu.ledger import merkle
from quipu.ledger.bundle import check_bundle
from quipu.ledger.canonical import encode
from quipu.ledger.entry import decode_entry, encode_entry
from quipu.ledger.epochs import (
    close_hash,
    cluster_id_of,
    decode_document,
    decode_genesis,
    document_hash,
)
from quipu.ledger.event import decode_event, decode_header, event_id
from quipu.ledger.event import has_valid_signature as event_is_signed
from quipu.ledger.evidence import check_proof
from quipu.ledger.inv import decode_inv
from quipu.ledger.inv import has_valid_signature as inv_is_signed
from quipu.ledger.messages import decode_message, encode_message
from quipu.ledger.refusals import Reason, Refused, refuse
from quipu.ledger.signing import verify
from tests.vectors.check import DECODERS, refused_cases
from tests.vectors.generate import everything, text_of

FOLDER = Path(__file__).parent


def read(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def named(name: str) -> list[Any]:
    return [pytest.param(item, id=item["name"]) for item in read(name)]


def test_the_same_vectors_are_made_again() -> None:
    for name, rows in everything().items():
        assert (FOLDER / f"{name}.json").read_text() == text_of(rows), f"{name}.json"


def test_a_stranger_agrees() -> None:
    program = (
        "import runpy, sys; sys.modules['quipu'] = sys.modules['msgspec'] = None;"
        f"sys.argv = ['check']; runpy.run_path({str(FOLDER / 'check.py')!r}, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[0]) > 1500


@pytest.mark.parametrize("name", ["entries", "events", "bundles", "refused"])
def test_the_stranger_fails_where_a_vector_is_wrong(name: str, tmp_path: Path) -> None:
    for file in FOLDER.glob("*.json"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    rows = read(name)
    if name == "refused":  # a valid one among the refused
        fine = read("entries")[0]["hex"]
        rows = [{"name": "fine", "kind": "entry", "reason": "malformed", "inputs": [[[fine, 1]]]}]
    else:  # a nibble in the midst of it, in what is signed or hashed
        data = rows[0]["hex"]
        middle = len(data) // 2
        rows[0]["hex"] = data[:middle] + f"{int(data[middle], 16) ^ 1:x}" + data[middle + 1 :]
    (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    done = subprocess.run(
        [sys.executable, FOLDER / "check.py", tmp_path], capture_output=True, check=False
    )
    assert done.returncode == 1


@pytest.mark.parametrize("item", named("entries"))
def test_entries(item: dict[str, Any]) -> None:
    data = bytes.fromhex(item["hex"])
    assert encode_entry(decode_entry(data)) == data
    assert merkle.leaf_hash(data).hex() == item["leaf"]


@pytest.mark.parametrize("item", named("events"))
def test_events(item: dict[str, Any]) -> None:
    header, signature, body = (bytes.fromhex(item[key]) for key in ("hex", "signature", "body"))
    event = decode_event(header, signature, body)
    assert event.id.hex() == item["id"] == event_id(header).hex()
    assert encode(event.header) == header
    assert event.header.entries_root.hex() == item["root"]
    assert event_is_signed(event, verify)


def test_merkle_trees() -> None:
    for item in read("merkle"):
        size, root = item["size"], bytes.fromhex(item["root"])
        leaves = [merkle.leaf_hash(b"leaf %d" % i) for i in range(size)]
        assert merkle.root_of(leaves) == root
        for told in item["paths"]:
            index, path = told["index"], [bytes.fromhex(step) for step in told["path"]]
            assert merkle.path_of(leaves, index) == path
            assert merkle.root_from_path(leaves[index], index, size, path) == root


@pytest.mark.parametrize("item", named("genesis"))
def test_geneses(item: dict[str, Any]) -> None:
    data = bytes.fromhex(item["hex"])
    assert encode(decode_genesis(data)) == data
    assert cluster_id_of(data).hex() == item["cluster_id"]


@pytest.mark.parametrize("item", named("documents"))
def test_documents(item: dict[str, Any]) -> None:
    data = bytes.fromhex(item["hex"])
    document = decode_document(data)
    assert encode(document) == data
    assert document_hash(data).hex() == item["hash"]
    assert close_hash(document).hex() == item["close"]


@pytest.mark.parametrize("item", named("receipts"))
def test_receipts(item: dict[str, Any]) -> None:
    inv = decode_inv(bytes.fromhex(item["hex"]))
    assert inv.id.hex() == item["id"]
    assert encode(inv.array) == inv.data
    assert inv_is_signed(inv, verify)


@pytest.mark.parametrize("item", named("proofs"))
def test_proofs(item: dict[str, Any]) -> None:
    data, cluster_id = bytes.fromhex(item["hex"]), bytes.fromhex(item["cluster_id"])
    found, proves = check_proof(data, cluster_id, verify), item["proves"]
    assert (found.culprit.hex(), found.as_signer) == (proves["culprit"], proves["as_signer"])
    assert (found.journal, found.seq) == (proves["journal"], proves["seq"])
    assert (found.low.hex(), found.high.hex()) == (proves["low"], proves["high"])
    assert found.data == data


@pytest.mark.parametrize("item", named("messages"))
def test_messages(item: dict[str, Any]) -> None:
    data = bytes.fromhex(item["hex"])
    assert encode_message(decode_message(data)) == data


@pytest.mark.parametrize("item", named("bundles"))
def test_bundles(item: dict[str, Any]) -> None:
    data, proves = bytes.fromhex(item["hex"]), item["proves"]
    found = check_bundle(data, verify)
    assert found.cluster_id.hex() == proves["cluster_id"]
    assert (found.event.hex(), found.entry_index) == (proves["event"], proves["index"])
    assert found.entry.data.hex() == proves["data"]
    assert (found.epoch.number, list(found.confirmed)) == (proves["epoch"], proves["confirmed"])
    assert (found.by_cut, found.required) == (proves["by"] == "cut", proves["required"])
    again = offline.verify(data, bytes.fromhex(proves["cluster_id"]))
    assert (again.event_id.hex(), again.index) == (proves["event"], proves["index"])
    assert again.entry.data.hex() == proves["data"]
    assert (again.epoch, again.by, again.required) == (
        proves["epoch"],
        proves["by"],
        proves["required"],
    )
    assert [member.number for member in again.confirmed_by] == proves["confirmed"]


def signed_event(header: bytes, signature: bytes, body: bytes) -> None:
    if not event_is_signed(decode_event(header, signature, body), verify):
        refuse(Reason.BAD_SIGNATURE)


def signed_inv(data: bytes) -> None:
    if not inv_is_signed(decode_inv(data), verify):
        refuse(Reason.BAD_SIGNATURE)


OWN: dict[str, Callable[..., Any]] = {
    "entry": decode_entry,
    "header": decode_header,
    "event": decode_event,
    "signed-event": signed_event,
    "genesis": decode_genesis,
    "document": decode_document,
    "inv": decode_inv,
    "signed-inv": signed_inv,
    "message": decode_message,
    "proof": lambda data, cluster_id: check_proof(data, cluster_id, verify),
    "bundle": lambda data: check_bundle(data, verify),
}


def test_what_is_refused_is_refused_for_its_reason() -> None:
    wrong = []
    for name, kind, reason, inputs in refused_cases(read("refused")):
        with pytest.raises(Refused) as caught:
            OWN[kind](*inputs)
        if caught.value.reason != reason:
            wrong.append(f"{name}: {caught.value}, not {reason}")
        if kind == "bundle":
            with pytest.raises(offline.VerificationFailed):
                offline.verify(*inputs)
    assert wrong == []


def test_every_kind_has_refused_vectors() -> None:
    kinds = {item["kind"] for item in read("refused")}
    assert kinds == set(OWN)
    assert kinds <= set(DECODERS)
