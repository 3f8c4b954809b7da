"""The peer machine: all that a node decides about its peers, without I/O (seeds 002 and 004).

Routes what enters to its children and orders what leaves; the children do not know each other.
What comes of time follows what comes of inputs: silence, dialling, heartbeats.
"""

from dataclasses import replace
from typing import assert_never

from quipu.ledger.words import NodeId, Now
from quipu.p2p import inputs as ins
from quipu.p2p import limits
from quipu.p2p.addresses import sign_endpoint
from quipu.p2p.beacons import Beacons
from quipu.p2p.bodies import Answer, Discovered, HealthQuery, Query
from quipu.p2p.book import Book
from quipu.p2p.cast import cast_key, stream_of
from quipu.p2p.casting import Casting, Frame
from quipu.p2p.casts import Casts
from quipu.p2p.decen import Join, Leave, Ping
from quipu.p2p.desk import Desk, PeersConfig
from quipu.p2p.effects import Effect, KeepPeers, OpenLink, QueryEnded, Question
from quipu.p2p.gossip import encode_gossip, join_content
from quipu.p2p.hello import Card
from quipu.p2p.inputs import Input
from quipu.p2p.kept import KEPT_VERSION, Kept, KeptPeer, decode_kept, encode_kept
from quipu.p2p.links import Link, Links, Way
from quipu.p2p.membership import Membership
from quipu.p2p.outbox import Outbox
from quipu.p2p.queries import Asked, Ended, Tally, Verdict, Vote
from quipu.p2p.refusals import Cause, FrameRefused
from quipu.p2p.sessions import Sessions
from quipu.p2p.spread import Floor, SeenSet
from quipu.p2p.voice import Voice
from quipu.p2p.words import GossipId, PeerState, PeerView, Start

_ENTROPY_MASK = (1 << limits.START_SHIFT) - 1


