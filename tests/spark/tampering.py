"""Small ledgers with random faults in random rows: what is wrong with them the oracles say."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from hashlib import sha256
from random import Random

from quipu.dumps.buckets import bucket_digests
from quipu.dumps.tables import eid_of
from quipu.ledger.words import Journal
from tests.small_ledger import START_MS, key_of
from tests.spark.ledgers import DumpRows, Row, World, add_event, journal_of
from tests.spark.python_oracle import Seen


@dataclass(slots=True)
class Tampering:
    random: Random
    world: World
    dumps: list[DumpRows]

    def dump(self) -> DumpRows:
        return self.random.choice(self.dumps)

    def row(self, table: str, dump: DumpRows | None = None) -> Row:
        """An empty one, which nobody keeps, where there is none."""
        rows = (dump or self.dump()).tables.get(table, [])
        return self.random.choice(rows) if rows else {}

    def identity(self) -> bytes:
        """Of an event; rarely of none."""
        known = [event.id for event in self.world.read + self.world.unread]
        return self.random.choice([*known, *known, sha256(self.random.randbytes(8)).digest()])


def event_gone(at: Tampering) -> None:
    dump = at.dump()
    if len(dump.tables["events"]) > 1:
        dump.drop(at.identity())


def first_of_a_cord_gone(at: Tampering) -> None:
    """From every copy: what is above it hangs on nothing."""
    first = at.random.choice(at.world.read[: at.world.members])
    for dump in at.dumps:
        if len(dump.tables["events"]) > 1:
            dump.drop(first.id)


def digest_changed(at: Tampering) -> None:
    dump = at.dump()
    read = {row["id"] for row in dump.tables["events"] if row["state"] == "read"}
    dump.digests = flipped(at.random, bucket_digests(sorted(read)))


def row_gone(at: Tampering) -> None:
    rows = at.dump().tables[at.random.choice(["events", "edges", "entries", "receipts", "invs"])]
    if len(rows) > 1:
        rows.pop(at.random.randrange(len(rows)))


def event_column(at: Tampering) -> None:
    row = at.row("events")
    name = at.random.choice(["seq", "depth", "hlc", "epoch", "kind", "journal", "author_no"])
    row[name] = row[name] + at.random.choice([-1, 1, 3])


def event_state(at: Tampering) -> None:
    row = at.row("events")
    row["state"] = at.random.choice(["read", "unread"])
    row["feed_pos"] = at.random.choice([None, row["feed_pos"], at.random.randint(1, 30)])


def event_bytes(at: Tampering) -> None:
    row = at.row("events")
    name = at.random.choice(["signature", "header", "entries_root", "author"])
    row[name] = flipped(at.random, row[name])


def flipped(random: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def event_prev(at: Tampering) -> None:
    at.row("events")["prev"] = at.identity()


def edge_changed(at: Tampering) -> None:
    row, parent = at.row("edges"), at.identity()
    if row and at.random.random() < 0.3:
        row["ordinal"] = at.random.randrange(4)
    elif row:
        row.update(parent=parent, peid=eid_of(parent))


def edge_made_up(at: Tampering) -> None:
    child, parent = at.identity(), at.identity()
    row = {"child": child, "parent": parent, "ceid": eid_of(child), "peid": eid_of(parent)}
    at.dump().tables["edges"].append({**row, "ordinal": at.random.randint(1, 7)})


def entry_changed(at: Tampering) -> None:
    row = at.row("entries")
    if row and at.random.random() < 0.5:
        row["position"] = at.random.randrange(3)
    elif row:
        row["leaf_hash"] = flipped(at.random, row["leaf_hash"])


def receipt_changed(at: Tampering) -> None:
    row, event = at.row("receipts"), at.identity()
    if row and at.random.random() < 0.5:
        row.update(event=event, eid=eid_of(event))
    elif row:
        row["seq"] += at.random.choice([-1, 1])


def inv_changed(at: Tampering) -> None:
    row = at.row("invs")
    if row:
        name = at.random.choice(["signature", "preimage", "inv_id", "signer"])
        row[name] = flipped(at.random, row[name])


def fork(at: Tampering) -> None:
    """Signed by its author; held by everybody or by some."""
    world, below = at.world, at.random.choice(at.world.read)
    cord = world.ledger.cord_of(below)
    tip = world.ledger.tips[cord]
    made = world.ledger.write(cord.author_no, ["fork"], prev=below, journal=cord.journal)
    world.ledger.tips[cord] = tip
    world.unread.append(made)
    for dump in at.random.sample(at.dumps, at.random.randint(1, len(at.dumps))):
        add_event(world, dump, made)


def in_flight(at: Tampering) -> None:
    world, author = at.world, at.random.randint(1, at.world.members)
    made = world.ledger.write(author, ["new"], journal=Journal(START_MS << 20 | 99))
    world.unread.append(made)
    for dump in at.random.sample(at.dumps, at.random.randint(1, len(at.dumps))):
        add_event(world, dump, made)


def cut(at: Tampering) -> None:
    """As if an epoch had been opened: in some copies or in all."""
    event = at.random.choice(at.world.read)
    cord = at.world.ledger.cord_of(event)
    row: Row = {"epoch": 2, "author_no": cord.author_no, "journal": cord.journal}
    row |= {"seq": event.header.seq, "event": bytes(event.id)}
    for dump in at.random.choice([at.dumps, at.dumps[:1]]):
        dump.tables["cuts"].append(dict(row))


def journal_changed(at: Tampering) -> None:
    rows = at.dump().tables.get("journal", [])
    if len(rows) > 2:
        row = at.random.choice(rows)
        match at.random.randrange(4):
            case 0:
                rows.remove(row)
            case 1:
                row["event"] = at.identity()
            case 2:
                row["regime"] += at.random.choice([-1, 1])
            case _:
                row["prev_hash"] = flipped(at.random, row["prev_hash"])


def row_doubled(at: Tampering) -> None:
    dump = at.dump()
    table = at.random.choice(["events", "edges", "entries", "receipts", "invs"])
    row = at.row(table, dump)
    if row:
        dump.tables[table].append(dict(row))


FAULTS: tuple[Callable[[Tampering], None], ...] = (
    *(event_gone, row_gone, event_column, event_state, event_bytes, event_prev),
    *(edge_changed, edge_made_up, entry_changed, receipt_changed, inv_changed),
    *(first_of_a_cord_gone, digest_changed, fork, in_flight, cut, journal_changed, row_doubled),
)


def tampered(
    seed: int, faults_max: int = 12, drawn: Callable[[str], None] = lambda name: None
) -> tuple[World, list[DumpRows]]:
    """The same for the same seed."""
    random = Random(seed)
    world = World(random.randint(1, 4))
    world.live(random.randint(2, 6))
    dumps = world.dumps()
    if random.random() < 0.5:
        for dump in dumps:
            dump.tables["journal"] = journal_of(world)
    if random.random() < 0.3:
        dumps.append(deepcopy(dumps[0]))
        dumps[-1].number = 2
    at = Tampering(random, world, dumps)
    for _ in range(random.randint(faults_max // 3, faults_max)):
        fault = random.choice(FAULTS)
        drawn(fault.__name__)
        fault(at)
    return world, dumps


def seen(world: World, dumps: list[DumpRows]) -> list[Seen]:
    """The same for the oracle in Python, named as the pipeline names them."""
    numbers = [dump.node_no for dump in dumps]
    copies = []
    for dump in dumps:
        again = f"@{dump.number}" if numbers.count(dump.node_no) > 1 else ""
        node_id = key_of(f"n{dump.node_no}").node_id
        read = {row["id"] for row in dump.tables["events"] if row["state"] == "read"}
        digests = bucket_digests(sorted(read)) if dump.digests is None else dump.digests
        copies.append(
            Seen(
                name=f"n{dump.node_no}{again}",
                tables=dump.tables,
                node_id=node_id,
                number=dump.number,
                as_of_ms=dump.as_of_ms,
                digests=digests,
            )
        )
    return copies
