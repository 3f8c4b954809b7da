"""Catching up without a network: what a member that missed many events spends, and its donors.

Three cores over real LMDB stores. Two of them have written `--events` events of `--entries` entries
by turns; the third starts empty, asks, verifies and stores them, until all Models are equal.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from bench import history
from bench.cases import ENTRY_BYTES
from bench.core import Member
from bench.figures import note_figure
from bench.lock import one_benchmark_at_a_time
from quipu.devnet.founding import found
from quipu.ledger.core import Core, CoreConfig
from quipu.ledger.inputs import MessageReceived, PeerConnected
from quipu.ledger.words import NodeId, Now
from quipu.node.data_directory import read_directory
from quipu.storage.lmdb_store import open_store
from quipu.storage.store import Owner

MEMBERS = 3
TURN_MS = 6
MS_PER_S = 1_000
TURNS_MAX = 100_000


class CatchUp:
    """The last member is the late one."""

    def __init__(self, folders: list[Path]) -> None:
        self._begun_ms = int(time.time() * MS_PER_S)
        self._now_ms = 0
        self.members: dict[NodeId, Member] = {}
        for number, folder in enumerate(folders, start=1):
            directory = read_directory(folder)
            key = directory.key
            store = open_store(directory.store_path, Owner(directory.cluster_id, key.node_id))
            config = CoreConfig(key, directory.genesis, number)
            core = Core(config, store.saved(), store, self._now())
            self.members[key.node_id] = Member(key.node_id, core, store)
        *self.donors, self.late = self.members.values()
        for member in self.members.values():
            member.inbox += [PeerConnected(i) for i in self.members if i != member.node_id]

    def run(self, events: int) -> float:
        started = time.perf_counter()
        for _ in range(TURNS_MAX):
            self._now_ms += TURN_MS
            for member in self.members.values():
                for receiver, data in member.turn(self._now()):
                    self.members[receiver].inbox.append(MessageReceived(member.node_id, data))
            if self.late.counts["read"] >= events:
                return time.perf_counter() - started
        raise SystemExit(f"not everything arrived: {self.late.counts}")

    def close(self) -> None:
        for member in self.members.values():
            member.store.close()

    def _now(self) -> Now:
        return Now(self._begun_ms + self._now_ms, self._now_ms)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.catchup", description=__doc__)
    parser.add_argument("--events", type=int, default=20_000, help="events missed (20,000)")
    parser.add_argument("--entries", type=int, default=1, help="entries in an event (1)")
    parser.add_argument("--note", action="store_true", help="append to docs/figures.csv")
    given = parser.parse_args()
    with one_benchmark_at_a_time(), tempfile.TemporaryDirectory(prefix="quipu-bench-") as path:
        plan = found(Path(path), MEMBERS, 0, list(range(1, 3 * MEMBERS + 1)))
        folders = [Path(path) / node.name / "data" for node in plan.nodes]
        history.write(folders[:-1], given.events, "missed", ENTRY_BYTES, given.entries)
        world = CatchUp(folders)
        wall_s = world.run(given.events)
        world.close()
        different = history.difference(folders[0], folders[-1])
    if different:
        raise SystemExit(different)
    each = 1e6 / given.events
    donors_us = sum(donor.step_s + donor.commit_s for donor in world.donors) * each
    print(f"{'wall, us an event':38} {wall_s * each:10.1f}")
    print(f"{'late node step, us an event':38} {world.late.step_s * each:10.1f}")
    print(f"{'late node commit, us an event':38} {world.late.commit_s * each:10.1f}")
    print(f"{'donors, us an event':38} {donors_us:10.1f}")
    print(f"{'late node commits':38} {world.late.counts['commits']:10}")
    if given.note:
        late_us = (world.late.step_s + world.late.commit_s) * each
        note_figure("bench-catchup", "late node us per event", late_us)
        note_figure("bench-catchup", "donors us per event", donors_us)
    return 0


if __name__ == "__main__":
    sys.exit(main())
