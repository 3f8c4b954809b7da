"""The faults that the twin in memory makes on request."""

import asyncio

import pytest

from quipu.p2p.inputs import FrameReceived, LinkClosed, LinkOpened
from quipu.p2p.transport import Happening
from tests.listening import HEAD, LOOPBACK, key_of
from tests.memory_transport import Hub, MemoryTransport


class World:
    """n1 with a link to n2, and a clock that runs only when asked."""

    def __init__(self, seed: int) -> None:
        self._due: list[tuple[float, int, object]] = []
        self._now_s = 0.0
        self.hub = Hub(seed, self._schedule)
        self.heard: dict[str, list[Happening]] = {"n1": [], "n2": [], "n3": []}
        self.nodes = {
            name: MemoryTransport(self.hub, key_of(name).node_id, LOOPBACK, heard.append)
            for name, heard in self.heard.items()
        }

    def _schedule(self, delay_s: float, action: object) -> None:
        self._due.append((self._now_s + delay_s, len(self._due), action))

    def run(self) -> None:
        while self._due:
            self._due.sort(key=lambda due: due[:2], reverse=True)
            self._now_s, _number, action = self._due.pop()
            assert callable(action)
            action()

    def dial(self, one: str, other: str) -> None:
        self.nodes[one].open(self.nodes[other].node_id, self.nodes[other].bound)

    def send(self, one: str, other: str, content: bytes) -> None:
        self.nodes[one].send(self.nodes[other].node_id, HEAD, content)

    def contents(self, name: str) -> list[bytes]:
        return [h.content for h in self.heard[name] if isinstance(h, FrameReceived)]


def test_a_cut_ends_links_until_it_heals() -> None:
    world = World(seed=1)
    n1, n2 = (world.nodes[name].node_id for name in ("n1", "n2"))
    world.dial("n1", "n2")
    world.run()
    world.hub.cut(n1, n2)
    world.dial("n1", "n2")
    world.dial("n1", "n3")
    world.run()
    world.hub.heal(n1, n2)
    world.dial("n1", "n2")
    world.run()
    of_n2 = [
        h for h in world.heard["n1"] if isinstance(h, LinkOpened | LinkClosed) and h.peer == n2
    ]
    assert [type(h) for h in of_n2] == [LinkOpened, LinkClosed, LinkClosed, LinkOpened]


@pytest.mark.parametrize("seed", range(5))
def test_delays_mix_the_links_and_keep_each_in_order(seed: int) -> None:
    def run() -> list[bytes]:
        world = World(seed)
        world.hub.delay_ms = (1.0, 50.0)
        for sender in ("n1", "n2"):
            world.dial(sender, "n3")
            for number in range(20):
                world.send(sender, "n3", sender.encode() + bytes([number]))
        world.run()
        return world.contents("n3")

    contents = run()
    assert run() == contents  # all chance comes of the seed
    for sender in (b"n1", b"n2"):
        own = [c for c in contents if c.startswith(sender)]
        assert own == [sender + bytes([number]) for number in range(20)]
    assert contents not in (sorted(contents), sorted(contents, key=lambda c: c[2]))


def test_loss_takes_frames_and_no_links() -> None:
    world = World(seed=1)
    world.hub.loss = 0.5
    world.dial("n1", "n2")
    for number in range(100):
        world.send("n1", "n2", bytes([number]))
    world.run()
    contents = world.contents("n2")
    assert 20 < len(contents) < 80
    assert contents == sorted(contents)
    assert world.heard["n1"] == [LinkOpened(world.nodes["n2"].node_id)]


def test_a_stopped_twin_frees_its_port() -> None:
    world = World(seed=1)
    bound = world.nodes["n2"].bound
    asyncio.run(world.nodes["n2"].stop())
    again = MemoryTransport(world.hub, key_of("n2").node_id, bound, world.heard["n2"].append)
    assert again.bound == bound
