"""From what the ledger holds to what callers see."""

import base64
import re
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw

from quipu.api.bodies import JSON, MEDIA_TYPES, MSGPACK, is_json
from quipu.api.codes import Code
from quipu.api.models import (
    EntryBody,
    EventBody,
    Kind,
    MemberRef,
    SignedEventBody,
    State,
    StatusBody,
)
from quipu.api.problems import problem
from quipu.api.times import hlc_text, time_text
from quipu.ledger.entry import ContentType, Entry, EntryKind, decode_entry
from quipu.ledger.event import EventMeta
from quipu.ledger.words import EventId, NodeId, NodeNo
from quipu.node.service import EntryId, EventState, EventStatus, Ledger

_EVENT_ID = re.compile(r"[0-9a-fA-F]{64}\Z", re.ASCII)
INDEX_DIGITS_MAX = 5
_KINDS: dict[EntryKind, Kind] = {
    EntryKind.DATA: "data",
    EntryKind.CONFIG: "config",
    EntryKind.VOID: "void",
}
_STATES: dict[EventState, State] = {
    EventState.STORED: "stored",
    EventState.READ: "read",
    EventState.VOID: "void",
}
_STEPS: dict[State, int] = {"stored": 1, "read": 2, "ordered": 3, "executed": 4}
_JSON_TYPES = frozenset({ContentType.JSON, ContentType.CLOUDEVENT})


class Form(NamedTuple):
    """In what an entry is put."""

    packed: bool = False  # msgpack, else JSON
    lines: bool = False  # line breaks end an item


def read_entry_id(text: str) -> EntryId:
    event, colon, index = text.partition(":")
    if not colon or not index.isdecimal() or not index.isascii() or len(index) > INDEX_DIGITS_MAX:
        problem(Code.INVALID_ID, "an entry's id is 64 hex digits, a colon and its index")
    return EntryId(read_event_id(event), int(index))


def read_event_id(text: str) -> EventId:
    if _EVENT_ID.match(text) is None:
        problem(Code.INVALID_ID, "an event's id is 64 hex digits")
    return EventId(bytes.fromhex(text))


@dataclass(slots=True)
class Shapes:
    """Knows who the members are, so that nobody has to look up a key."""

    ledger: Ledger
    _members: dict[NodeNo, MemberRef] = field(default_factory=dict)

    def member(self, number: NodeNo) -> MemberRef:
        known = self._members.get(number)
        if known is None:
            self._members = {
                row.number: MemberRef(row.number, row.node_id.hex(), row.name)
                for row in self.ledger.members()
            }
            known = self._members.get(number, MemberRef(number, bytes(32).hex(), "?"))
        return known

    def author(self, number: NodeNo, node_id: NodeId) -> MemberRef:
        """One who has left the roster still is who wrote it."""
        known = self.member(number)
        return known if known.name != "?" else MemberRef(number, node_id.hex(), "")

    def members(self, numbers: tuple[NodeNo, ...]) -> list[MemberRef]:
        return [self.member(number) for number in numbers]

    # --- entries ----------------------------------------------------------------------------------
    def entry(self, identity: EntryId, meta: EventMeta, canonical: bytes, form: Form) -> EntryBody:
        return self.opened(identity, meta, decode_entry(canonical), form)

    def opened(self, identity: EntryId, meta: EventMeta, entry: Entry, form: Form) -> EntryBody:
        message_id, key = entry.message_id, entry.idempotency_key
        data = packed_data(entry) if form.packed else json_data(entry, form.lines)
        return EntryBody(
            id=str(identity),
            stream=entry.stream,
            kind=_KINDS[entry.kind],
            author=self.member(meta.slot.author_no),
            time=hlc_text(meta.hlc) if entry.time is None else time_text(entry.time),
            hlc=str(meta.hlc),
            content_type=media_type(entry),
            data=UNSET if data is None else data,
            data_base64=base64.b64encode(entry.data).decode() if data is None else UNSET,
            submitter=UNSET if entry.submitter is None else entry.submitter,
            client_id=UNSET if entry.client_id is None else entry.client_id,
            message_id=UNSET if message_id is None else str(message_id),
            idempotency_key=UNSET if key is None else key,
        )

    def status(self, identity: EntryId, status: EventStatus) -> StatusBody:
        return StatusBody(
            id=str(identity),
            state=state(status),
            confirmations=status.read_confirms,
            required=status.required,
            confirmed_by=self.members(status.confirmed_by),
            author_receipt=status.author_receipt,
            read_by=None if status.read_by is None else status.read_by.value,
            stored_at=_moment(status.first_seen_ms),
            read_at=_moment(status.read_ms),
        )

    # --- events -----------------------------------------------------------------------------------
    def event(self, meta: EventMeta) -> EventBody:
        status = self.ledger.status(meta.id)
        slot = meta.slot
        return EventBody(
            id=meta.id.hex(),
            author=self.member(slot.author_no),
            journal=str(slot.journal),
            seq=str(slot.seq),
            branch=slot.number,
            epoch=str(meta.epoch),
            prev=None if slot.seq == 1 else meta.prev.hex(),
            parents=[parent.hex() for parent in meta.parents],
            hlc=str(meta.hlc),
            time=hlc_text(meta.hlc),
            depth=str(meta.depth),
            entry_count=meta.entry_count,
            size_bytes=meta.size,
            state="stored" if status is None else state(status),
        )

    def signed_event(self, meta: EventMeta, header: bytes, signature: bytes) -> SignedEventBody:
        plain = self.event(meta)
        return SignedEventBody(
            **{name: getattr(plain, name) for name in plain.__struct_fields__},
            header_base64=base64.b64encode(header).decode(),
            signature=signature.hex(),
        )


def state(status: EventStatus) -> State:
    return "ordered" if status.ordered else _STATES[status.state]


def has_reached(found: State, wanted: State) -> bool:
    return _STEPS.get(found, 0) >= _STEPS[wanted]


def media_type(entry: Entry) -> str:
    kind = entry.content_type
    return kind if isinstance(kind, str) else MEDIA_TYPES[kind]


def json_data(entry: Entry, lines: bool) -> Raw | None:
    """The bytes themselves where they can stand inside JSON; None: as base64. What another node
    took may say that it is JSON and not be."""
    kind, data = entry.content_type, entry.data
    named = kind in _JSON_TYPES or (isinstance(kind, str) and kind.endswith("+json"))
    if not named or (lines and (b"\n" in data or b"\r" in data)) or not is_json(data):
        return None
    return Raw(data)


def packed_data(entry: Entry) -> Raw:
    """A msgpack value as it is, anything else as a bin."""
    if entry.content_type == ContentType.MSGPACK and _is_msgpack(entry.data):
        return Raw(entry.data)
    return Raw(msgspec.msgpack.encode(entry.data))


def _is_msgpack(data: bytes) -> bool:
    try:
        msgspec.msgpack.decode(data, type=Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _moment(wall_ms: int | None) -> str | None:
    return None if wall_ms is None else time_text(wall_ms)


FORMS = {JSON: Form(), MSGPACK: Form(packed=True)}
