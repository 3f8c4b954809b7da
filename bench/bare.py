"""The same path with nothing of the product: what aiohttp, uvloop, one signature, an RFC 6962 root
and one LMDB commit with sync a turn take on this machine. `python -m bench.bare DIRECTORY`.

It answers POST /v1/entries, POST /v1/entries:batch (a JSON array) and GET /v1/entries/{id}, checks
nothing, and indexes nothing but what a read by id needs.
"""

import asyncio
import json
import sys
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import cast

import lmdb
import msgspec
import uvloop
from aiohttp import web
from nacl.signing import SigningKey

MAP_BYTES = 1 << 34


class NewEntry(msgspec.Struct):
    data: msgspec.Raw
    stream: str = "default"


class Receipt(msgspec.Struct):
    id: str
    state: str = "stored"


one_entry = msgspec.json.Decoder(NewEntry)
many_entries = msgspec.json.Decoder(list[NewEntry])
pack = msgspec.msgpack.Encoder().encode
unpack = msgspec.msgpack.Decoder().decode
Waiting = tuple[list[bytes], "asyncio.Future[tuple[str, int]]"]


def root_of(level: list[bytes]) -> bytes:
    while len(level) > 1:
        pairs = [
            sha256(b"\1" + level[i] + level[i + 1]).digest() for i in range(0, len(level) - 1, 2)
        ]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


class Loop:
    """Turns: what has come becomes one record, signed and committed; then it is answered."""

    def __init__(self, directory: Path) -> None:
        self.env = lmdb.open(str(directory), map_size=MAP_BYTES, sync=True, metasync=True)
        self.key = SigningKey(bytes(32))
        self.prev = bytes(32)
        self.waiting: list[Waiting] = []
        self.is_busy = False
        self.jobs: SimpleQueue[tuple[bytes, bytes]] = SimpleQueue()
        self.loop = asyncio.get_running_loop()
        Thread(target=self._write, daemon=True).start()

    def store(self, entries: list[bytes]) -> "asyncio.Future[tuple[str, int]]":
        answer: asyncio.Future[tuple[str, int]] = self.loop.create_future()
        self.waiting.append((entries, answer))
        if not self.is_busy:
            self.is_busy = True
            self.loop.call_soon(self._turn)
        return answer

    def _turn(self) -> None:
        self.taken, self.waiting = self.waiting, []
        entries = [entry for some, _ in self.taken for entry in some]
        root = root_of([sha256(b"\0" + entry).digest() for entry in entries])
        header = pack((1, self.prev, len(entries), root))
        self.prev = sha256(header).digest()
        signature = self.key.sign(self.prev).signature
        self.jobs.put((self.prev, pack((header, signature, entries))))

    def _write(self) -> None:
        while True:
            identity, record = self.jobs.get()
            with self.env.begin(write=True) as txn:
                txn.put(identity, record)
            self.loop.call_soon_threadsafe(self._committed, identity.hex())

    def _committed(self, identity: str) -> None:
        index = 0
        for entries, answer in self.taken:
            answer.set_result((identity, index))
            index += len(entries)
        self.is_busy = bool(self.waiting)
        if self.is_busy:
            self._turn()

    def entry(self, name: str) -> bytes:
        identity, _, index = name.partition(":")
        with self.env.begin(buffers=True) as txn:
            record = txn.get(bytes.fromhex(identity))
            assert record is not None
            return cast(bytes, unpack(record)[2][int(index)])


def canonical(entry: NewEntry) -> bytes:
    data = bytes(entry.data)
    return pack((None, 0, entry.stream, None, None, None, None, None, 0, data, 0, None))


async def answered(loop: Loop, request: web.BaseRequest) -> web.Response:
    if request.method == "GET":
        name = request.path.rpartition("/")[2]
        fields = unpack(loop.entry(name))
        body = msgspec.json.encode({"id": name, "data": msgspec.Raw(fields[9])})
        return web.Response(body=body, content_type="application/json")
    body = await request.read()
    if request.path.endswith(":batch"):
        new = many_entries.decode(body)
        identity, index = await loop.store([canonical(entry) for entry in new])
        receipts = [Receipt(f"{identity}:{index + place}") for place in range(len(new))]
        answer = msgspec.json.encode(receipts)
    else:
        identity, index = await loop.store([canonical(one_entry.decode(body))])
        answer = msgspec.json.encode(Receipt(f"{identity}:{index}"))
    return web.Response(body=answer, status=201, content_type="application/json")


async def serve(directory: Path) -> None:
    loop = Loop(directory)

    async def handle(request: web.BaseRequest) -> web.Response:
        return await answered(loop, request)

    runner = web.ServerRunner(web.Server(handle, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1_024).start()
    print(json.dumps({"api": f"http://127.0.0.1:{runner.addresses[0][1]}"}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    sys.setswitchinterval(0.0005)
    uvloop.run(serve(Path(sys.argv[1])))
