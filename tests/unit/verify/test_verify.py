"""The offline verifier: what it needs, what it says, and that it believes nothing else."""

import subprocess
import sys

import pytest

from quipu.ledger.bundle_build import build_bundle
from quipu.ledger.canonical import encode
from quipu.ledger.entry import ContentType, Entry, EntryKind, encode_entry
from quipu.verify import VerificationFailed, verify
from quipu.verify.values import decoded
from tests.small_ledger import JOURNAL, SmallLedger, node_id
from tests.tree import ROOT

ALLOWED = {"quipu", "msgpack", "nacl"}
PRIVATE = ("_", "cython")  # what compiled modules bring along under names of their own
NODE_ONLY = ("lmdb", "msgspec", "zmq", "pyspark", "aiohttp", "quipu.ledger", "quipu.storage")
PROGRAM = """
import sys
class Closed:
    def find_spec(self, name, path=None, target=None):
        if name.startswith({refused!r}):
            raise ImportError(name + ' is not for the verifier')
sys.meta_path.insert(0, Closed())
before = set(sys.modules)
from quipu.verify import verify
verify(bytes.fromhex({bundle!r}))
print(*sorted({{name.split('.')[0] for name in set(sys.modules) - before}}))
"""


@pytest.fixture
def ledger() -> SmallLedger:
    return SmallLedger(3)


@pytest.fixture
def bundle(ledger: SmallLedger) -> bytes:
    event = ledger.write(1, ["a", "b"])
    for i in (1, 3):
        ledger.sign(i, event)
    return build_bundle(ledger, ledger.lineage, event.id, 1)


def test_it_needs_nothing_of_the_node(bundle: bytes) -> None:
    program = PROGRAM.format(refused=NODE_ONLY, bundle=bundle.hex())
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded = {name for name in done.stdout.split() if not name.startswith(PRIVATE)}
    assert loaded - set(sys.stdlib_module_names) == ALLOWED


def test_it_says_what_is_proven(ledger: SmallLedger, bundle: bytes) -> None:
    found = verify(bundle)
    assert (found.cluster_id, found.cluster_name) == (ledger.cluster_id, "small")
    assert (found.author.number, found.author.node_id) == (1, node_id(1))
    assert (found.index, found.entry.data, found.entry.stream) == (1, b"b", "orders")
    assert [member.name for member in found.members] == ["n1", "n2", "n3"]
    assert [member.name for member in found.confirmed_by] == ["n3"]
    assert (found.required, found.by, found.policy, found.epoch) == (1, "receipts", "majority", 1)
    assert (found.journal, found.seq, found.event_epoch) == (JOURNAL, 1, 1)
    assert found.entry.time_ms == found.hlc >> 16


def test_a_pinned_cluster_is_the_only_one(ledger: SmallLedger, bundle: bytes) -> None:
    other = SmallLedger(4)
    assert verify(bundle, ledger.genesis) == verify(bundle, ledger.cluster_id) == verify(bundle)
    for pinned in (other.genesis, other.cluster_id, b""):
        with pytest.raises(VerificationFailed, match="another cluster"):
            verify(bundle, pinned)


def bundle_with(entry: bytes) -> bytes:
    """A bundle of one member, who signs whatever it is given."""
    ledger = SmallLedger(1)
    event = ledger.write_raw(1, [entry])
    inv = ledger.sign(1, event).data
    head, signature = event.header_bytes, event.signature
    return encode([1, ledger.genesis, [], head, signature, 0, entry, [], [], [inv]])


FULL = Entry(
    salt=bytes(range(16)),
    kind=EntryKind.CONFIG,
    stream="gdpr",
    submitter="shop",
    client_id=7,
    message_id=8,
    idempotency_key="k",
    time=9,
    content_type="text/csv",
    data=b"1,2",
    sig_type=1,
    signature=b"signature",
)


