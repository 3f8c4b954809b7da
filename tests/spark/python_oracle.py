"""What is wrong with some copies, a third time: plain loops over all rows, slow and obvious.

It shares nothing with the pipeline but the names of the checks and the tables.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise, product
from typing import Any

import msgspec
from nacl.exceptions import CryptoError
from nacl.signing import VerifyKey

Row = dict[str, Any]
Triple = tuple[str, str, str]  # check, copy, subject
Cord = tuple[int, int]
BUCKETS = 4_096
OF_HEADER = (
    *("author", "epoch", "journal", "seq", "prev", "hlc", "depth"),
    *("kind", "entry_count", "body_bytes", "entries_root"),
)
PLACES = (2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13)


@dataclass(slots=True)
class Seen:
    """One copy as its dump has it."""

    name: str
    tables: dict[str, list[Row]]
    node_id: bytes
    number: int
    as_of_ms: int
    digests: bytes

    def rows(self, table: str) -> list[Row]:
        return self.tables.get(table, [])

    @property
    def events(self) -> list[Row]:
        return self.rows("events")

    def by_id(self) -> dict[bytes, list[Row]]:
        found = defaultdict(list)
        for row in self.events:
            found[row["id"]].append(row)
        return found


def signed64(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def unsigned64(number: int) -> int:
    return number % 2**64


def cord_of(row: Row) -> Cord:
    return row["author_no"], row["journal"]


def slot_of(row: Row) -> str:
    return f"{row['author_no']}/{row['journal']}/{row['seq']}"


def is_valid(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        VerifyKey(key).verify(message, signature)
    except (CryptoError, ValueError):
        return False
    return True


def findings(copies: Sequence[Seen], cluster_id: bytes, settle_s: float) -> set[Triple]:
    found: set[Triple] = set()
    for copy in copies:
        for part in PARTS:
            found.update((c, copy.name, subject) for c, subject in part(copy, cluster_id))
        found.update(unproven(copy, forked_cords(copies)))
    found.update((c, "*", subject) for c, subject in of_all(copies))
    found.update((c, "*", subject) for c, subject in of_executors(copies))
    found.update(islands(copies, cluster_id))
    if len(copies) > 1:
        found.update(beside_each_other(copies, settle_s))
    return found


Said = Iterator[tuple[str, str]]  # check, subject


# --- B: by themselves -----------------------------------------------------------------------------
def of_events(copy: Seen, cluster_id: bytes) -> Said:
    edges = defaultdict(list)
    for edge in copy.rows("edges"):
        edges[edge["child"]].append((edge["ordinal"], edge["parent"]))
    members = {(m["epoch"], m["node_id"], m["node_no"]) for m in copy.rows("members")}
    entries = defaultdict(list)
    for entry in copy.rows("entries"):
        entries[entry["event"]].append(entry)
    for event in copy.events:
        name = event["id"].hex()
        made = sha256(b"quipu/event/1\0" + event["header"]).digest()
        if made != event["id"] or int.from_bytes(event["id"][:8], "big") >> 1 != event["eid"]:
            yield "events.id", name
        named = [parent for _, parent in sorted(edges[event["id"]])]
        if header_of(event["header"]) != ([cluster_id, *[event[n] for n in OF_HEADER]], named):
            yield "events.columns", name
        signed = b"quipu/sig/event/1\0" + event["id"]
        if not is_valid(event["author"], signed, event["signature"]):
            yield "events.signature", name
        if (event["epoch"], event["author"], event["author_no"]) not in members:
            yield "events.author", name
        if not fits(entries[event["id"]], event):
            yield "events.root", name
    known = {event["id"] for event in copy.events}
    yield from (("events.root", event.hex()) for event in entries if event not in known)


def header_of(header: bytes) -> tuple[list[object], list[object]] | None:
    try:
        fields = msgspec.msgpack.decode(header)
        again = msgspec.msgpack.encode(fields)
    except (msgspec.MsgspecError, ValueError, TypeError):
        return None
    if again != header or type(fields) is not list or len(fields) != 14:
        return None
    kept = [fields[at] for at in PLACES]
    columns = [signed64(field) if type(field) is int else field for field in kept]
    prev = [] if fields[5] == 1 else [fields[6]]
    parents = fields[7] if type(fields[7]) is list else [None]
    return [fields[1], *columns], prev + parents


def fits(entries: list[Row], event: Row) -> bool:
    leaves = sorted((entry["position"], entry["leaf_hash"]) for entry in entries)
    return [position for position, _ in leaves] == list(range(event["entry_count"])) and tree_of(
        [leaf for _, leaf in leaves]
    ) == event["entries_root"]


def tree_of(level: list[bytes]) -> bytes:
    """Upwards by levels; the last of an odd number rises as it is."""
    while len(level) > 1:
        twins = zip(level[::2], level[1::2], strict=False)
        pairs = [sha256(b"\1" + a + b).digest() for a, b in twins]
        level = pairs + level[len(pairs) * 2 :]
    return level[0] if level else sha256(b"").digest()


def of_receipts(copy: Seen, cluster_id: bytes) -> Said:
    def key(row: Row) -> tuple[int, int, int]:
        return row["signer_no"], row["number"], row["epoch"]

    rows = defaultdict(list)
    for row in copy.rows("receipts"):
        rows[key(row)].append((*cord_of(row), row["seq"], row["event"]))
    members = {(m["epoch"], m["node_id"], m["node_no"]) for m in copy.rows("members")}
    for inv in copy.rows("invs"):
        name = f"{inv['signer_no']}/{inv['number']}"
        inv_id = sha256(b"quipu/inv/1\0" + inv["preimage"]).digest()
        columns = (inv["signer"], inv["number"], inv["epoch"], cluster_id, inv["inv_id"])
        expected = ((*columns[:4], inv_id), sorted(rows.get(key(inv), [])))
        if inv_id != inv["inv_id"] or inv_of(inv["preimage"]) != expected:
            yield "receipts.columns", name
        elif not is_valid(inv["signer"], b"quipu/sig/inv/1\0" + inv_id, inv["signature"]):
            yield "receipts.signature", name
        if (inv["epoch"], inv["signer"], inv["signer_no"]) not in members:
            yield "receipts.signature", name
    known = {key(inv) for inv in copy.rows("invs")}
    yield from (("receipts.columns", f"{k[0]}/{k[1]}") for k in rows if k not in known)
    held = {(event["eid"], event["id"]) for event in copy.events}
    own = {m["node_no"] for m in copy.rows("members") if m["node_id"] == copy.node_id}
    for row in copy.rows("receipts"):
        if row["signer_no"] in own and (row["eid"], row["event"]) not in held:
            yield "receipts.lacking", row["event"].hex()


def inv_of(preimage: bytes) -> tuple[object, ...] | None:
    try:
        _, cluster, signer, epoch, number, _, said = msgspec.msgpack.decode(preimage)
        named = sorted((no, signed64(j), signed64(seq), event) for no, j, seq, event in said)
        columns = (signer, signed64(number), signed64(epoch), cluster)
    except (msgspec.MsgspecError, ValueError, TypeError):
        return None
    return (*columns, sha256(b"quipu/inv/1\0" + preimage).digest()), named


# --- C: the graph of one copy ---------------------------------------------------------------------
def of_graph(copy: Seen, cluster_id: bytes) -> Said:
    events = copy.by_id()
    yield from (("dag.duplicate", i.hex()) for i, rows in events.items() if len(rows) > 1)
    pairs = []  # child's row, parent's row, by ids that both are held
    lacks: set[bytes] = set()
    with_prev: set[bytes] = set()
    deepest: dict[bytes, int] = {}
    for edge in copy.rows("edges"):
        child, parent = edge["child"], edge["parent"]
        if child not in events:
            yield "dag.stray-edge", child.hex()
        elif parent not in events:
            yield "dag.missing-parent", child.hex()
        for above, below in product(events.get(child, ()), events.get(parent, ())):
            pairs.append((above, below))
            yield from of_edge(above, below, edge["ordinal"] == 0)
        lacks |= {child} - ({child} if parent in events else set())
        with_prev |= {child} if edge["ordinal"] == 0 else set()
        depths = [below["depth"] for below in events.get(parent, ())]
        deepest[child] = max([deepest.get(child, 0), *depths])
    for event in copy.events:
        if event["id"] not in with_prev and (event["seq"] != 1 or event["prev"] != cluster_id):
            yield "dag.root", event["id"].hex()
        if event["id"] not in lacks and event["depth"] != 1 + deepest.get(event["id"], 0):
            yield "dag.depth", event["id"].hex()
    names = ((above["id"], below["id"]) for above, below in pairs)
    yield from (("dag.loop", i.hex()) for i in on_loops(names))


def of_edge(above: Row, below: Row, is_prev: bool) -> Said:
    name = above["id"].hex()
    if is_prev and (*cord_of(below), below["seq"] + 1) != (*cord_of(above), above["seq"]):
        yield "dag.prev", name
    is_later = unsigned64(below["hlc"]) >= unsigned64(above["hlc"])
    if is_later or below["epoch"] > above["epoch"]:
        yield "dag.causality", name
    if above["state"] == "read" and (
        below["feed_pos"] is None
        or (above["feed_pos"] is not None and below["feed_pos"] >= above["feed_pos"])
    ):
        yield "dag.feed", name


def on_loops(pairs: Iterable[tuple[bytes, bytes]]) -> list[bytes]:
    """What is left when whatever has nothing above, or nothing below, goes, and reaches itself."""
    edges = set(pairs)
    while True:
        above, below = {a for a, _ in edges}, {b for _, b in edges}
        kept = {(a, b) for a, b in edges if a in below and b in above}
        if kept == edges:
            break
        edges = kept
    around: dict[bytes, set[bytes]] = defaultdict(set)
    for a, b in edges:
        around[a].add(b)
    return [start for start in sorted(around) if start in reached(around, start)]


def reached(around: dict[bytes, set[bytes]], start: bytes) -> set[bytes]:
    found: set[bytes] = set()
    waiting = [start]
    while waiting:
        new = around[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def of_feed(copy: Seen, cluster_id: bytes) -> Said:
    positions = [event["feed_pos"] for event in copy.events if event["state"] == "read"]
    if positions and sorted(p or 0 for p in positions) != list(range(1, len(positions) + 1)):
        yield "dag.feed", copy.name


def islands(copies: Sequence[Seen], cluster_id: bytes) -> Iterator[Triple]:
    """By what is held somewhere: whatever is tied to the first event of a cord is on the land."""
    held = [event for copy in copies for event in copy.events]
    known = {event["id"] for event in held}
    around: dict[bytes, set[bytes]] = defaultdict(set)
    for copy in copies:
        for edge in copy.rows("edges"):
            if edge["child"] in known and edge["parent"] in known:
                around[edge["child"]].add(edge["parent"])
                around[edge["parent"]].add(edge["child"])
    for event in held:
        if event["seq"] == 1 and event["prev"] == cluster_id:
            around[b"genesis"].add(event["id"])
    land = reached(around, b"genesis")
    for identity in known - land:
        names = sorted(c.name for c in copies if any(e["id"] == identity for e in c.events))
        yield "dag.island", " ".join(names), identity.hex()


# --- over all copies ------------------------------------------------------------------------------
def of_all(copies: Sequence[Seen]) -> Said:
    upon, contents, named, numbers = (defaultdict[Any, set[Any]](set) for _ in range(4))
    places = defaultdict[tuple[int, int], set[Any]](set)
    for copy in copies:
        for event in copy.events:
            upon[*cord_of(event), event["prev"]].add(event["id"])
            what = (event["header"], event["signature"], event["body_bytes"])
            contents[event["id"]].add(what)
        for row in copy.rows("receipts"):
            named[f"{row['signer_no']}/{slot_of(row)}"].add(row["event"])
        for inv in copy.rows("invs"):
            numbers[f"{inv['signer_no']}/{inv['number']}"].add(inv["inv_id"])
        for row in copy.rows("journal"):
            said = (row["event"], row["message_hash"], row["regime"])
            places[row["index"], row["position"]].add(said)
    for ids in upon.values():
        yield from (("dag.fork", i.hex()) for i in ids if len(ids) > 1)
    yield from (("copies.bytes", i.hex()) for i, kinds in contents.items() if len(kinds) > 1)
    for several in (named, numbers):
        yield from (("receipts.conflict", what) for what, o in several.items() if len(o) > 1)
    first = min((place for place, kinds in places.items() if len(kinds) > 1), default=None)
    if first is not None:
        yield "order.diverges", f"{first[0]}/{first[1]}"


def of_digests(copy: Seen, cluster_id: bytes) -> Said:
    ids = sorted({event["id"] for event in copy.events if event["state"] == "read"})
    for bucket in range(BUCKETS):
        inside = b"".join(i for i in ids if int.from_bytes(i[:2], "big") >> 4 == bucket)
        if sha256(inside).digest() != copy.digests[bucket * 32 : bucket * 32 + 32]:
            yield "copies.buckets", str(bucket)


# --- D: beside each other -------------------------------------------------------------------------
def forked_cords(copies: Sequence[Seen]) -> set[Cord]:
    slots = {(*cord_of(e), e["seq"], e["id"]) for copy in copies for e in copy.events}
    often = Counter(slot[:3] for slot in slots)
    return {slot[:2] for slot, times in often.items() if times > 1}


def certified(copy: Seen, upto_ms: int | None, cuts: list[Row]) -> dict[Cord, int]:
    """Up to which seq of each cord its author and MAX_CONFIRMS others have signed in one epoch."""
    held = {(event["eid"], event["id"]) for event in copy.events}
    confirms = {(m["epoch"], m["node_no"]): m["confirms"] for m in copy.rows("members")}
    highest: dict[tuple[int, Cord], dict[int, int]] = defaultdict(dict)
    for row in copy.rows("receipts"):
        is_early = upto_ms is None or unsigned64(row["number"]) >> 16 <= upto_ms
        is_member = (row["epoch"], row["signer_no"]) in confirms
        if is_early and is_member and (row["eid"], row["event"]) in held:
            signers = highest[row["epoch"], cord_of(row)]
            signers[row["signer_no"]] = max(row["seq"], signers.get(row["signer_no"], 0))
    found: dict[Cord, int] = defaultdict(int)
    for (epoch, cord), signers in highest.items():
        needed = max(confirms[epoch, signer] for signer in signers)
        others = sorted((seq for no, seq in signers.items() if no != cord[0]), reverse=True)
        if cord[0] in signers and len(others) >= needed:
            proven = min([signers[cord[0]], *others[:needed]])
            found[cord] = max(found[cord], proven)
    for cut in cuts:
        found[cord_of(cut)] = max(found[cord_of(cut)], cut["seq"])
    return found


def unproven(copy: Seen, forked: set[Cord]) -> Iterator[Triple]:
    proven = certified(copy, None, copy.rows("cuts"))
    for event in copy.events:
        is_looked_at = event["state"] == "read" and cord_of(event) not in forked
        if is_looked_at and event["seq"] > proven[cord_of(event)]:
            yield "copies.unproven", copy.name, event["id"].hex()


def beside_each_other(copies: Sequence[Seen], settle_s: float) -> Iterator[Triple]:
    upto_ms = min(copy.as_of_ms for copy in copies) - int(settle_s * 1_000)
    everywhere = set.intersection(*[{tuple(c.values()) for c in o.rows("cuts")} for o in copies])
    final: dict[Cord, int] = defaultdict(int)
    for copy in copies:
        cuts = [cut for cut in copy.rows("cuts") if tuple(cut.values()) in everywhere]
        for cord, seq in certified(copy, upto_ms, cuts).items():
            final[cord] = max(final[cord], seq)
    for cord in forked_cords(copies):
        final.pop(cord, None)
    due: set[bytes] = set()
    for copy in copies:
        for event in copy.events:
            if cord_of(event) in final and event["seq"] <= final[cord_of(event)]:
                due.add(event["id"])
                if event["state"] == "unread":
                    yield "copies.stuck", copy.name, event["id"].hex()
    for copy in copies:
        lacking = due - {event["id"] for event in copy.events}
        yield from (("copies.missing", copy.name, identity.hex()) for identity in lacking)
    yield from shrunk(copies)


def shrunk(copies: Sequence[Seen]) -> Iterator[Triple]:
    for node_id in {copy.node_id for copy in copies}:
        dumps = sorted((c for c in copies if c.node_id == node_id), key=lambda c: c.number)
        for older, newer in pairwise(dumps):
            now = newer.by_id()
            for event in older.events:
                rows = now.get(event["id"], [])
                was = event["feed_pos"]
                changed = any(
                    (event["state"] == "read" and row["state"] != "read")
                    or (None not in (was, row["feed_pos"]) and was != row["feed_pos"])
                    for row in rows
                )
                if changed or not rows:
                    yield "copies.shrunk", newer.name, event["id"].hex()


# --- E: order -------------------------------------------------------------------------------------
def of_order(copy: Seen, cluster_id: bytes) -> Said:
    rows = sorted(copy.rows("journal"), key=lambda row: (row["index"], row["position"]))
    if not rows:
        return
    positions = defaultdict(list)
    places = defaultdict(list)
    for row in rows:
        positions[row["index"]].append(row["position"])
        if row["event"] is not None:
            places[row["event"]].append((row["index"], row["position"]))
    first = rows[0]["index"]
    for index in range(first, rows[-1]["index"] + 1):
        at = positions.get(index, [])
        is_first_missing = not at and index - 1 in positions
        if is_first_missing or at != list(range(len(at))):
            yield "order.gap", str(index)
    for before, row in pairwise(rows):
        follows = (before["index"], before["position"] + 1), (before["index"] + 1, 0)
        place = (row["index"], row["position"])
        if place in follows and row["prev_hash"] != before["message_hash"]:
            yield "order.chain", f"{place[0]}/{place[1]}"
        if place in follows and row["regime"] < before["regime"]:
            yield "order.regime", f"{place[0]}/{place[1]}"
    read = {event["id"] for event in copy.events if event["state"] == "read"}
    for event, at in places.items():
        if len(at) > 1:
            yield "order.extension", event.hex()
        if event not in read:
            yield "order.unknown", event.hex()
    for edge in copy.rows("edges"):
        above, below = places.get(edge["child"]), places.get(edge["parent"])
        if above and (min(below) >= min(above) if below else first == 1):
            yield "order.extension", edge["child"].hex()


def of_certificate(copy: Seen, cluster_id: bytes) -> Said:
    """Of made ledgers, where nobody signs a higher index than the last."""
    keys = {member["node_no"]: member["node_id"] for member in copy.rows("members")}
    for row in copy.rows("journal"):
        if row["certificate"] is None:
            continue
        signers = set()
        for one in msgspec.msgpack.decode(row["certificate"]):
            *said, signature = msgspec.msgpack.decode(one)
            text = b"quipu/sig/accepted/1\0" + msgspec.msgpack.encode([cluster_id, *said])
            names_it = said[3:] == [row["index"], row["message_hash"]]
            if names_it and is_valid(keys[said[1]], text, signature):
                signers.add(said[1])
        sets = msgspec.msgpack.decode(row["serializers"])
        if not sets or any(2 * len(signers & {*numbers}) <= len(numbers) for numbers in sets):
            yield "order.certificate", str(row["index"])


# --- E: executors ---------------------------------------------------------------------------------
def of_results(copy: Seen, cluster_id: bytes) -> Said:
    held = defaultdict(list)
    for row in copy.rows("results"):
        held[row["client_id"]].append(row["message_id"])
        code, results, _ = msgspec.msgpack.decode(row["result"])
        told = msgspec.msgpack.encode([code, [result[:4] for result in results]])
        if sha256(b"quipu outcome\0" + told).digest() != row["digest"]:
            yield "results.digest", f"{row['client_id']}/{row['message_id']}"
    clients = {row["client_id"]: row for row in copy.rows("clients")}
    for number in {*held, *clients}:
        client = clients.get(number, {"released": 0, "watermark": 0})
        if sorted(held[number]) != [*range(client["released"] + 1, client["watermark"] + 1)]:
            yield "results.gap", str(number)


def of_executors(copies: Sequence[Seen]) -> Said:
    keys, results, states = (defaultdict[Any, set[Any]](set) for _ in range(3))
    for copy in copies:
        for row in copy.rows("clients"):
            keys[row["client_id"]].add(row["key"])
        for row in copy.rows("results"):
            what = f"{row['client_id']}/{row['message_id']}"
            results[what].add((row["request"], row["digest"]))
        for row in copy.rows("executed"):
            states[row["log_index"]].add(row["digest"])
    for check, several in (("clients.key", keys), ("results.differ", results)):
        yield from ((check, str(what)) for what, kinds in several.items() if len(kinds) > 1)
    first = min((at for at, kinds in states.items() if len(kinds) > 1), default=None)
    if first is not None:
        yield "results.state", str(first)


PARTS = (
    *(of_events, of_receipts, of_graph, of_feed, of_digests),
    *(of_order, of_certificate, of_results),
)
