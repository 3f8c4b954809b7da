"""One node's part in the protocol of seed 000: it asks its neighbours who they are and how far the
sequence is, and is at work once it has taken over the highest certified number.

The number is the index that is chosen in the log, of which all sequences are a function; ACCEPTED
of a majority prove it. It knows no link and no clock: who is a neighbour and what time it is are
given. Nodes compare digests at the same marks: who differs from a majority is ERR.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Annotated

import msgspec

from quipu.ledger import limits
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.event import U64, Bytes32
from quipu.ledger.log.quorum import have_majority, reached
from quipu.ledger.log.state import LogState
from quipu.ledger.log.statements import decode_accepted
from quipu.ledger.messages import Number32
from quipu.ledger.order.discovery import Happening, NodeState, next_state
from quipu.ledger.refusals import Refused
from quipu.ledger.words import NodeId, NodeNo

Statements = Annotated[list[bytes], msgspec.Meta(max_length=limits.LOG_STATEMENTS_MAX)]
KINDS = range(18, 22)


class StateNo(IntEnum):
    DSC = 1
    WRK = 2
    ERR = 3


class Neighbour(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    number: Number32
    node_id: Bytes32


class Mark(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What the log up to an index has led to: equal on every node."""

    index: U64
    digest: Bytes32


class DscReq(msgspec.Struct, array_like=True, frozen=True, tag=18, forbid_unknown_fields=True):
    """Who I am: number and node id, which the link proves, and my state."""

    number: Number32
    node_id: Bytes32
    state: StateNo


class DscRes(msgspec.Struct, array_like=True, frozen=True, tag=19, forbid_unknown_fields=True):
    """My state, and whom I know."""

    state: StateNo
    neighbours: Annotated[list[Neighbour], msgspec.Meta(max_length=limits.NEIGHBOURS_MAX)]


class SeqRes(msgspec.Struct, array_like=True, frozen=True, tag=20, forbid_unknown_fields=True):
    """How far is the sequence?"""

    state: StateNo


class Seq(msgspec.Struct, array_like=True, frozen=True, tag=21, forbid_unknown_fields=True):
    """So far, with the running digest of the log and the ACCEPTED that prove it; all up to
    `applied` is processed here, in order, and the marks say to what it has led."""

    number: U64
    digest: Bytes32
    certificate: Statements
    applied: U64
    marks: Annotated[list[Mark], msgspec.Meta(max_length=limits.MARKS_KEPT)]


Discovered = DscReq | DscRes | SeqRes | Seq
_codec: Canonical[Discovered] = Canonical(Discovered, limits.DISCOVERY_BYTES_MAX)  # type: ignore[arg-type]


def is_discovery(data: bytes) -> bool:
    """By its first bytes: an array whose first field is one of these kinds."""
    return len(data) > 1 and data[0] >> 4 == 9 and data[1] in KINDS


def decode_discovery(data: bytes) -> Discovered:
    return _codec.decode(data)


