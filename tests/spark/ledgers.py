"""Small ledgers with real keys and signatures, as the dumps of n nodes would have them.

Rows are plain dicts, so that a fault can be planted in any of them before they are written.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from quipu.dumps.buckets import bucket_digests
from quipu.dumps.manifest import Manifest, signed, to_bytes
from quipu.dumps.segments import write_buckets, write_rows
from quipu.dumps.tables import TABLES, WITHOUT_SOURCE
from quipu.ledger.canonical import encode
from quipu.ledger.event import SignedEvent
from quipu.ledger.log.statements import sign_accepted
from quipu.ledger.log.words import Index, Place, Regime
from quipu.ledger.words import EpochNo, NodeNo, Slot
from quipu.storage.event_blob import encode_blob, entries_of
from quipu.storage.executors.outcome import Code, Outcome, Result, encode_outcome
from quipu.storage.export_columns import EventColumns
from quipu.storage.export_rows import config_rows, inv_rows, member_rows
from quipu.storage.keys import slot_key
from tests.small_ledger import SmallLedger, key_of

Row = dict[str, Any]
Tables = dict[str, list[Row]]
SETTLED_MS = 120_000  # behind the last receipt: all that they cover has settled


def as_dicts(table: str, rows: Sequence[tuple[Any, ...]]) -> list[Row]:
    names = [column.name for column in TABLES[table]]
    return [dict(zip(names, row, strict=True)) for row in rows]


@dataclass(slots=True)
class DumpRows:
    """What one node would dump."""

    node_no: int
    tables: Tables
    number: int = 1
    previous: str = ""
    as_of_ms: int = 0
    digests: bytes | None = None  # None: those of its Read events

    def of(self, identity: bytes) -> Row:
        return next(row for row in self.tables["events"] if row["id"] == identity)

    def drop(self, identity: bytes) -> None:
        """As if it had never come."""
        for table, name in (("events", "id"), ("edges", "child"), ("entries", "event")):
            kept = [row for row in self.tables[table] if row[name] != identity]
            self.tables[table] = kept

    def children(self, identity: bytes) -> list[bytes]:
        return [row["child"] for row in self.tables["edges"] if row["parent"] == identity]

    def renumber(self) -> None:
        """Feed positions without holes, in the order in which they stand."""
        read = [row for row in self.tables["events"] if row["state"] == "read"]
        for position, row in enumerate(sorted(read, key=lambda row: row["feed_pos"]), start=1):
            row["feed_pos"] = position


@dataclass(slots=True)
class World:
    """A cluster that has lived: `ledger` makes events and receipts, `dumps` are rows of them."""

    members: int = 3
    ledger: SmallLedger = field(init=False)
    read: list[SignedEvent] = field(default_factory=list)
    unread: list[SignedEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ledger = SmallLedger(self.members)

    def live(self, rounds: int) -> list[SignedEvent]:
        """Everybody writes upon the newest of all others, and everybody signs what it holds."""
        made: list[SignedEvent] = []
        for number in range(rounds):
            for author in range(1, self.members + 1):
                tips = self.ledger.tips
                others = [e for cord, e in tips.items() if cord.author_no != author]
                texts = [f"{number} {author} {part}" for part in range(1 + number % 3)]
                made.append(self.ledger.write(author, texts, parents=others[:7]))
            self.sign()
        self.read += made
        return made

    def sign(self) -> None:
        for signer in range(1, self.members + 1):
            self.ledger.sign(signer, *self.ledger.tips.values())

    def dumps(self) -> list[DumpRows]:
        first = self._tables()
        as_of_ms = self.ledger.now_ms + SETTLED_MS
        return [
            DumpRows(no, deepcopy(first), as_of_ms=as_of_ms) for no in range(1, self.members + 1)
        ]

    def _tables(self) -> Tables:
        tables: Tables = {name: [] for name in TABLES if name not in WITHOUT_SOURCE}
        for position, event in enumerate(self.read, start=1):
            add_rows(tables, self.slot(event), event, position)
        for event in self.unread:
            add_rows(tables, self.slot(event), event, None)
        for signer_no, held in sorted(self.ledger.invs.items()):
            for data in held.values():
                add_inv(tables, signer_no, data)
        genesis, documents = self.ledger.genesis, self.ledger.documents
        tables["config"] = as_dicts("config", config_rows(genesis, documents))
        tables["members"] = as_dicts("members", member_rows(genesis, documents))
        return tables

    def slot(self, event: SignedEvent) -> Slot:
        return self.ledger.metas[event.id].slot


def add_inv(tables: Tables, signer_no: int, data: bytes) -> None:
    row, receipts = inv_rows(signer_no, data)
    tables["invs"] += as_dicts("invs", [row])
    tables["receipts"] += as_dicts("receipts", receipts)


def add_event(
    world: World, dump: DumpRows, event: SignedEvent, feed_pos: int | None = None
) -> None:
    """One more, with its edges and entries."""
    add_rows(dump.tables, world.slot(event), event, feed_pos)


def add_rows(tables: Tables, slot: Slot, event: SignedEvent, feed_pos: int | None) -> None:
    """As the exporter makes them."""
    entries = entries_of(event)
    columns = EventColumns({}, "described")
    columns.add([slot_key(slot)], [encode_blob(event, entries)], [feed_pos])
    for table, rows in columns.taken().items():
        tables[table] += rows.to_pylist()


def journal_of(world: World) -> list[Row]:
    """Every Read event in the order of the feed, one an index; all members have signed the last."""
    rows, before = list[Row](), bytes(32)
    for index, event in enumerate(world.read, start=1):
        made = sha256(before + event.id).digest()
        cord = world.ledger.cord_of(event)
        rows.append(
            {
                "regime": 1,
                "index": index,
                "position": 0,
                "author_no": cord.author_no,
                "journal": cord.journal,
                "seq": event.header.seq,
                "event": event.id,
                "message_hash": made,
                "prev_hash": before,
                "certificate": None,
                "serializers": None,
            }
        )
        before = made
    everybody = [*range(1, world.members + 1)]
    rows[-1]["certificate"] = certificate(world, everybody, len(rows), before)
    rows[-1]["serializers"] = encode([everybody])
    return rows


def certificate(world: World, signers: Sequence[int], index: int, digest: bytes) -> bytes:
    """ACCEPTED of each of these."""
    at = Place(Regime(1), Index(index)), digest
    cluster_id = world.ledger.cluster_id
    signed_by = [
        sign_accepted(key_of(f"n{number}"), cluster_id, EpochNo(1), NodeNo(number), at)
        for number in signers
    ]
    return encode([encode(statement) for statement in signed_by])


def execute(dumps: Sequence[DumpRows]) -> None:
    """Two clients: the first holds 2 of its 5 results, the second its only one. The executors are
    a message apart."""
    for dump in dumps:
        done = 5 - (dump.node_no == 1)
        key = key_of("client").node_id
        dump.tables["clients"] = as_dicts(
            "clients", [(1, key, done, 2, False), (2, key_of("other").node_id, 1, 1, False)]
        )
        outcomes = [Outcome(Code.OK, (Result(Code.OK, ("n",), ((at,),)),)) for at in range(6)]
        dump.tables["results"] = as_dicts(
            "results",
            [
                (1, at, sha256(b"%d" % at).digest(), outcomes[at].told().digest, encoded)
                for at in range(3, done + 1)
                for encoded in [encode_outcome(outcomes[at])]
            ],
        )
        marks = [(at, sha256(b"state %d" % at).digest()) for at in (64, 128, 128 + done)]
        dump.tables["executed"] = as_dicts("executed", marks)


def write(world: World, dump: DumpRows, folder: Path, files: int = 1) -> Manifest:
    """A dump that its node has signed, whatever stands in it. With `files` each table of events is
    spread over so many."""
    folder.mkdir(parents=True)
    made = []
    for table, rows in dump.tables.items():
        names = [column.name for column in TABLES[table]]
        parts = files if table in {"events", "edges", "entries"} else 1
        for part in range(parts):
            values = [tuple(row[name] for name in names) for row in rows[part::parts]]
            made.append(write_rows(folder, table, f"made-{part}", values))
    read = {row["id"] for row in dump.tables["events"] if row["state"] == "read"}
    digests = bucket_digests(sorted(read)) if dump.digests is None else dump.digests
    made.append(write_buckets(folder, "made", digests))
    key = key_of(f"n{dump.node_no}")
    manifest = Manifest(
        cluster_id=world.ledger.cluster_id.hex(),
        node_id=key.node_id.hex(),
        genesis_sha256=sha256(world.ledger.genesis).hexdigest(),
        number=dump.number,
        previous=dump.previous,
        taken_ms=dump.as_of_ms,
        as_of_ms=dump.as_of_ms,
        feed_from=1,
        feed_upto=len(read),
        events=len(dump.tables["events"]),
        read=len(read),
        entries="described",
        absent=tuple(name for name in WITHOUT_SOURCE if name not in dump.tables),
        receipt_marks=(),
        files=tuple(made),
    )
    done = signed(manifest, key.sign)
    (folder / "manifest.json").write_bytes(to_bytes(done))
    return done


def write_all(world: World, dumps: Sequence[DumpRows], folder: Path, files: int = 1) -> list[Path]:
    paths = [folder / f"n{dump.node_no}-{dump.number}" for dump in dumps]
    for path, dump in zip(paths, dumps, strict=True):
        write(world, dump, path, files)
    return paths
