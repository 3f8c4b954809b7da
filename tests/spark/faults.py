"""Faults planted in the dumps of a sound world, and exactly what each has to be found as.

Each touches events that no other touches, so that one run finds them all. `Expected` leaves the
detail of a finding out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from msgspec.structs import replace

from quipu.dumps.buckets import DIGEST_BYTES, bucket_digests, bucket_of
from quipu.dumps.tables import as_long, eid_of
from quipu.ledger.event import Place, SignedEvent, build_event, meta_of
from quipu.ledger.inv import build_inv
from quipu.ledger.words import Cord, EpochNo, EventId, Hlc, InvNumber, Journal, NodeNo, Seq, hlc_at
from quipu.storage.executors.outcome import Code, Outcome, decode_outcome, encode_outcome
from tests.small_ledger import START_MS, entry_bytes, key_of
from tests.spark.ledgers import DumpRows, Row, World, add_event, add_inv, execute

Expected = set[tuple[str, str, str]]  # check, copy, subject
Dumps = dict[str, DumpRows]


@dataclass(slots=True)
class Planted:
    """A world and its dumps, with faults in them."""

    world: World
    dumps: Dumps
    _picked: int = 0
    _journals: int = 100
    _stamp_ms: int = 0

    def pick(self) -> bytes:
        """An event of n2 in the middle; three rounds lie between two of them, so that none is
        beside what is above or below another."""
        members, step = self.world.members, 3 * self.world.members
        self._picked += 1
        return self.world.read[members * 3 + 1 + step * self._picked].id

    def everywhere(self, check: str, *subjects: str) -> Expected:
        return {(check, name, subject) for name in self.dumps for subject in subjects}

    def journal(self) -> Journal:
        self._journals += 1
        return Journal(START_MS << 20 | self._journals)

    def forge(self, author: str, author_no: int, journal: int, **changes: object) -> SignedEvent:
        """A signed event whose header says what its author likes, Unread in every copy."""
        self._stamp_ms += 1
        place = {
            "cluster_id": self.world.ledger.cluster_id,
            "epoch": EpochNo(1),
            "cord": Cord(NodeNo(author_no), Journal(journal)),
            "seq": Seq(1),
            "prev": EventId(self.world.ledger.cluster_id),
            "parents": (),
            "hlc": hlc_at(self.world.ledger.now_ms + self._stamp_ms),
            "depth": 1,
        }
        made = build_event(
            key_of(author),
            Place(**{**place, **changes}),  # type: ignore[arg-type]
            [entry_bytes(f"forged {self._stamp_ms}")],
        )
        self.world.ledger.metas[made.id] = meta_of(made, NodeNo(author_no), 0)
        for dump in self.dumps.values():
            add_event(self.world, dump, made)
        return made

    def upon(
        self, below: SignedEvent, author: str, author_no: int, **changes: object
    ) -> SignedEvent:
        """The next event of a forged cord."""
        header = below.header
        good = {
            "seq": Seq(header.seq + 1),
            "prev": below.id,
            "depth": header.depth + 1,
            "hlc": Hlc(header.hlc + 1),
        }
        return self.forge(author, author_no, header.journal, **{**good, **changes})

    def sign(self, signer: str, rows: list[tuple[Cord, Seq, EventId]], number: int) -> bytes:
        cluster_id = self.world.ledger.cluster_id
        return build_inv(key_of(signer), cluster_id, EpochNo(1), InvNumber(number), rows).data

    def next_number(self) -> int:
        self._stamp_ms += 1
        return hlc_at(self.world.ledger.now_ms + 1_000 + self._stamp_ms)


# --- B: events by themselves ----------------------------------------------------------------------
def header_changed(at: Planted) -> Expected:
    one = at.pick()
    row = at.dumps["n2"].of(one)
    row["header"] = row["header"][:-1] + bytes([row["header"][-1] ^ 1])
    found = {("events.id", "n2", one.hex()), ("events.columns", "n2", one.hex())}
    return found | {("copies.bytes", "*", one.hex())}


def column_changed(at: Planted) -> Expected:
    one = at.pick()
    at.dumps["n2"].of(one)["kind"] = 1
    return {("events.columns", "n2", one.hex())}


def size_changed(at: Planted) -> Expected:
    one = at.pick()
    at.dumps["n3"].of(one)["body_bytes"] += 1
    return {("events.columns", "n3", one.hex()), ("copies.bytes", "*", one.hex())}


def signature_changed(at: Planted) -> Expected:
    one = at.pick()
    row = at.dumps["n3"].of(one)
    row["signature"] = bytes(64)
    return {("events.signature", "n3", one.hex()), ("copies.bytes", "*", one.hex())}


def signed_by_another(at: Planted) -> Expected:
    made = at.forge("n2", 2, at.journal())
    for dump in at.dumps.values():
        dump.of(made.id)["signature"] = key_of("liar").sign(b"quipu/sig/event/1\0" + made.id)
    return at.everywhere("events.signature", made.id.hex())


def written_by_a_stranger(at: Planted) -> Expected:
    made = at.forge("liar", 9, at.journal())
    return at.everywhere("events.author", made.id.hex())


def of_an_epoch_that_is_none(at: Planted) -> Expected:
    made = at.forge("n2", 2, at.journal(), epoch=EpochNo(7))
    return at.everywhere("events.author", made.id.hex())


def leaf_changed(at: Planted) -> Expected:
    one = at.pick()
    row = next(row for row in at.dumps["n2"].tables["entries"] if row["event"] == one)
    row["leaf_hash"] = bytes(32)
    return {("events.root", "n2", one.hex())}


def entry_missing(at: Planted) -> Expected:
    one = at.pick()
    tables = at.dumps["n2"].tables
    tables["entries"] = [row for row in tables["entries"] if row["event"] != one]
    return {("events.root", "n2", one.hex())}


def entry_doubled(at: Planted) -> Expected:
    one = at.pick()
    entries = at.dumps["n3"].tables["entries"]
    entries.append(next(row for row in entries if row["event"] == one))
    return {("events.root", "n3", one.hex())}


def entry_of_no_event(at: Planted) -> Expected:
    entries = at.dumps["n2"].tables["entries"]
    stray = sha256(b"stray entry").digest()
    entries.append({**entries[0], "event": stray, "eid": eid_of(stray)})
    return {("events.root", "n2", stray.hex())}


def edge_missing(at: Planted) -> Expected:
    """One that is not the deepest, so that depth stays right."""
    one = at.pick()
    dump = at.dumps["n2"]
    edges = [row for row in dump.tables["edges"] if row["child"] == one and row["ordinal"] > 0]
    least = min(edges, key=lambda row: int(dump.of(row["parent"])["depth"]))
    dump.tables["edges"].remove(least)
    return {("events.columns", "n2", one.hex())}


def edge_too_many(at: Planted) -> Expected:
    one = at.pick()
    first = at.world.read[0].id
    edge = {"child": one, "parent": first, "ceid": eid_of(one), "peid": eid_of(first), "ordinal": 7}
    at.dumps["n3"].tables["edges"].append(edge)
    return {("events.columns", "n3", one.hex())}


def number_wraps(at: Planted) -> Expected:
    """A time beyond 2^63 is a negative LONG, and no fault."""
    below = at.forge("n2", 2, at.journal(), hlc=Hlc(2**63 - 2))
    at.upon(below, "n2", 2, hlc=Hlc(2**63 + 5))
    return set()


# --- B: receipts ----------------------------------------------------------------------------------
def receipt_row_missing(at: Planted) -> Expected:
    dump = at.dumps["n2"]
    row = dump.tables["receipts"].pop(4)
    return {("receipts.columns", "n2", f"{row['signer_no']}/{row['number']}")}


def receipt_row_changed(at: Planted) -> Expected:
    row = at.dumps["n3"].tables["receipts"][10]
    row["epoch"] = 2
    return {("receipts.columns", "n3", f"{row['signer_no']}/{row['number']}")}


def receipt_signature_changed(at: Planted) -> Expected:
    row = at.dumps["n2"].tables["invs"][12]
    row["signature"] = bytes(64)
    return {("receipts.signature", "n2", f"{row['signer_no']}/{row['number']}")}


def receipt_of_a_stranger(at: Planted) -> Expected:
    tip = at.world.read[-1]
    number = at.next_number()
    data = at.sign("liar", [(at.world.ledger.cord_of(tip), Seq(tip.header.seq), tip.id)], number)
    add_inv(at.dumps["n1"].tables, 9, data)
    return {("receipts.signature", "n1", f"9/{number}")}


def two_events_acknowledged(at: Planted) -> Expected:
    """n2 signs another id for a slot; nobody has that event, n2 neither."""
    event = next(e for e in at.world.read[20:] if e.header.author == key_of("n3").node_id)
    cord, other = at.world.ledger.cord_of(event), EventId(sha256(b"other").digest())
    seq = Seq(event.header.seq)
    data = at.sign("n2", [(cord, seq, other)], at.next_number())
    for dump in at.dumps.values():
        add_inv(dump.tables, 2, data)
    slot = f"2/{cord.author_no}/{as_long(cord.journal)}/{seq}"
    return {("receipts.conflict", "*", slot), ("receipts.lacking", "n2", other.hex())}


def number_signed_twice(at: Planted) -> Expected:
    early, late = at.world.read[0], at.world.read[3]
    number = at.next_number()
    for name, event in (("n1", early), ("n3", late)):
        cord = at.world.ledger.cord_of(event)
        data = at.sign("n1", [(cord, Seq(event.header.seq), event.id)], number)
        add_inv(at.dumps[name].tables, 1, data)
    return {("receipts.conflict", "*", f"1/{number}")}


def receipt_for_what_is_not_held(at: Planted) -> Expected:
    journal, nothing = at.journal(), EventId(sha256(b"nothing").digest())
    data = at.sign("n3", [(Cord(NodeNo(1), journal), Seq(9), nothing)], at.next_number())
    for dump in at.dumps.values():
        add_inv(dump.tables, 3, data)
    return {("receipts.lacking", "n3", nothing.hex())}


# --- C: structure ---------------------------------------------------------------------------------
def event_doubled(at: Planted) -> Expected:
    made = at.forge("n1", 1, at.journal())
    events = at.dumps["n3"].tables["events"]
    events.append(dict(at.dumps["n3"].of(made.id)))
    return {("dag.duplicate", "n3", made.id.hex())}


def edge_of_no_event(at: Planted) -> Expected:
    stray, first = sha256(b"stray edge").digest(), at.world.read[0].id
    edge = {"child": stray, "parent": first, "ceid": eid_of(stray), "peid": eid_of(first)}
    at.dumps["n2"].tables["edges"].append({**edge, "ordinal": 1})
    return {("dag.stray-edge", "n2", stray.hex())}


def parent_held_nowhere(at: Planted) -> Expected:
    made = at.forge("n1", 1, at.journal(), parents=(EventId(sha256(b"lost").digest()),), depth=9)
    return at.everywhere("dag.missing-parent", made.id.hex())


def prev_of_another_cord(at: Planted) -> Expected:
    below = at.forge("n1", 1, at.journal())
    first = at.forge("n2", 2, at.journal())
    made = at.upon(first, "n2", 2, prev=below.id, hlc=Hlc(first.header.hlc + 50))
    return at.everywhere("dag.prev", made.id.hex())


def seq_left_out(at: Planted) -> Expected:
    first = at.forge("n2", 2, at.journal())
    made = at.upon(first, "n2", 2, seq=Seq(3))
    return at.everywhere("dag.prev", made.id.hex())


def root_that_is_none(at: Planted) -> Expected:
    """seq 1 upon something else than the genesis: it hangs on nothing."""
    made = at.forge("n3", 3, at.journal(), prev=EventId(sha256(b"elsewhere").digest()))
    island = {("dag.island", "n1 n2 n3", made.id.hex())}
    return at.everywhere("dag.root", made.id.hex()) | island


def island(at: Planted) -> Expected:
    lost = EventId(sha256(b"lost below").digest())
    first = at.forge("n2", 2, at.journal(), seq=Seq(4), prev=lost, depth=4)
    second = at.upon(first, "n2", 2)
    third = at.upon(second, "n2", 2)
    adrift = {("dag.island", "n1 n2 n3", e.id.hex()) for e in (first, second, third)}
    return at.everywhere("dag.missing-parent", first.id.hex()) | adrift


def depth_too_great(at: Planted) -> Expected:
    first = at.forge("n3", 3, at.journal())
    made = at.upon(first, "n3", 3, depth=9)
    return at.everywhere("dag.depth", made.id.hex())


def depth_too_small(at: Planted) -> Expected:
    """Suspicious, and no loop."""
    first = at.forge("n3", 3, at.journal())
    second = at.upon(first, "n3", 3)
    made = at.upon(second, "n3", 3, depth=1)
    return at.everywhere("dag.depth", made.id.hex())


def time_goes_back(at: Planted) -> Expected:
    first = at.forge("n3", 3, at.journal())
    made = at.upon(first, "n3", 3, hlc=Hlc(first.header.hlc - 5))
    return at.everywhere("dag.causality", made.id.hex())


def fork(at: Planted) -> Expected:
    first = at.forge("n2", 2, at.journal())
    one, other = at.upon(first, "n2", 2), at.upon(first, "n2", 2, hlc=Hlc(first.header.hlc + 9))
    return {("dag.fork", "*", event.id.hex()) for event in (one, other)}


def fork_over_two_copies(at: Planted) -> Expected:
    """Neither copy alone shows it."""
    first = at.forge("n1", 1, at.journal())
    one, other = at.upon(first, "n1", 1), at.upon(first, "n1", 1, hlc=Hlc(first.header.hlc + 9))
    at.dumps["n1"].drop(other.id)
    for name in ("n2", "n3"):
        at.dumps[name].drop(one.id)
    return {("dag.fork", "*", event.id.hex()) for event in (one, other)}


def fork_at_the_first(at: Planted) -> Expected:
    journal = at.journal()
    both = (at.forge("n3", 3, journal), at.forge("n3", 3, journal))
    return {("dag.fork", "*", event.id.hex()) for event in both}


def loop_of_25(at: Planted) -> Expected:
    """The first of 25 is made to name the last: an edge is enough, no hash allows it."""
    chain = [at.forge("n1", 1, at.journal())]
    while len(chain) < 25:
        chain.append(at.upon(chain[-1], "n1", 1))
    first, last = chain[0].id, chain[-1].id
    edge = {"child": first, "parent": last, "ceid": eid_of(first), "peid": eid_of(last)}
    at.dumps["n2"].tables["edges"].append({**edge, "ordinal": 1})
    loop = {("dag.loop", "n2", event.id.hex()) for event in chain}
    names = ("events.columns", "dag.depth", "dag.causality")
    return loop | {(name, "n2", first.hex()) for name in names}


# --- D: copies ------------------------------------------------------------------------------------
def event_missing(at: Planted) -> Expected:
    """Final long ago, and gone from one copy, which has signed that it holds it."""
    one = at.pick()
    dump = at.dumps["n2"]
    children = dump.children(one)
    dump.drop(one)
    dump.renumber()
    found = {("dag.missing-parent", "n2", child.hex()) for child in children}
    found |= {("receipts.lacking", "n2", one.hex())}
    return found | {("copies.missing", "n2", one.hex())}


def last_event_missing(at: Planted) -> Expected:
    last = at.world.read[-1]
    dump = at.dumps["n3"]
    dump.drop(last.id)
    dump.renumber()
    found = {("receipts.lacking", "n3", last.id.hex())}
    return found | {("copies.missing", "n3", last.id.hex())}


def still_unread(at: Planted) -> Expected:
    """Final everywhere, and one node does not say so."""
    event = at.world.read[-2]
    dump = at.dumps["n2"]
    dump.of(event.id).update(state="unread", feed_pos=None)
    dump.renumber()
    above = [child for child in dump.children(event.id) if dump.of(child)["state"] == "read"]
    found = {("dag.feed", "n2", child.hex()) for child in above}
    return found | {("copies.stuck", "n2", event.id.hex())}


def in_flight(at: Planted) -> Expected:
    """No fault: an event that has reached one copy only."""
    made = at.forge("n1", 1, at.journal())
    for name in ("n2", "n3"):
        at.dumps[name].drop(made.id)
    return set()


def read_a_moment_ago(at: Planted) -> Expected:
    """No fault: final after the horizon, Read in one copy, Unread or missing in the others."""
    made = at.forge("n2", 2, at.journal())
    dump = at.dumps["n1"]
    positions = [row["feed_pos"] for row in dump.tables["events"] if row["state"] == "read"]
    dump.of(made.id).update(state="read", feed_pos=max(positions) + 1)
    at.dumps["n3"].drop(made.id)
    cord = Cord(NodeNo(2), Journal(made.header.journal))
    for number, signer in ((1, "n1"), (2, "n2")):
        late = hlc_at(dump.as_of_ms - 1_000) + at.next_number() % 1_000
        data = at.sign(signer, [(cord, Seq(1), made.id)], late)
        for name in ("n1", "n2"):
            add_inv(at.dumps[name].tables, number, data)
    return set()


def read_without_receipts(at: Planted) -> Expected:
    made = at.forge("n3", 3, at.journal())
    dump = at.dumps["n1"]
    positions = [row["feed_pos"] for row in dump.tables["events"] if row["state"] == "read"]
    dump.of(made.id).update(state="read", feed_pos=max(positions) + 1)
    return {("copies.unproven", "n1", made.id.hex())}


def feed_turned_round(at: Planted) -> Expected:
    """A child becomes Read before what it names."""
    one = at.pick()
    dump = at.dumps["n3"]
    child = next(
        row["child"] for row in dump.tables["edges"] if row["parent"] == one and row["ordinal"] == 0
    )
    low, high = dump.of(one), dump.of(child)
    low["feed_pos"], high["feed_pos"] = high["feed_pos"], low["feed_pos"]
    at_feed = {row["id"]: row["feed_pos"] for row in dump.tables["events"] if row["feed_pos"]}
    edges = [(row["child"], row["parent"]) for row in dump.tables["edges"]]
    read = [(c, p) for c, p in edges if c in at_feed and p in at_feed]
    wrong = {child for child, parent in read if at_feed[parent] >= at_feed[child]}
    return {("dag.feed", "n3", event.hex()) for event in wrong}


def digests_of_another(at: Planted) -> Expected:
    dump = at.dumps["n3"]
    read = sorted(row["id"] for row in dump.tables["events"] if row["state"] == "read")
    own = bytearray(bucket_digests(read))
    bucket = bucket_of(read[0])
    own[bucket * DIGEST_BYTES] ^= 1
    dump.digests = bytes(own)
    return {("copies.buckets", "n3", str(bucket))}


def document_changed(at: Planted) -> Expected:
    row = at.dumps["n2"].tables["config"][0]
    row["document"] = row["document"][:-1] + b"\x91\xa1x"
    return {("config.chain", "n2", "1"), ("config.chain", "n2", "documents")}


def member_made_up(at: Planted) -> Expected:
    members = at.dumps["n3"].tables["members"]
    members.append({**members[0], "node_no": 8, "node_id": key_of("liar").node_id})
    return {("config.members", "n3", "1/8")}


# --- E: the order and the executors ---------------------------------------------------------------
def results_of(at: Planted, name: str) -> list[Row]:
    return at.dumps[name].tables["results"]


def result_missing(at: Planted) -> Expected:
    results_of(at, "n3").pop(1)
    return {("results.gap", "n3", "1")}


def result_of_no_client(at: Planted) -> Expected:
    results_of(at, "n1").append({**results_of(at, "n1")[0], "client_id": 8})
    return {("results.gap", "n1", "8")}


def result_changed(at: Planted) -> Expected:
    row = results_of(at, "n2")[0]
    row["result"] = encode_outcome(Outcome(Code.NOT_UNIQUE))
    return {("results.digest", "n2", "1/3")}


def result_differs(at: Planted) -> Expected:
    """Sound by itself, and not what the others came to."""
    row, outcome = results_of(at, "n2")[1], Outcome(Code.NOT_UNIQUE)
    row.update(result=encode_outcome(outcome), digest=outcome.told().digest)
    return {("results.differ", "*", "1/4")}


def result_words_differ(at: Planted) -> Expected:
    """No fault: words for people may be another version's."""
    row = results_of(at, "n2")[2]
    row["result"] = encode_outcome(replace(decode_outcome(row["result"]), detail="said otherwise"))
    return set()


