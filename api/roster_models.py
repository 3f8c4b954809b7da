"""What is asked and answered about changes of the roster."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from quipu.api.models import MemberRef
from quipu.ledger import limits

Node = Annotated[str, msgspec.Meta(min_length=1, max_length=512, examples=["n4"])]
NodeName = Annotated[str, msgspec.Meta(min_length=1, max_length=limits.NAME_BYTES_MAX)]
PolicyText = Annotated[str, msgspec.Meta(min_length=1, max_length=limits.POLICY_BYTES_MAX)]


class RosterChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the cluster shall be. A node is named by its URI, its node id or its name."""

    change: Literal["add-member", "remove-member", "replace-member", "policy", "checkpoint"]
    node: Node | UnsetType = UNSET  # who comes, or who goes; all but policy and checkpoint
    by: Node | UnsetType = UNSET  # who takes its place; replace-member alone
    name: NodeName | UnsetType = UNSET  # of the member that comes, where it is not known here
    policy: PolicyText | UnsetType = UNSET  # as it is where nothing is said


class CandidateBody(msgspec.Struct, frozen=True):
    node_id: str
    name: str


class RosterChangeBody(msgspec.Struct, frozen=True):
    """A change in flight; `id` is null for a checkpoint that the cluster makes by itself.
    `missing`: whose word it waits for, as far as this node knows."""

    id: str | None
    stage: Literal["ready", "sealing", "opening"]
    begun: str
    policy: str
    members: list[CandidateBody]
    missing: list[CandidateBody]


class RosterEndBody(msgspec.Struct, frozen=True):
    """How the newest change that an operator asked for has ended."""

    id: str
    outcome: str  # done, replaced, nominee-unreachable, nominee-behind
    nodes: list[CandidateBody]


class RosterBody(msgspec.Struct, frozen=True):
    """The roster, and what is about to become of it."""

    epoch: str
    policy: str
    required: int
    members: list[MemberRef]
    serializers: list[MemberRef]
    next_serializers: list[MemberRef] | None
    change: RosterChangeBody | None
    ended: RosterEndBody | None
    forced_epochs: list[str]  # opened by an operator's word, perhaps without enough seals
    overruled_by: str | None  # the forced epoch that left this node out: it stands still


class RosterRecovery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The word itself: nothing of it is done by mistake."""

    force: Literal[True]


class RosterRecovered(msgspec.Struct, frozen=True):
    """The epoch that is open now. `followed`: another member had gone on, and this node follows."""

    epoch: str
    followed: bool


class RosterProposed(msgspec.Struct, frozen=True):
    """The change is on its way; GET /v1/cluster/roster tells how far it is, under this id."""

    id: str
    warning: str
