"""What each gossip message does (seed 004): duplicates first, then its envelope, then its action.

A duplicate is discarded before body and action are looked at. Signed kinds are taken from anybody
who passes them on; the others only from the peer whose link brings them.
"""

from typing import assert_never

from quipu.ledger.words import NodeId, Now
from quipu.p2p import limits
from quipu.p2p.addresses import check_endpoint
from quipu.p2p.bodies import (
    Ack,
    Addresses,
    Answer,
    CastKey,
    CastReport,
    Discovered,
    HealthAnswer,
    HealthQuery,
    Joined,
    Lost,
    Query,
    Unsupported,
    VersionMismatch,
)
from quipu.p2p.cast import stream_of
from quipu.p2p.cast_ear import Ear
from quipu.p2p.desk import Desk
from quipu.p2p.effects import Question
from quipu.p2p.gossip import (
    Foreign,
    Gossip,
    Kind,
    body_of,
    encode_gossip,
    has_valid_signature,
    number_of,
    rule_of,
    start_of,
)
from quipu.p2p.queries import Vote
from quipu.p2p.refusals import Cause, FrameRefused, refuse
from quipu.p2p.words import GossipId

_NOT_GOSSIP: dict[int, tuple[Cause, str]] = {
    Kind.POOL: (Cause.MALFORMED, "something for a pool without a BROADCAST"),
    Kind.LEDGER: (Cause.MALFORMED, "something for the core of nobody who is up"),
    Kind.LOG: (Cause.MALFORMED, "something for the log of nobody who is up"),
    Kind.GENESIS: (Cause.NOT_ASKED, "a genesis: this node has its own"),
}


