"""Random bits flipped in the data file of a node, one at a time: `python -m tests.process.flips`.

Stopped: a copy of the store gets one flip, and a process of its own verifies it, opens it and reads
every entry. Each flip is harmless (all bytes right, nothing found: it hit what nothing uses) or
found (a refusal, a finding, the end of that process); wrong bytes, or an entry that is gone while
nothing is found, are a failure. Running: flips fall into the file of a node that serves all its
entries meanwhile; what it answers is right or an error, and after `quipu store repair` the others
have given it everything again.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from bench import history
from quipu.client import QuipuError
from quipu.devnet import Devnet, DevnetFailed
from quipu.ledger.words import EventId
from quipu.storage.environment import DATA_FILE
from quipu.storage.lmdb_store import open_store
from quipu.storage.store import StoreError
from quipu.storage.verification import verify_store
from tests.process.cluster import client_of, cluster, read_at, wait_until
from tests.process.command import QUIPU, environment

ENTRIES = 120
ENTRY_BYTES = 700
SPOILED = 2
FLIPS_A_ROUND = 25  # into a running node, before it is repaired
REPAIR_S_MAX = 60.0
LONG_REPAIR_S_MAX = 1_800.0  # beyond this it is not slow but stuck
CHILD_FLIPS = 20  # so many in one process: a machine that is busy elsewhere needs seconds for each
CHILD_S_MAX = 600.0
HARMLESS, FOUND, WRONG = "harmless", "found", "wrong"


class Flip(NamedTuple):
    at: int
    bit: int

    def into(self, file: Path) -> None:
        """Without the help of LMDB, as a disk would."""
        fd = os.open(file, os.O_RDWR)
        try:
            byte = os.pread(fd, 1, self.at)
            os.pwrite(fd, bytes([byte[0] ^ 1 << self.bit]), self.at)
        finally:
            os.close(fd)


def drawn(rng: random.Random, size: int) -> Flip:
    return Flip(rng.randrange(size), rng.randrange(8))


# --- stopped --------------------------------------------------------------------------------------
def judged(store: Path, expected: dict[str, bytes]) -> str:
    """In a process that the damage may end."""
    try:
        report = verify_store(store, signatures=True)
        if report.found:
            return FOUND
        opened = open_store(store, report.owner) if report.owner is not None else None
        if opened is None:
            return FOUND
        try:
            for identity, entry in expected.items():
                event, _, index = identity.partition(":")
                if opened.entry(EventId(bytes.fromhex(event)), int(index)) != entry:
                    return f"{WRONG}: {identity}"
        finally:
            opened.close()
    except StoreError:
        return FOUND
    return HARMLESS


def child(source: Path, work: Path, expected: Path, flips: Sequence[Flip]) -> None:
    entries = {
        identity: bytes.fromhex(entry)
        for identity, entry in json.loads(expected.read_text()).items()
    }
    for flip in flips:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(source, work)
        flip.into(work / DATA_FILE)
        print(judged(work, entries), flush=True)


def stopped(source: Path, folder: Path, expected: Path, flips: Sequence[Flip]) -> list[str]:
    """What became of each flip; a process that ended itself has found it."""
    verdicts: list[str] = []
    while len(verdicts) < len(flips):
        share, before = flips[len(verdicts) : len(verdicts) + CHILD_FLIPS], len(verdicts)
        rest = json.dumps([str(source), str(folder / "work"), str(expected)])
        done = subprocess.run(
            [sys.executable, "-m", "tests.process.flips", "--child", rest],
            input=json.dumps(share),
            capture_output=True,
            text=True,
            check=False,
            timeout=CHILD_S_MAX,
        )
        said = done.stdout.split("\n")[:-1]
        verdicts += said
        if len(verdicts) < before + len(share):
            assert done.returncode < 0, done.stderr  # by a signal: LMDB asserts, or the memory map
            verdicts.append(FOUND)
    return verdicts


def expected_of(store: Path, identities: Sequence[str], file: Path) -> None:
    report = verify_store(store)
    assert report.owner is not None
    assert not report.found
    opened = open_store(store, report.owner)
    try:
        found = {}
        for identity in identities:
            event, _, index = identity.partition(":")
            entry = opened.entry(EventId(bytes.fromhex(event)), int(index))
            assert entry is not None
            found[identity] = entry.hex()
    finally:
        opened.close()
    file.write_text(json.dumps(found))


# --- running --------------------------------------------------------------------------------------
def answers(net: Devnet, identities: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
    """What the node says of each, None where it says that it cannot, or no more says anything."""
    for identity in identities:
        try:
            with urlopen(f"{net.node(SPOILED).api}/v1/entries/{identity}", timeout=10) as answer:
                yield identity, answer.read()
        except (HTTPError, URLError, ConnectionError, TimeoutError):
            yield identity, None


def running_round(net: Devnet, right: dict[str, bytes], flips: Sequence[Flip]) -> float:
    """Flips, one after the other, beside reading; then a repair. How long that took in seconds."""
    file = net.data_of(net.node(SPOILED)) / "store" / DATA_FILE
    for flip in flips:
        flip.into(file)
        for identity, said in answers(net, list(right)):
            assert said in {None, right[identity]}, f"wrong bytes of {identity} after {flip}"
    net.kill(SPOILED)
    begun_s = time.monotonic()
    repaired(net)

    def is_whole() -> bool:
        return all(said == right[identity] for identity, said in answers(net, list(right)))

    wait_until(is_whole, "the others have given it everything again", REPAIR_S_MAX)
    return time.monotonic() - begun_s


def repaired(net: Devnet) -> None:
    """The command, then a start: what comes then the others bring."""
    data = net.data_of(net.node(SPOILED))
    told = subprocess.run(
        [*QUIPU, "store", "repair", "--data-dir", str(data)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    with suppress(DevnetFailed):
        net.start(SPOILED)


def run(flips: int, seed: int, folder: Path) -> dict[str, float]:
    """Half of them into copies of a stopped store, half into a running node."""
    rng = random.Random(seed)
    with cluster(folder / "net") as net:
        with client_of(net, 1) as client:
            texts = [f"{n} " + "x" * ENTRY_BYTES for n in range(ENTRIES)]
            identities = [client.submit({"text": text}, stream="kept").id for text in texts]
        for identity in identities:
            read_at(net, SPOILED, identity)
        right = {identity: said for identity, said in answers(net, identities) if said is not None}
        assert len(right) == ENTRIES
        net.stop(SPOILED)
        source = folder / "source"
        shutil.copytree(net.data_of(net.node(SPOILED)) / "store", source)
        net.start(SPOILED)
        expected_of(source, identities, folder / "expected")
        size = (source / DATA_FILE).stat().st_size
        drawn_ = [drawn(rng, size) for _ in range(flips - flips // 2)]
        verdicts = stopped(source, folder, folder / "expected", drawn_)
        wrong = [(flip, said) for flip, said in zip(drawn_, verdicts, strict=True) if WRONG in said]
        assert not wrong, f"seed {seed}: {wrong[:3]}"
        longest_s, left = 0.0, flips // 2
        while left > 0:
            size = (net.data_of(net.node(SPOILED)) / "store" / DATA_FILE).stat().st_size
            now = [drawn(rng, size) for _ in range(min(left, FLIPS_A_ROUND))]
            longest_s = max(longest_s, running_round(net, right, now))
            left -= len(now)
    return {
        "flips": flips,
        "stopped, found": verdicts.count(FOUND),
        "stopped, harmless": verdicts.count(HARMLESS),
        "running": flips // 2,
        "longest repair, s": round(longest_s, 1),
    }


def frontier(net: Devnet, number: int) -> object:
    try:
        with client_of(net, number) as client:
            return [(row["author"], row["read_seq"]) for row in client.frontier()["rows"]]
    except QuipuError:
        return None


def long_repair(events: int, rng: random.Random, folder: Path) -> dict[str, float]:
    """Of a node that holds so many events, from the start of the command to its last event."""
    with cluster(folder / "long") as net:
        net.stop(1, 2, 3)
        folders = [net.data_of(node) for node in net.nodes]
        history.write(folders, events, "kept", ENTRY_BYTES, 1)
        net.start(1)
        net.start(3)
        file = folders[SPOILED - 1] / "store" / DATA_FILE
        for _ in range(FLIPS_A_ROUND):
            drawn(rng, file.stat().st_size).into(file)
        begun_s = time.monotonic()
        repaired(net)
        wait_until(
            lambda: frontier(net, 1) is not None and frontier(net, 1) == frontier(net, SPOILED),
            f"all {events} events are there again",
            LONG_REPAIR_S_MAX,
        )
        return {"events": events, "long repair, s": round(time.monotonic() - begun_s, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="make flip-test", description=__doc__)
    parser.add_argument("--flips", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--repair", type=int, default=0, help="also repair so many events, timed")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        source, work, expected = map(Path, json.loads(options.child))
        child(source, work, expected, [Flip(*flip) for flip in json.load(sys.stdin)])
        return 0
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    with TemporaryDirectory(prefix="quipu-flips-") as folder:
        figures = run(options.flips, seed, Path(folder)) if options.flips else {}
        if options.repair:
            figures |= long_repair(options.repair, random.Random(seed), Path(folder))
        for name, figure in figures.items():
            print(f"{name:<20} {figure:g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
