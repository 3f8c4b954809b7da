"""When a beacon goes out, and what one that comes in changes: where a member is, nothing else.

It is no sign of life: whoever is silent on its links is suspect although its beacons come, and
nobody is suspect because they do not (seed 002, UDP gets lost on a saturated network).
"""

from hashlib import sha256

from quipu.ledger.words import NodeId, Now
from quipu.p2p import limits
from quipu.p2p.beacon import BEACON_VERSION, Beacon, open_beacon, seal_beacon
from quipu.p2p.desk import Desk
from quipu.p2p.effects import SendBeacon
from quipu.p2p.refusals import FrameRefused


class Beacons:
    def __init__(self, desk: Desk, now: Now) -> None:
        self._desk = desk
        self._due_ms = now.monotonic_ms if desk.config.has_beacon else None
        self._sent = 0

    def watch(self, now: Now) -> None:
        """One for each secret: who holds another first one can open it too."""
        if self._due_ms is None or now.monotonic_ms < self._due_ms:
            return
        desk, card = self._desk, self._desk.voice.card
        self._due_ms = now.monotonic_ms + limits.BEACON_INTERVAL_MS
        if not desk.book.is_member:
            return  # an observer dials by itself: nobody has to find it
        beacon = Beacon(BEACON_VERSION, card.endpoint, card.start)
        for secret in card.secrets:
            desk.outbox.tell(SendBeacon(seal_beacon(beacon, secret, self._nonce())))

    def heard(self, datagram: bytes, now: Now) -> None:
        """Of members alone: others say themselves, over their links, where they are."""
        desk = self._desk
        try:
            beacon = open_beacon(datagram, desk.voice.card.secrets)
            peer = NodeId(beacon.endpoint.node_id)
            is_of_member = peer != desk.me and peer in desk.membership.members
            if is_of_member and desk.learn(beacon.endpoint):
                desk.links.hurry_by_hearsay(desk.links.know(peer), now.monotonic_ms)
        except FrameRefused as refusal:
            desk.refuse(None, refusal.cause, refusal.detail)

    def next_deadline(self) -> int | None:
        return self._due_ms

    def _nonce(self) -> bytes:
        """Never twice under one secret: node, start and a running number are in it."""
        self._sent += 1
        start = self._desk.voice.card.start.to_bytes(8, "big")
        entropy = self._desk.config.entropy.to_bytes(8, "big")
        number = self._sent.to_bytes(8, "big")
        return sha256(b"beacon" + self._desk.me + start + entropy + number).digest()[:24]
