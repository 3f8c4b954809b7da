"""From the items of an ingest frame to canonical entries; what is wrong with one is said of it."""

from dataclasses import dataclass, field
from typing import NamedTuple

from quipu.api import limits
from quipu.api.bodies import (
    CLOUDEVENT,
    Defaults,
    Shaped,
    content_type_of,
    is_json,
    read_entry,
    salted,
)
from quipu.api.codes import Code
from quipu.api.ingest_frames import Frame, Item
from quipu.api.problems import Problem, at
from quipu.api.tokens import ANYBODY, ENTRIES_WRITE, Principal
from quipu.ledger import limits as ledger_limits
from quipu.ledger.entry import (
    DEFAULT_STREAM,
    ContentType,
    Entry,
    EntryKind,
    encode_entry,
    is_stream_name,
)
from quipu.ledger.mold import Mold

_JSON_TYPES = frozenset({ContentType.JSON, ContentType.CLOUDEVENT})


class Plan(NamedTuple):
    """What a frame comes to: entries to be stored together, and those that are refused."""

    refused: dict[int, Problem]  # by place in the frame
    plain: list[bytes]  # canonical, the others in their order; or
    shaped: list[Shaped]  # the same where keys have to be looked up


class _Kind(NamedTuple):
    """What the entries of one stream and content type have in common."""

    stream: str
    content_type: ContentType | str
    mold: Mold
    is_json: bool
    is_flat: bool  # no key of its own, no salt


@dataclass(slots=True)
class Entries:
    """Invariant: `_kinds` are what `_principal` may write, under the names that items give, while
    the streams `_erasable` are."""

    stream: str | None  # of an item that names none
    content_type: str | None
    _principal: Principal = ANYBODY
    _erasable: frozenset[str] = frozenset()
    _kinds: dict[tuple[str | None, str | None], _Kind] = field(default_factory=dict)

    def plan(self, frame: Frame, principal: Principal, erasable: frozenset[str]) -> Plan:
        """Flat for entries without key, time and salt: 0.5 us each, 2.2 us for the others."""
        if (
            principal is not self._principal
            or erasable is not self._erasable
            or len(self._kinds) > limits.INGEST_MOLDS_MAX
        ):
            self._principal, self._erasable = principal, erasable
            self._kinds.clear()
        refused: dict[int, Problem] = {}
        plain: list[bytes] = []
        for place, item in enumerate(frame.entries):
            if item.key is not None or item.time is not None:
                return self._careful_plan(frame)
            try:
                kind = self._kinds.get((item.stream, item.content_type)) or self._kind(item)
                if not kind.is_flat:
                    return self._careful_plan(frame)
                if kind.is_json:
                    _check_json(item.data)
                canonical = kind.mold.cast(item.data)
                _check_size(canonical)
            except Problem as found:
                refused[place] = found
                continue
            plain.append(canonical)
        return Plan(refused, plain, [])

    def _careful_plan(self, frame: Frame) -> Plan:
        refused: dict[int, Problem] = {}
        shaped: list[Shaped] = []
        for place, item in enumerate(frame.entries):
            try:
                shaped.append(self._shaped(item))
            except Problem as found:
                refused[place] = found
        return Plan(refused, [], shaped)

    def _kind(self, item: Item) -> _Kind:
        stream = item.stream or self.stream or DEFAULT_STREAM
        if item.stream == "" or not is_stream_name(stream):
            detail = "a stream is 1 to 128 of a-z 0-9 . _ - and begins with a letter or digit"
            raise at(Code.INVALID_FIELD, "/stream", detail)
        if not self._principal.may(ENTRIES_WRITE, stream):
            raise Problem(Code.FORBIDDEN, f"the scope {ENTRIES_WRITE}:{stream} is needed")
        named = self.content_type if item.content_type is None else item.content_type
        found = ContentType.OCTETS if named is None else media_type(named)
        mold = Mold(stream, found, self._principal.name)
        is_flat = found is not ContentType.CLOUDEVENT and stream not in self._erasable
        kind = _Kind(stream, found, mold, found in _JSON_TYPES, is_flat)
        self._kinds[item.stream, item.content_type] = kind
        return kind

    def _shaped(self, item: Item) -> Shaped:
        kind = self._kinds.get((item.stream, item.content_type)) or self._kind(item)
        submitter = self._principal.name
        if kind.content_type is ContentType.CLOUDEVENT:
            if item.key is not None or item.time is not None:
                detail = "a CloudEvent brings its own: source and id are its key"
                raise at(Code.INVALID_FIELD, "/key", detail)
            defaults = Defaults(submitter, kind.stream, None, self._erasable)
            return read_entry(item.data, CLOUDEVENT, defaults)
        if kind.is_json:
            _check_json(item.data)
        if item.key is not None and not _fits(item.key):
            detail = f"takes 1 to {ledger_limits.IDEMPOTENCY_KEY_BYTES_MAX} bytes"
            raise at(Code.INVALID_FIELD, "/key", detail)
        entry = Entry(
            salt=None,
            kind=EntryKind.DATA,
            stream=kind.stream,
            submitter=submitter,
            client_id=None,
            message_id=None,
            idempotency_key=item.key,
            time=item.time,
            content_type=kind.content_type,
            data=item.data,
            sig_type=0,
            signature=None,
        )
        canonical = encode_entry(salted(entry) if kind.stream in self._erasable else entry)
        _check_size(canonical)
        return Shaped(entry, canonical)


def media_type(text: str) -> ContentType | str:
    if not 1 <= len(text) <= ledger_limits.CONTENT_TYPE_BYTES_MAX:
        raise at(Code.INVALID_FIELD, "/content_type", "is no media type")
    return content_type_of(text, "")


def _fits(key: str) -> bool:
    return 1 <= len(key.encode()) <= ledger_limits.IDEMPOTENCY_KEY_BYTES_MAX


def _check_json(data: bytes) -> None:
    if not is_json(data):
        detail = "these bytes are not JSON, as the content type says"
        raise at(Code.INVALID_FIELD, "/data", detail)


def _check_size(canonical: bytes) -> None:
    if len(canonical) > ledger_limits.ENTRY_BYTES_MAX:
        detail = f"{len(canonical)} bytes; an entry takes {ledger_limits.ENTRY_BYTES_MAX}"
        raise at(Code.TOO_LARGE, "", detail)
