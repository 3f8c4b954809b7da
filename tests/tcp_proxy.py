"""A TCP proxy on loopback that keeps what passes, and stops passing it when told."""

import asyncio
from collections.abc import Awaitable, Callable

from quipu.p2p.words import Endpoint

CHUNK_BYTES = 65_536


class TcpProxy:
    def __init__(self, target: Endpoint) -> None:
        self._target = target
        self._writers: list[asyncio.StreamWriter] = []
        self._pumps: set[asyncio.Task[None]] = set()
        self._passes = asyncio.Event()
        self._passes.set()
        self.recorded = bytearray()  # of the side that connected, over all its connections
        self.bytes_max: int | None = None  # of those; more is kept back

    async def start(self) -> Endpoint:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        return Endpoint(host, port)

    def swallow(self) -> None:
        """From now on nothing passes, and both ends believe that they are connected."""
        self._passes.clear()

    async def stop(self) -> None:
        self._server.close()
        for pump in self._pumps:
            pump.cancel()
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(*self._target)
        self._writers += (writer, there_writer)
        self._start_pump(self._pump(reader, there_writer, self._keep))
        self._start_pump(self._pump(there_reader, writer, len))

    def _start_pump(self, pump: Awaitable[None]) -> None:
        task = asyncio.ensure_future(pump)
        self._pumps.add(task)
        task.add_done_callback(self._pumps.discard)

    def _keep(self, chunk: bytes) -> int:
        self.recorded += chunk
        if self.bytes_max is not None and len(self.recorded) > self.bytes_max:
            self.swallow()
        return len(chunk)

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        note: Callable[[bytes], int],
    ) -> None:
        try:
            while chunk := await reader.read(CHUNK_BYTES):
                await self._passes.wait()
                note(chunk)
                writer.write(chunk)
                await writer.drain()
        except ConnectionError:
            pass  # the other end is shut as well, below
        writer.close()
