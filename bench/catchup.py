"""Catching up: what a member that missed many events spends, and what it costs the donor.

Two cores over real LMDB stores, no network. The donor has `--events` events of `--entries`
entries; the other one starts empty, asks, verifies and stores them, until both Models are equal.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from bench.core import Pair
from bench.figures import note_figure
from bench.lock import one_benchmark_at_a_time
from quipu.ledger.entry import data_entry, encode_entry
from quipu.ledger.inputs import EntriesSubmitted, MessageReceived, PeerConnected
from quipu.ledger.words import Ticket

TURNS_MAX = 100_000


class CatchUp(Pair):
    def __init__(self, folder: Path, donor_folder: Path, events: int, entries: int) -> None:
        super().__init__(folder, (donor_folder, folder))
        donor = self.author
        donor.inbox.clear()
        self.peer.inbox.clear()
        data = encode_entry(data_entry(bytes(256)))
        for number in range(events):
            donor.inbox.append(EntriesSubmitted(Ticket(number), (data,) * entries))
            self.now_ms += 1
            donor.turn(self.now())
        donor.step_s = donor.commit_s = 0.0
        self.events = events

    def run(self) -> float:
        donor, late = self.author, self.peer
        donor.inbox.append(PeerConnected(late.node_id))
        late.inbox.append(PeerConnected(donor.node_id))
        started = time.perf_counter()
        for _ in range(TURNS_MAX):
            self.now_ms += 6
            for member, other in ((late, donor), (donor, late)):
                for _, data in member.turn(self.now()):
                    other.inbox.append(MessageReceived(member.node_id, data))
            if late.counts["read"] >= self.events:
                return time.perf_counter() - started
        raise SystemExit(f"not everything arrived: {late.counts}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.catchup", description=__doc__)
    parser.add_argument("--events", type=int, default=20_000, help="events missed (20,000)")
    parser.add_argument("--entries", type=int, default=1, help="entries in an event (1)")
    parser.add_argument("--note", action="store_true", help="append to docs/figures.csv")
    given = parser.parse_args()
    with (
        one_benchmark_at_a_time(),
        tempfile.TemporaryDirectory(prefix="quipu-bench-") as path,
        tempfile.TemporaryDirectory(prefix="quipu-bench-", dir="/dev/shm") as donor_path,
    ):
        world = CatchUp(Path(path), Path(donor_path), given.events, given.entries)
        wall_s = world.run()
        world.close()
    donor, late = world.author, world.peer
    each = 1e6 / given.events
    print(f"{'wall, us an event':38} {wall_s * each:10.1f}")
    print(f"{'asker step, us an event':38} {late.step_s * each:10.1f}")
    print(f"{'asker commit, us an event':38} {late.commit_s * each:10.1f}")
    print(f"{'donor step, us an event':38} {donor.step_s * each:10.1f}")
    print(f"{'donor commit, us an event':38} {donor.commit_s * each:10.1f}")
    print(f"{'asker commits':38} {late.counts['commits']:10}")
    if given.note:
        note_figure("bench-catchup", "asker us per event", (late.step_s + late.commit_s) * each)
        note_figure("bench-catchup", "donor us per event", (donor.step_s + donor.commit_s) * each)
    return 0


if __name__ == "__main__":
    sys.exit(main())
