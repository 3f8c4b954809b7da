"""Somebody who writes to a cluster while it is looked at."""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


def ask(url: str, body: object = None, method: str | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    kind = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data, kind, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        content = answer.read()
    return json.loads(content) if content else None


def stored(base: str, data: object, wait: str = "read", **fields: object) -> str:
    """The id of an entry that got so far."""
    found = ask(f"{base}/v1/entries?wait={wait}", {"data": data, **fields})
    return str(found["id"])


class Writer:
    """Invariant: `written` entries were acknowledged."""

    def __init__(self, bases: Sequence[str], per_s: float, entries: int) -> None:
        self.written = 0
        self._bases, self._entries = bases, entries
        self._pause_s = len(bases) / per_s
        self._ends = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(daemon=True, target=self._run, args=(base,)) for base in bases
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, base: str) -> None:
        number = 0
        while not self._ends.wait(self._pause_s):
            number += 1
            items = [
                {"data": {"order": number, "item": place}, "stream": "orders"}
                for place in range(self._entries)
            ]
            try:
                ask(f"{base}/v1/entries:batch?atomic=true", items)
            except (OSError, urllib.error.URLError):
                continue  # it is killed in some of the tests
            with self._lock:
                self.written += self._entries

    def end(self) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()


@contextmanager
def writing(bases: Sequence[str], per_s: float = 6, entries: int = 3) -> Iterator[Writer]:
    """So many events a second, of so many entries each."""
    writer = Writer(bases, per_s, entries)
    try:
        yield writer
    finally:
        writer.end()
