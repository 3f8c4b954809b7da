"""What answers about the order consist of."""

from typing import Literal

import msgspec

from quipu.api.models import Hex32, MemberRef

Stage = Literal["nominate", "refuse", "implement", "confirm"]
ConfigWord = Literal[
    "serializers",
    "add-executor",
    "remove-executor",
    "add-ingest",
    "remove-ingest",
    "add-config",
    "remove-config",
]
ChangeStage = Literal[
    "wish",
    "nominate",
    "implement",
    "confirm",
    "catchup",
    "live",
    "block",
    "drop",
    "implemented",
    "refuse",
]
ItemKind = Literal[
    "event",
    "serializers",
    "config",
    "lock",
    "publish",
    "lock-and-publish",
    "release",
    "close",
    "open",
    "wish",
    "wish-ended",
    "access-list",
    "add-client",
    "remove-client",
    "change-rights",
    "read-results",
    "executor",
    "snapshot-wanted",
    "snapshot",
    "unknown",
]


class JournalBody(msgspec.Struct, frozen=True):
    """Where this node stands in the cluster journal."""

    role: Literal["master", "follower", "asking", "candidate", "recovering"]
    regime: int
    master: MemberRef | None
    serializers: list[MemberRef]
    next_serializers: list[MemberRef] | None
    base: str
    applied: str
    chosen: str
    last: str
    digest: str
    events: str
    events_behind: int
    state: Literal["DSC", "WRK", "ERR"]


class JournalItem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One item of a log entry; which fields it has its kind says."""

    kind: ItemKind
    event_id: str | None = None
    author: MemberRef | None = None
    journal: str | None = None
    seq: str | None = None
    stage: Stage | ChangeStage | None = None
    change: ConfigWord | None = None
    nodes: list[int] | None = None
    name: str | None = None
    holder: int | None = None
    count: int | None = None
    token: str | None = None
    number: str | None = None
    digest: str | None = None
    epoch: str | None = None
    attempt: str | None = None
    acl_id: str | None = None
    public_key: str | None = None
    client: int | None = None
    upto: str | None = None
    have: str | None = None


class JournalEntry(msgspec.Struct, frozen=True):
    """One entry of the log: it stands at its index for ever."""

    index: str
    regime: int
    master: MemberRef
    final: bool
    digest: str
    items: list[JournalItem]


class ChangeBody(msgspec.Struct, frozen=True):
    """One change of the configuration. `index`: of its first entry, which names it."""

    kind: ConfigWord
    nodes: list[MemberRef]
    stage: ChangeStage
    ended: bool
    refusal: str | None
    index: str
    moved: str


class NodeConfig(msgspec.Struct, frozen=True):
    """A member, and what it does beside confirming."""

    member: MemberRef
    roles: list[Literal["ingest", "executor", "config"]]
    serializer: bool
    blocked: bool


class ConfigBody(msgspec.Struct, frozen=True):
    """The configuration as this node has applied it. `change`: in flight, or the last."""

    nodes: list[NodeConfig]
    change: ChangeBody | None


class JournalPage(msgspec.Struct, frozen=True):
    """In the order of the log; `next` is the index to go on after."""

    items: list[JournalEntry]
    next: str
    more: bool


class SequenceBody(msgspec.Struct, frozen=True):
    """A sequence as this node has applied it. `holder` and what follows: while it is locked."""

    name: str
    number: str
    running_digest: str
    holder: MemberRef | None
    token: str | None
    locked_upto: str | None


class NumberBody(msgspec.Struct, frozen=True):
    """What was published under one number, and what all up to it come to."""

    name: str
    number: str
    digest: Hex32
    running_digest: Hex32
    publisher: MemberRef
    log_index: str


class SequenceList(msgspec.Struct, frozen=True):
    """By name; `next` is the name to go on after."""

    items: list[SequenceBody]
    next: str
    more: bool


class LockBody(msgspec.Struct, frozen=True):
    """The numbers `first` to `last` are for this token alone."""

    name: str
    token: str
    first: str
    last: str


class PublishedBody(msgspec.Struct, frozen=True):
    """The number stands for ever; the running digest covers all up to it."""

    name: str
    number: str
    running_digest: str
    index: str
