"""Apps that write over HTTP while a node is stopped or killed."""

import http.client
import json
import threading
from urllib.parse import urlsplit

from tests.process.command import WAIT_S

APPS = 4
ENOUGH = 40


class Apps:
    """They write until they are refused or cut off, and note what was acknowledged."""

    def __init__(self, url: str) -> None:
        self.address = urlsplit(url).netloc
        self.acknowledged: list[str] = []
        self.enough = threading.Event()
        self._threads = [
            threading.Thread(daemon=True, target=self._write, args=(i,)) for i in range(APPS)
        ]
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


def missing(url: str, entries: list[str]) -> list[str]:
    """Which of these the node does not have."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=WAIT_S)
    found = []
    for entry in entries:
        connection.request("GET", f"/v1/entries/{entry}")
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            found.append(entry)
    connection.close()
    return found
