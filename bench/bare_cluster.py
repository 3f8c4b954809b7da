"""The path of a cluster with nothing of the product: what aiohttp, uvloop, pyzmq with CURVE,
Ed25519 and LMDB with sync take on this machine. `python -m bench.bare_cluster DIRECTORY NUMBER`.

Each process says where it is and gets told where the others are, a line of JSON each. What came to
it since its last turn becomes one signed record, which goes to both others; what they sent is
verified, one signature a record. One commit with sync a turn holds all of it; then one signed
receipt goes to whoever sent records. Apps are answered when the own commit and one receipt are in.
"""

import asyncio
import json
import sys
from collections import deque
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import lmdb
import msgspec
import uvloop
import zmq
from aiohttp import web
from nacl.bindings import crypto_sign, crypto_sign_open, crypto_sign_seed_keypair

from bench.bare import MAP_BYTES, Receipt, canonical, many_entries, one_entry, pack, root_of, unpack

EVENT, RECEIPT = 0, 1
SIGNATURE_BYTES = 64
WRITE_BUFFER_FRAMES = 100_000
Waiting = tuple[list[bytes], "asyncio.Future[tuple[str, int]]"]


def key_of(number: int) -> tuple[bytes, bytes]:
    return crypto_sign_seed_keypair(sha256(b"bare %d" % number).digest())


