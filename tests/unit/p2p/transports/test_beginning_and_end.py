"""Where a transport can listen, and what it leaves behind."""

import errno
import math
import threading
import time

import pytest

from quipu.p2p import limits
from quipu.p2p.inputs import LinkOpened
from quipu.p2p.transports.refusals import (
    AddressNotLocal,
    AddressUnusable,
    PortPrivileged,
    cannot_listen,
)
from quipu.p2p.words import Endpoint
from tests.unit.p2p.transports.stage import (
    Stage,
    assert_left_nothing,
    descriptors_now,
    on_stage,
    threads_of_libzmq,
)

STOPPED_S = limits.LINGER_MS / 1000 + 0.5
TRIES = 3  # one of them without another process in the way


@pytest.mark.parametrize(
    ("listen", "refusal"),
    [
        (Endpoint("192.0.2.1", 0), AddressNotLocal),
        (Endpoint("no-such-interface", 0), AddressUnusable),
        (Endpoint("127.0.0.1", 99_999), AddressUnusable),
    ],
)
def test_where_nobody_can_listen(listen: Endpoint, refusal: type[Exception]) -> None:
    async def case(stage: Stage) -> None:
        with pytest.raises(refusal, match=listen.host):
            stage.node("n1", listen)

    before = descriptors_now()
    on_stage(case)
    assert_left_nothing(before)


def test_a_privileged_port_says_what_to_do() -> None:
    refusal = cannot_listen(Endpoint("127.0.0.1", 80), errno.EACCES, "Permission denied")
    assert isinstance(refusal, PortPrivileged)
    assert "1024" in refusal.next_step


@pytest.mark.alone
def test_stop_leaves_nothing_and_takes_no_longer_than_the_linger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "SEND_HWM_FRAMES", 2)
    monkeypatch.setattr(limits, "RECEIVE_HWM_FRAMES", 2)

    async def case(stage: Stage) -> None:
        n1, n2 = stage.node("n1"), stage.node("n2")
        n1.dial(n2)
        await n1.until(lambda: n1.heard == [LinkOpened(n2.key.node_id)])
        assert len(threads_of_libzmq()) > 0
        stage.raw(n1).send(b"\xff")
        n2.transport.pause()
        for _ in range(14):
            n1.send(n2, bytes(limits.CONTENT_BYTES_MAX))  # far more than buffers take
        start = time.monotonic()
        await n1.stop()
        took_s.append(time.monotonic() - start)
        assert took_s[-1] > 0.5

    took_s: list[float] = []
    before, threads = descriptors_now(), threading.active_count()
    while len(took_s) < TRIES and min(took_s, default=math.inf) > STOPPED_S:
        on_stage(case)
        assert_left_nothing(before)
    assert min(took_s) <= STOPPED_S
    assert threading.active_count() == threads
