"""A network between nodes on loopback that a test can spoil, one direction of one pair at a time.

Others dial a port of this network in place of the node's own; bytes pass from here to there. TCP
ends here, and a stream of bytes has no loss, copies or disorder: what a program ever feels of them
is that bytes come late. So a lost segment is a stall of one retransmission timeout, and a cut
holds bytes back for as long as it lasts, as two ends that go on sending would. A dial in a cut is
taken and not answered. Copies and disorder below TCP are the simulator's; replayed frames are in
test_hostile.py.
"""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

HOST = "127.0.0.1"
CHUNK_BYTES = 65_536
CHUNKS_MAX = 64  # held of one direction of one connection: beyond, its sender feels it
RECORDED_BYTES_MAX = 1 << 18  # of each direction: the first of its first connections
RETRANSMIT_S = 0.2  # Linux's least timeout of a lost segment
WAIT_S = 20.0  # for anything at all


@dataclass(frozen=True, slots=True)
class Weather:
    """Of the bytes from one node to another."""

    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0  # part of the pieces that come one timeout later
    bytes_per_s: float = 0.0  # 0: as fast as the machine is
    is_cut: bool = False


FAIR = Weather()


@dataclass(slots=True)
class _Way:
    """From one node to another, over all connections of the two."""

    random: random.Random
    touched: Counter[str]
    weather: Weather = FAIR
    is_open: asyncio.Event = field(default_factory=asyncio.Event)
    recorded: bytearray = field(default_factory=bytearray)  # of the side that dialled

    def keep(self, chunk: bytes) -> None:
        if len(self.recorded) < RECORDED_BYTES_MAX:
            self.recorded += chunk

    def set(self, weather: Weather) -> None:
        self.weather = weather
        self.is_open.clear() if weather.is_cut else self.is_open.set()

    def due_s(self, now_s: float, before_s: float, size: int) -> float:
        """When a piece arrives that leaves now; never before the piece before it."""
        weather = self.weather
        late_s = weather.delay_s + weather.jitter_s * self.random.random()
        if self.random.random() < weather.loss:
            late_s += RETRANSMIT_S
            self.touched["loss"] += 1
        if weather.delay_s:
            self.touched["delay"] += 1
        if weather.bytes_per_s:
            self.touched["narrow"] += 1
        due_s = max(before_s, now_s + late_s)
        return due_s + size / weather.bytes_per_s if weather.bytes_per_s else due_s


