"""A change of roster as an operator wants it, in the log: so that it outlives the master that was
told, and one is in flight on every node alike.

It is made true by a CLOSE and an OPEN with that roster, or ended by the master with a reason.
"""

from enum import StrEnum
from typing import Annotated, NamedTuple

import msgspec

from quipu.ledger import limits, quorum, signing
from quipu.ledger.canonical import encode, fits_bytes
from quipu.ledger.epochs import EpochDocument, Name, Policy, Roles
from quipu.ledger.event import U64, Bytes32
from quipu.ledger.refusals import Reason, refuse
from quipu.ledger.words import NodeId

Port = Annotated[int, msgspec.Meta(ge=1, le=2**16 - 1)]


class Candidate(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Who shall be a member. Its number is given by the log."""

    node_id: Bytes32
    name: Name
    roles: Roles
    where: tuple[Name, Port] | None = None  # where it can be dialled, of one that is new


Candidates = Annotated[list[Candidate], msgspec.Meta(min_length=1, max_length=limits.MEMBERS_MAX)]


class Wish(msgspec.Struct, array_like=True, frozen=True, tag=9, forbid_unknown_fields=True):
    """These shall be the members. With the members that there are it is a checkpoint."""

    at_ms: U64  # cluster now of the node that was told
    candidates: Candidates
    policy: Policy


class Ending(StrEnum):
    """How a change has ended."""

    DONE = "done"
    REPLACED = "replaced"  # by another one, after its CLOSE had found no OPEN
    UNREACHABLE = "nominee-unreachable"  # the master has no link to it
    BEHIND = "nominee-behind"  # it did not say that it holds what the others hold


class WishEnded(msgspec.Struct, array_like=True, frozen=True, tag=10, forbid_unknown_fields=True):
    """The master does not go on with this wish; nothing of it was done."""

    wish: Bytes32
    reason: Ending
    nodes: Annotated[list[Bytes32], msgspec.Meta(max_length=limits.MEMBERS_MAX)]


class Wished(NamedTuple):
    """A wish that is in flight."""

    id: bytes
    wish: Wish

    @classmethod
    def of(cls, wish: Wish) -> "Wished":
        return cls(wish_id(wish), wish)

    def is_of(self, document: EpochDocument) -> bool:
        """Whether this epoch is what was wished."""
        wanted = {candidate.node_id for candidate in self.wish.candidates}
        same = wanted == {member.node_id for member in document.members}
        return same and self.wish.policy == document.policy


class Ended(NamedTuple):
    """The newest wish that is in flight no more."""

    id: bytes
    how: str
    nodes: tuple[NodeId, ...] = ()


def wish_id(wish: Wish) -> bytes:
    return signing.tagged_hash(signing.TAG_WISH, encode(wish))


def has_fitting_names(candidate: Candidate) -> bool:
    """The document that makes the wish true bounds bytes; the form of a wish, characters."""
    host = "" if candidate.where is None else candidate.where[0]
    names = (candidate.name, *candidate.roles, host)
    return all(fits_bytes(name, limits.NAME_BYTES_MAX) for name in names)


def check_wish(wish: Wish) -> None:
    """Refuses what no roster could be."""
    nodes = {candidate.node_id for candidate in wish.candidates}
    if len(nodes) != len(wish.candidates):
        refuse(Reason.MALFORMED, "a member stands twice")
    for candidate in wish.candidates:
        if not has_fitting_names(candidate):
            refuse(Reason.MALFORMED, "a name of more bytes than its document takes")
    quorum.max_confirms(wish.policy, len(nodes))
