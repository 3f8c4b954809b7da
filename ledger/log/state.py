"""What all parts of one node's log share: the log, the vote, what is chosen, who is master.

Every change of it is either durable in the same turn or can be lost without harm.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from quipu.ledger import limits, signing
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.event import U64, Bytes32
from quipu.ledger.log.effects import (
    DropLogFrom,
    EntryChosen,
    LogDurable,
    LogEffects,
    LogInputRefused,
    LogSpoken,
    MasterChanged,
    PutChosen,
    PutConfirmed,
    PutLie,
    PutVote,
    SendLogMessage,
    SerializerConvicted,
    StoreLogEntry,
)
from quipu.ledger.log.entry import LogEntry
from quipu.ledger.log.evidence import Watch, check_log_proof, kept_conviction
from quipu.ledger.log.messages import LogEvidence, LogMessage, encode_log_message
from quipu.ledger.log.quorum import Voters
from quipu.ledger.log.roles import TRANSITIONS, Cause, Role
from quipu.ledger.log.safeguards import ALL, LogSafeguards
from quipu.ledger.log.statements import (
    U32,
    Accepted,
    Lives,
    Promise,
    is_signed,
    sign_accepted,
)
from quipu.ledger.log.suffix import Suffix, decode_base, genesis_base
from quipu.ledger.log.tally import Tally
from quipu.ledger.log.words import NO_INDEX, NOWHERE, Index, Life, Place, Regime
from quipu.ledger.refusals import Reason, Refused, refuse
from quipu.ledger.words import GENESIS_EPOCH, NOT_A_MEMBER, EpochNo, NodeId, NodeNo

NO_DIGEST = bytes(signing.HASH_BYTES)


class Passage(Protocol):
    """Items in the order in which they would stand above those that were given before."""

    def admits(self, items: Sequence[bytes]) -> bool:
        """Whether these may come next; if so they have."""

    def passes(self, items: Sequence[bytes]) -> None:
        """These come next, whatever they name."""


class Gate(Protocol):
    """What a voter asks of what it is to accept: is every event it names in my Model?"""

    @property
    def applied(self) -> Index:
        """What entries up to here led to it knows by itself."""

    def after(self, before: Iterable[LogEntry]) -> Passage:
        """`before` are the entries of one's own log above `applied`."""


@dataclass(frozen=True, slots=True)
class LogSettings:
    cluster_id: bytes
    own_no: NodeNo
    key: signing.KeyPair
    serializers: tuple[NodeNo, ...]  # of the genesis, sorted
    gate: Gate
    entropy: bytes
    verify: signing.Verifier = signing.verify
    guards: LogSafeguards = ALL
    is_awaited: Callable[[], bool] = lambda: False  # somebody here waits for the order
    is_overruled: Callable[[], bool] = lambda: False  # others went on by force, without this node
    check_state: Callable[[bytes], object] = lambda _state: None  # refuses what no base comes with


@dataclass(slots=True)
class SavedLog:
    """What the disk gives back at a start. `recovering`: this disk was made or set back for a node
    that had another one before, and no vote was stored since."""

    life: Life
    recovering: bool = False
    vote: bytes | None = None
    base: bytes | None = None
    state: bytes = b""
    entries: list[bytes] = field(default_factory=list)
    chosen: Index = NO_INDEX
    certificate: tuple[bytes, ...] = ()
    confirmed: dict[Index, tuple[bytes, ...]] = field(default_factory=dict)
    lies: dict[NodeNo, bytes] = field(default_factory=dict)  # the proof of each, by culprit


