"""A devnet whose disks and clocks a test steers, behind a network that it spoils."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from quipu.devnet import Devnet
from quipu.devnet.plan import NodePlan, Plan, Running, folder_of, write_plan
from quipu.devnet.processes import ProcessState
from tests.process.chaos import Chaos
from tests.process.disk import Harm, Libraries
from tests.process.shaken import Shaken, shaken

SYNCED_S = 5.0


class HarmedNet(Devnet):
    """Each node runs with the libraries preloaded."""

    def __init__(self, folder: Path, plan: Plan, libraries: Libraries) -> None:
        super().__init__(folder, plan)
        self.harms = {
            number: Harm(folder_of(folder, node), libraries)
            for number, node in enumerate(plan.nodes, start=1)
        }

    def _spawn(self, node: NodePlan, environment: Mapping[str, str]) -> Running:
        harm = self.harms[self.nodes.index(node) + 1]
        harm.undo.unlink(missing_ok=True)
        return super()._spawn(node, {**harm.environment, **environment})

    def begin(self, number: int) -> None:
        """Without waiting for anybody: it may be parted from the others."""
        node = self.node(number)
        assert self.state(number) is ProcessState.STOPPED
        node.running = self._spawn(node, {})
        write_plan(self.folder, self.plan)

    def await_all(self) -> None:
        self.wait_linked(self.nodes)

    def store_of(self, number: int) -> Path:
        return self.data_of(self.node(number)) / "store"


class Harmed(Shaken):
    """`net` of it is a `HarmedNet`."""

    def __init__(self, net: Devnet, chaos: Chaos) -> None:
        super().__init__(net, chaos)
        assert isinstance(net, HarmedNet)
        self.net: HarmedNet = net

    def heal(self) -> None:
        """Network, disks and clocks; who does not run is started."""
        self.chaos.clear()
        for number, harm in self.net.harms.items():
            harm.clear()
            if self.net.state(number) is ProcessState.PAUSED:
                self.net.resume(number)
            if self.net.state(number) is ProcessState.STOPPED:
                self.net.begin(number)
        self.net.await_all()

    def said(self, text: str) -> int:
        """How often, in the logs of all nodes."""
        logs = (self.net.log_of(node) for node in self.net.nodes)
        return sum(log.read_text(errors="replace").count(text) for log in logs)


@contextmanager
def harmed(folder: Path, members: int, seed: int, libraries: Libraries) -> Iterator[Harmed]:
    def make(where: Path, plan: Plan) -> Devnet:
        return HarmedNet(where, plan, libraries)

    with shaken(folder, members, seed, make=make) as world:
        yield Harmed(world.net, world.chaos)
