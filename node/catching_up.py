"""An executor that lacks what no log holds any more begins anew, from a snapshot of another one.

It asks in the order; all executors make a snapshot as of that very index and say there what is
in it. What enough of them agree on is fetched from one of them, in chunks, and checked against it.
"""

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from quipu.ledger.order.marks import SnapshotMade, SnapshotWanted, encode_mark
from quipu.node import limits
from quipu.node.execution import SNAPSHOTS, Execution
from quipu.node.network import Network
from quipu.node.order_service import NoQuorum, OrderUnknown
from quipu.node.questions import SNAPSHOT_QUESTION
from quipu.node.running_order import RunningOrder
from quipu.node.service import NotTaken
from quipu.p2p.bodies import Answer
from quipu.p2p.gossip import Gossip, body_of, decode_content, join_content
from quipu.storage.executors.executor import Mark, Snapshot, SnapshotMismatch
from quipu.storage.executors.request import Digest, LogIndex
from quipu.storage.executors.snapshots import DATABASE_FILE, restore_snapshot
from quipu.storage.failpoints import passing

FETCHED = "fetched.sqlite3"
WAL_FILES = ("", "-wal", "-shm")
OLD = ".before"


class NoSnapshot(Exception):
    """Nobody has one that enough agree on, or it did not come whole."""


@dataclass(slots=True)
class CatchingUp:
    order: RunningOrder
    execution: Execution
    network: Network

    # --- who lacks ------------------------------------------------------------------------------
    async def catch_up(self) -> None:
        """Once; whoever calls it tries again."""
        try:
            found = await self._wanted()
            for made in found:
                with suppress(NoSnapshot, SnapshotMismatch):
                    await self._take(made)
                    return
        except (NoSnapshot, NoQuorum, OrderUnknown, NotTaken) as error:
            self.execution.log.info("no snapshot yet", reason=str(error))
        await asyncio.sleep(limits.EXECUTOR_RETRY_S)

    async def _wanted(self) -> list[SnapshotMade]:
        (at, _), _ = await self.order.ordered(encode_mark(SnapshotWanted(self.order.own_no)))
        members = len(self.execution.members)
        with suppress(TimeoutError):
            async with asyncio.timeout(limits.SNAPSHOT_WAIT_S):
                while True:
                    found = self.order.machine.ordering.journal.marks.agreed(at, members)
                    if found:
                        return found
                    await asyncio.sleep(limits.SNAPSHOT_LOOK_S)
        raise NoSnapshot(f"too few executors agree on one as of index {at}")

    async def _take(self, made: SnapshotMade) -> None:
        directory = self.execution.directory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        fetched = directory / FETCHED
        await self._fetch(made, fetched)
        described = Snapshot(
            Mark(LogIndex(made.at), Digest(made.digest)),
            Digest(made.tables),
            made.engine,
            made.file_bytes,
            Digest(made.file_digest),
        )
        await asyncio.to_thread(put_in_place, fetched, directory, described)
        self.execution.log.info("the executor begins from a snapshot", index=made.at)

    async def _fetch(self, made: SnapshotMade, target: Path) -> None:
        peer = self.order.machine.view.epochs.node_ids[made.node_no]  # type: ignore[index]
        with target.open("wb") as file:
            while file.tell() < made.file_bytes:
                argument = f"{made.at} {file.tell()}".encode()
                ended = await self.network.query(
                    SNAPSHOT_QUESTION, argument, limits.SNAPSHOT_ANSWER_S, peer
                )
                chunk = next((_answer(said) for of, said in ended.answers if of == peer), b"")
                if not chunk:
                    raise NoSnapshot(f"node {made.node_no} does not hand it out")
                file.write(chunk)

    # --- who has --------------------------------------------------------------------------------
    def chunk(self, argument: bytes) -> bytes:
        """Of a snapshot made here: of `index offset`. Empty where there is none, or no more."""
        made, parts = self.execution.made, argument.split()
        if made is None or len(parts) != 2 or not all(part.isdigit() for part in parts):
            return b""
        at, offset = (int(part) for part in parts)
        if at != made.applied.at or offset >= made.file_bytes:
            return b""
        return _read(self.execution.directory / SNAPSHOTS / f"{at}.sqlite3", offset)


def _read(file: Path, offset: int) -> bytes:
    with suppress(OSError), file.open("rb") as stream:
        stream.seek(offset)
        return stream.read(limits.SNAPSHOT_CHUNK_BYTES)
    return b""


def put_in_place(fetched: Path, directory: Path, described: Snapshot) -> None:
    """What was there is set aside until the snapshot is. Raises `SnapshotMismatch`."""
    old: list[Path] = []
    for ending in WAL_FILES:
        file = directory / (DATABASE_FILE + ending)
        if file.exists():
            old.append(file.rename(file.with_name(file.name + OLD)))
    passing("snapshot.aside")
    try:
        restore_snapshot(fetched, directory, described)
    except BaseException:
        for file in old:
            file.rename(file.with_name(file.name.removesuffix(OLD)))
        raise
    passing("snapshot.restored")
    for file in old:
        file.unlink()
    os.unlink(fetched)


def _answer(signed: bytes) -> bytes:
    """What stands in a message that was looked at before it was counted."""
    (message,) = decode_content(join_content([signed]))
    assert isinstance(message, Gossip)
    body = body_of(message)
    assert isinstance(body, Answer)
    return body.answer
