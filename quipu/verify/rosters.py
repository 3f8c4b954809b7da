"""Who is a member when: the genesis and the epoch documents, each sealed by the epoch before."""

import re
from dataclasses import dataclass
from itertools import pairwise

import msgpack

from quipu.verify.values import (
    CUT_ROWS_MAX,
    DOCUMENT_BYTES_MAX,
    INV_BYTES_MAX,
    INV_ROWS_MAX,
    MEMBERS_MAX,
    NAME_BYTES_MAX,
    POLICY_CHARACTERS_MAX,
    ROLES_MAX,
    STREAMS_ERASABLE_MAX,
    U32,
    U64,
    array_of,
    bytes_of,
    decoded,
    fail,
    int_of,
    is_signed,
    list_of,
    need,
    stream_of,
    tagged,
    text_of,
)

_POLICY_NUMBER = re.compile(r"(0|[1-9][0-9]*)\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Member:
    number: int
    node_id: bytes
    name: str


@dataclass(frozen=True, slots=True)
class Epoch:
    number: int
    policy: str
    members: dict[int, Member]

    @property
    def numbers(self) -> dict[bytes, int]:
        return {member.node_id: number for number, member in self.members.items()}

    @property
    def confirms(self) -> int:
        return confirms_needed(self.policy, len(self.members))


def confirms_needed(policy: str, n: int) -> int:
    """How many receipts beside the author's make an event final."""
    named = {"majority": n // 2, "two-thirds": 2 * n // 3, "all": n - 1}
    if policy in named:
        return named[policy]
    need(_POLICY_NUMBER.match(policy) is not None, "policy is not known")
    number = int(policy)
    need(number < n and (number > 0 or n == 1), "policy does not fit the roster")
    return number


def seals_needed(policy: str, n: int) -> int:
    if policy == "two-thirds":
        return 2 * n // 3 + 1
    return max(n // 2 + 1, n - confirms_needed(policy, n))


def _policy(value: object) -> str:
    text = text_of(value, 4 * POLICY_CHARACTERS_MAX, "policy")
    need(len(text) <= POLICY_CHARACTERS_MAX, "policy is too long")
    return text


def _members(value: object, numbered: bool) -> dict[int, Member]:
    members: dict[int, Member] = {}
    for row in list_of(value, MEMBERS_MAX, "members"):
        *numbers, identity, named, roles = array_of(row, 4 if numbered else 3, "member")
        number = int_of(numbers[0], U32, "node number", 1) if numbered else len(members) + 1
        node_id = bytes_of(identity, "node id", 32)
        name = text_of(named, NAME_BYTES_MAX, "node name")
        for role in list_of(roles, ROLES_MAX, "roles"):
            text_of(role, NAME_BYTES_MAX, "role")
        need(not members or number > max(members), "members are not sorted")
        need(all(m.node_id != node_id for m in members.values()), "a member stands twice")
        members[number] = Member(number, node_id, name)
    need(bool(members), "no members")
    return members


def read_genesis(data: bytes) -> tuple[bytes, str, Epoch]:
    """The cluster id, the cluster's name, and its first epoch."""
    fields = array_of(decoded(data, DOCUMENT_BYTES_MAX, "genesis"), 7, "genesis")
    need(int_of(fields[0], U64, "genesis version") == 1, "genesis version is unknown")
    name = text_of(fields[1], NAME_BYTES_MAX, "cluster name")
    int_of(fields[2], U64, "genesis time")
    policy = _policy(fields[3])
    members = _members(fields[4], numbered=False)
    bytes_of(fields[5], "genesis salt", 16)
    _check_streams(fields[6])
    confirms_needed(policy, len(members))
    return tagged("genesis", data), name, Epoch(1, policy, members)


CutRow = tuple[int, int, int, bytes]
FORCED_VERSION = 2  # of the document of an epoch that needed no seals but one


class Lineage:
    """The epochs of a bundle, each sealed by the one before."""

    def __init__(self, cluster_id: bytes, first: Epoch) -> None:
        self.cluster_id = cluster_id
        self.epochs = {1: first}
        self.number_of = first.numbers
        self.newest = first
        self.cut: list[CutRow] = []
        self.forced: list[int] = []  # epochs opened by an operator's word
        self.seals: dict[int, Inv] = {}
        self._hash = cluster_id

    def follow(self, sealed: object) -> None:
        document, seals = array_of(sealed, 2, "sealed document")
        data = bytes_of(document, "epoch document")
        fields = array_of(decoded(data, DOCUMENT_BYTES_MAX, "epoch document"), 10, "epoch document")
        version = int_of(fields[0], U64, "document version")
        need(version in (1, FORCED_VERSION), "document version is unknown")
        need(
            bytes_of(fields[1], "cluster id", 32) == self.cluster_id, "document of another cluster"
        )
        follows = int_of(fields[2], U64, "epoch number") == self.newest.number + 1
        need(follows, "epoch documents do not follow each other")
        need(bytes_of(fields[3], "previous", 32) == self._hash, "document names another before it")
        int_of(fields[4], U64, "attempt")
        policy = _policy(fields[5])
        members = _members(fields[6], numbered=True)
        confirms_needed(policy, len(members))
        _check_streams(fields[7])
        self.cut = _cut_rows(fields[8])
        int_of(fields[9], U64, "cut hlc")
        forced = version == FORCED_VERSION
        promised = [*fields[1:8], True] if forced else fields[1:8]
        close = tagged("close", msgpack.packb(promised))
        self.seals = self._checked_seals(seals, close, 1 if forced else None)
        self._number(members)
        self.newest = Epoch(self.newest.number + 1, policy, members)
        if forced:
            self.forced.append(self.newest.number)
        self.epochs[self.newest.number] = self.newest
        self._hash = tagged("epoch", data)

    def _checked_seals(self, value: object, close: bytes, needed: int | None) -> "dict[int, Inv]":
        sealers: dict[int, Inv] = {}
        for item in list_of(value, MEMBERS_MAX, "seals"):
            seal = read_inv(item, self.cluster_id, self.newest)
            need(seal.close == close, "a seal of something else")
            need(seal.number not in sealers, "two seals of one member")
            sealers[seal.number] = seal
        if needed is None:
            needed = seals_needed(self.newest.policy, len(self.newest.members))
        need(len(sealers) >= needed, f"{len(sealers)} seals, {needed} needed")
        return sealers

    def _number(self, members: dict[int, Member]) -> None:
        taken = {number: node_id for node_id, number in self.number_of.items()}
        for number, member in members.items():
            own = self.number_of.get(member.node_id, number)
            once = own == number and taken.get(number, member.node_id) == member.node_id
            need(once, "a node number is used again")
            self.number_of[member.node_id] = number


def _check_streams(value: object) -> None:
    streams = list_of(value, STREAMS_ERASABLE_MAX, "erasable streams")
    names = [stream_of(stream) for stream in streams]
    need(all(a < b for a, b in pairwise(names)), "erasable streams are not sorted")


def _cut_rows(value: object) -> list[CutRow]:
    rows = [_row(row) for row in list_of(value, CUT_ROWS_MAX, "cut")]
    need(all(a < b for a, b in pairwise(rows)), "cut rows are not sorted")
    return rows


def _row(value: object) -> CutRow:
    author_no, journal, seq, identity = array_of(value, 4, "row")
    return (
        int_of(author_no, U32, "author number", 1),
        int_of(journal, U64, "journal"),
        int_of(seq, U64, "seq", 1),
        bytes_of(identity, "event id", 32),
    )


@dataclass(frozen=True, slots=True)
class Inv:
    number: int  # of the member that signed
    close: bytes | None
    rows: list[CutRow]


def read_inv(value: object, cluster_id: bytes, epoch: Epoch) -> Inv:
    """A receipt that a member of this epoch signed in it."""
    data = bytes_of(value, "receipt")
    fields = array_of(decoded(data, INV_BYTES_MAX, "receipt"), 8, "receipt")
    need(int_of(fields[0], U64, "receipt version") == 1, "receipt version is unknown")
    need(bytes_of(fields[1], "cluster id", 32) == cluster_id, "receipt of another cluster")
    signer = bytes_of(fields[2], "signer", 32)
    need(int_of(fields[3], U64, "epoch") == epoch.number, "receipt of another epoch")
    int_of(fields[4], U64, "receipt number")
    close = None if fields[5] is None else bytes_of(fields[5], "close", 32)
    rows = [_row(row) for row in list_of(fields[6], INV_ROWS_MAX, "rows")]
    need(all(a[:2] < b[:2] for a, b in pairwise(rows)), "receipt rows are not sorted")
    signature = bytes_of(fields[7], "signature", 64)
    number = epoch.numbers.get(signer)
    if number is None:
        fail("a receipt of no member")
    identity = tagged("inv", msgpack.packb(fields[:7]))
    need(is_signed(signer, "inv", identity, signature), "a receipt's signature is wrong")
    return Inv(number, close, rows)
