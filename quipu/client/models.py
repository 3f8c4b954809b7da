"""What the node answers, typed. Fields that a newer node adds are passed over."""

import base64
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from quipu.client.errors import Problem


class Member(msgspec.Struct, frozen=True):
    number: int
    node_id: str
    name: str


class ReceiptBody(msgspec.Struct, frozen=True):
    id: str
    state: str
    duplicate: bool
    time: str


class EntryBody(msgspec.Struct, frozen=True):
    id: str
    stream: str
    kind: str
    author: Member
    time: str
    hlc: str
    content_type: str
    data: Raw | UnsetType = UNSET
    data_base64: str | UnsetType = UNSET
    submitter: str | None = None
    client_id: int | None = None
    message_id: str | None = None
    idempotency_key: str | None = None


class Entry(NamedTuple):
    """An entry as it stays for ever. `raw` are the bytes that were submitted."""

    id: str
    stream: str
    kind: str
    author: Member
    time: str
    hlc: int
    content_type: str
    raw: bytes
    submitter: str | None = None
    client_id: int | None = None
    message_id: int | None = None
    idempotency_key: str | None = None
    cursor: str | None = None  # where `follow` goes on after it

    @property
    def data(self) -> Any:
        """The value where it is JSON, else the bytes."""
        kind = self.content_type
        if kind == "application/json" or kind.endswith("+json"):
            return msgspec.json.decode(self.raw)
        return self.raw


class Gap(NamedTuple):
    """What was not told, because the reader was too slow: `list` from `after` gives it again."""

    missed: int
    after: str
    upto: str


class Page(NamedTuple):
    items: list[Entry]
    next: str
    more: bool


class Status(msgspec.Struct, frozen=True):
    id: str
    state: str
    confirmations: int
    required: int
    confirmed_by: list[Member]
    author_receipt: bool
    read_by: str | None = None
    stored_at: str | None = None
    read_at: str | None = None


class BatchResult(msgspec.Struct, frozen=True):
    index: int
    status: int
    id: str | None = None
    state: str | None = None
    duplicate: bool | None = None
    problem: Problem | None = None


class BatchAnswer(msgspec.Struct, frozen=True):
    stored: int
    duplicates: int
    refused: int
    results: list[BatchResult]


class Verdict(msgspec.Struct, frozen=True):
    valid: bool
    stream: str
    content_type: str
    data_bytes: int
    entry_bytes: int
    duplicate_of: str | None = None


class Consumer(msgspec.Struct, frozen=True):
    """A named cursor, as the node keeps it until `expires`."""

    name: str
    cursor: str
    ttl: str
    stored: str
    expires: str
    etag: str
    stream: str | None = None
    owner: str | None = None


class ConsumerList(msgspec.Struct, frozen=True):
    items: list[Consumer]


class PageBody(msgspec.Struct, frozen=True):
    items: list[EntryBody]
    next: str = ""
    more: bool = False


class StreamItem(msgspec.Struct, frozen=True):
    type: str
    cursor: str = ""
    entry: EntryBody | None = None
    missed: int = 0
    after: str = ""
    upto: str = ""
    reason: str = ""


def entry_of(body: EntryBody, cursor: str | None = None) -> Entry:
    if body.data is not UNSET:
        raw = bytes(body.data)
    else:
        raw = base64.b64decode("" if body.data_base64 is UNSET else body.data_base64)
    message_id = None if body.message_id is None else int(body.message_id)
    return Entry(
        body.id,
        body.stream,
        body.kind,
        body.author,
        body.time,
        int(body.hlc),
        body.content_type,
        raw,
        body.submitter,
        body.client_id,
        message_id,
        body.idempotency_key,
        cursor,
    )


def page_of(data: bytes) -> Page:
    body = msgspec.json.decode(data, type=PageBody)
    return Page([entry_of(item) for item in body.items], body.next, body.more)
