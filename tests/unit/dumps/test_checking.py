"""Dumps that are torn, partial, foreign, of the future, unsigned or changed: each by its file."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from quipu.dumps import manifest
from quipu.dumps.buckets import bucket_digests, bucket_of, differing
from quipu.dumps.checking import Problem, check_contents, check_files, check_together
from quipu.dumps.headers import decode, id_of
from quipu.dumps.limits import BUCKETS
from quipu.dumps.manifest import MANIFEST_FILE, Manifest, from_bytes, signed, to_bytes
from quipu.dumps.merkle import root_of
from quipu.dumps.segments import write_table
from quipu.dumps.tables import as_long, as_u64
from quipu.dumps.whole import sha256_of
from quipu.ledger import merkle
from tests.dump_making import dumped, grown
from tests.made_events import MadeCluster

CLUSTER = MadeCluster()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    dumped(grown(folder, CLUSTER, 9, entries=2), folder / "dump", CLUSTER, "with data")
    return folder / "dump"


@pytest.fixture
def dump(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "dump"))


def problems(folder: Path, signatures: bool = False) -> list[Problem]:
    checked = check_files(folder)
    more = check_contents(checked, signatures) if checked.manifest is not None else []
    return checked.problems + more


def insider(folder: Path, change: Callable[[Manifest], Manifest]) -> None:
    """Somebody with the node key writes another manifest."""
    path = folder / MANIFEST_FILE
    changed = change(from_bytes(path.read_bytes()))
    path.write_bytes(to_bytes(signed(changed, CLUSTER.keys[0].sign)))


def rewritten(folder: Path, table: str, change: Callable[[list[dict[str, object]]], object]) -> str:
    """One with the node key changes rows, and every hash with them."""
    before = from_bytes((folder / MANIFEST_FILE).read_bytes())
    name = before.names(table)[0]
    content = pq.read_table(folder / name)
    rows = content.to_pylist()
    change(rows)
    made = write_table(
        folder, table, Path(name).stem, content.from_pylist(rows, schema=content.schema)
    )
    files = tuple(made if file.name == name else file for file in before.files)
    insider(folder, lambda m: replace(m, files=files))
    return name


def test_an_untouched_one_is_sound(made: Path) -> None:
    assert problems(made, signatures=True) == []


def cut(folder: Path) -> str:
    (name,) = from_bytes((folder / MANIFEST_FILE).read_bytes()).names("evidence")
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[:-20])
    return name


def flip(folder: Path) -> str:
    name = from_bytes((folder / MANIFEST_FILE).read_bytes()).names("edges")[0]
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(bytes(data))
    return name


def removed(folder: Path) -> str:
    name = from_bytes((folder / MANIFEST_FILE).read_bytes()).names("entries")[1]
    (folder / name).unlink()
    return name


def stray(folder: Path) -> str:
    shutil.copy(folder / MANIFEST_FILE, folder / "events" / "more.parquet")
    return "events/more.parquet"


def partial(folder: Path) -> str:
    (folder / MANIFEST_FILE).unlink()
    return MANIFEST_FILE


def unsigned(folder: Path) -> str:
    path = folder / MANIFEST_FILE
    path.write_bytes(to_bytes(replace(from_bytes(path.read_bytes()), signature="")))
    return MANIFEST_FILE


def signed_by_another(folder: Path) -> str:
    path = folder / MANIFEST_FILE
    path.write_bytes(to_bytes(signed(from_bytes(path.read_bytes()), CLUSTER.keys[1].sign)))
    return MANIFEST_FILE


def of_the_future(folder: Path) -> str:
    path = folder / MANIFEST_FILE
    path.write_bytes(path.read_bytes().replace(b"quipudump/1", b"quipudump/2"))
    return MANIFEST_FILE


def torn_manifest(folder: Path) -> str:
    path = folder / MANIFEST_FILE
    path.write_bytes(path.read_bytes()[:-100])
    return MANIFEST_FILE


def other_form(folder: Path) -> str:
    path = folder / MANIFEST_FILE
    path.write_bytes(json.dumps(json.loads(path.read_bytes())).encode())
    return MANIFEST_FILE


def outside_name(folder: Path) -> str:
    path = folder / MANIFEST_FILE
    path.write_bytes(path.read_bytes().replace(b"evidence/dump", b"evidence/../p"))
    return MANIFEST_FILE


def not_parquet(folder: Path) -> str:
    before = from_bytes((folder / MANIFEST_FILE).read_bytes())
    name = before.names("cuts")[0]
    (folder / name).write_bytes(b"PAR1 no")
    own = replace(
        next(f for f in before.files if f.name == name), bytes=7, sha256=sha256_of(folder / name)
    )
    files = tuple(own if file.name == name else file for file in before.files)
    insider(folder, lambda m: replace(m, files=files))
    return name


def other_columns(folder: Path) -> str:
    before = from_bytes((folder / MANIFEST_FILE).read_bytes())
    name = before.names("members")[0]
    content = pq.read_table(folder / name).drop_columns(["name"])
    own = write_table(folder, "members", Path(name).stem, content)
    files = tuple(own if file.name == name else file for file in before.files)
    insider(folder, lambda m: replace(m, files=files))
    return name


def fewer_rows(folder: Path) -> str:
    before = from_bytes((folder / MANIFEST_FILE).read_bytes())
    name = before.names("invs")[0]
    files = tuple(replace(f, rows=f.rows - 1) if f.name == name else f for f in before.files)
    insider(folder, lambda m: replace(m, files=files))
    return name


def other_header(folder: Path) -> str:
    return rewritten(folder, "events", lambda rows: rows[2].update(header=rows[3]["header"]))


def other_column(folder: Path) -> str:
    return rewritten(folder, "events", lambda rows: rows[2].update(depth=77))


def other_eid(folder: Path) -> str:
    return rewritten(folder, "events", lambda rows: rows[2].update(eid=77))


def one_event_less(folder: Path) -> str:
    rewritten(folder, "events", lambda rows: rows.pop())
    return from_bytes((folder / MANIFEST_FILE).read_bytes()).names("buckets")[0]


def read_counted_wrong(folder: Path) -> str:
    insider(folder, lambda m: replace(m, read=m.read + 1))
    return MANIFEST_FILE


@pytest.mark.parametrize(
    ("harm", "flaw", "unreadable"),
    [
        (cut, "file-cut", True),
        (removed, "file-missing", True),
        (partial, "unfinished", True),
        (of_the_future, "format-unknown", True),
        (torn_manifest, "unreadable", True),
        (not_parquet, "unreadable", True),
        (flip, "file-changed", False),
        (stray, "file-stray", False),
        (unsigned, "manifest-wrong", False),
        (signed_by_another, "manifest-wrong", False),
        (other_form, "manifest-wrong", False),
        (outside_name, "manifest-wrong", False),
        (other_columns, "table-wrong", False),
        (fewer_rows, "rows-wrong", False),
        (other_header, "content-wrong", False),
        (other_column, "content-wrong", False),
        (other_eid, "content-wrong", False),
        (one_event_less, "buckets-wrong", False),
        (read_counted_wrong, "rows-wrong", False),
    ],
)
def test_harm_is_named_by_its_file(
    dump: Path, harm: Callable[[Path], str], flaw: str, unreadable: bool
) -> None:
    name = harm(dump)
    first = problems(dump)[0]
    assert (str(first.flaw), first.file) == (flaw, str(dump / name))
    assert first.is_unreadable is unreadable
    assert name.split("/")[-1] in str(first)


@pytest.mark.parametrize(
    ("field", "value"), [("signature", 5), ("number", "1"), ("receipt_marks", [[1, "2", 3]])]
)
def test_a_manifest_with_a_field_of_another_type(dump: Path, field: str, value: object) -> None:
    """A number for a signature ended the check with a TypeError."""
    path = dump / MANIFEST_FILE
    told = {**json.loads(path.read_bytes()), field: value}
    path.write_bytes(manifest.canonical(told))
    (found,) = problems(dump)
    assert (str(found.flaw), found.file) == ("manifest-wrong", str(path))


def test_a_wrong_signature_of_an_event_is_found_when_asked_for(dump: Path) -> None:
    rewritten(dump, "events", lambda rows: rows[4].update(signature=rows[3]["signature"]))
    assert problems(dump) == []
    (found,) = problems(dump, signatures=True)
    event = pq.read_table(next((dump / "events").glob("feed-*"))).to_pylist()[4]
    assert found.flaw == "content-wrong"
    assert event["id"].hex() in found.what


def test_no_directory_at_all(tmp_path: Path) -> None:
    (found,) = problems(tmp_path / "none")
    assert found.flaw == "unreadable"
    assert "No such file" in found.what


def test_two_clusters_are_not_compared(dump: Path, tmp_path: Path) -> None:
    other = MadeCluster(salt=bytes([9]) * 16)
    dumped(grown(tmp_path / "other", other, 3), tmp_path / "foreign", other)
    (found,) = check_together([check_files(dump), check_files(tmp_path / "foreign")])
    assert (found.flaw, found.file) == ("cluster-foreign", str(tmp_path / "foreign/manifest.json"))


def test_a_chain_of_dumps_is_followed(tmp_path: Path) -> None:
    store = grown(tmp_path, CLUSTER_TWO, 4)
    dumped(store, tmp_path / "dump", CLUSTER_TWO)
    shutil.copytree(tmp_path / "dump", tmp_path / "first")
    dumped(store, tmp_path / "dump", CLUSTER_TWO)
    both = [check_files(tmp_path / "first"), check_files(tmp_path / "dump")]
    assert check_together(both) == []
    path = tmp_path / "dump" / MANIFEST_FILE
    other = replace(from_bytes(path.read_bytes()), previous="ab" * 32)
    path.write_bytes(to_bytes(signed(other, CLUSTER_TWO.keys[0].sign)))
    (found,) = check_together([both[0], check_files(tmp_path / "dump")])
    assert (found.flaw, found.file) == ("chain-broken", str(path))


CLUSTER_TWO = MadeCluster(salt=bytes([2]) * 16)


def test_buckets_tell_where_sets_differ() -> None:
    ids = sorted(bytes([n, 7 * n % 256]) + bytes(30) for n in range(0, 256, 3))
    other = [identity for identity in ids if identity != ids[20]]
    assert bucket_digests(ids) == bucket_digests(iter(ids))
    assert differing([bucket_digests(ids), bucket_digests(ids)]) == []
    assert differing([bucket_digests(ids), bucket_digests(other)]) == [bucket_of(ids[20])]
    assert len(bucket_digests([])) == 32 * BUCKETS


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 100])
def test_both_merkle_roots_agree(count: int) -> None:
    leaves = [bytes([n]) * 32 for n in range(count)]
    assert root_of(leaves) == merkle.root_of(leaves)


@pytest.mark.parametrize("number", [0, 1, 2**63 - 1, 2**63, 2**64 - 1])
def test_numbers_of_64_bits_keep_their_bits(number: int) -> None:
    assert as_u64(as_long(number)) == number
    assert -(2**63) <= as_long(number) < 2**63


def test_what_is_no_header_is_said_to_be_none() -> None:
    for data in (b"", b"\xc1", b"\x90", b"\xdc\x00\x00", manifest.canonical([1])):
        assert decode(data) is None
    assert len(id_of(b"")) == 32
