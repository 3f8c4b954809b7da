"""What the node answers: the models that /openapi.json is generated from."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from quipu.api.bodies import Base64, Time
from quipu.api.problems import ProblemBody
from quipu.node.operations import OperationKind, OperationState
from quipu.p2p.words import PeerState

Hex32 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
EntryIdText = Annotated[
    str, msgspec.Meta(pattern="^[0-9a-f]{64}:[0-9]+$", examples=["ab" * 32 + ":0"])
]
U64Text = Annotated[str, msgspec.Meta(pattern="^[0-9]+$", description="u64 as text")]
State = Literal["stored", "read", "ordered", "executed", "void"]
Kind = Literal["data", "config", "void"]
QueryVerdict = Literal["agreed", "contested", "timeout"]


class MemberRef(msgspec.Struct, frozen=True):
    """A node of the roster."""

    number: int
    node_id: Hex32
    name: str


class Receipt(msgspec.Struct, frozen=True):
    """What became of one submission so far."""

    id: EntryIdText
    state: State
    duplicate: bool
    time: Time


class EntryBody(msgspec.Struct, frozen=True):
    """An entry as it stays for ever. `data` are the bytes that were submitted."""

    id: EntryIdText
    stream: str
    kind: Kind
    author: MemberRef
    time: Time
    hlc: U64Text
    content_type: str
    data: Raw | UnsetType = UNSET
    data_base64: Base64 | UnsetType = UNSET
    submitter: str | UnsetType = UNSET
    client_id: int | UnsetType = UNSET
    message_id: U64Text | UnsetType = UNSET
    idempotency_key: str | UnsetType = UNSET


class EntryPage(msgspec.Struct, frozen=True):
    """Entries in the order in which this node holds them as final."""

    items: list[EntryBody]
    next: str
    more: bool
    duplicates: list[EntryIdText] | UnsetType = UNSET  # of a key: stored later by other nodes


class StatusBody(msgspec.Struct, frozen=True):
    """How far an entry has come."""

    id: EntryIdText
    state: State
    confirmations: int
    required: int
    confirmed_by: list[MemberRef]
    author_receipt: bool
    read_by: Literal["receipts", "cut"] | None
    stored_at: Time | None
    read_at: Time | None


class BatchResult(msgspec.Struct, frozen=True):
    """What became of one item; `status` as if it had been a request of its own."""

    index: int
    status: int
    id: EntryIdText | UnsetType = UNSET
    state: State | UnsetType = UNSET
    duplicate: bool | UnsetType = UNSET
    problem: ProblemBody | UnsetType = UNSET


class BatchAnswer(msgspec.Struct, frozen=True):
    """The results in the order of the items."""

    stored: int
    duplicates: int
    refused: int
    results: list[BatchResult]


class Verdict(msgspec.Struct, frozen=True):
    """What would happen if it were submitted now. Nothing was stored."""

    valid: bool
    stream: str
    content_type: str
    data_bytes: int
    entry_bytes: int
    duplicate_of: EntryIdText | None


class EventBody(msgspec.Struct, frozen=True):
    """A vertex of the DAG."""

    id: Hex32
    author: MemberRef
    journal: U64Text
    seq: U64Text
    branch: int
    epoch: U64Text
    prev: Hex32 | None
    parents: list[Hex32]
    hlc: U64Text
    time: Time
    depth: U64Text
    entry_count: int
    size_bytes: int
    state: State


class SignedEventBody(EventBody, frozen=True):
    """A vertex of the DAG with what was signed."""

    header_base64: Base64
    signature: str


class EventList(msgspec.Struct, frozen=True):
    """Some events. `truncated`: there are more than one answer takes."""

    items: list[EventBody]
    truncated: bool


class ObstacleBody(msgspec.Struct, frozen=True):
    """One reason why an event is not final."""

    cause: str
    meaning: str
    members: list[MemberRef]
    offline: list[MemberRef]
    events: list[Hex32]
    wanted: int
    until: Time | None


class ExplanationBody(msgspec.Struct, frozen=True):
    """Why an event is final or not."""

    id: Hex32
    state: State
    confirmations: int
    required: int
    confirmed_by: list[MemberRef]
    sentence: str
    obstacles: list[ObstacleBody]


class LeafList(msgspec.Struct, frozen=True):
    """Events that no final event names, oldest first."""

    items: list[EventBody]


class FrontierRowBody(msgspec.Struct, frozen=True):
    """How far one branch of one cord is held and final."""

    author: Hex32
    journal: U64Text
    held_seq: U64Text
    held_id: Hex32
    read_seq: U64Text
    read_id: Hex32 | None


class Frontier(msgspec.Struct, frozen=True):
    """Equal on nodes that hold the same."""

    cluster_id: Hex32
    rows: list[FrontierRowBody]


class Limits(msgspec.Struct, frozen=True):
    """What one request may carry."""

    entry_bytes: int
    body_bytes: int
    batch_bytes: int
    batch_items: int
    page_items: int
    wait_ms: int


class NodeBody(msgspec.Struct, frozen=True):
    """Who this node is, and what it takes."""

    node_id: Hex32
    name: str
    number: int | None
    version: str
    cluster_id: Hex32
    cluster_name: str
    epoch: U64Text
    policy: str
    required: int
    safe: bool
    journal: U64Text | None
    feed_number: U64Text
    feed_first: U64Text
    history_from: U64Text
    members: list[MemberRef]
    streams_erasable: list[str]
    ready: bool
    finality: bool
    limits: Limits


class ConvictionBody(msgspec.Struct, frozen=True):
    """A proof that a node signed two things that exclude each other."""

    node_id: Hex32
    role: Literal["author", "signer", "serializer"]
    journal: U64Text | None
    proof_base64: Base64


class EvidenceList(msgspec.Struct, frozen=True):
    """Proofs of misbehaviour held here."""

    items: list[ConvictionBody]


class StreamRow(msgspec.Struct, frozen=True):
    """One stream, of what is final here."""

    name: str
    entries: U64Text
    first: Time
    last: Time


class StreamList(msgspec.Struct, frozen=True):
    """The streams by name."""

    items: list[StreamRow]


class CheckBody(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    passes: bool
    detail: str


class HealthBody(msgspec.Struct, frozen=True):
    """An answer of the OPS listener."""

    status: Literal["ok", "failing"]
    checks: list[CheckBody]


class SignedUpto(msgspec.Struct, frozen=True):
    """The receipts of this member cover the cord up to there."""

    number: int
    seq: U64Text


class ReceiptRowBody(msgspec.Struct, frozen=True):
    """One branch of one cord, and who has signed how far that it holds it."""

    author: MemberRef
    journal: U64Text
    branch: int
    held_seq: U64Text
    read_seq: U64Text
    signed: list[SignedUpto]


class StreamItem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a stream as NDJSON; as SSE, `type` is the event and `cursor` its id."""

    type: Literal["entry", "event", "status", "member", "receipts", "gap", "heartbeat", "goodbye"]
    cursor: str = ""
    entry: EntryBody | None = None
    event: EventBody | None = None
    event_id: str = ""
    state: str = ""
    missed: int = 0
    after: str = ""
    upto: str = ""
    reason: str = ""
    node_id: str = ""
    before: str = ""
    receipts: list[ReceiptRowBody] = []


