"""What leaves a node together: a receipt that has time, and what its receiver is told next."""

import asyncio
import io
import os
from pathlib import Path

import pytest

from quipu.ledger.inv import build_inv
from quipu.ledger.messages import EpochWant, InvMessage, encode_message
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import EpochNo, InvNumber, NodeId
from quipu.node import limits
from quipu.node.clock import clock
from quipu.node.inbox import Inbox
from quipu.node.logs import open_log
from quipu.node.network import Network
from quipu.node.settings import LogSettings
from quipu.p2p.inputs import LedgerSpoke
from tests.small_node import running

ME, OTHER = (KeyPair.from_seed(bytes([number]) * 32) for number in (1, 9))
N2, N3 = NodeId(bytes([2]) * 32), NodeId(bytes([3]) * 32)


def network_in(folder: Path) -> Network:
    log = open_log(LogSettings(level="error", format="json"), stream=io.StringIO())
    network = Network(Inbox(), clock, log, folder / "peers")
    network.up = {N2: None, N3: None}
    return network


def receipt(number: int, key: KeyPair = ME) -> bytes:
    inv = build_inv(key, bytes(32), EpochNo(1), InvNumber(number), [])
    return encode_message(InvMessage(inv.data))


def said(network: Network) -> list[tuple[NodeId, bytes]]:
    found = [(one.peer, one.data) for one in network._inputs if isinstance(one, LedgerSpoke)]
    network._inputs.clear()
    return found


def test_it_goes_with_what_the_peer_is_told_next(tmp_path: Path) -> None:
    async def test() -> None:
        network = network_in(tmp_path)
        network.send_soon(N2, receipt(1))
        network.send_soon(N3, receipt(1))
        assert said(network) == []
        other = encode_message(EpochWant(2))
        network.send(N2, other)
        assert said(network) == [(N2, receipt(1)), (N2, other)]

    running(test)


def test_the_next_one_stands_for_it(tmp_path: Path) -> None:
    async def test() -> None:
        network = network_in(tmp_path)
        network.send_soon(N2, receipt(1))
        network.send_soon(N2, receipt(2))
        network.send(N2, receipt(3))
        network.send_soon(N2, receipt(4))
        network.send(N2, receipt(9, OTHER))  # of another signer, sent on
        assert said(network) == [(N2, receipt(3)), (N2, receipt(4)), (N2, receipt(9, OTHER))]

    running(test)


def test_it_goes_alone_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RECEIPTS_WAIT_MS", 1)

    async def test() -> None:
        network = network_in(tmp_path)
        network.send_soon(N2, receipt(1))
        network.send_soon(N3, receipt(1))
        while not network._inputs:  # noqa: ASYNC110 - nothing else tells of it
            await asyncio.sleep(0)
        assert said(network) == [(N2, receipt(1)), (N3, receipt(1))]

    running(test)


def test_to_who_is_not_there_nothing_waits(tmp_path: Path) -> None:
    async def test() -> None:
        network = network_in(tmp_path)
        del network.up[N2]
        network.send_soon(N2, receipt(1))
        assert said(network) == [(N2, receipt(1))]

    running(test)


def test_what_it_keeps_of_peers_is_synced_once_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was synced while it still lay in a buffer: a loss of power could leave an empty file."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_size))

    async def test() -> None:
        network = network_in(tmp_path)
        network._keep(b"x" * 1_000)
        assert network._keeping is not None
        await network._keeping
        assert network.peers_path.read_bytes() == b"x" * 1_000
        assert synced[0] == 1_000

    running(test)
