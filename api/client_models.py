"""What requests and answers about clients and SQL consist of."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from quipu.api.bodies import Base64
from quipu.api.models import Hex32
from quipu.storage.executors import limits

RightName = Literal["read", "write", "schema"]
Whole = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,19}$")]
AclHex = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{30}$")]


class RuleBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`tables`: a name, or a beginning and `*`."""

    tables: Annotated[str, msgspec.Meta(min_length=1, max_length=limits.TABLE_NAME_BYTES_MAX)]
    rights: list[RightName]


class NewClient(msgspec.Struct, forbid_unknown_fields=True):
    """Its Ed25519 key, and what it may do: rules of its own, or a list that is there already.
    Without either it may do everything."""

    public_key: Hex32
    rights: (
        Annotated[list[RuleBody], msgspec.Meta(max_length=limits.RULES_PER_CLIENT_MAX)] | UnsetType
    ) = UNSET
    acl_id: AclHex | UnsetType = UNSET


class NewRights(msgspec.Struct, forbid_unknown_fields=True):
    """What a client may do from now on: rules of its own, or a list that is there already."""

    rights: (
        Annotated[list[RuleBody], msgspec.Meta(max_length=limits.RULES_PER_CLIENT_MAX)] | UnsetType
    ) = UNSET
    acl_id: AclHex | UnsetType = UNSET


class ClientBody(msgspec.Struct, frozen=True):
    """A client. What is null, the executor here does not know: it is off, or behind."""

    client: int
    state: Literal["active", "removed", "terminated"]
    public_key: str
    signature_type: int
    acl_id: str
    rights: list[RuleBody] | None
    next_message_id: str | None
    have: str | None
    proof_base64: str | None  # of a terminated one: the two requests that it signed


class ClientList(msgspec.Struct, frozen=True):
    """By number; `next` is the number to go on after."""

    items: list[ClientBody]
    next: str
    more: bool


class NewRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A request as its client signed it: docs/executors.md has the bytes."""

    message_id: Whole
    messages_base64: Base64
    signature_base64: Base64
    signature_type: Annotated[int, msgspec.Meta(ge=0, le=255)] = 1


class ResultBody(msgspec.Struct, frozen=True):
    """Of one message. A blob is {"base64": "..."}, in msgpack a bin."""

    code: str
    columns: list[str]
    rows: list[list[Any]]
    changes: int
    detail: str


class ExecutedBody(msgspec.Struct, frozen=True):
    """What became of a request. `code` and `results` are there once it is executed."""

    client: int
    message_id: str
    state: Literal["stored", "read", "ordered", "executed", "void"]
    id: str | None  # of its entry; null: it was executed before, as some other entry
    code: str | None
    results: list[ResultBody]


class KeptBody(msgspec.Struct, frozen=True):
    """The outcome of one request, as it is kept."""

    message_id: str
    code: str
    results: list[ResultBody]


class ResultsBody(msgspec.Struct, frozen=True):
    """What a READ gives: the outcomes in (have, upto]; `more`: the next READ gives what follows."""

    client: int
    code: str
    items: list[KeptBody]
    upto: str
    released: str
    more: bool


class NewSql(msgspec.Struct, forbid_unknown_fields=True):
    """One statement that reads; `client`: with the rights of that one."""

    sql: Annotated[str, msgspec.Meta(max_length=limits.SQL_BYTES_MAX)]
    parameters: Annotated[list[Any], msgspec.Meta(max_length=limits.PARAMETERS_MAX)] = []
    client: Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)] | UnsetType = UNSET


class TableBody(msgspec.Struct, frozen=True):
    """Rows of the last commit of this executor: all of the order up to `applied`."""

    columns: list[str]
    rows: list[list[Any]]
    complete: bool
    applied: str


class ExecutorBody(msgspec.Struct, frozen=True):
    """The executor of this node. `digest` covers every command up to `applied`."""

    state: Literal["running", "off", "waiting", "failed"]
    detail: str
    engine: str
    applied: str
    digest: str
    behind: int
