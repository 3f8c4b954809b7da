"""What leaves in a step: effects in their order, and for each peer one frame with all messages.

Messages for a peer whose link is being made wait, a few of them; those of the core never do.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

from quipu.ledger.words import NodeId, NodeNo, Now
from quipu.p2p import limits
from quipu.p2p.decen import Alive, Command, encode_command
from quipu.p2p.effects import Effect, SendFrame
from quipu.p2p.frame import encode_head
from quipu.p2p.gossip import join_content
from quipu.p2p.links import Link, Links, Way

NOTHING = join_content([])
C = TypeVar("C", bound=Command)


class Outbox:
    def __init__(self, node_no: NodeNo, links: Links) -> None:
        self._node_no = node_no
        self._alive = encode_head(node_no, encode_command(Alive(0)))[:-2]  # without its sequence
        self._links = links
        self._effects: list[Effect] = []
        self._messages: dict[NodeId, list[bytes]] = {}

    def tell(self, effect: Effect) -> None:
        self._effects.append(effect)

    def frame(
        self, link: Link, command: Callable[[int], Command], now: Now, content: bytes = NOTHING
    ) -> None:
        """At once; the messages of this step follow."""
        head = encode_head(self._node_no, encode_command(command(link.number(now.monotonic_ms))))
        self._effects.append(SendFrame(link.peer, head, content))

    def to_guest(self, guest: NodeId, command: Command, content: bytes = NOTHING) -> None:
        """Over a link that has no state here."""
        head = encode_head(self._node_no, encode_command(command))
        self._effects.append(SendFrame(guest, head, content))

    def alive(self, link: Link, now: Now, content: bytes) -> None:
        """As `frame` with `Alive`, for nearly all frames are of this kind."""
        number = link.number(now.monotonic_ms).to_bytes(2, "big")
        self._effects.append(SendFrame(link.peer, self._alive + number, content))

    def add(self, peer: NodeId, message: bytes) -> None:
        waiting = self._messages.get(peer)
        if waiting is None:
            self._messages[peer] = [message]
        else:
            waiting.append(message)

    def discard(self, peer: NodeId) -> None:
        self._messages.pop(peer, None)

    def flush(self, now: Now) -> None:
        waiting: dict[NodeId, list[bytes]] = {}
        for peer, messages in self._messages.items():
            link = self._links.by_peer.get(peer)
            if link is not None and link.way is Way.OPEN:
                for content in contents(messages):
                    self.alive(link, now, content)
            elif link is not None:
                waiting[peer] = messages[-limits.WAITING_MESSAGES_MAX :]
        self._messages = waiting

    def take(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects


def contents(messages: list[bytes], bytes_max: int = limits.CONTENT_BYTES) -> Iterator[bytes]:
    if len(messages) == 1:
        yield join_content(messages)
        return
    pieces: list[bytes] = []
    size = 0
    for message in messages:
        is_full = size + len(message) > bytes_max
        if pieces and (is_full or len(pieces) == limits.CONTENT_MESSAGES_MAX):
            yield join_content(pieces)
            pieces, size = [], 0
        pieces.append(message)
        size += len(message)
    yield join_content(pieces)
