"""A running node of this machine, asked over its admin socket."""

import http.client
import json
import socket
import time
from pathlib import Path
from typing import Any

from quipu.cli.progress import Bar
from quipu.cli.remote import explained, fail
from quipu.client.errors import error_of
from quipu.client.transport import problem_of
from quipu.node.doctor import holder_of
from quipu.node.exits import Exit
from quipu.node.settings import Settings

ANSWER_S = 30.0
LOOK_INTERVAL_S = 0.2


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path, answer_s: float) -> None:
        super().__init__("localhost", timeout=answer_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class AdminSocket:
    def __init__(self, path: Path, holder: str) -> None:
        self._path = path
        self.holder = holder

    def ask(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        answer_s: float = ANSWER_S,
    ) -> dict[str, Any]:
        """Ends the command where the node does not answer, or says no."""
        connection = _Connection(self._path, answer_s)
        try:
            connection.request(
                method,
                path,
                None if body is None else json.dumps(body),
                {"Content-Type": "application/json"},
            )
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            fail(
                f"process {self.holder} runs the node, and {self._path} does not answer: {error}\n"
                "  Be the user that runs it; name its socket where it is not in the data "
                "directory: --set admin.socket=PATH",
                Exit.UNREACHABLE,
            )
        finally:
            connection.close()
        if answer.status >= http.client.BAD_REQUEST:
            with explained():
                raise error_of(problem_of(answer.status, content), 0)
        found: dict[str, Any] = json.loads(content or b"{}")  # 204 has none
        return found

    def finish(self, begun: dict[str, Any]) -> dict[str, Any]:
        """Waits for an operation, and gives its result; Ctrl-C cancels it."""
        path, bar = f"/v1/admin/operations/{begun['id']}", Bar()
        found = begun
        try:
            while found["state"] == "running":
                bar.show(found["phase"], int(found["done"]), int(found["total"]))
                time.sleep(LOOK_INTERVAL_S)
                found = self.ask("GET", path)
        except KeyboardInterrupt:
            bar.end()
            self.ask("DELETE", path)
            fail(f"{found['kind']} {found['id']} is cancelled", Exit.FAILURE)
        bar.end()
        if found["state"] != "done":
            fail(f"{found['kind']} {found['state']}: {found['error']}", Exit.FAILURE)
        result: dict[str, Any] = found["result"]
        return result


def running_node(settings: Settings) -> AdminSocket | None:
    """None: no process uses the data directory."""
    holder = holder_of(settings.node.data_dir.absolute())
    return None if holder is None else AdminSocket(settings.admin_socket, holder)
