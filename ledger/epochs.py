"""Genesis, epoch documents, and who is a member when.

The core takes an opened epoch as an input; how one comes to be opened is decided by the log.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from quipu.ledger import limits, quorum, signing
from quipu.ledger.canonical import Canonical, encode, fits_bytes
from quipu.ledger.entry import is_stream_name
from quipu.ledger.event import U64, Bytes32
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.words import (
    GENESIS_EPOCH,
    Cord,
    EpochNo,
    EventId,
    Hlc,
    Journal,
    NodeId,
    NodeNo,
    Seq,
)

GENESIS_VERSION = 1
EPOCH_VERSION = 1
FORCED_VERSION = (
    EPOCH_VERSION + 1
)  # of an epoch that was opened by force: the mark stays in it for ever

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=limits.NAME_BYTES_MAX)]
Policy = Annotated[str, msgspec.Meta(min_length=1, max_length=limits.POLICY_BYTES_MAX)]
Roles = Annotated[list[Name], msgspec.Meta(max_length=8)]
Salt = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]
StreamNames = Annotated[list[str], msgspec.Meta(max_length=limits.STREAMS_ERASABLE_MAX)]
Number32 = Annotated[int, msgspec.Meta(ge=1, le=2**32 - 1)]


class Founder(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    node_id: Bytes32
    name: Name
    roles: Roles


class Genesis(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    version: U64
    name: Name
    created_ms: U64
    policy: Policy
    members: Annotated[list[Founder], msgspec.Meta(min_length=1, max_length=limits.MEMBERS_MAX)]
    salt: Salt
    streams_erasable: StreamNames  # entries of these carry a salt


class Member(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    node_no: Number32
    node_id: Bytes32
    name: Name
    roles: Roles


class CutRow(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The last event of a cord that this cut makes Read."""

    author_no: Number32
    journal: U64
    seq: U64
    id: Bytes32


class EpochDocument(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    version: U64
    cluster_id: Bytes32
    number: U64
    previous: Bytes32  # hash of the document before; the cluster id for epoch 2
    attempt: U64
    policy: Policy
    members: Annotated[list[Member], msgspec.Meta(min_length=1, max_length=limits.MEMBERS_MAX)]
    streams_erasable: StreamNames
    cut: Annotated[list[CutRow], msgspec.Meta(max_length=limits.CUT_ROWS_MAX)]
    cut_hlc: U64  # the greatest hlc in the cut

    @property
    def forced(self) -> bool:
        """Opened by an operator's word, perhaps without enough seals."""
        return self.version == FORCED_VERSION


_genesis = Canonical(Genesis, limits.EPOCH_BYTES_MAX)
_documents = Canonical(EpochDocument, limits.EPOCH_BYTES_MAX)


def decode_genesis(data: bytes) -> Genesis:
    genesis = _genesis.decode(data)
    if genesis.version != GENESIS_VERSION:
        refuse(Reason.UNKNOWN_VERSION, f"genesis version {genesis.version}")
    if not fits_bytes(genesis.name, limits.NAME_BYTES_MAX):
        refuse(Reason.MALFORMED, "cluster name")
    _check_roster(genesis.policy, genesis.members)
    _check_streams(genesis.streams_erasable)
    return genesis


def decode_document(data: bytes) -> EpochDocument:
    document = _documents.decode(data)
    if document.version not in (EPOCH_VERSION, FORCED_VERSION):
        refuse(Reason.UNKNOWN_VERSION, f"epoch document version {document.version}")
    if document.number <= GENESIS_EPOCH:
        refuse(Reason.MALFORMED, "epoch 1 is the genesis")
    _check_roster(document.policy, document.members)
    numbers = [member.node_no for member in document.members]
    if sorted(set(numbers)) != numbers:
        refuse(Reason.MALFORMED, "members are sorted by number")
    # The cut of a cord with two certified branches has a row for each.
    rows = [(row.author_no, row.journal, row.seq, row.id) for row in document.cut]
    if sorted(set(rows)) != rows:
        refuse(Reason.BAD_ROWS, "cut rows are sorted and unique")
    if any(row.seq < 1 for row in document.cut):
        refuse(Reason.BAD_ROWS, "seq 0")
    _check_streams(document.streams_erasable)
    return document


def _check_streams(streams: list[str]) -> None:
    if sorted(set(streams)) != streams or not all(map(is_stream_name, streams)):
        refuse(Reason.MALFORMED, "erasable streams are names, sorted and unique")


def _check_roster(policy: str, members: Sequence[Founder] | Sequence[Member]) -> None:
    if len({member.node_id for member in members}) != len(members):
        refuse(Reason.MALFORMED, "a member stands twice")
    for member in members:
        if not all(
            fits_bytes(text, limits.NAME_BYTES_MAX) for text in (member.name, *member.roles)
        ):
            refuse(Reason.MALFORMED, "name or role")
    quorum.max_confirms(policy, len(members))


def cluster_id_of(genesis_bytes: bytes) -> bytes:
    return signing.tagged_hash(signing.TAG_GENESIS, genesis_bytes)


def document_hash(document_bytes: bytes) -> bytes:
    return signing.tagged_hash(signing.TAG_EPOCH, document_bytes)


def close_hash(document: EpochDocument) -> bytes:
    """What a SEAL names: the next roster, but not the cut that only the seals decide."""
    promised: list[object] = [
        document.cluster_id,
        document.number,
        document.previous,
        document.attempt,
        document.policy,
        document.members,
        document.streams_erasable,
    ]
    if document.forced:  # who seals another epoch has not sealed this one
        promised.append(True)
    return signing.tagged_hash(signing.TAG_CLOSE, encode(promised))


@dataclass(frozen=True, slots=True)
class Epoch:
    """A roster and what is needed of it at every event."""

    number: EpochNo
    policy: str
    members: dict[NodeNo, NodeId]
    numbers: dict[NodeId, NodeNo]
    max_confirms: int
    streams_erasable: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, number: int, policy: str, members: Sequence[Member], streams: Sequence[str] = ()
    ) -> "Epoch":
        return cls(
            number=EpochNo(number),
            policy=policy,
            members={NodeNo(m.node_no): NodeId(m.node_id) for m in members},
            numbers={NodeId(m.node_id): NodeNo(m.node_no) for m in members},
            max_confirms=quorum.max_confirms(policy, len(members)),
            streams_erasable=frozenset(streams),
        )

    @property
    def witnesses_needed(self) -> int:
        return quorum.witnesses_needed(self.policy, len(self.members))


