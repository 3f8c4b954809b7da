"""The roster over the log: which epoch is open, and which CLOSE waits for its OPEN.

A pure function of the items, in their order: an item that is not valid after those before it
changes nothing, on every node alike. One change is in flight.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from quipu.ledger import limits, quorum
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.epochs import Epoch, EpochDocument, Member, close_hash, decode_document
from quipu.ledger.event import U64, Bytes32
from quipu.ledger.log.entry import LogEntry
from quipu.ledger.log.serializers import forced_in
from quipu.ledger.log.words import NO_INDEX, Index
from quipu.ledger.order.changes import (
    Close,
    Open,
    RosterItem,
    check_enough,
    check_open,
    check_readies,
    read_change,
)
from quipu.ledger.order.cut import CutTerms
from quipu.ledger.order.safeguards import ALL, RosterSafeguards
from quipu.ledger.order.wishes import Ended, Ending, Wish, Wished, WishEnded, check_wish
from quipu.ledger.refusals import Reason, Refused, refuse
from quipu.ledger.seals import are_enough
from quipu.ledger.signing import Verifier
from quipu.ledger.standing import FIRST_ATTEMPT, Standing
from quipu.ledger.words import NodeId, NodeNo


class Pending(NamedTuple):
    """A CLOSE that is ordered."""

    document: EpochDocument  # without its cut
    close: bytes
    at_ms: int

    @classmethod
    def of(cls, data: bytes, at_ms: int) -> "Pending":
        document = decode_document(data)
        return cls(document, close_hash(document), at_ms)

    def is_stale(self, at_ms: int) -> bool:
        """Whether it may be replaced: by then it should have found its OPEN."""
        return at_ms >= self.at_ms + limits.CLOSE_STALE_MS


class Opened(NamedTuple):
    document: bytes
    seals: tuple[bytes, ...]


class RosterRecord(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The state that goes with a base of the log."""

    number: U64
    hash: Bytes32
    policy: str
    members: list[Member]
    streams_erasable: list[str]
    cut_hlc: U64
    numbers: list[tuple[int, Bytes32]]  # of all who ever were members
    pending: tuple[bytes, int] | None  # document and time of a CLOSE
    wish: Wish | None
    ended: tuple[Bytes32, str, list[Bytes32]] | None  # the newest wish that is in flight no more