class Links:
    """One ROUTER that reads, one DEALER to each other that writes."""

    def __init__(self, hear: Any) -> None:
        self._hear = hear
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        public, self._secret = zmq.curve_keypair()
        self._public = public
        self.router = self._context.socket(zmq.ROUTER)
        self.router.curve_secretkey, self.router.curve_publickey = self._secret, public
        self.router.curve_server = True
        port = self.router.bind_to_random_port("tcp://127.0.0.1")
        self.address = {"port": port, "key": public.decode()}
        self._to: dict[int, zmq.Socket[bytes]] = {}

    def dial(self, others: dict[str, dict[str, Any]]) -> None:
        for number, other in others.items():
            dealer = self._context.socket(zmq.DEALER)
            dealer.sndhwm = WRITE_BUFFER_FRAMES
            dealer.curve_secretkey, dealer.curve_publickey = self._secret, self._public
            dealer.curve_serverkey = other["key"].encode()
            dealer.connect(f"tcp://127.0.0.1:{other['port']}")
            self._to[int(number)] = dealer
        loop = asyncio.get_running_loop()
        loop.add_reader(int(self.router.getsockopt(zmq.FD)), self._read)
        loop.call_soon(self._read)

    def send(self, to: int, frame: bytes) -> None:
        self._to[to].send(frame, zmq.NOBLOCK)

    def send_all(self, frame: bytes) -> None:
        for dealer in self._to.values():
            dealer.send(frame, zmq.NOBLOCK)

    def _read(self) -> None:
        receive = self.router.recv
        while True:
            try:
                receive(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._hear(receive(zmq.NOBLOCK))


class Loop:
    """Invariant: at most one commit is under way; meanwhile all that comes waits."""

    def __init__(self, directory: Path, number: int) -> None:
        self.env = lmdb.open(str(directory), map_size=MAP_BYTES, sync=True, metasync=True)
        self.number = number
        self.secret = key_of(number)[1]
        self.prev = bytes(32)
        self.seq = self.committed = self.received = 0
        self.waiting: list[Waiting] = []
        self.heard: list[tuple[int, int, bytes, bytes]] = []
        self.unanswered: deque[tuple[int, str, list[Waiting]]] = deque()
        self.is_busy = False
        self.jobs: SimpleQueue[list[tuple[bytes, bytes]]] = SimpleQueue()
        self.loop = asyncio.get_running_loop()
        self.links = Links(self._hear)
        Thread(target=self._write, daemon=True).start()

    def store(self, entries: list[bytes]) -> "asyncio.Future[tuple[str, int]]":
        answer: asyncio.Future[tuple[str, int]] = self.loop.create_future()
        self.waiting.append((entries, answer))
        self._wake()
        return answer

    def _wake(self) -> None:
        if not self.is_busy:
            self.is_busy = True
            self.loop.call_soon(self._turn)

    def _hear(self, frame: bytes) -> None:
        kind, sender, seq, signed, *rest = unpack(frame)
        if kind == EVENT:
            self.heard.append((sender, seq, signed, rest[0]))
            self._wake()
            return
        assert int(crypto_sign_open(signed, key_of_all[sender])) == seq
        self.received = max(self.received, seq)
        self._answer()

    def _turn(self) -> None:
        rows = [self._own_record()] if self.waiting else []
        self.due: dict[int, int] = {}
        for sender, seq, signed, entries in self.heard:
            identity = crypto_sign_open(signed, key_of_all[sender])
            rows.append((identity, entries))
            self.due[sender] = seq
        self.heard.clear()
        self.jobs.put(rows)

    def _own_record(self) -> tuple[bytes, bytes]:
        taken, self.waiting = self.waiting, []
        entries = [entry for some, _ in taken for entry in some]
        root = root_of([sha256(b"\0" + entry).digest() for entry in entries])
        self.prev = sha256(pack((1, self.prev, len(entries), root))).digest()
        self.seq += 1
        body = pack(entries)
        signed = crypto_sign(self.prev, self.secret)
        self.links.send_all(pack((EVENT, self.number, self.seq, signed, body)))
        self.unanswered.append((self.seq, self.prev.hex(), taken))
        return self.prev, body

    def _write(self) -> None:
        while True:
            rows = self.jobs.get()
            with self.env.begin(write=True) as txn:
                for identity, record in rows:
                    txn.put(identity, record)
            self.loop.call_soon_threadsafe(self._committed)

    def _committed(self) -> None:
        self.committed = self.seq
        for sender, seq in self.due.items():
            signed = crypto_sign(b"%d" % seq, self.secret)
            self.links.send(sender, pack((RECEIPT, self.number, seq, signed)))
        self.is_busy = False
        self._answer()
        if self.waiting or self.heard:
            self.is_busy = True
            self._turn()

    def _answer(self) -> None:
        final = min(self.committed, self.received)
        while self.unanswered and self.unanswered[0][0] <= final:
            _, identity, taken = self.unanswered.popleft()
            index = 0
            for entries, answer in taken:
                answer.set_result((identity, index))
                index += len(entries)


async def answered(loop: Loop, request: web.BaseRequest) -> web.Response:
    body = await request.read()
    if request.path.endswith(":batch"):
        new = many_entries.decode(body)
        identity, index = await loop.store([canonical(entry) for entry in new])
        receipts = [Receipt(f"{identity}:{index + i}", "read") for i in range(len(new))]
        answer = msgspec.json.encode(receipts)
    else:
        identity, index = await loop.store([canonical(one_entry.decode(body))])
        answer = msgspec.json.encode(Receipt(f"{identity}:{index}", "read"))
    return web.Response(body=answer, status=201, content_type="application/json")


async def serve(directory: Path, number: int) -> None:
    loop = Loop(directory, number)

    async def handle(request: web.BaseRequest) -> web.Response:
        return await answered(loop, request)

    runner = web.ServerRunner(web.Server(handle, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1_024).start()
    here = {"api": f"http://127.0.0.1:{runner.addresses[0][1]}", **loop.links.address}
    print(json.dumps(here), flush=True)
    others = json.loads(await asyncio.to_thread(sys.stdin.readline))
    key_of_all.update({int(other): key_of(int(other))[0] for other in others})
    loop.links.dial(others)
    await asyncio.Event().wait()


key_of_all: dict[int, bytes] = {}

if __name__ == "__main__":
    sys.setswitchinterval(0.0005)
    uvloop.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
