"""Real clusters that lived: nodes began late, were parted, killed, started again, joined and were
replaced; serializers handed over. What is left of each is a dump of every node."""

from collections.abc import Callable, Sequence
from pathlib import Path

from quipu.devnet import Devnet
from quipu.devnet.processes import until
from quipu.node.exits import Exit
from tests.process.cluster import client_of, cluster, read_at, wait_until
from tests.process.command import quipu, quipu_at_length
from tests.process.test_epochs import ALREADY, config, names, ordered_at

TOLD_S = 180.0  # for a change of the roster or the serializers, with all that is tried again
World = Callable[[Path], list[Path]]  # lived in that folder; the dumps of its nodes


def written(net: Devnet, nodes: Sequence[int], text: str) -> list[str]:
    """Entries submitted to each of these, not waited for."""
    ids = []
    for number in nodes:
        with client_of(net, number) as client:
            ids += [client.submit({"at": number, "text": f"{text} {i}"}).id for i in range(4)]
    return ids


def read_by(net: Devnet, nodes: Sequence[int], ids: Sequence[str]) -> None:
    for number in nodes:
        for identity in ids:
            read_at(net, number, identity)


def exported(net: Devnet, number: int, dump: Path) -> Path:
    done = quipu("export", str(dump), "--data-dir", str(net.data_of(net.node(number))))
    assert done.returncode == Exit.OK, done.stderr
    return dump


def told(net: Devnet, at: int, *said: str) -> None:
    """What an operator types at that node, again until it is so: on a busy machine a member may be
    silent for seconds, and is then refused as one that cannot be reached."""
    heard: list[str] = []

    def is_so() -> bool:
        done = quipu_at_length(*said, "--data-dir", str(net.data_of(net.node(at))))
        heard[:] = [done.stderr]
        return done.returncode == Exit.OK or any(code in done.stderr for code in ALREADY)

    assert until(is_so, TOLD_S), (said, heard)


def are_members(net: Devnet, *names_of: str) -> None:
    """Each of them knows it. Who votes in the log then is not waited for."""

    def all_know() -> bool:
        return all(set(names(config(net, int(one[1:])))) == {*names_of} for one in names_of)

    wait_until(all_know, f"{names_of} are the members")


def harmed(net: Devnet, nodes: list[int]) -> list[str]:
    """The last begins late; a minority is cut off; the second is killed, the first restarted."""
    late, most = nodes[-1], nodes[: len(nodes) // 2 + 1]
    net.stop(late)
    ids = written(net, nodes[:-1], "before the last node")
    net.start(late)
    net.partition(most, nodes[len(most) :])
    ids += written(net, nodes, "apart")
    net.heal()
    net.kill(2)
    ids += written(net, [number for number in nodes if number != 2], "without node 2")
    net.start(2)
    net.stop(1)
    net.start(1)
    return ids + written(net, nodes, "together")


def world_of_three(folder: Path) -> list[Path]:
    """n4 takes the place of n3, whose last entries nobody but itself ever had; in the end it is the
    only one that is left, and goes on by force."""
    with cluster(folder / "net", members=3, observers=1) as net:
        ids = harmed(net, [1, 2, 3])
        told(net, 1, "journal", "propose", "serializers", "n1", "n2")
        ids.append(ordered_at(net, 2, "by two serializers"))
        read_by(net, [1, 2, 3], ids)
        net.partition([3], [1, 2, 4])
        written(net, [3], "never confirmed")
        net.kill(3)
        net.heal(wait=False)
        told(net, 2, "members", "replace", "n3", net.node(4).uri)
        are_members(net, "n1", "n2", "n4")
        ids += written(net, [1, 2, 4], "in the second epoch")
        told(net, 4, "members", "checkpoint")
        ids += written(net, [1, 2, 4], "in the third epoch")
        read_by(net, [1, 2, 4], ids)
        dumps = [exported(net, number, folder / f"n{number}") for number in (1, 2)]
        net.kill(1, 2)
        told(net, 4, "members", "recover", "--force")
        are_members(net, "n4")
        read_by(net, [4], written(net, [4], "alone"))
        net.stop(4)
        return [*dumps, exported(net, 4, folder / "n4"), exported(net, 3, folder / "n3")]


def world_of_five(folder: Path) -> list[Path]:
    """Founded by three; n4 and n5 join, n6 comes for n1. n5 lets go what it may before its dump."""
    with cluster(folder / "net", members=3, observers=3) as net:
        ids = written(net, [1, 2, 3], "by the founders")
        told(net, 1, "members", "add", net.node(4).uri)
        told(net, 2, "members", "add", net.node(5).uri)
        are_members(net, "n1", "n2", "n3", "n4", "n5")
        ids += harmed(net, [1, 2, 3, 4, 5])
        told(net, 3, "journal", "propose", "serializers", "n2", "n3", "n5")
        ids.append(ordered_at(net, 4, "by three serializers"))
        read_by(net, [2, 3], ids)
        net.kill(1)
        told(net, 2, "members", "replace", "n1", net.node(6).uri)
        are_members(net, "n2", "n3", "n4", "n5", "n6")
        ids += written(net, [2, 3, 4, 5, 6], "in the fourth epoch")
        told(net, 6, "members", "checkpoint")
        ids += written(net, [2, 3, 4, 5, 6], "in the fifth epoch")
        read_by(net, [2, 3, 4, 5, 6], ids)
        told(net, 5, "store", "prune", "--keep", "0s")
        dumps = [exported(net, number, folder / f"n{number}") for number in (2, 3, 4, 5)]
        net.stop(6)
        return [*dumps, exported(net, 6, folder / "n6")]