@dataclass(slots=True)
class Noted:
    """What is known of a neighbour."""

    state: NodeState = NodeState.DSC
    number: int | None = None  # the highest that it has proven
    marks: dict[int, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class Discovering:
    """Invariant: WRK once a majority of serializers, this node among them where it is one, has told
    its number, and all up to the highest proven one is applied here; ERR for ever once a majority
    has another digest at a mark of this node."""

    node_id: NodeId
    log: LogState
    state: NodeState = NodeState.DSC
    noted: dict[NodeNo, Noted] = field(default_factory=dict)
    known: dict[NodeNo, NodeId] = field(default_factory=dict)
    marks: dict[int, bytes] = field(default_factory=dict)  # newest last
    applied: int = 0
    _asked_ms: int | None = None

    # --- this node ------------------------------------------------------------------------------
    def has_applied(self, index: int, digest: bytes | None) -> None:
        """`digest`: of what it has led to, at a mark; None between two."""
        self.applied = index
        if digest is not None:
            self.marks[index] = digest
            while len(self.marks) > limits.MARKS_KEPT:
                del self.marks[next(iter(self.marks))]
        self._settle()

    def meet(self, roster: Mapping[NodeNo, NodeId]) -> None:
        """The neighbours that were fixed beforehand."""
        self.known.update((n, i) for n, i in sorted(roster.items()) if i != self.node_id)
        self._settle()

    @property
    def is_alone(self) -> bool:
        return self.log.log.voters.all == (self.log.own_no,)

    # --- time -----------------------------------------------------------------------------------
    def next_deadline(self, now_ms: int) -> int | None:
        """None: it has no neighbours."""
        if not self.known:
            return None
        return now_ms if self._asked_ms is None else self._asked_ms + self._pace_ms()

    def _pace_ms(self) -> int:
        at_work = self.state is NodeState.WRK
        return limits.COMPARE_MS if at_work else limits.DISCOVER_MS

    def tick(self, now_ms: int) -> list[tuple[NodeNo, bytes]]:
        """DSCREQ to each neighbour that has not answered, SEQRES to each that has."""
        self._settle()
        due = self.next_deadline(now_ms)
        if due is None or now_ms < due:
            return []
        self._asked_ms = now_ms
        return [(number, self._question(number)) for number in self.known]

    def _question(self, number: NodeNo) -> bytes:
        if number in self.noted:
            return encode(SeqRes(_no(self.state)))
        return encode(DscReq(self.log.own_no, self.node_id, _no(self.state)))

    # --- messages -------------------------------------------------------------------------------
    def hear(self, peer: NodeNo, data: bytes) -> list[tuple[NodeNo, bytes]]:
        """Raises `Refused` for what is none of these messages."""
        message = decode_discovery(data)
        noted = self.noted.setdefault(peer, Noted())
        match message:
            case DscReq():
                noted.state = NodeState(message.state.name)
                self.known.setdefault(peer, NodeId(message.node_id))
                rows = [Neighbour(n, i) for n, i in sorted(self.known.items()) if n != peer]
                kept = rows[: limits.NEIGHBOURS_MAX]
                return [(peer, encode(DscRes(_no(self.state), kept)))]
            case DscRes():
                noted.state = NodeState(message.state.name)
                for row in message.neighbours:
                    if row.node_id != self.node_id and row.number in self.log.keys:
                        self.known.setdefault(NodeNo(row.number), NodeId(row.node_id))
                return [(peer, encode(SeqRes(_no(self.state))))]
            case SeqRes():
                # Who asks has discovered: it is noted as at work, unless it says that it errs.
                err = message.state is StateNo.ERR
                noted.state = NodeState.ERR if err else NodeState.WRK
                return [(peer, encode(self.seq()))]
            case Seq():
                if self._is_proven(message):
                    noted.number = max(message.number, noted.number or 0)
                noted.marks = {mark.index: mark.digest for mark in message.marks}
                self._settle()
                return []

    def seq(self) -> Seq:
        log = self.log
        digest = log.log.digest_at(log.chosen)
        assert digest is not None
        marks = [Mark(index, found) for index, found in self.marks.items()]
        return Seq(log.chosen, digest, list(log.certificate), self.applied, marks)

    def _is_proven(self, message: Seq) -> bool:
        """By a majority of the serializers that this node knows of."""
        if message.number <= self.log.log.base.index:
            return True  # all below was chosen
        levels: dict[NodeNo, int] = {}
        for data in message.certificate:
            try:
                statement = decode_accepted(data)
                self.log.check_signed(statement)
            except Refused:
                return False
            if statement.index == message.number and statement.digest != message.digest:
                return False
            levels[NodeNo(statement.signer)] = statement.index
        return reached(self.log.log.voters, levels) >= message.number

    # --- states ---------------------------------------------------------------------------------
    def _settle(self) -> None:
        if self._differs():
            self._move(Happening.DIFFERS)
        elif self.state is NodeState.DSC and self.is_alone:
            self._move(Happening.ALONE)
        elif self.state is NodeState.DSC and self._has_learned():
            self._move(Happening.LEARNED)

    def _move(self, happening: Happening) -> None:
        self.state = next_state(self.state, happening)

    def _has_learned(self) -> bool:
        voters = self.log.log.voters
        told = {n: noted.number for n, noted in self.noted.items() if noted.number is not None}
        saying = {*told, self.log.own_no}
        return have_majority(voters, saying) and self.applied >= max(told.values(), default=0)

    def _differs(self) -> bool:
        """A majority of the serializers has another digest at a mark of this node."""
        for index, own in self.marks.items():
            others: dict[bytes, list[NodeNo]] = {}
            for number, noted in self.noted.items():
                found = noted.marks.get(index)
                if found is not None and found != own:
                    others.setdefault(found, []).append(number)
            for agreeing in others.values():
                if have_majority(self.log.log.voters, set(agreeing)):
                    return True
        return False


def _no(state: NodeState) -> StateNo:
    return StateNo[state.name]
