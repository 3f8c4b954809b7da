"""A new node of a large cluster knows all others from one URI."""

import time
from pathlib import Path
from threading import Thread

import pytest

from quipu.devnet import Devnet, faces
from quipu.devnet.founding import PORTS_PER_NODE, found
from quipu.devnet.plan import write_plan
from quipu.devnet.ports import HeldPorts
from quipu.node.founding import SEEDS_FILE
from tests.process.cluster import wait_until

MEMBERS = 10
KNOWS_S_MAX = 3.0  # from its first answer; a start before that is mostly the interpreter's


@pytest.mark.alone
def test_the_tenth_member_finds_all_from_one_seed(tmp_path: Path) -> None:
    with HeldPorts(MEMBERS * PORTS_PER_NODE) as ports:
        plan = found(tmp_path / "net", MEMBERS, 0, ports.numbers)
        write_plan(tmp_path / "net", plan)
    net = Devnet(tmp_path / "net", plan)
    newcomer = net.node(MEMBERS)
    seeds = net.data_of(newcomer) / SEEDS_FILE
    seeds.write_text(f"{net.node(4).uri}\n")
    others = range(1, MEMBERS)
    try:
        net.start(*others)
        begun_s = time.monotonic()
        starting = Thread(target=net.start, args=(MEMBERS,))
        starting.start()
        wait_until(lambda: faces.figure(newcomer, "members_live") is not None, "it answers")
        answers_s = time.monotonic()
        wait_until(lambda: faces.figure(newcomer, "members_live") == MEMBERS, "it sees all")
        knows_s = time.monotonic()
        print(f"{answers_s - begun_s:.2f} s to its first answer, {knows_s - answers_s:.2f} s more")
        assert knows_s - answers_s < KNOWS_S_MAX
        starting.join()  # all others see it too
        assert time.monotonic() - knows_s < KNOWS_S_MAX
    finally:
        net.kill(*range(1, MEMBERS + 1))
