"""Whoever connects and is no peer disturbs nobody."""

import asyncio
import os
from contextlib import suppress

import pytest
import zmq

from quipu.p2p import limits
from quipu.p2p.inputs import LinkClosed
from quipu.p2p.link_keys import link_key_of
from quipu.p2p.transports.arrivals import Fault
from tests import tree
from tests.listening import HEAD, key_of
from tests.unit.p2p.transports.stage import (
    Stage,
    assert_serves,
    end_of,
    on_stage,
    until,
    zmq_of,
)


def test_garbage_disturbs_nobody() -> None:
    async def case(stage: Stage) -> None:
        n2 = stage.node("n2")
        for said in (
            os.urandom(10_000),
            b"GET / HTTP/1.1\r\n\r\n",
            b"\xff" + bytes(63),
            b"\xff" * 99,
        ):
            raw = stage.raw(n2)
            raw.send(said)
            await assert_serves(stage, n2)
            raw.close()
        await until(lambda: zmq_of(n2).connections == 0)
        assert {f.content for f in n2.frames} == {b"n1"}
        await until(lambda: zmq_of(n2).faults == {Fault.WORDLESS: 4})

    on_stage(case)


def test_a_thousand_half_open_connections_disturb_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HANDSHAKE_TIMEOUT_MS", 2_000)

    async def case(stage: Stage) -> None:
        n2 = stage.node("n2")
        transport = zmq_of(n2)
        half_open = []
        for _ in range(1_000):
            half_open.append(stage.raw(n2))
            await asyncio.sleep(0)
        await assert_serves(stage, n2)
        await until(lambda: transport.faults[Fault.CROWD] >= 1_000 - limits.INBOUND_CONNECTIONS_MAX)
        assert transport.connections <= limits.INBOUND_CONNECTIONS_MAX
        for raw in half_open:
            await end_of(raw)
        await until(lambda: transport.connections == 0)

    on_stage(case)


def test_whom_a_node_dials_keeps_its_place_in_a_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "INBOUND_CONNECTIONS_MAX", 2)

    async def case(stage: Stage) -> None:
        n1, n2, stranger = (stage.node(name) for name in ("n1", "n2", "stranger"))
        n2.dial(n1)
        for sender in (n1, stranger):
            sender.dial(n2)
            sender.send(n2, b"here")
        await n2.until(lambda: len(n2.frames) == 2)
        await assert_serves(stage, n2, "n3")
        n1.send(n2, b"still")
        await n2.until_heard(b"still")
        assert n1.all_of(LinkClosed) == []
        await stranger.until(lambda: stranger.all_of(LinkClosed) != [])
        assert zmq_of(n2).faults == {Fault.CROWD: 1}

    on_stage(case)


def test_who_says_nothing_makes_room_where_all_others_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "INBOUND_CONNECTIONS_MAX", 1)

    async def case(stage: Stage) -> None:
        n1, n2 = stage.node("n1"), stage.node("n2")
        n2.dial(n1)
        n1.dial(n2)
        n1.send(n2, b"here")
        await n2.until_heard(b"here")
        await end_of(stage.raw(n2))
        n1.send(n2, b"still")
        await n2.until_heard(b"still")

    on_stage(case)


def test_one_key_does_not_take_all_places() -> None:
    async def case(stage: Stage) -> None:
        n2 = stage.node("n2")
        places = limits.INBOUND_CONNECTIONS_KEY_MAX
        for number in range(places + 2):
            dealer = stage.dealer(n2)
            dealer.reconnect_ivl = -1
            dealer.send_multipart([HEAD, bytes([number])])
            await n2.until_heard(bytes([number]))
        await until(lambda: zmq_of(n2).connections == places)
        assert zmq_of(n2).faults == {Fault.CROWD: 2}

    on_stage(case)


def test_only_the_latest_that_were_dialled_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "INBOUND_CONNECTIONS_MAX", 1)
    monkeypatch.setattr(limits, "KNOWN_KEYS_MAX", 1)

    async def case(stage: Stage) -> None:
        n1, n2, n3 = (stage.node(name) for name in ("n1", "n2", "n3"))
        n2.dial(n1)
        n2.dial(n3)
        n1.dial(n2)
        n1.send(n2, b"here")
        await n2.until_heard(b"here")
        await assert_serves(stage, n2, "n4")
        await n1.until(lambda: n1.all_of(LinkClosed) != [])

    on_stage(case)


@pytest.mark.parametrize("mechanism", ["NULL", "PLAIN"])
def test_nobody_comes_in_without_curve(mechanism: str) -> None:
    async def case(stage: Stage) -> None:
        n2 = stage.node("n2")
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        liar = context.socket(zmq.DEALER)
        if mechanism == "PLAIN":
            liar.plain_username, liar.plain_password = b"user", b"word"
        monitor = liar.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        liar.connect(f"tcp://{n2.transport.bound}")
        with suppress(zmq.Again):  # it may be thrown out already, and would wait for ever
            liar.send_multipart([HEAD, b"unproved"], zmq.NOBLOCK)
        await until(lambda: monitor.poll(0) != 0)
        liar.disable_monitor()
        monitor.close()
        context.destroy(linger=0)
        await assert_serves(stage, n2)
        assert n2.contents == [b"n1"]

    on_stage(case)


