"""SIGTERM while apps write and a stream is open: all that was taken is answered, in time."""

import http.client
import json
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from quipu.node.limits import STOP_S
from tests.process.command import WAIT_S, RunningCommand

APPS = 4
ENOUGH = 40


class Apps:
    """They write until they are refused or cut off, and note what was acknowledged."""

    def __init__(self, url: str) -> None:
        self.address = urlsplit(url).netloc
        self.acknowledged: list[str] = []
        self.enough = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(i,)) for i in range(APPS)]
        for thread in self._threads:
            thread.start()

    def _write(self, app: int) -> None:
        connection = http.client.HTTPConnection(self.address, timeout=WAIT_S)
        number = 0
        try:
            while True:
                number += 1
                body = json.dumps({"data": f"{app}/{number}"})
                connection.request(
                    "POST", "/v1/entries", body, {"Content-Type": "application/json"}
                )
                answer = connection.getresponse()
                found = json.loads(answer.read())
                if answer.status >= 400:
                    return
                self.acknowledged.append(found["id"])
                if len(self.acknowledged) >= ENOUGH:
                    self.enough.set()
        except (ConnectionError, http.client.HTTPException):
            return
        finally:
            connection.close()

    def end(self) -> None:
        for thread in self._threads:
            thread.join(WAIT_S)


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
        connection = http.client.HTTPConnection(urlsplit(node.facts["api"]).netloc, timeout=WAIT_S)
        for entry in apps.acknowledged:
            connection.request("GET", f"/v1/entries/{entry}")
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200, entry
        connection.close()
