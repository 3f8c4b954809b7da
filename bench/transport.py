"""What a frame costs between two processes on loopback, with CURVE, beside bare pyzmq.

    python -m bench.transport [--frames N]

CPU is that of the thread that runs Python; what libzmq's own thread takes, most of it for CURVE,
stands beside it. Bare pyzmq sends and receives the same two parts in a blocking loop.
"""

import argparse
import asyncio
import multiprocessing
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection

import uvloop
import zmq

from bench.figures import note_figure
from bench.lock import one_benchmark_at_a_time
from quipu.ledger.signing import KeyPair
from quipu.p2p.inputs import FrameReceived
from quipu.p2p.transport import Happening
from quipu.p2p.transports.options import Curve, set_dealer, set_router
from quipu.p2p.transports.zap import Doorkeeper
from quipu.p2p.transports.zmq_transport import ZmqTransport
from quipu.p2p.words import Endpoint

SENDER, RECEIVER = KeyPair.from_seed(bytes(32)), KeyPair.from_seed(bytes(31) + b"1")
LOOPBACK = Endpoint("127.0.0.1", 0)
HEAD = bytes(24)
CREDIT_FRAMES = 128  # the receiver says so often how far it is
WINDOW_FRAMES = 512
SIZES = (256, 26_000)


@dataclass
class Spent:
    """Since it was made."""

    def __post_init__(self) -> None:
        self._python, self._process = time.thread_time(), time.process_time()

    def us(self, count: int) -> tuple[float, float]:
        """A frame: of this thread, of libzmq's."""
        python = time.thread_time() - self._python
        process = time.process_time() - self._process
        return python / count * 1e6, (process - python) / count * 1e6


class Side:
    """A transport that counts what it hears."""

    def __init__(self, key: KeyPair) -> None:
        self.heard = 0
        self.credit = 0
        self.changed = asyncio.Event()
        self.transport = ZmqTransport(key, LOOPBACK, self._hear)

    def _hear(self, happening: Happening) -> None:
        if isinstance(happening, FrameReceived):
            self.heard += 1
            self.changed.set()

    async def until(self, count: int) -> None:
        while self.heard < count:
            self.changed.clear()
            await self.changed.wait()


async def receive(pipe: Connection, count: int) -> None:
    side = Side(RECEIVER)
    pipe.send(side.transport.bound)
    side.transport.open(SENDER.node_id, pipe.recv())
    await side.until(1)
    spent = Spent()
    for reached in range(CREDIT_FRAMES, count + 1, CREDIT_FRAMES):
        await side.until(reached)
        side.transport.send(SENDER.node_id, HEAD, b"")
    pipe.send(spent.us(count))
    pipe.recv()
    await side.transport.stop()


async def send(pipe: Connection, count: int, size: int) -> tuple[float, tuple[float, float]]:
    side = Side(SENDER)
    there = pipe.recv()
    pipe.send(side.transport.bound)
    side.transport.open(RECEIVER.node_id, there)
    content = bytes(size)
    spent, began = Spent(), time.perf_counter()
    for number in range(count):
        if number % CREDIT_FRAMES == 0:
            await side.until((number - WINDOW_FRAMES) // CREDIT_FRAMES)
        side.transport.send(RECEIVER.node_id, HEAD, content)
    await side.until(count // CREDIT_FRAMES)
    figures = count / (time.perf_counter() - began), spent.us(count)
    await side.transport.stop()
    return figures


async def receive_bare(pipe: Connection, count: int) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    doorkeeper = Doorkeeper(context)
    router = context.socket(zmq.ROUTER)
    set_router(router, Curve.of(RECEIVER), LOOPBACK)
    router.bind("tcp://127.0.0.1:0")
    port = router.getsockopt_string(zmq.LAST_ENDPOINT).rpartition(":")[2]
    pipe.send(Endpoint("127.0.0.1", int(port)))
    while not router.poll(0):  # noqa: ASYNC110 - the handshake needs the loop
        await asyncio.sleep(0)
    spent = Spent()
    for _ in range(count):
        router.recv_multipart()
    pipe.send(spent.us(count))
    doorkeeper.close()
    context.destroy()


async def send_bare(pipe: Connection, count: int, size: int) -> tuple[float, tuple[float, float]]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    there = pipe.recv()
    set_dealer(dealer, Curve.of(SENDER), Curve.of(RECEIVER).public, there)
    dealer.connect(f"tcp://{there}")
    frame = [HEAD, bytes(size)]
    spent, began = Spent(), time.perf_counter()
    for _ in range(count):
        dealer.send_multipart(frame)
    while not pipe.poll(0.01):
        pass
    figures = count / (time.perf_counter() - began), spent.us(count)
    context.destroy()
    return figures


def child(pipe: Connection, count: int, is_bare: bool) -> None:
    uvloop.run(receive_bare(pipe, count) if is_bare else receive(pipe, count))


def measure(kind: str, count: int, size: int) -> None:
    here, there = multiprocessing.Pipe()
    is_bare = kind == "bare pyzmq"
    process = multiprocessing.Process(target=child, args=(there, count, is_bare))
    process.start()
    rate, sender = uvloop.run((send_bare if is_bare else send)(here, count, size))
    receiver = here.recv()
    if not is_bare:
        here.send(None)
    process.join()
    print(
        f"{kind:10} {size:6} B: {rate:7.0f} frames/s; us of CPU: sender {sender[0]:5.1f}"
        f" + {sender[1]:5.1f} of libzmq, receiver {receiver[0]:5.1f} + {receiver[1]:5.1f}"
    )
    if not is_bare:
        note_figure("bench.transport", f"sender us per frame of {size} B", sender[0])
        note_figure("bench.transport", f"receiver us per frame of {size} B", receiver[0])
        note_figure("bench.transport", f"frames/s of {size} B", rate)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=20_480, help="a multiple of 128")
    count = parser.parse_args().frames // CREDIT_FRAMES * CREDIT_FRAMES
    multiprocessing.set_start_method("spawn")
    with one_benchmark_at_a_time():
        for size in SIZES:
            for kind in ("transport", "bare pyzmq"):
                measure(kind, count, size)


if __name__ == "__main__":
    main()
