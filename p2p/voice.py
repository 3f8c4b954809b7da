"""What this node says: numbers, stamps and signs its gossip messages.

The running number is that of the start: id and start together are never given twice.
"""

from dataclasses import dataclass

from quipu.ledger.canonical import encode
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import NodeId, Now, hlc_at
from quipu.p2p.bodies import Body, encode_body
from quipu.p2p.gossip import (
    KIND_OF_BODY,
    RULES,
    Gossip,
    Kind,
    Origin,
    compose,
    encode_gossip,
    gossip_id,
    signed,
)
from quipu.p2p.hello import Card

_EMPTY_BODY = encode(b"")
_NO_SIGNATURE = encode(None)


@dataclass(slots=True)
class Voice:
    key: KeyPair
    card: Card
    number: int = 0
    _beginning: tuple[int, bytes] = (-1, b"")  # of the messages of the core in that millisecond
    _ledger: tuple[bytes | None, bytes] = (
        None,
        b"",
    )  # the last message of the core, and as it travels

    def say(self, body: Body, now: Now, target: NodeId | None = None, hop_limit: int = 0) -> Gossip:
        kind = KIND_OF_BODY[type(body)]
        message = compose(self._origin(now), kind, encode_body(body), target, hop_limit)
        return self._signed(message) if RULES[kind].is_signed else message

    def farewell(self, now: Now, hop_limit: int) -> Gossip:
        return self._signed(compose(self._origin(now), Kind.LEAVING, b"", None, hop_limit))

    def pool(self, data: bytes, now: Now) -> bytes:
        return encode_gossip(compose(self._origin(now), Kind.POOL, data))

    def genesis(self, data: bytes, guest: NodeId, now: Now) -> bytes:
        return encode_gossip(compose(self._origin(now), Kind.GENESIS, data, guest))

    def log(self, data: bytes, now: Now) -> bytes:
        """Like those of the core it is numbered by the link alone."""
        origin = Origin(self.card.node_id, gossip_id(self.card.start, 0), hlc_at(now.wall_ms))
        return encode_gossip(compose(origin, Kind.LOG, data))

    def ledger(self, data: bytes, now: Now) -> bytes:
        """The same bytes go to several peers in a row, and many messages in one millisecond: what
        is alike is made once (0.5 us a message in place of 6). The link numbers them."""
        if self._ledger[0] is data:
            return self._ledger[1]
        if self._beginning[0] != now.wall_ms:
            origin = Origin(self.card.node_id, gossip_id(self.card.start, 0), hlc_at(now.wall_ms))
            empty = encode_gossip(compose(origin, Kind.LEDGER, b""))
            self._beginning = (now.wall_ms, empty.removesuffix(_EMPTY_BODY + _NO_SIGNATURE))
        self._ledger = (data, self._beginning[1] + encode(data) + _NO_SIGNATURE)
        return self._ledger[1]

    def _origin(self, now: Now) -> Origin:
        self.number += 1
        identity = gossip_id(self.card.start, self.number)
        return Origin(self.card.node_id, identity, hlc_at(now.wall_ms))

    def _signed(self, message: Gossip) -> Gossip:
        return signed(message, self.card.cluster_id, self.key)