class VoteRecord(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """All that a voter must never forget."""

    life: U64
    recovering: bool
    promised: U32
    promised_to: U32
    accepted_regime: U32
    accepted_index: U64
    accepted_digest: Bytes32
    lives: Lives


_record: Canonical[VoteRecord] = Canonical(VoteRecord, limits.LOG_STATEMENT_BYTES_MAX)


@dataclass(slots=True)
class LogTurn:
    now_ms: int  # monotonic
    effects: LogEffects = field(default_factory=LogEffects)

    def keep(self, effect: LogDurable) -> None:
        self.effects.durable.append(effect)

    def say(self, effect: LogSpoken) -> None:
        self.effects.spoken.append(effect)

    def send(self, peer: NodeNo, message: LogMessage) -> None:
        self.say(SendLogMessage(peer, encode_log_message(message)))

    def send_all(self, peers: Iterable[NodeNo], message: LogMessage) -> None:
        data = encode_log_message(message)
        for peer in peers:
            self.say(SendLogMessage(peer, data))


class LogState:
    def __init__(self, settings: LogSettings, saved: SavedLog) -> None:
        self.settings = settings
        self.guards = settings.guards
        self.own_no = settings.own_no
        self.epoch = GENESIS_EPOCH
        self.keys: dict[NodeNo, NodeId] = {}
        self.listeners: tuple[NodeNo, ...] = ()
        self.barred: tuple[NodeNo, ...] = ()
        base = saved.base and decode_base(saved.base)
        self.log = Suffix(
            base or genesis_base(settings.cluster_id, settings.serializers), saved.entries
        )
        self.base_state = saved.state
        self.chosen = Index(max(saved.chosen, self.log.base.index))
        self.certificate: tuple[bytes, ...] = saved.certificate
        self.confirmed = dict(saved.confirmed)  # each Confirm above the base, with its proof
        self._restore_vote(saved)
        self.tally = Tally(settings.guards)
        self.watch = Watch()
        self.convictions = {no: kept_conviction(proof) for no, proof in saved.lies.items()}
        self.role = Role.RECOVERING if self.recovering else Role.FOLLOWER
        self.master: NodeNo | None = None
        self.heard_ms: int | None = None  # when the master was heard last
        self.on_chosen: Callable[[LogEntry, LogTurn], None] = lambda _entry, _turn: None
        self._log_changed = self._counted = False
        self._drawn = 0

    def _restore_vote(self, saved: SavedLog) -> None:
        self.life, self.recovering = saved.life, saved.recovering
        self.promised, self.promised_to = Regime(0), NOT_A_MEMBER
        self.accepted, self.accepted_digest = NOWHERE, NO_DIGEST
        self.lives: dict[NodeNo, Life] = {}
        self._vote_changed = saved.recovering
        if saved.vote is None:
            return
        vote = _record.decode(saved.vote)
        self.life = Life(max(saved.life, vote.life + 1)) if saved.recovering else Life(vote.life)
        self.recovering = vote.recovering or saved.recovering
        self.promised, self.promised_to = Regime(vote.promised), NodeNo(vote.promised_to)
        self.accepted = Place(Regime(vote.accepted_regime), Index(vote.accepted_index))
        self.accepted_digest = vote.accepted_digest
        self.lives = {NodeNo(number): Life(life) for number, life in vote.lives}

    # --- who ------------------------------------------------------------------------------------
    @property
    def others(self) -> list[NodeNo]:
        return [number for number in self.listeners if number != self.own_no]

    @property
    def deciding(self) -> Voters:
        """All whose word anything not yet chosen could need, as if one set."""
        return self.log.voters_above(self.chosen)

    @property
    def waits(self) -> bool:
        """It must not give its word: on a disk that is lost it may have given another one."""
        return self.recovering and self.guards.recovery_waits

    @property
    def votes(self) -> bool:
        return not self.waits and self.own_no in self.deciding

    def enrol(
        self,
        epoch: EpochNo,
        keys: dict[NodeNo, NodeId],
        listeners: tuple[NodeNo, ...],
        barred: tuple[NodeNo, ...] = (),
    ) -> None:
        self.epoch, self.keys, self.listeners, self.barred = epoch, keys, listeners, barred

    def become(self, cause: Cause) -> None:
        role = TRANSITIONS.get((self.role, cause))
        assert role is not None, f"{self.role} cannot become anything by {cause}"
        self.role = role

    def follow(self, master: NodeNo | None, turn: LogTurn) -> None:
        if master != self.master:
            self.master = master
            turn.say(MasterChanged(self.promised, master))

    # --- the vote -------------------------------------------------------------------------------
    def promise(self, regime: Regime, node: NodeNo) -> None:
        assert regime >= self.promised
        self.promised, self.promised_to = regime, node
        self._vote_changed = True

    def accept_own(self, place: Place) -> Accepted:
        """Signs for one's own log up to here; cumulative, and never below what was signed."""
        if place >= self.accepted or not self.guards.lower_regime_refused:
            digest = self.log.digest_at(place.index)
            assert digest is not None
            if place != self.accepted or digest != self.accepted_digest:
                self.accepted, self.accepted_digest = place, digest
                self._vote_changed = True
        return sign_accepted(
            self.settings.key,
            self.settings.cluster_id,
            self.epoch,
            self.own_no,
            (self.accepted, self.accepted_digest),
        )

    def said_in(self, regime: int) -> Place | None:
        """What may be said again by who votes no more. Who leaves is the first to know that its
        leaving is chosen, and its word may have been lost on the way."""
        place = self.accepted
        stands = self.log.digest_at(place.index) == self.accepted_digest
        return place if stands and place.regime == regime and not self.waits else None

    def note_life(self, node: NodeNo, life: Life) -> None:
        if life > self.lives.get(node, 0):
            self.lives[node] = life
            self._vote_changed = True

    def set_recovering(self, recovering: bool) -> None:
        self.recovering = recovering
        self._vote_changed = True

    def keep_vote(self, turn: LogTurn) -> None:
        """Once a turn, before anything is said."""
        if self._vote_changed:
            self._vote_changed = False
            turn.keep(PutVote(encode(self.vote_record())))

    def vote_record(self) -> VoteRecord:
        return VoteRecord(
            self.life,
            self.recovering,
            self.promised,
            self.promised_to,
            self.accepted.regime,
            self.accepted.index,
            self.accepted_digest,
            [(int(n), int(life)) for n, life in sorted(self.lives.items())],
        )

    # --- the log --------------------------------------------------------------------------------
    def replace_log(self, log: Suffix) -> None:
        self.log, self._log_changed = log, True
        self.confirmed = {at: p for at, p in self.confirmed.items() if at > log.base.index}

    def proof_above(self, index: int) -> tuple[bytes, ...]:
        """Of the first Confirm that lies above what another node knows to be chosen."""
        return next((proof for at, proof in sorted(self.confirmed.items()) if at > index), ())

    def append(self, data: bytes, turn: LogTurn) -> None:
        held = self.log.append(data)
        self._log_changed = True
        turn.keep(StoreLogEntry(Index(held.entry.index), data))

    def drop_from(self, index: int, turn: LogTurn) -> None:
        assert index > self.chosen, "what is chosen is never dropped"
        self.log.drop_from(index)
        self._log_changed = True
        turn.keep(DropLogFrom(Index(index)))

    def write_from(self, index: int, rows: Sequence[bytes], turn: LogTurn) -> None:
        """Puts these entries at index, index + 1 ...; what is equal there stays as it is."""
        for offset, data in enumerate(rows):
            at = index + offset
            if at <= self.chosen:
                continue
            if self.log.holds(at):
                if self.guards.drop_from_difference and self.log.at(at).data == data:
                    continue
                self.drop_from(at, turn)
            self.append(data, turn)

    def unapplied(self) -> list[LogEntry]:
        """What the gate has to be told: it has not heard of what was chosen in this very step."""
        begun = max(min(self.chosen, self.settings.gate.applied), self.log.base.index)
        return [held.entry for held in self.log.above(begun)]

    # --- counting -------------------------------------------------------------------------------
    def count(self, statement: Accepted, turn: LogTurn) -> None:
        """A statement whose signature is verified."""
        self.see(statement, turn)
        self.tally.add(statement, self.log)
        self._counted = True

    def advance(self, turn: LogTurn) -> bool:
        if self._log_changed:
            self._log_changed, self._counted = False, True
            self.tally.settle(self.log)
        if not self._counted:
            return False
        self._counted = False
        index, proof = self.tally.chosen(self.log, self.chosen)
        if index <= self.chosen:
            return False
        before, self.chosen = self.chosen, index
        fresh = self.log.above(before)[: index - before]
        self.certificate = tuple(encode(statement) for statement in proof)
        for segment in self.log.segments[1:]:
            confirm = Index(segment.start - 1)
            if segment.voters.new is None and before < confirm <= index:
                self.confirmed[confirm] = self.certificate
                turn.keep(PutConfirmed(confirm, self.certificate))
        turn.keep(PutChosen(index, self.certificate))
        for held in fresh:
            turn.say(EntryChosen(held.entry, held.digest))
            self.on_chosen(held.entry, turn)
        return True

    def verified(self, statement: Accepted | Promise) -> bool:
        key = self.keys.get(NodeNo(statement.signer))
        settings = self.settings
        return key is not None and is_signed(statement, settings.cluster_id, key, settings.verify)

    def check_signed(self, statement: Accepted | Promise) -> None:
        if statement.signer not in self.keys:
            refuse(Reason.NOT_A_MEMBER)
        if not self.verified(statement):
            refuse(Reason.BAD_SIGNATURE)

    # --- liars ----------------------------------------------------------------------------------
    def see(self, statement: Accepted | Promise, turn: LogTurn) -> None:
        proof = self.watch.see(statement)
        if proof is not None:
            self.convict(proof, turn)

    def convict(self, proof: bytes, turn: LogTurn) -> None:
        settings = self.settings
        found = check_log_proof(proof, settings.cluster_id, self.keys, settings.verify)
        if found.culprit in self.convictions:
            return
        self.convictions[found.culprit] = found
        turn.keep(PutLie(found.culprit, proof))
        turn.say(SerializerConvicted(found))
        turn.send_all(self.others, LogEvidence(proof))

    def refused(self, peer: NodeNo, refusal: Refused, turn: LogTurn) -> None:
        turn.say(LogInputRefused(peer, refusal.reason, refusal.detail))

    # --- time -----------------------------------------------------------------------------------
    def draw_ms(self, spread_ms: int) -> int:
        """From the entropy that was given: another number each time, the same in each run."""
        self._drawn += 1
        seed = self.settings.entropy + self._drawn.to_bytes(8, "big")
        return int.from_bytes(signing.tagged_hash(b"", seed)[:8], "big") % spread_ms