class Hearing:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def hear(self, peer: NodeId, message: Gossip | Foreign, now: Now) -> None:
        """Anything but the messages of core and pools. Refuses by `FrameRefused`."""
        if isinstance(message, Foreign):
            self._unsupported(peer, GossipId(message.id), message.kind, message.version, now)
            return
        desk = self._desk
        sender = NodeId(message.sender)
        start, number = start_of(message.id), number_of(message.id)
        is_signed = message.signature is not None
        if is_signed and not desk.seen.is_new(sender, start, number):
            refuse(Cause.DUPLICATE)
        try:
            rule = rule_of(message)
        except FrameRefused as refusal:
            if refusal.cause is Cause.UNKNOWN_KIND:
                self._unsupported(peer, GossipId(message.id), message.kind, message.version, now)
            raise
        if rule.is_signed:
            if not has_valid_signature(message, desk.config.cluster_id, desk.config.verify):
                refuse(Cause.BAD_SIGNATURE, f"of a message of kind {message.kind}")
            desk.seen.mark(sender, start, number, desk.membership.members)
        elif sender != peer:
            refuse(Cause.NOT_ITS_OWN, f"kind {message.kind}")
        if message.target is not None and message.target != desk.me:
            desk.forward(message, peer)
            return
        self._act(peer, message, now)
        if message.target is None and rule.is_signed:
            desk.forward(message, peer)

    def _unsupported(
        self, peer: NodeId, identity: GossipId, kind: int, version: int, now: Now
    ) -> None:
        self._desk.direct(peer, self._desk.voice.say(Unsupported(identity, kind, version), now))

    def _act(self, peer: NodeId, message: Gossip, now: Now) -> None:
        if message.kind == Kind.LEAVING:
            self._on_leaving(message, now)
            return
        if message.kind in _NOT_GOSSIP:
            refuse(*_NOT_GOSSIP[message.kind])
        match body_of(message):
            case Discovered() as body:
                self._on_discovered(peer, message, body, now)
            case Ack() as body:
                self._on_ack(peer, body)
            case Addresses(endpoints=endpoints):
                self._desk.learn_all(peer, endpoints)
            case Joined() as body:
                self._on_joined(body, now)
            case Lost() as body:
                self._on_lost(message, body, now)
            case HealthQuery(node_id=node_id):
                self._tell_health(message, NodeId(node_id), now)
            case HealthAnswer() as body:
                self._on_health_answer(message, body, now)
            case Query() as body:
                self._on_query(message, body, now)
            case Answer() as body:
                self._on_answer(message, body)
            case CastKey() | CastReport() as body:
                self._on_cast(peer, body, now)
            case Unsupported(kind=kind, version=version):
                refuse(Cause.UNSUPPORTED_BY_PEER, f"kind {kind} of version {version}")
            case VersionMismatch(protocol_min=least, protocol_max=most, version=version):
                spoken = f"it speaks {least} to {most}; its program is {version}"
                refuse(Cause.NO_COMMON_VERSION, spoken)
            case body:
                assert_never(body)

    # --- discovery ------------------------------------------------------------------------------
    def _on_discovered(self, peer: NodeId, message: Gossip, body: Discovered, now: Now) -> None:
        """The expected action is an ack straight to its sender, which is dialled for it."""
        desk, sender = self._desk, NodeId(message.sender)
        if body.endpoint.node_id != sender:
            refuse(Cause.BAD_ENDPOINT, "of another node than the sender")
        is_known = sender in desk.membership.members or sender in desk.links.by_peer
        if is_known:
            desk.learn(body.endpoint)
            link = desk.links.know(sender)
            desk.membership.know(sender)
            desk.links.hurry_by_hearsay(link, now.monotonic_ms)
            card = desk.voice.card
            desk.direct(sender, desk.voice.say(Ack(message.id, card.endpoint), now, sender))
        if peer == sender:
            others = [
                signed
                for node, signed in desk.book.signed.items()
                if node != sender and node in desk.membership.members
            ]
            known = Addresses(others[: limits.ADDRESSES_MAX])
            desk.direct(sender, desk.voice.say(known, now, sender))

    def _on_ack(self, peer: NodeId, body: Ack) -> None:
        if start_of(body.message) != self._desk.voice.card.start:
            refuse(Cause.NOT_ASKED, "an ack for no message of this start")
        self._desk.is_acked = True
        if body.endpoint is not None:
            if body.endpoint.node_id != peer:
                refuse(Cause.BAD_ENDPOINT, "of another node than the sender")
            self._desk.learn(body.endpoint)

    def _on_joined(self, body: Joined, now: Now) -> None:
        """A word of where somebody is, and that it is worth while to dial it now."""
        desk, joined = self._desk, NodeId(body.endpoint.node_id)
        check_endpoint(body.endpoint, desk.config.cluster_id, desk.config.verify)
        if joined == desk.me or joined not in desk.membership.members:
            return
        desk.learn(body.endpoint)
        desk.to_join.pop(joined, None)
        desk.links.hurry_by_hearsay(desk.links.know(joined), now.monotonic_ms)

    # --- leaving and silence --------------------------------------------------------------------
    def _on_leaving(self, message: Gossip, now: Now) -> None:
        """Only of the start that it ends, or a later one: it may have come back since."""
        desk, sender = self._desk, NodeId(message.sender)
        if sender not in desk.links.by_peer:
            return
        link, start = desk.links.know(sender), start_of(message.id)
        if start < link.start:
            refuse(Cause.OLDER_START, "of a farewell")
        link.start = start
        desk.moved(desk.membership.farewell(sender), now)

    def _on_lost(self, message: Gossip, body: Lost, now: Now) -> None:
        """Whoever knows better says so: above all the node that is missed."""
        missed = NodeId(body.node_id)
        if missed == self._desk.me or self._desk.membership.is_direct(missed, now.monotonic_ms):
            self._tell_health(message, missed, now)

    def _tell_health(self, message: Gossip, node: NodeId, now: Now) -> None:
        """Of what was heard here directly, so that no word is passed round in a circle."""
        desk = self._desk
        start, heard_ms_ago = desk.voice.card.start, 0 if node == desk.me else None
        if node != desk.me:
            link = desk.links.by_peer.get(node)
            start = link.start if link is not None else start_of(bytes(16))
            heard_ms_ago = desk.membership.direct_ms_ago(node, now.monotonic_ms)
        body = HealthAnswer(message.id, node, start, heard_ms_ago)
        asker = NodeId(message.sender)
        desk.spread(desk.voice.say(body, now, asker, limits.HOPS_MAX))

    def _on_health_answer(self, message: Gossip, body: HealthAnswer, now: Now) -> None:
        desk, sender = self._desk, NodeId(message.sender)
        asked = desk.health.get(GossipId(body.query))
        if asked is None or asked[0] != body.node_id:
            refuse(Cause.NOT_ASKED, "a health answer")
        if sender == body.node_id or sender in desk.membership.members:
            subject = NodeId(body.node_id)
            move = desk.membership.told(subject, sender, body.heard_ms_ago, now.monotonic_ms)
            desk.moved(move, now)

    # --- queries --------------------------------------------------------------------------------
    def _on_query(self, message: Gossip, body: Query, now: Now) -> None:
        asker = NodeId(message.sender)
        ticket = self._desk.questions.ask(asker, GossipId(message.id), now.monotonic_ms)
        self._desk.outbox.tell(Question(ticket, asker, body.question, body.argument))

    def _on_answer(self, message: Gossip, body: Answer) -> None:
        vote = Vote(GossipId(message.id), body.answer, encode_gossip(message))
        if not self._desk.queries.answered(GossipId(body.query), NodeId(message.sender), vote):
            refuse(Cause.NOT_ASKED, "an answer")

    # --- multicast ------------------------------------------------------------------------------
    def _on_cast(self, peer: NodeId, body: CastKey | CastReport, now: Now) -> None:
        """Where this node does not listen it reports nothing, and so is sent nothing that way."""
        desk = self._desk
        if isinstance(body, CastReport):
            casting = desk.casting
            owed = None if casting is None else casting.reported(peer, body, now.monotonic_ms)
            if owed is None:
                refuse(Cause.NOT_ASKED, "a report of what was not multicast to it")
            desk.over_link(peer, owed, now)
        elif desk.casting is not None and peer in desk.up:
            desk.ears = {name: ear for name, ear in desk.ears.items() if ear.peer != peer}
            stream = stream_of(peer, body.key)
            desk.ears[stream.id] = Ear(peer, stream, body.number)