class Peers:
    def __init__(self, config: PeersConfig, kept: bytes | None, now: Now) -> None:
        memory, unread = _remember(kept)
        self._desk = desk = _laid(config, memory, now)
        self._sessions = Sessions(desk)
        self._beacons = Beacons(desk, now)
        self._casts = Casts(desk)
        self._now = now
        self._announce_ms = now.monotonic_ms
        self._announced = 0
        self._kept_ms = now.monotonic_ms - limits.KEEP_INTERVAL_MS  # its own start at once
        self._has_left = False
        self._deadline_ms: int | None = now.monotonic_ms  # as of the last step that looked
        if unread is not None:
            desk.refuse(None, Cause.STALE_MEMORY, str(unread))
        for member in config.members:
            self._sessions.know(member)

    @property
    def start(self) -> Start:
        return self._desk.voice.card.start

    @property
    def casts_repaired(self) -> int:
        """Frames that were multicast and had to go over a link."""
        return 0 if self._desk.casting is None else self._desk.casting.repaired

    def step(self, inputs: list[Input], now: Now) -> list[Effect]:
        if self._has_left:
            return []
        desk = self._desk
        if now.monotonic_ms - self._now.monotonic_ms > limits.ASLEEP_AFTER_MS:
            desk.membership.woke(now.monotonic_ms)
        self._now = max(self._now, now, key=_monotonic)  # a turn may have begun before another
        is_plain = desk.casting is None
        for item in inputs:
            if type(item) is ins.LedgerSpoke:  # thousands a second
                if item.peer in desk.up:
                    if desk.casting is None:
                        desk.outbox.add(item.peer, desk.voice.ledger(item.data, now))
                    else:
                        self._casts.speak(item.peer, item.data, now)
                continue
            if type(item) is ins.FrameReceived:
                is_plain &= self._sessions.frame(item, now)
                continue
            if isinstance(item, ins.LogSpoke):
                if item.peer in desk.up:
                    desk.outbox.add(item.peer, desk.voice.log(item.data, now))
                continue
            is_plain = False
            self._take(item, now)
            if self._has_left:
                return desk.outbox.take()
        if is_plain and self._deadline_ms is not None and now.monotonic_ms < self._deadline_ms:
            desk.outbox.flush(now)  # nothing has changed: half of the cost of such a step
            return desk.outbox.take()
        self._look(now)
        self._deadline_ms = self._next_deadline()
        return desk.outbox.take()

    def _look(self, now: Now) -> None:
        """What comes of time, and of what has changed."""
        desk = self._desk
        self._watch(now)
        self._ask(now)
        self._announce(now)
        if desk.to_join:
            desk.tell_joined(now)
        self._dial(now)
        self._sessions.guests.watch(now)
        self._beacons.watch(now)
        self._casts.flush(now)
        self._casts.watch(now)
        desk.outbox.flush(now)
        for link in desk.links.silent(now.monotonic_ms):
            self._sessions.beat(link, now)
        self._keep(now)

    def next_deadline(self) -> int | None:
        """At most a second away as long as anybody is known: so a node notices that it slept."""
        return None if self._has_left else self._deadline_ms

    def _next_deadline(self) -> int | None:
        desk = self._desk
        due = [
            desk.membership.next_deadline(),
            desk.links.next_deadline(),
            desk.queries.next_deadline(),
            self._sessions.guests.next_deadline(),
            self._beacons.next_deadline(),
            self._casts.next_deadline(),
            min(desk.to_join.values(), default=None),
            self._kept_ms + limits.KEEP_INTERVAL_MS if desk.kept_changed else None,
            self._now.monotonic_ms + limits.HEARTBEAT_INTERVAL_MS if desk.links.by_peer else None,
        ]
        return min((ms for ms in due if ms is not None), default=None)

    def views(self) -> tuple[PeerView, ...]:
        return tuple(self._view(link) for link in self._desk.links.by_peer.values())

    def _view(self, link: Link) -> PeerView:
        desk, peer = self._desk, link.peer
        standing = desk.membership.know(peer)
        is_heard = standing.state is not PeerState.UNKNOWN
        pools = desk.peer_pools.get(peer)
        return PeerView(
            peer,
            standing.state,
            desk.book.endpoint(peer),
            self._now.monotonic_ms - standing.heard_ms if is_heard else None,
            link.start or None,
            pools.pools.names if pools is not None else (),
            link.inbound is not None,
            link.way is Way.OPEN,
            link.greeting.version if link.greeting is not None else "",
            link.greeting.name if link.greeting is not None else "",
        )

    # --- what enters ----------------------------------------------------------------------------
    def _take(self, item: Input, now: Now) -> None:
        match item:
            case ins.LedgerSpoke() | ins.LogSpoke() | ins.FrameReceived():
                raise AssertionError("taken before")
            case ins.LinkOpened(peer):
                self._sessions.opened(peer, now)
            case ins.LinkClosed(peer):
                self._sessions.closed(peer, now)
            case ins.FrameDropped():
                pass  # its receiver sees the gap; whoever runs the transport counts it
            case ins.BeaconHeard() | ins.CastHeard():
                self._on_datagram(item, now)
            case ins.RosterChanged(members):
                self._on_roster(members)
            case ins.SecretsChanged(secrets):
                voice = self._desk.voice
                voice.card = replace(voice.card, secrets=secrets)
            case ins.SeedGiven(peer, endpoint):
                if peer != self._desk.me:
                    self._desk.book.seeds[peer] = endpoint
                    self._sessions.know(peer)
                    self._sessions.dial_anew(peer, now)
            case ins.QueryAsked():
                self._on_query_asked(item, now)
            case ins.QuestionAnswered(ticket, answer):
                self._on_question_answered(ticket, answer, now)
            case ins.PoolJoined() | ins.PoolLeft():
                self._on_pool_change(item, now)
            case ins.PoolSpoke():
                self._on_pool_spoke(item, now)
            case ins.LeaveAsked():
                self._on_leave_asked(now)
            case _:
                assert_never(item)

    def _on_datagram(self, item: ins.BeaconHeard | ins.CastHeard, now: Now) -> None:
        if isinstance(item, ins.BeaconHeard):
            self._beacons.heard(item.datagram, now)
        elif (heard := self._casts.heard(item.datagram, now)) is not None:
            self._sessions.cast(*heard)

    def _on_roster(self, members: tuple[NodeId, ...]) -> None:
        desk = self._desk
        desk.book.members = members
        desk.membership.set_members(members)
        desk.kept_changed = True
        for member in members:
            self._sessions.know(member)

    # --- queries --------------------------------------------------------------------------------
    def _on_query_asked(self, item: ins.QueryAsked, now: Now) -> None:
        """The members of this moment count, also if the roster changes while they answer."""
        desk, now_ms = self._desk, now.monotonic_ms
        assert not desk.queries.has(item.ticket), "a ticket names one query"
        assert item.of != desk.me, "what it knows itself it asks nobody"
        tally = Tally(desk.book.members if item.of is None else (item.of,))
        end_ms = now_ms + min(item.timeout_ms, limits.QUESTION_AGE_MS)
        if len(desk.queries) >= limits.QUERIES_OPEN_MAX:
            desk.outbox.tell(QueryEnded(item.ticket, Verdict.TIMEOUT, None, (), 0))
            return
        again_ms = now_ms + limits.QUERY_AGAIN_MS
        asked = Asked(item.ticket, item.question, item.argument, tally, end_ms, again_ms)
        body = Query(item.question, item.argument)
        message = desk.voice.say(body, now, item.of, limits.HOPS_MAX)
        desk.queries.open(asked, GossipId(message.id))
        desk.spread(message)
        if desk.book.is_member and item.of is None:
            ticket = desk.questions.ask(desk.me, GossipId(message.id), now_ms)
            desk.outbox.tell(Question(ticket, desk.me, item.question, item.argument))

    def _on_question_answered(self, ticket: int, answer: bytes, now: Now) -> None:
        desk = self._desk
        assert len(answer) <= limits.ANSWER_BYTES_MAX, "the node bounds its answers"
        waiting = desk.questions.answer(ticket)
        if waiting is None:
            return
        body = Answer(waiting.query, answer)
        message = desk.voice.say(body, now, waiting.asker, limits.HOPS_MAX)
        if waiting.asker == desk.me:
            vote = Vote(GossipId(message.id), answer, encode_gossip(message))
            desk.queries.answered(waiting.query, desk.me, vote)
        else:
            desk.spread(message)

    def _ask(self, now: Now) -> None:
        desk = self._desk
        if not len(desk.queries):
            return
        for asked in desk.queries.due_again(now.monotonic_ms):
            for member in asked.tally.silent():
                if member != desk.me:
                    body = Query(asked.question, asked.argument)
                    message = desk.voice.say(body, now, member, limits.HOPS_MAX)
                    desk.queries.name(asked, GossipId(message.id))
                    desk.spread(message)
        for ended in desk.queries.ended(now.monotonic_ms):
            desk.outbox.tell(_query_ended(ended))

    # --- pools ----------------------------------------------------------------------------------
    def _on_pool_change(self, item: ins.PoolJoined | ins.PoolLeft, now: Now) -> None:
        """Told to all peers, in the pool or not."""
        desk, pool = self._desk, item.pool
        is_joined = isinstance(item, ins.PoolJoined)
        if not (desk.pools.join(pool) if is_joined else desk.pools.leave(pool)):
            if is_joined and pool not in desk.pools.names:
                desk.refuse(None, Cause.TOO_LARGE, f"a node is in {limits.POOLS_MAX} pools at most")
            return
        command, status = Join if is_joined else Leave, desk.pools.status
        for link in desk.links.by_peer.values():
            if link.way is Way.OPEN:
                desk.outbox.frame(link, lambda n: command(n, pool, status), now)

    def _on_pool_spoke(self, item: ins.PoolSpoke, now: Now) -> None:
        """A copy for each peer of the pool, or one for all who hear multicast."""
        assert len(item.data) <= limits.CONTENT_BYTES, "the node bounds what it says to a pool"
        desk, pool = self._desk, item.pool
        content = join_content([desk.voice.pool(item.data, now)])
        peers = [peer for peer, pools in desk.peer_pools.items() if pool in pools.names]
        for peer in self._casts.broadcast(pool, content, peers, now):
            desk.over_link(peer, [Frame(pool, content)], now)

    # --- leaving --------------------------------------------------------------------------------
    def _on_leave_asked(self, now: Now) -> None:
        desk = self._desk
        message = desk.voice.farewell(now, limits.HOPS_MAX)
        for link in desk.links.by_peer.values():
            if link.way is Way.OPEN:
                desk.direct(link.peer, message)
        desk.outbox.flush(now)
        for link in desk.links.by_peer.values():
            desk.close(link, now)
        desk.outbox.tell(KeepPeers(self._memory()))
        self._has_left = True

    # --- time -----------------------------------------------------------------------------------
    def _watch(self, now: Now) -> None:
        """Silence: peers move on the ladder, suspects are pinged, and others asked about them."""
        desk, now_ms = self._desk, now.monotonic_ms
        due_ms = desk.membership.next_deadline()
        if due_ms is None or now_ms < due_ms:
            return
        check = desk.membership.check(now_ms)
        for move in check.moves:
            desk.moved(move, now)
        for peer in check.suspects:
            link = desk.links.by_peer[peer]
            if link.way is Way.OPEN:
                desk.outbox.frame(link, Ping, now)
            if peer in desk.membership.members:
                message = desk.voice.say(HealthQuery(peer), now, None, limits.HOPS_MAX)
                desk.health[GossipId(message.id)] = (peer, now_ms)
                desk.spread(message)
        if check.moves or check.suspects:
            oldest_ms = now_ms - limits.DEAD_AFTER_MS
            desk.health = {i: h for i, h in desk.health.items() if h[1] > oldest_ms}

    def _announce(self, now: Now) -> None:
        """To one linked peer, which tells the others: until one has acknowledged it, and then
        now and then as long as a member's address is missing."""
        desk, now_ms = self._desk, now.monotonic_ms
        if now_ms < self._announce_ms:
            return
        # After the first time only to who has greeted back: no other one could acknowledge it.
        open_links = [
            link
            for link in desk.links.by_peer.values()
            if link.way is Way.OPEN and (link.inbound is not None or not self._announced)
        ]
        if not open_links:
            return
        if desk.is_acked and not desk.book.lacks_addresses():
            self._announce_ms = now_ms + limits.DISCOVER_FIRST_MS
            return
        link = open_links[self._announced % len(open_links)]
        delay_ms = limits.DISCOVER_FIRST_MS << min(self._announced, 8)
        self._announce_ms = now_ms + min(delay_ms, limits.DISCOVER_LAST_MS)
        self._announced += 1
        card = desk.voice.card
        body = Discovered(card.endpoint, card.name)
        hops = 0 if desk.is_acked else limits.HOPS_MAX  # addresses are asked of that one alone
        desk.direct(link.peer, desk.voice.say(body, now, None, hops))

    def _dial(self, now: Now) -> None:
        desk, now_ms = self._desk, now.monotonic_ms
        if desk.wants_changed:
            desk.wants_changed = False
            self._choose(now)
        for link in desk.links.due(now_ms):
            endpoint = desk.book.endpoint(link.peer, link.failures)
            if endpoint is not None:
                desk.links.dialled(link, endpoint, now_ms)
                desk.outbox.tell(OpenLink(link.peer, endpoint))

    def _choose(self, now: Now) -> None:
        """Whom to keep a link to, and how eagerly."""
        desk = self._desk
        state = desk.membership.state
        greeted = [x.peer for x in desk.links.by_peer.values() if x.inbound is not None]
        called = [x.peer for x in desk.links.by_peer.values() if x.called]
        wanted = dict.fromkeys(desk.book.wanted(greeted, called, state))
        for link in desk.links.by_peer.values():
            is_slow = state(link.peer) in (PeerState.DEAD, PeerState.LEFT)
            is_wanted = link.peer in wanted and desk.book.endpoint(link.peer) is not None
            desk.links.want(link, is_wanted, is_slow, now.monotonic_ms)
            if not is_wanted:
                desk.close(link, now)

    # --- memory ---------------------------------------------------------------------------------
    def _keep(self, now: Now) -> None:
        """Soon after a peer or its place changed; floors alone can wait."""
        desk, since_ms = self._desk, now.monotonic_ms - self._kept_ms
        is_due = desk.kept_changed and since_ms >= limits.KEEP_INTERVAL_MS
        if is_due or (desk.seen.moved and since_ms >= limits.KEEP_FLOORS_MS):
            desk.kept_changed = desk.seen.moved = False
            self._kept_ms = now.monotonic_ms
            desk.outbox.tell(KeepPeers(self._memory()))

    def _memory(self) -> bytes:
        desk = self._desk
        floors = desk.seen.floors()
        peers: list[KeptPeer] = []
        for member in desk.book.members:
            link = desk.links.by_peer.get(member)
            if link is not None:
                endpoint = desk.book.signed.get(member)
                floor = floors.get(member, Floor(Start(0), 0))
                peers.append(KeptPeer(member, endpoint, link.start, *floor))
        return encode_kept(Kept(KEPT_VERSION, self.start, peers))