@pytest.mark.parametrize("parts", [1, 3, 1_000])
def test_a_message_of_other_than_two_parts_is_counted(parts: int) -> None:
    async def case(stage: Stage) -> None:
        n2 = stage.node("n2")
        dealer = stage.dealer(n2)
        for frame in ([HEAD, b"1"], [HEAD] * parts, [HEAD, b"2"]):
            dealer.send_multipart(frame)
        await n2.until_heard(b"2")
        assert n2.contents == [b"1", b"2"]
        assert len({f.link for f in n2.frames}) == 1
        assert zmq_of(n2).faults == {Fault.PARTS: 1}

    on_stage(case)


def test_a_head_larger_than_any_header_is_counted() -> None:
    async def case(stage: Stage) -> None:
        n2 = stage.node("n2")
        dealer = stage.dealer(n2)
        dealer.send_multipart([bytes(limits.HEAD_BYTES_MAX + 1), b"1"])
        dealer.send_multipart([bytes(limits.HEAD_BYTES_MAX), b"2"])
        await n2.until_heard(b"2")
        assert n2.contents == [b"2"]
        assert zmq_of(n2).faults == {Fault.HEAD_BYTES: 1}

    on_stage(case)


def test_a_part_larger_than_any_content_ends_the_connection() -> None:
    async def case(stage: Stage) -> None:
        n2 = stage.node("n2")
        dealer = stage.dealer(n2)
        dealer.reconnect_ivl = -1
        dealer.send_multipart([HEAD, b"1"])
        await n2.until_heard(b"1")
        assert zmq_of(n2).connections == 1
        dealer.send_multipart([HEAD, bytes(limits.CONTENT_BYTES_MAX + 100)])
        await until(lambda: zmq_of(n2).connections == 0)
        assert n2.contents == [b"1"]

    on_stage(case)


@pytest.mark.parametrize("limit", ["UNFINISHED_BYTES_MAX", "UNFINISHED_ALL_BYTES_MAX"])
def test_a_message_without_end_is_cut(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(limits, limit, 2 * limits.MIB)

    async def case(stage: Stage) -> None:
        n1, n2 = stage.node("n1"), stage.node("n2")
        n1.dial(n2)
        proxy, endpoint = await stage.proxy(n2)
        proxy.bytes_max = 4 * limits.MIB
        dealer = stage.dealer(n2, endpoint)
        dealer.send_multipart([HEAD, b"1"])
        await n2.until_heard(b"1")
        dealer.send_multipart([bytes(100_000)] * 100)
        await until(lambda: zmq_of(n2).faults == {Fault.ENDLESS: 1})
        n1.send(n2, b"still")
        await n2.until_heard(b"still")
        assert n2.contents == [b"1", b"still"]

    on_stage(case)


def test_what_a_paused_node_holds_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "UNFINISHED_ALL_BYTES_MAX", 2 * limits.MIB)

    async def case(stage: Stage) -> None:
        n1, n2 = stage.node("n1"), stage.node("n2")
        n1.dial(n2)
        n1.send(n2, b"1")
        await n2.until_heard(b"1")
        n2.transport.pause()
        for _ in range(4):
            n1.send(n2, bytes(limits.MIB))
        await n1.until(lambda: n1.all_of(LinkClosed) != [])
        assert zmq_of(n2).faults == {Fault.ENDLESS: 1}
        n2.transport.resume()
        await assert_serves(stage, n2, "n3")

    on_stage(case)


def test_a_recorded_session_cannot_be_replayed() -> None:
    async def case(stage: Stage) -> None:
        n1, n2 = stage.node("n1"), stage.node("n2")
        proxy, endpoint = await stage.proxy(n2)
        n1.transport.open(n2.key.node_id, endpoint)
        n1.send(n2, b"pay once")
        await n2.until_heard(b"pay once")
        await n1.stop()
        raw = stage.raw(n2)
        raw.sendall(bytes(proxy.recorded))
        await end_of(raw)
        await assert_serves(stage, n2, "n3")
        assert n2.contents == [b"pay once", b"n3"]

    on_stage(case)


def test_a_name_that_a_peer_gave_itself_does_not_name_its_link() -> None:
    async def case(stage: Stage) -> None:
        n2 = stage.node("n2")
        for content in (b"1", b"2"):
            dealer = stage.stranger()
            dealer.routing_id = b"n1"
            server = link_key_of(n2.key.node_id)
            assert server is not None
            dealer.curve_serverkey = server
            dealer.connect(f"tcp://{n2.transport.bound}")
            dealer.send_multipart([HEAD, content])
            await n2.until_heard(content)
            dealer.close(linger=0)
            await until(lambda: zmq_of(n2).connections == 0)
        assert len({f.link for f in n2.frames}) == 2
        assert {f.key for f in n2.frames} == {link_key_of(key_of("liar").node_id)}

    on_stage(case)


@pytest.mark.parametrize("fault", Fault)
def test_every_fault_is_explained(fault: Fault) -> None:
    assert f"| `{fault}` |" in tree.read("docs/transport.md")
