"""What has to hold of a cluster once it is whole again, whatever was done to it.

Each check takes what clients were told and asks every node. Entries that were acknowledged as
`stored` alone may be gone with their author's disk: they are counted and named, never passed over.
"""

import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

import quipu.verify
from quipu.client import Client
from quipu.devnet.processes import until
from quipu.dumps.buckets import bucket_digests
from quipu.dumps.checking import check_contents, check_files
from quipu.dumps.manifest import BUCKETS_TABLE, read_manifest
from quipu.dumps.tracing import diff
from quipu.ledger.order.sequences import next_running
from tests.process.command import quipu_at_length as command
from tests.process.harmed import Harmed
from tests.process.load import SEQUENCE, History
from tests.spark.python_oracle import Seen, findings

SETTLED_S_MAX = 180.0  # the promise is 6 s; a machine that does much else gets more, and says so
FOLLOWED_S_MAX = 60.0
PROOFS = 20
PAGE = 1_000
NEVER_SAID = ("a turn failed", "the node stops", "Traceback (most recent call last)")


class Kept(NamedTuple):
    """`lost`: acknowledged as stored, and gone with their author's disk."""

    read: int
    lost: list[str]


def settled_s(world: Harmed, since_s: float, limit_s: float = SETTLED_S_MAX) -> float:
    """Until all hold, have Read and have ordered the same."""
    world.await_equal(since_s, limit_s)
    assert until(lambda: _is_ordered(world), SETTLED_S_MAX), f"order differs:\n{_orders(world)}"
    return time.monotonic() - since_s


def _is_ordered(world: Harmed) -> bool:
    rows = _orders(world)
    return (
        all(row and row["events_behind"] == 0 for row in rows)
        and len({(row["applied"], row["digest"]) for row in rows}) == 1
        and any(row["role"] == "master" for row in rows)
    )


def _orders(world: Harmed) -> list[Any]:
    return [world.ask(number, "/v1/journal") for number in world.numbers]


# --- entries --------------------------------------------------------------------------------------
def entries_are_kept(world: Harmed, history: History, lost_disks: Iterable[int]) -> Kept:
    """What was acknowledged is Read on every node, once."""
    gone: dict[str, None] = {}
    disks, count = set(lost_disks), 0
    for number in world.numbers:
        with Client([world.net.node(number).api]) as client:
            held = list(client.pages(state="read", limit=PAGE))
        ids, texts = {one.id for one in held}, Counter(str(one.data) for one in held)
        assert len(ids) == len(held), f"n{number} lists an entry twice"
        for one in history.acked:
            if one.id not in ids:
                is_excused = one.state == "stored" and one.node in disks
                assert is_excused, f"n{number} has lost {one}"
                gone[one.text] = None
            elif texts[one.text] != 1:
                assert one.node in disks, f"n{number} has {texts[one.text]} of {one}"
        count = len(held)
    return Kept(count, list(gone))


def proofs_verify(world: Harmed, history: History, dice: random.Random) -> int:
    """Of some that were acknowledged as Read, from any node, without it."""
    genesis = (world.net.data_of(world.net.node(1)) / "genesis").read_bytes()
    chosen = dice.sample(history.read(), min(PROOFS, len(history.read())))
    for one in chosen:
        with Client([world.net.node(dice.choice(world.numbers)).api]) as client:
            verified = quipu.verify.verify(client.proof(one.id), genesis)
        assert f"{verified.event_id.hex()}:{verified.index}" == one.id
    return len(chosen)


def followers_saw_all(world: Harmed, history: History) -> int:
    """Who follows a node is told everything that was Read; how many were told again."""
    wanted = {one.id for one in history.read()}
    for number in world.numbers:
        seen = history.followed[number]
        is_so = until(lambda seen=seen: wanted <= set(seen), FOLLOWED_S_MAX)  # type: ignore[misc]
        assert is_so, f"a follower of n{number} misses {len(wanted - set(seen))}"
    return sum(sum(seen.values()) - len(seen) for seen in history.followed.values())