# --- cluster --------------------------------------------------------------------------------------
class ClusterBody(msgspec.Struct, frozen=True):
    """Which cluster this is. `safe`: no two majorities could each make something final alone."""

    cluster_id: Hex32
    cluster_name: str
    epoch: U64Text
    policy: str
    members: int
    members_live: int
    max_confirms: int
    safe: bool
    finality: bool
    streams_erasable: list[str]


class MemberBody(msgspec.Struct, frozen=True):
    """A node as this one sees it. `trouble`: why it is not linked, empty where it is or was not
    tried. `order_state`: as it told, null where it told nothing. The live view never changes how
    many confirmations are needed."""

    node_id: Hex32
    name: str
    number: int | None
    roles: list[str]
    is_self: bool
    state: PeerState
    endpoint: str | None
    uri: str | None
    heard_ms_ago: int | None
    version: str
    pools: list[str]
    linked_in: bool
    linked_out: bool
    trouble: str
    order_state: Literal["DSC", "WRK", "ERR"] | None


class MemberList(msgspec.Struct, frozen=True):
    """The roster by number, then the observers and others that this node knows. `forced_epochs`
    were opened by an operator's word, perhaps without enough seals."""

    items: list[MemberBody]
    forced_epochs: list[U64Text]


class QueryAnswer(msgspec.Struct, frozen=True):
    """What one member answered; `signed_base64` is its message as it signed it."""

    node_id: Hex32
    name: str
    answer: str
    signed_base64: Base64


