"""SIGTERM while apps write and a stream is open: all that was taken is answered, in time."""

import http.client
import time
from pathlib import Path
from urllib.parse import urlsplit

from quipu.node.limits import STOP_S
from tests.process.apps import Apps, missing
from tests.process.command import WAIT_S, RunningCommand


def test_a_node_under_load_with_a_stream_open_stops_in_time(tmp_path: Path) -> None:
    with RunningCommand(tmp_path / "data") as node:
        stream = http.client.HTTPConnection(urlsplit(node.facts["api"]).netloc, timeout=WAIT_S)
        stream.request("GET", "/v1/stream", headers={"Accept": "text/event-stream"})
        events = stream.getresponse()
        assert events.status == 200
        apps = Apps(node.facts["api"])
        assert apps.enough.wait(WAIT_S)
        begun = time.monotonic()
        node.process.terminate()
        told = events.read().decode()
        code, _ = node.ended()
        assert (code, time.monotonic() - begun < STOP_S) == (0, True)
        apps.end()
        stream.close()
    assert "event: goodbye" in told
    with RunningCommand(tmp_path / "data") as node:
        assert missing(node.facts["api"], apps.acknowledged) == []