# --- order ----------------------------------------------------------------------------------------
def order_is_one(world: Harmed, history: History) -> int:
    """The same log everywhere, each event in it once, all that was acknowledged as ordered."""
    base = max(int(row["base"]) for row in _orders(world))
    logs = [_log(world, number, base) for number in world.numbers]
    assert all(log == logs[0] for log in logs), "the logs differ"
    items = [item for entry in logs[0] for item in entry["items"]]
    events = [item["event_id"] for item in items if item["kind"] == "event"]
    assert len(set(events)) == len(events), "an event is ordered twice"
    if not base:
        _numbers_are_gapless(world, history, items)
    return len(events)


def _log(world: Harmed, number: int, base: int) -> list[Any]:
    found: list[Any] = []
    after, more = base, True
    with Client([world.net.node(number).api]) as client:
        while more:
            page = client.journal_entries(after=after, limit=PAGE)
            found += page["items"]
            after, more = int(page["next"]), page["more"]
    return found


def _numbers_are_gapless(world: Harmed, history: History, items: Sequence[Any]) -> None:
    """1, 2, 3 …, each with one digest; each acknowledged number with the digest it was for."""
    digests = [i["digest"] for i in items if i["kind"] == "lock-and-publish"]
    running = bytes(32)
    for number, digest in enumerate(digests, start=1):
        running = next_running(running, number, bytes.fromhex(digest))
    for node in world.numbers:
        shown = world.ask(node, f"/v1/sequences/{SEQUENCE}")
        assert (shown["number"], shown["running_digest"]) == (str(len(digests)), running.hex())
    numbers = [one.number for one in history.published]
    assert len(set(numbers)) == len(numbers), "a number was given twice"
    for one in history.published:
        assert digests[one.number - 1] == one.digest, f"number {one.number} is of another digest"
    extra = len(digests) - len(numbers)
    assert 0 <= extra <= history.undecided, "numbers that nobody asked for"


# --- nodes ----------------------------------------------------------------------------------------
def nobody_broke(world: Harmed) -> None:
    """No turn failed, and honest members are not convicted, whatever was done to them."""
    for text in NEVER_SAID:
        for node in world.net.nodes:
            log = world.net.log_of(node).read_text(errors="replace")
            at = log.find(text)
            assert at < 0, f"{node.name}: {log[max(0, at - 200) : at + 3_000]}"
    for number in world.numbers:
        assert world.ask(number, "/v1/evidence")["items"] == []


def dumps_agree(world: Harmed, folder: Path) -> int:
    """By the command, by the checker of files, and by an oracle that shares nothing with either."""
    dumps = []
    for number in world.numbers:
        dump = folder / f"dump-{number}"
        data = str(world.net.data_of(world.net.node(number)))
        done = command("export", str(dump), "--data-dir", data)
        assert done.returncode == 0, done.stderr
        sound = command("export", str(dump), "--verify", "--signatures")
        assert sound.returncode == 0, sound.stdout
        checked = check_files(dump)
        assert checked.problems + check_contents(checked, signatures=True) == []
        dumps.append(dump)
    assert all(diff(dumps[0], other) == [] for other in dumps[1:])
    copies = [_copy(dump, number) for number, dump in enumerate(dumps, start=1)]
    cluster_id = bytes.fromhex(world.net.plan.cluster_id)
    assert findings(copies, cluster_id, 0.0) == set()
    return len(copies[0].events)


def _copy(dump: Path, number: int) -> Seen:
    found = read_manifest(dump)
    tables: dict[str, list[dict[str, Any]]] = {}
    for file in found.files:
        if file.table != BUCKETS_TABLE:
            rows = pq.read_table(dump / file.name).to_pylist()
            tables.setdefault(file.table, []).extend(rows)
    read = sorted(row["id"] for row in tables["events"] if row["state"] == "read")
    return Seen(
        name=f"n{number}",
        tables=tables,
        node_id=bytes.fromhex(found.node_id),
        number=found.number,
        as_of_ms=found.as_of_ms,
        digests=bucket_digests(read),
    )