class QueryResult(msgspec.Struct, frozen=True):
    """How the answers of the members of that moment were counted. `agreed`: at least half gave
    that answer, and no other can come to half; `contested`: two have half each; `timeout`."""

    question: str
    argument: str
    verdict: QueryVerdict
    answer: str | None
    asked: int
    answered: int
    answers: list[QueryAnswer]


class BranchSide(msgspec.Struct, frozen=True):
    """How far a node holds a branch of a cord, and how much of it is final."""

    held_seq: U64Text
    held_id: Hex32
    read_seq: U64Text


class DiffRow(msgspec.Struct, frozen=True):
    """A cord that the two hold differently; an empty list: nothing of it."""

    author: MemberRef
    journal: U64Text
    here: list[BranchSide]
    there: list[BranchSide]


class FrontierDiff(msgspec.Struct, frozen=True):
    """`items` is empty where both hold the same. Cords of journals before `from_journal` were not
    compared; 0: all were."""

    peer: MemberRef
    from_journal: U64Text
    items: list[DiffRow]


# --- consumers ------------------------------------------------------------------------------------
class ConsumerBody(msgspec.Struct, frozen=True):
    """A named cursor. `owner` is the name of the token that made it; `etag` changes at each PUT."""

    name: str
    cursor: str
    stream: str | None
    ttl: str
    owner: str | None
    stored: Time
    expires: Time
    etag: str


class ConsumerList(msgspec.Struct, frozen=True):
    """Named cursors, by name."""

    items: list[ConsumerBody]


# --- admin ----------------------------------------------------------------------------------------
class BackupRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the copy goes: a name in `backups/` of the data directory; over the admin socket also
    the absolute path of a directory that is empty or not there."""

    target: Annotated[str, msgspec.Meta(min_length=1, max_length=4_096, examples=["monday"])]


class ExportRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the dump goes: a name in `dumps/` of the data directory; over the admin socket also an
    absolute path. A dump of this node that is there already gets what is new."""

    target: Annotated[str, msgspec.Meta(min_length=1, max_length=4_096, examples=["all"])]
    entries: Literal["described", "with data", "none"] = "described"


class OperationBody(msgspec.Struct, frozen=True):
    """Long work that was asked for. `done` of `total` are records, or bytes of a copy."""

    id: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]
    kind: OperationKind
    state: OperationState
    phase: str
    done: U64Text
    total: U64Text
    started: Time
    ended: Time | None
    result: dict[str, Any] | None
    error: str


class OperationList(msgspec.Struct, frozen=True):
    """Those that run, and the last ones that have ended; the newest first."""

    items: list[OperationBody]


class KeyBody(msgspec.Struct, frozen=True):
    """One key, as far as it may be shown. The same fingerprint: the same key."""

    name: Literal["node", "cluster", "genesis", "tls", "tokens"]
    file: str
    mode: str
    fingerprint: str
    public: str
    uri: str


class KeyList(msgspec.Struct, frozen=True):
    """The keys that this node has."""

    items: list[KeyBody]


class LogLevelRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    level: Literal["debug", "info", "warning", "error"]


class LogLevelBody(msgspec.Struct, frozen=True):
    """The least that is written to the log from now on, until the next start or reload."""

    level: str
    before: str


class Reloaded(msgspec.Struct, frozen=True):
    """Read again: tokens, certificate, secrets, log level. What could not be goes on as it was."""

    faults: list[str]


class Draining(msgspec.Struct, frozen=True):
    """The node finishes what it has taken, and ends."""

    draining: bool
    pid: int