def _remember(kept: bytes | None) -> tuple[Kept, FrameRefused | None]:
    nothing = Kept(KEPT_VERSION, 0, [])
    if kept is None:
        return nothing, None
    try:
        return decode_kept(kept), None
    except FrameRefused as refusal:
        return nothing, refusal


def _laid(config: PeersConfig, memory: Kept, now: Now) -> Desk:
    me = config.key.node_id
    drawn = now.wall_ms << limits.START_SHIFT | config.entropy & _ENTROPY_MASK
    start = Start(max(drawn, memory.start + 1))
    endpoint = sign_endpoint(config.key, config.cluster_id, config.endpoint, start)
    card = Card(me, config.name, start, config.version, endpoint, config.secrets)
    links = Links(me, config.entropy)
    floors = {NodeId(p.node_id): Floor(Start(p.floor_start), p.floor_number) for p in memory.peers}
    desk = Desk(
        config=config,
        voice=Voice(config.key, card),
        book=Book(me, config.members),
        links=links,
        membership=Membership(config.members),
        seen=SeenSet(me, floors.items()),
        outbox=Outbox(config.node_no, links),
    )
    if config.has_multicast:
        secret = cast_key(config.secrets[0], config.key, config.cluster_id, start)
        desk.casting = Casting(stream_of(me, secret))
    for peer in memory.peers:
        links.know(NodeId(peer.node_id)).start = Start(peer.start)
        if peer.endpoint is not None:
            desk.learn_all(me, [peer.endpoint])
    return desk


def _query_ended(ended: Ended) -> QueryEnded:
    tally = ended.asked.tally
    answers = tuple((member, vote.data) for member, vote in tally.votes.items())
    verdict, answer = ended.outcome
    return QueryEnded(ended.asked.ticket, verdict, answer, answers, len(tally.members))


def _monotonic(now: Now) -> int:
    return now.monotonic_ms
