"""What pruning to a tenth gives back: disk, the start of a store, and catching up from others.

Two members have written `--events` events, of which nine tenths lie below a checkpoint. A third one
starts empty, first from whole histories, then from ones that begin with that checkpoint. Cores and
stores are real, and so is the planner; there is no network. Each figure is the ratio of both. A
start takes some milliseconds whatever the length of the ledger, so its ratio says little.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from bench import history
from bench.cases import ENTRY_BYTES
from bench.catchup import MS_PER_S, TURN_MS, TURNS_MAX
from bench.core import Member
from bench.figures import note_figure
from bench.lock import one_benchmark_at_a_time
from quipu.devnet.founding import found
from quipu.ledger.canonical import encode
from quipu.ledger.core import Core, CoreConfig
from quipu.ledger.epochs import CutRow, EpochDocument, close_hash
from quipu.ledger.epochs import Member as Listed
from quipu.ledger.inputs import EpochClosed, EpochOpened, MessageReceived, PeerConnected
from quipu.ledger.limits import START_WAIT_MS
from quipu.ledger.words import NodeId, NodeNo, Now
from quipu.node.data_directory import read_directory
from quipu.node.pruned_store import durable_of
from quipu.node.pruning import Plan, Retention
from quipu.storage.compaction import compact_store
from quipu.storage.environment import DATA_FILE
from quipu.storage.lmdb_store import open_store
from quipu.storage.store import Owner

MEMBERS = 3
KEPT = 10  # a tenth
STARTS = 5
RATIO_MOST = 0.15


class World:
    """Cores over the stores of these folders, and the messages between them."""

    def __init__(self, folders: list[Path], begun_ms: int) -> None:
        self._begun_ms, self._now_ms = begun_ms, 0
        self.members: dict[NodeId, Member] = {}
        for number, folder in enumerate(folders, start=1):
            directory = read_directory(folder)
            key = directory.key
            store = open_store(directory.store_path, Owner(directory.cluster_id, key.node_id))
            core = Core(
                CoreConfig(key, directory.genesis, number), store.saved(), store, self._now()
            )
            self.members[key.node_id] = Member(key.node_id, core, store)
        for member in self.members.values():
            member.inbox += [PeerConnected(i) for i in self.members if i != member.node_id]

    def _now(self) -> Now:
        return Now(self._begun_ms + self._now_ms, self._now_ms)

    def turn(self, ms: int = TURN_MS) -> None:
        self._now_ms += ms
        for member in self.members.values():
            for receiver, data in member.turn(self._now()):
                self.members[receiver].inbox.append(MessageReceived(member.node_id, data))

    def digests(self) -> set[bytes]:
        cores = [member.core for member in self.members.values()]
        return {core.sync.digest(core.epochs.newest_hash) for core in cores}

    def close(self) -> None:
        for member in self.members.values():
            member.store.close()


def checkpoint(folders: list[Path], begun_ms: int) -> None:
    """CLOSE and OPEN over all that is Read; what the log would order is said by hand."""
    world = World(folders, begun_ms)
    for _ in range(START_WAIT_MS // TURN_MS + 20):
        world.turn()
    first = next(iter(world.members.values())).core
    epoch, epochs = first.epochs.newest, first.epochs
    branches = sorted(first.dag.branches.items())
    rows = [
        CutRow(*key.cord, record.read_seq, record.read_id)
        for key, record in branches
        if record.read_seq > record.cut_seq
    ]
    document = EpochDocument(
        1,
        epochs.cluster_id,
        epoch.number + 1,
        epochs.newest_hash,
        1,
        epoch.policy,
        [Listed(no, node_id, f"n{no}", []) for no, node_id in sorted(epoch.members.items())],
        [],
        rows,
        max(record.held_hlc for _, record in branches),
    )
    for member in world.members.values():
        member.inbox.append(EpochClosed(close_hash(document)))
    for _ in range(5):
        world.turn()
    seals = []
    for member in world.members.values():
        number = NodeNo(member.core.me)
        seal = member.store.inv(number, member.core.receipts.newest[number].number)
        assert seal is not None
        seals.append(seal)
    for member in world.members.values():
        member.inbox.append(EpochOpened(encode(document), tuple(seals)))
    for _ in range(20):
        world.turn()
    assert all(m.core.epochs.newest.number == document.number for m in world.members.values())
    world.close()


def prune(folder: Path) -> int:
    """All that lies below the last checkpoint but one. There is no log here: nothing is held."""
    directory = read_directory(folder)
    store = open_store(directory.store_path, Owner(directory.cluster_id, directory.key.node_id))
    saved = store.saved()
    now_ms = time.time_ns() // 1_000_000
    plan = Plan(store, saved, Retention(keep_ms=0), [], now_ms, has_log=False)
    plan.prepare()
    for step in plan.steps():
        store.commit(durable_of(step, saved))
    store.close()
    return plan.events


def disk_bytes(folders: list[Path]) -> int:
    for folder in folders:
        compact_store(read_directory(folder).store_path)
    return sum((read_directory(f).store_path / DATA_FILE).stat().st_size for f in folders)


def start_s(folder: Path) -> float:
    """Store and core, the best of some."""
    directory = read_directory(folder)
    times = []
    for _ in range(STARTS):
        begun = time.perf_counter()
        key = directory.key
        store = open_store(directory.store_path, Owner(directory.cluster_id, key.node_id))
        Core(CoreConfig(key, directory.genesis, 1), store.saved(), store, Now(1, 1))
        times.append(time.perf_counter() - begun)
        store.close()
    return min(times)


def catch_up_s(folders: list[Path], begun_ms: int) -> float:
    """CPU of the late member and of those that serve it, until all hold the same."""
    world = World(folders, begun_ms)
    for _ in range(TURNS_MAX):
        world.turn()
        if len(world.digests()) == 1:
            break
    else:
        raise SystemExit("they never became equal")
    spent = sum(member.step_s + member.commit_s for member in world.members.values())
    world.close()
    return spent


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.pruning", description=__doc__)
    parser.add_argument("--events", type=int, default=20_000, help="events in all (20,000)")
    parser.add_argument("--note", action="store_true", help="append to docs/figures.csv")
    given = parser.parse_args()
    with one_benchmark_at_a_time(), tempfile.TemporaryDirectory(prefix="quipu-bench-") as path:
        plan = found(Path(path) / "whole", MEMBERS, 0, list(range(1, 3 * MEMBERS + 1)))
        whole = [Path(path) / "whole" / node.name / "data" for node in plan.nodes]
        pruned = [Path(path) / "pruned" / node.name / "data" for node in plan.nodes]
        new = given.events // KEPT
        for events in (given.events - new, new):
            history.write(whole[:-1], events, "some", ENTRY_BYTES, 1)
            checkpoint(whole[:-1], int(time.time() * MS_PER_S))
        shutil.copytree(Path(path) / "whole", Path(path) / "pruned")
        gone = [prune(folder) for folder in pruned[:-1]]
        bytes_of = [disk_bytes(folders[:-1]) for folders in (whole, pruned)]
        start_of = [start_s(folders[0]) for folders in (whole, pruned)]
        now_ms = int(time.time() * MS_PER_S)
        late_of = [catch_up_s(folders, now_ms) for folders in (whole, pruned)]
    print(f"{given.events:,} events, {gone} pruned")
    for name, (before, after) in (
        ("disk bytes", bytes_of),
        ("start s", start_of),
        ("catch-up CPU s", late_of),
    ):
        ratio = after / before
        print(f"{name:16} {before:14,.4f} {after:14,.4f}  ratio {ratio:.3f} (at most {RATIO_MOST})")
        if given.note:
            note_figure("bench-pruning", f"{name}, pruned to a tenth: ratio", ratio)
    return 0


if __name__ == "__main__":
    sys.exit(main())