class ForcedRosterRecord(RosterRecord, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The same where members were put out by force, so that older programs refuse it."""

    forced: list[int]
    barred: list[int]


_record = Canonical(RosterRecord, limits.CHANGE_STATE_BYTES_MAX)
_forced_record = Canonical(ForcedRosterRecord, limits.CHANGE_STATE_BYTES_MAX)
_FORCED_HEAD = b"\x9c"  # twelve fields


class RosterState(NamedTuple):
    standing: Standing
    numbers: dict[NodeId, NodeNo]
    pending: Pending | None = None
    opened: Opened | None = None  # the newest OPEN that was seen as an item
    wish: Wished | None = None  # what an operator wants, until it is so or has ended
    ended: Ended | None = None
    forced: tuple[NodeNo, ...] = ()  # by force these alone vote, and make the next epoch
    barred: tuple[NodeNo, ...] = ()  # put out by force, and not taken in again

    @classmethod
    def of_genesis(cls, genesis: bytes) -> "RosterState":
        standing = Standing.of(genesis, ())
        return cls(standing, {NodeId(m.node_id): NodeNo(m.node_no) for m in standing.members})

    @classmethod
    def decode(cls, data: bytes, cluster_id: bytes) -> "RosterState":
        codec = _forced_record if data.startswith(_FORCED_HEAD) else _record
        record: RosterRecord = codec.decode(data)
        standing = Standing(
            cluster_id,
            record.number,
            record.hash,
            record.policy,
            tuple(record.members),
            tuple(record.streams_erasable),
            record.cut_hlc,
        )
        numbers = {NodeId(node_id): NodeNo(number) for number, node_id in record.numbers}
        ended = None
        if record.ended is not None:
            identity, how, nodes = record.ended
            ended = Ended(identity, how, tuple(map(NodeId, nodes)))
        return cls(
            standing,
            numbers,
            record.pending and Pending.of(*record.pending),
            wish=None if record.wish is None else Wished.of(record.wish),
            ended=ended,
            forced=_numbers(record.forced) if isinstance(record, ForcedRosterRecord) else (),
            barred=_numbers(record.barred) if isinstance(record, ForcedRosterRecord) else (),
        )

    def encode(self) -> bytes:
        standing, pending, ended = self.standing, self.pending, self.ended
        record = RosterRecord(
            standing.number,
            standing.hash,
            standing.policy,
            list(standing.members),
            list(standing.streams_erasable),
            standing.cut_hlc,
            sorted((int(number), node_id) for node_id, number in self.numbers.items()),
            None if pending is None else (encode(pending.document), pending.at_ms),
            None if self.wish is None else self.wish.wish,
            None if ended is None else (ended.id, ended.how, list(ended.nodes)),
        )
        if self.forced or self.barred:
            fields = msgspec.structs.asdict(record)
            record = ForcedRosterRecord(
                **fields, forced=list(self.forced), barred=list(self.barred)
            )
        return encode(record)

    @property
    def epoch(self) -> Epoch:
        standing = self.standing
        return Epoch.of(standing.number, standing.policy, standing.members)

    # --- what may come next ---------------------------------------------------------------------
    def next_document(self, members: Iterable[Member], policy: str) -> EpochDocument:
        """With this roster; an attempt above the one that found no OPEN."""
        attempt = FIRST_ATTEMPT
        if self.pending is not None:
            attempt = self.pending.document.attempt + 1
        return msgspec.structs.replace(
            self.standing.next_document(self.is_forced(attempt)),
            attempt=attempt,
            policy=policy,
            members=sorted(members, key=lambda member: member.node_no),
        )

    def is_forced(self, attempt: int) -> bool:
        """Whether the next epoch is marked: by force, or under `two-thirds` where another CLOSE
        found no OPEN, so that two of them may have been sealed."""
        again = attempt > FIRST_ATTEMPT and self.standing.policy == quorum.TWO_THIRDS
        return bool(self.forced) or again

    def number_for(self, newcomers: int) -> NodeNo:
        """For the next node that never was a member; so many have got theirs in this change."""
        return NodeNo(max(self.numbers.values()) + 1 + newcomers)

    # --- what comes -----------------------------------------------------------------------------
    def after_force(self, nodes: tuple[NodeNo, ...]) -> "RosterState":
        """An operator has said that all others are lost for ever."""
        others = {NodeNo(member.node_no) for member in self.standing.members} - set(nodes)
        return self._replace(forced=nodes, barred=tuple(sorted({*self.barred, *others})))

    def after(
        self, item: RosterItem, verify: Verifier, guards: RosterSafeguards = ALL
    ) -> "RosterState":
        """The state after this item, or a refusal: then it changes nothing."""
        match item:
            case Close():
                return self._closed(item, verify)
            case Wish():
                return self._wished(item)
            case WishEnded():
                return self._ended(item)
        self.check_open(item, verify, guards)
        return self._opened(item)

    def _opened(self, item: Open) -> "RosterState":
        document, wish, ended = decode_document(item.document), self.wish, self.ended
        if wish is not None and wish.is_of(document):
            ended, wish = Ended(wish.id, Ending.DONE), None
        numbers = {NodeId(m.node_id): NodeNo(m.node_no) for m in document.members}
        return RosterState(
            self.standing.after(item.document),
            {**self.numbers, **numbers},
            None,
            Opened(item.document, tuple(item.seals)),
            wish,
            ended,
            barred=tuple(number for number in self.barred if number not in numbers.values()),
        )

    def _wished(self, item: Wish) -> "RosterState":
        """While there is another one it waits for its end; a CLOSE without an OPEN is overtaken."""
        check_wish(item)
        wish, ended, pending = self.wish, self.ended, self.pending
        if wish is not None:
            if pending is None or not pending.is_stale(item.at_ms):
                refuse(Reason.CHANGE_IN_FLIGHT, "another wish")
            ended = Ended(wish.id, Ending.REPLACED)
        return self._replace(wish=Wished.of(item), ended=ended)

    def _ended(self, item: WishEnded) -> "RosterState":
        if self.wish is None or self.wish.id != item.wish or self.is_closing_for_wish:
            refuse(Reason.NO_PROOF, "no such wish can be ended")
        ended = Ended(item.wish, item.reason, tuple(map(NodeId, item.nodes)))
        return self._replace(wish=None, ended=ended)

    @property
    def is_closing_for_wish(self) -> bool:
        pending, wish = self.pending, self.wish
        return pending is not None and wish is not None and wish.is_of(pending.document)

    def _closed(self, item: Close, verify: Verifier) -> "RosterState":
        pending = Pending.of(item.document, item.at_ms)
        document, before = pending.document, self.pending
        if document.cut or document.cut_hlc != self.standing.cut_hlc:
            refuse(Reason.BAD_ROWS, "a CLOSE has no cut")
        self._check_follows(document)
        if document.attempt != (FIRST_ATTEMPT if before is None else before.document.attempt + 1):
            refuse(Reason.CHANGE_IN_FLIGHT, f"attempt {document.attempt}")
        if document.forced != self.is_forced(document.attempt):
            refuse(Reason.NO_PROOF, "forced, and not marked so; or marked, and nobody forced it")
        if self.forced:
            self._check_forced(document)
            return self._replace(pending=pending)
        if before is not None and not before.is_stale(item.at_ms):
            refuse(Reason.CHANGE_IN_FLIGHT, "the CLOSE before it may find its OPEN still")
        check_readies(item, document, verify)
        return self._replace(pending=pending)

    def _check_forced(self, document: EpochDocument) -> None:
        if tuple(member.node_no for member in document.members) != self.forced:
            refuse(Reason.NO_PROOF, "a forced epoch is of those who vote by force")

    def _check_follows(self, document: EpochDocument) -> None:
        standing = self.standing
        if document.cluster_id != standing.cluster_id:
            refuse(Reason.WRONG_CLUSTER)
        if (document.number, document.previous) != (standing.number + 1, standing.hash):
            refuse(Reason.EPOCH_UNKNOWN, f"epoch {document.number} does not follow")
        newcomers = 0
        for member in document.members:
            number = self.numbers.get(NodeId(member.node_id))
            if number is None:
                number = self.number_for(newcomers)
                newcomers += 1
            if number != member.node_no:
                refuse(Reason.MALFORMED, "node numbers go on, and none is used again")

    def check_open(self, item: Open, verify: Verifier, guards: RosterSafeguards) -> CutTerms:
        """What the cut of this OPEN must be a function of, or a refusal."""
        document, pending = decode_document(item.document), self.pending
        if pending is None or document.number != pending.document.number:
            refuse(Reason.NO_PROOF, "an OPEN without its CLOSE")
        if close_hash(document) != pending.close and guards.older_attempt_void:
            refuse(Reason.NO_PROOF, "the CLOSE of this OPEN was replaced")
        terms, holders = check_open(item, document, self.epoch, self.numbers, verify)
        if not self.forced and not are_enough(len(terms.seals), terms.epoch):
            refuse(Reason.NO_PROOF, f"{len(terms.seals)} seals")
        if guards.cut_held_first:
            check_enough(holders, document, "receipts over the cut")
        return terms


def _numbers(said: list[int]) -> tuple[NodeNo, ...]:
    return tuple(map(NodeNo, said))


@dataclass(slots=True)
class RosterBook:
    """The state of this node, which knows the log up to `applied`."""

    state: RosterState
    verify: Verifier
    guards: RosterSafeguards = ALL
    applied: Index = NO_INDEX
    changes: int = 0  # of the state, since this book was opened
    _before: list[tuple[Index, RosterState]] = field(default_factory=list)  # and up to where

    def state_at(self, index: Index) -> RosterState:
        """After the entries up to this one; nobody asks for an older one any more."""
        while self._before and self._before[0][0] <= index:
            self._before.pop(0)
        return self._before[0][1] if self._before else self.state

    def chosen(self, entry: LogEntry) -> None:
        before = self.state
        forced = forced_in(entry)
        if forced:
            self.state = self.state.after_force(forced)
        for data in entry.items:
            item = read_change(data)
            if item is None:
                continue
            try:
                self.state = self.state.after(item, self.verify, self.guards)
            except Refused:
                continue  # void, on every node alike
        self.applied = Index(entry.index)
        if self.state is not before:
            self.changes += 1
            self._before.append((self.applied, before))

    def rebased(self, index: Index, state: RosterState) -> None:
        """The state at the base of a log came in place of its entries."""
        self.applied, self.state = index, state
        self.changes += 1
        self._before.clear()
