"""The order with real processes: masters killed, a minority cut off, all started again."""

import time
from pathlib import Path
from typing import Any

import pytest

from quipu.client import Client, Conflict, Unavailable
from quipu.devnet import Devnet
from tests.process.cluster import WAIT_S, client_of, cluster, wait_until

GOES_ON_S = 3.0  # after a master was killed
NODES = (1, 2, 3)


def journal(net: Devnet, number: int) -> dict[str, Any]:
    with client_of(net, number) as client:
        found: dict[str, Any] = client.journal()
    return found


def master_of(net: Devnet, *among: int) -> int:
    """Whom a living node follows that is itself among these."""
    found: list[int] = []

    def is_known() -> bool:
        rows = [journal(net, number) for number in among]
        masters = [n for n, row in zip(among, rows, strict=True) if row["role"] == "master"]
        newest = max(row["regime"] for row in rows)
        found[:] = [n for n in masters if journal(net, n)["regime"] == newest]
        return len(found) == 1

    wait_until(is_known, "one master")
    return found[0]


def write_ordered(net: Devnet, number: int, value: object) -> str:
    with client_of(net, number) as client:
        receipt = client.submit(value, wait="ordered", timeout=WAIT_S)
    assert receipt.state == "ordered"
    return receipt.id


def journals_agree(net: Devnet, *among: int) -> list[dict[str, Any]]:
    """Entry by entry, digest by digest, as far as each has come; and all come equally far."""

    def are_equal() -> bool:
        rows = [journal(net, number) for number in among]
        return len({row["applied"] for row in rows}) == 1

    wait_until(are_equal, "all have applied the same")
    read: list[list[dict[str, Any]]] = []
    for number in among:
        with client_of(net, number) as client:
            read.append(client.journal_entries(limit=1_000)["items"])
    length = min(map(len, read))
    assert all(entries[:length] == read[0][:length] for entries in read)
    return read[0]


def events_in(entries: list[dict[str, Any]]) -> list[str]:
    return [i["event_id"] for entry in entries for i in entry["items"] if i["kind"] == "event"]


@pytest.mark.alone
@pytest.mark.parametrize("kills", [2])
def test_order_goes_on_when_masters_are_killed(tmp_path: Path, kills: int) -> None:
    with cluster(tmp_path / "net") as net:
        written = [write_ordered(net, number, {"from": number}) for number in NODES]
        taken_s: list[float] = []
        for _ in range(kills):
            master = master_of(net, *NODES)
            others = [number for number in NODES if number != master]
            regime = journal(net, others[0])["regime"]
            net.kill(master)
            begun_s = time.monotonic()
            written.append(write_ordered(net, others[0], "after the kill"))
            taken_s.append(time.monotonic() - begun_s)
            assert journal(net, others[0])["regime"] > regime
            net.start(master)
            written.append(write_ordered(net, master, "back again"))
        # Two that stand for election at one moment take a round more, and a busy machine its time.
        assert min(taken_s) < GOES_ON_S, taken_s
        entries = journals_agree(net, *NODES)
        ordered = events_in(entries)
        assert len(set(ordered)) == len(ordered)
        assert {identity.partition(":")[0] for identity in written} <= set(ordered)


def test_all_killed_at_once_go_on_from_the_same_log(tmp_path: Path) -> None:
    with cluster(tmp_path / "net") as net:
        before = [write_ordered(net, number, number) for number in NODES]
        held = journals_agree(net, *NODES)
        net.kill(*NODES)
        net.start(*NODES)
        after = write_ordered(net, 2, "after")
        entries = journals_agree(net, *NODES)
        assert entries[: len(held)] == held
        for number in NODES:
            with client_of(net, number) as client:
                assert client.journal()["state"] == "WRK"

                def all_at_work(client: Client = client) -> bool:
                    return {m["order_state"] for m in client.members()["items"]} == {"WRK"}

                wait_until(all_at_work, "each knows of each that it is at work")
        ordered = events_in(entries)
        assert len(set(ordered)) == len(ordered)
        assert {one.partition(":")[0] for one in [*before, after]} <= set(ordered)


def test_minority_orders_nothing_and_comes_back_by_itself(tmp_path: Path) -> None:
    with cluster(tmp_path / "net") as net:
        write_ordered(net, 1, "before")
        master = master_of(net, *NODES)
        others = [number for number in NODES if number != master]
        net.partition([master], others)
        write_ordered(net, others[0], "of the majority")
        with client_of(net, master) as client:
            receipt = client.submit("of the minority", wait="ordered", timeout=1)
            assert receipt.state == "stored"
            wait_until(
                lambda: journal(net, master)["role"] != "master", "the old master steps down"
            )
            with pytest.raises(Unavailable) as refused:
                client.sequence_publish("invoices", 1)
            assert (refused.value.code, refused.value.retry_after_s) == ("no-quorum", 2)
        net.heal()
        with client_of(net, master) as client:
            assert client.wait(receipt.id, "ordered", timeout=WAIT_S).state == "ordered"
        journals_agree(net, *NODES)


def test_lock_of_a_node_that_is_gone_is_taken_over(tmp_path: Path) -> None:
    with cluster(tmp_path / "net") as net:
        write_ordered(net, 1, "so that there is a master")
        master = master_of(net, *NODES)
        holder, other = (number for number in NODES if number != master)
        with client_of(net, holder) as client:
            lock = client.sequence_lock("invoices", 5)
        with client_of(net, other) as client:
            with pytest.raises(Conflict, match="locked"):
                client.sequence_publish("invoices", 1)
            net.kill(holder)
            published: list[Any] = []

            def is_published() -> bool:
                try:
                    published.append(client.sequence_publish("invoices", 2))
                except Conflict:
                    return False
                return True

            wait_until(is_published, "the lock passes on")
        assert published[0]["number"] == "1"
        net.start(holder)
        with client_of(net, holder) as client:

            def is_refused() -> bool:
                """Once the node has applied what it missed, and knows of a master."""
                try:
                    client.sequence_publish(
                        "invoices", 3, token=lock["token"], number=lock["first"]
                    )
                except Unavailable:
                    return False
                except Conflict as conflict:
                    return conflict.code == "old-token"
                raise AssertionError("published with a token of old")

            wait_until(is_refused, "the old token is refused")


def test_member_that_lost_its_disk_votes_again(tmp_path: Path) -> None:
    """One of three; the others, the master among them, tell it what it needs."""
    with cluster(tmp_path / "net") as net:
        write_ordered(net, 1, "before")
        master = master_of(net, *NODES)
        lost = next(number for number in NODES if number != master)
        net.kill(lost)
        store = net.data_of(net.node(lost)) / "store"
        store.rename(tmp_path / "lost")
        write_ordered(net, master, "meanwhile")
        net.start(lost)
        wait_until(lambda: journal(net, lost)["role"] == "follower", "it votes again")
        rest = next(number for number in NODES if number not in (master, lost))
        net.kill(rest)
        write_ordered(net, lost, "with its vote")
        net.start(rest)
        journals_agree(net, *NODES)