def executors_apart(at: Planted) -> Expected:
    for row in at.dumps["n3"].tables["executed"][1:]:
        row["digest"] = bytes(32)
    return {("results.state", "*", "128")}


def key_of_another(at: Planted) -> Expected:
    at.dumps["n2"].tables["clients"][1]["key"] = key_of("liar").node_id
    return {("clients.key", "*", "2")}


# In this order: what looks at the whole of a copy comes last.
FAULTS: tuple[Callable[[Planted], Expected], ...] = (
    header_changed,
    column_changed,
    size_changed,
    signature_changed,
    signed_by_another,
    written_by_a_stranger,
    of_an_epoch_that_is_none,
    leaf_changed,
    entry_missing,
    entry_doubled,
    entry_of_no_event,
    edge_missing,
    edge_too_many,
    number_wraps,
    receipt_row_missing,
    receipt_row_changed,
    receipt_signature_changed,
    receipt_of_a_stranger,
    two_events_acknowledged,
    number_signed_twice,
    receipt_for_what_is_not_held,
    event_doubled,
    edge_of_no_event,
    parent_held_nowhere,
    prev_of_another_cord,
    seq_left_out,
    root_that_is_none,
    island,
    depth_too_great,
    depth_too_small,
    time_goes_back,
    fork,
    fork_over_two_copies,
    fork_at_the_first,
    loop_of_25,
    event_missing,
    last_event_missing,
    still_unread,
    in_flight,
    read_a_moment_ago,
    read_without_receipts,
    feed_turned_round,
    document_changed,
    member_made_up,
    result_missing,
    result_of_no_client,
    result_changed,
    result_differs,
    result_words_differ,
    executors_apart,
    key_of_another,
    digests_of_another,
)


def planted() -> tuple[World, Dumps, dict[str, Expected]]:
    """All of them at once, and what each is to be found as."""
    world = World()
    world.live(45)
    dumps = {f"n{dump.node_no}": dump for dump in world.dumps()}
    execute([*dumps.values()])
    at = Planted(world, dumps)
    return world, dumps, {fault.__name__: fault(at) for fault in FAULTS}
