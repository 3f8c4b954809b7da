"""A partition without a network to cut: frames of some peers vanish, both ways.

For tests and `quipu devnet` alone. The peers stand in a file that is read anew when it changes.
What it is: nothing of a blocked peer is heard, nothing reaches it, and no new link to it is made.
What it is not: the connections below stay as they are, so no packet is delayed or sent again.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.inputs import FrameReceived, LinkClosed
from quipu.p2p.link_keys import link_key_of
from quipu.p2p.transport import Happening, Hear, Transport
from quipu.p2p.words import Endpoint, LinkId, LinkKey

VARIABLE = "QUIPU_BLOCKED_PEERS"  # names the file: one node id a line, as 64 hex digits


class Screen:
    """Between a transport and who uses it: give `hear` to the one, the screen to the other."""

    def __init__(self, file: Path, hear: Hear) -> None:
        self.blocked: frozenset[NodeId] = frozenset()
        self.unread = 0  # looks at the file that could not be understood
        self._file = file
        self._upwards = hear
        self._keys: frozenset[LinkKey | None] = frozenset()
        self._stamp = (0, 0)
        self._below: Transport
        self._loop = asyncio.get_running_loop()
        self._watch()

    def over(self, transport: Transport) -> None:
        self._below = transport

    def hear(self, happening: Happening) -> None:
        if not (isinstance(happening, FrameReceived) and happening.key in self._keys):
            self._upwards(happening)

    # --- the transport --------------------------------------------------------------------------
    @property
    def bound(self) -> Endpoint:
        return self._below.bound

    @property
    def connections(self) -> int:
        return self._below.connections

    @property
    def faults(self) -> Mapping[str, int]:
        return self._below.faults

    def open(self, peer: NodeId, endpoint: Endpoint) -> None:
        if peer in self.blocked:
            self._loop.call_soon(self._upwards, LinkClosed(peer, "blocked on purpose"))
        else:
            self._below.open(peer, endpoint)

    def send(self, peer: NodeId, head: bytes, content: bytes) -> None:
        if peer not in self.blocked:
            self._below.send(peer, head, content)

    def close(self, peer: NodeId) -> None:
        self._below.close(peer)

    def shut(self, link: LinkId) -> None:
        self._below.shut(link)

    def pause(self) -> None:
        self._below.pause()

    def resume(self) -> None:
        self._below.resume()

    async def stop(self) -> None:
        self._timer.cancel()
        await self._below.stop()

    # ---------------------------------------------------------------------------------------------
    def _watch(self) -> None:
        self._timer = self._loop.call_later(limits.SCREEN_INTERVAL_MS / 1000, self._watch)
        try:
            found = self._file.stat()
            stamp = (found.st_mtime_ns, found.st_ino)
            if stamp == self._stamp:
                return
            names = self._file.read_text().split()
            self.blocked = frozenset(NodeId(bytes.fromhex(name)) for name in names)
        except FileNotFoundError:
            stamp, self.blocked = (0, 0), frozenset()
        except (OSError, ValueError):
            self.unread += 1
            return  # what was blocked stays so until it can be read
        self._stamp = stamp
        self._keys = frozenset(link_key_of(peer) for peer in self.blocked)