def genesis_epoch(genesis: Genesis) -> Epoch:
    members = [
        Member(number, founder.node_id, founder.name, founder.roles)
        for number, founder in enumerate(genesis.members, start=1)
    ]
    return Epoch.of(GENESIS_EPOCH, genesis.policy, members, genesis.streams_erasable)


@dataclass(slots=True)
class Epochs:
    """Every epoch opened here. Numbers and node ids pair one to one for ever."""

    cluster_id: bytes
    by_number: dict[EpochNo, Epoch]
    newest: Epoch
    newest_hash: bytes
    cut_hlc: Hlc = Hlc(0)
    node_numbers: dict[NodeId, NodeNo] = field(default_factory=dict)
    node_ids: dict[NodeNo, NodeId] = field(default_factory=dict)
    forced: list[EpochNo] = field(default_factory=list)  # opened by force

    @classmethod
    def from_genesis(cls, genesis_bytes: bytes) -> "Epochs":
        first = genesis_epoch(decode_genesis(genesis_bytes))
        cluster_id = cluster_id_of(genesis_bytes)
        return cls(
            cluster_id,
            {first.number: first},
            first,
            cluster_id,
            node_numbers=dict(first.numbers),
            node_ids=dict(first.members),
        )

    def open(self, document_bytes: bytes) -> tuple[Epoch, list[tuple[Cord, Seq, EventId]]]:
        """Takes the next document; answers the epoch and the rows of its cut."""
        document = decode_document(document_bytes)
        if document.cluster_id != self.cluster_id:
            refuse(Reason.WRONG_CLUSTER)
        if document.number != self.newest.number + 1 or document.previous != self.newest_hash:
            refuse(Reason.EPOCH_UNKNOWN, f"epoch {document.number} does not follow")
        for member in document.members:
            known = self.node_ids.get(NodeNo(member.node_no))
            number = self.node_numbers.get(NodeId(member.node_id))
            if (known or number) and (known != member.node_id or number != member.node_no):
                refuse(Reason.MALFORMED, "a node number is never used again")
        epoch = Epoch.of(
            document.number, document.policy, document.members, document.streams_erasable
        )
        self.by_number[epoch.number] = epoch
        self.newest = epoch
        if document.forced:
            self.forced.append(epoch.number)
        self.newest_hash = document_hash(document_bytes)
        self.cut_hlc = max(self.cut_hlc, Hlc(document.cut_hlc))
        self.node_numbers.update(epoch.numbers)
        self.node_ids.update(epoch.members)
        rows = [
            (Cord(NodeNo(row.author_no), Journal(row.journal)), Seq(row.seq), EventId(row.id))
            for row in document.cut
        ]
        return epoch, rows