def test_every_field_of_an_entry_is_given() -> None:
    entry = verify(bundle_with(encode_entry(FULL))).entry
    assert (entry.salt, entry.kind, entry.stream) == (bytes(range(16)), "config", "gdpr")
    assert (entry.submitter, entry.client_id, entry.message_id) == ("shop", 7, 8)
    assert (entry.idempotency_key, entry.time_ms, entry.content_type) == ("k", 9, "text/csv")
    assert (entry.data, entry.signature_type, entry.signature) == (b"1,2", 1, b"signature")


@pytest.mark.parametrize("number", list(ContentType))
def test_media_types_are_spelled_out(number: ContentType) -> None:
    fields = [None, 0, "a", None, None, None, None, None, int(number), b"", 0, None]
    assert "/" in verify(bundle_with(encode(fields))).entry.content_type


WRONG_FIELDS: list[tuple[int, object]] = [
    (0, bytes(15)),
    (1, 3),
    (2, "A"),
    (2, b"a"),
    (3, ""),
    (3, "é" * 65),
    (4, 2**32),
    (4, True),
    (5, -1),
    (6, "k" * 257),
    (7, 1.0),
    (8, 5),
    (8, ""),
    (8, "a\n"),
    (9, "text"),
    (10, 256),
    (11, bytes(513)),
    (11, "text"),
]


@pytest.mark.parametrize(("at", "value"), WRONG_FIELDS)
def test_an_entry_that_is_none_proves_nothing(at: int, value: object) -> None:
    fields: list[object] = [None, 0, "a", None, None, None, None, None, 0, b"", 0, None]
    assert verify(bundle_with(encode(fields))).entry.data == b""
    fields[at] = value
    with pytest.raises(VerificationFailed):
        verify(bundle_with(encode(fields)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x92\x01",
        b"\x91" * 100_000 + b"\x90",
        b"\x90\x90",
        b"\x91\xa1\xff",
        b"\x81\x01\x02",
        b"\x81\x90\x01",
        b"\xd4\x01\x01",
        b"\xd4\xff\x01",
        b"\xdd\xff\xff\xff\xff",
        b"\xcc\x01",
        b"\xd6\xff\x00\x00\x00",
    ],
)
def test_bytes_that_are_no_canonical_value_are_refused(data: bytes) -> None:
    with pytest.raises(VerificationFailed, match=r"^thing: not"):
        decoded(data, 1 << 20, "thing")


@pytest.mark.parametrize("data", [b"\xd6\xff\0\0\0\x01", b"\xca\0\0\0\0", b"\xcb" + bytes(8)])
def test_timestamps_and_floats_are_no_values_of_ours(data: bytes) -> None:
    with pytest.raises(VerificationFailed, match=r"^thing: not a value"):
        decoded(data, 16, "thing")


def test_every_kind_of_value_is_counted() -> None:
    values = [None, True, False, -1, -200, -70_000, -(2**40), 0, 200, 70_000, 2**40, 2**64 - 1]
    texts = ["a", "a" * 40, "a" * 300, "a" * 70_000]
    blobs = [b"b" * size for size in (0, 300, 70_000)]
    whole = [*values, *texts, *blobs, [[0]] * 20, [0] * 70_000]
    assert decoded(encode(whole), 1 << 20, "thing") == whole


def test_what_is_too_large_is_not_even_read() -> None:
    with pytest.raises(VerificationFailed, match="at most 4"):
        decoded(bytes(5), 4, "thing")


@pytest.mark.parametrize("unit", [b"\x90", b"\xc4\x00", b"\x91\x90", b"\xcc\xff"])
def test_a_file_of_tiny_values_is_refused_before_they_are_built(unit: bytes) -> None:
    inner = 4095 // len(unit)
    rows = (16 << 20) // 4100
    many = b"\xdc" + inner.to_bytes(2, "big") + unit * inner
    data = b"\xdc" + rows.to_bytes(2, "big") + many * rows
    with pytest.raises(VerificationFailed, match="at most 200000 values"):
        verify(data)


def test_a_policy_may_be_a_number() -> None:
    ledger = SmallLedger(4, "3")
    event = ledger.write(1)
    for i in (1, 2, 3, 4):
        ledger.sign(i, event)
    assert verify(build_bundle(ledger, ledger.lineage, event.id, 0)).required == 3