class Chaos:
    """`targets`: where each node listens, by number; `pids`: the processes of the nodes now."""

    def __init__(
        self, targets: Mapping[int, int], pids: Callable[[], Mapping[int, int]], seed: int
    ) -> None:
        self._targets = targets
        self._pids = pids
        self._random = random.Random(seed)
        self._ways: dict[tuple[int, int], _Way] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: dict[asyncio.StreamWriter, tuple[int, int]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="chaos", daemon=True)
        self.connections = 0  # that were dialled so far
        self.touched: Counter[str] = Counter()  # pieces that a kind of weather has held up

    def open(self, ports: Mapping[int, int]) -> None:
        """Listens for each node at its port."""
        self._thread.start()
        self._run(self._listen(ports))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # --- what a test does with it ---------------------------------------------------------------
    def set(self, pairs: Iterable[tuple[int, int]], weather: Weather) -> None:
        """From the first to the second of each pair."""
        wanted = tuple(pairs)

        def change() -> None:
            for pair in wanted:
                self._way(*pair).set(weather)

        self._call(change)

    def part(self, *groups: Iterable[int]) -> None:
        """Nodes of different groups neither hear nor reach each other."""
        sides = [tuple(group) for group in groups]
        self.set(
            [(a, b) for here in sides for there in sides if here is not there
             for a in here for b in there],
            replace(FAIR, is_cut=True),
        )  # fmt: skip

    def clear(self) -> None:
        def change() -> None:
            for way in self._ways.values():
                way.set(FAIR)

        self._call(change)

    def reset(self) -> None:
        """Every connection breaks."""

        def abort() -> None:
            for writer in self._writers:
                self.touched["reset"] += 1
                writer.transport.abort()

        self._call(abort)

    def recorded(self, sender: int, receiver: int) -> bytes:
        """What was said on connections that the first one dialled."""
        return bytes(self._way(sender, receiver).recorded)

    # --- on its own loop ------------------------------------------------------------------------
    def _run(self, wanted: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(wanted, self._loop).result(WAIT_S)

    def _call(self, wanted: Callable[[], object]) -> None:
        done: Future[object] = Future()
        self._loop.call_soon_threadsafe(lambda: done.set_result(wanted()))
        done.result(WAIT_S)

    def _way(self, sender: int, receiver: int) -> _Way:
        way = self._ways.get((sender, receiver))
        if way is None:
            way = self._ways[sender, receiver] = _Way(
                random.Random(self._random.random()), self.touched
            )
            way.set(FAIR)
        return way

    async def _listen(self, ports: Mapping[int, int]) -> None:
        self._servers = [
            await asyncio.start_server(self._serving(number), HOST, port)
            for number, port in ports.items()
        ]

    async def _stop(self) -> None:
        for server in self._servers:
            server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _serving(
        self, dialled: int
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = self._loop.create_task(self._serve(dialled, reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return serve

    async def _serve(
        self, dialled: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        port = writer.get_extra_info("peername")[1]
        dialler = await asyncio.to_thread(owner_of, port, self._pids())
        there_writer: asyncio.StreamWriter | None = None
        with suppress(OSError):
            forth, back = self._way(dialler, dialled), self._way(dialled, dialler)
            first = await self._first(reader, forth, back)
            if first:
                there, there_writer = await asyncio.open_connection(HOST, self._targets[dialled])
                self._writers |= {writer: (dialler, dialled), there_writer: (dialler, dialled)}
                forth.keep(first)
                there_writer.write(first)
                pumps = [
                    self._pump(reader, there_writer, forth, forth.keep),
                    self._pump(there, writer, back, len),
                ]
                await asyncio.gather(*pumps)
        for one in (writer, there_writer):
            if one is not None:
                self._writers.pop(one, None)
                one.transport.abort()

    @staticmethod
    async def _first(reader: asyncio.StreamReader, forth: _Way, back: _Way) -> bytes:
        """What was said once both ways are open; nothing where the dialler gave up before."""
        held = await reader.read(CHUNK_BYTES)
        while held and not (forth.is_open.is_set() and back.is_open.is_set()):
            forth.touched["cut"] += 1
            opened = asyncio.ensure_future(_both(forth, back))
            more = asyncio.ensure_future(reader.read(CHUNK_BYTES))
            await asyncio.wait((opened, more), return_when=asyncio.FIRST_COMPLETED)
            opened.cancel()
            if not more.done():
                more.cancel()
                await asyncio.wait((more,))
            elif more.result():
                held += more.result()
            else:
                return b""
        return held

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        way: _Way,
        note: Callable[[bytes], object],
    ) -> None:
        """To the end of that direction; then the other one ends too."""
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(CHUNKS_MAX)

        async def read() -> None:
            due_s = 0.0
            while chunk := await reader.read(CHUNK_BYTES):
                note(chunk)
                due_s = way.due_s(self._loop.time(), due_s, len(chunk))
                await queue.put((due_s, chunk))
            await queue.put((due_s, b""))

        tasks = [
            asyncio.ensure_future(read()),
            asyncio.ensure_future(self._write(queue, writer, way)),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            writer.transport.abort()

    async def _write(
        self, queue: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter, way: _Way
    ) -> None:
        while True:
            due_s, chunk = await queue.get()
            left_s = due_s - self._loop.time()
            if left_s > 0:
                await asyncio.sleep(left_s)
            if not way.is_open.is_set():
                way.touched["cut"] += 1
                await way.is_open.wait()
            if not chunk:
                return
            writer.write(chunk)
            await writer.drain()


async def _both(forth: _Way, back: _Way) -> None:
    await forth.is_open.wait()
    await back.is_open.wait()


def owner_of(port: int, pids: Mapping[int, int]) -> int:
    """Which node dialled from that port; 0: another process. As /proc tells it."""
    inode = ""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].partition(":")[2], 16) == port and fields[3] == "01":
            inode = fields[9]
    for number, pid in pids.items():
        with suppress(OSError):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    if str(descriptor.readlink()) == f"socket:[{inode}]":
                        return number
    return 0
