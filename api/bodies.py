"""What callers send: entries as JSON, msgpack or CloudEvents, turned into canonical bytes.

`data` is never decoded and encoded again: the exact bytes of the value are what is kept, hashed
and given back.
"""

import base64
import binascii
import re
import secrets
from functools import lru_cache
from hashlib import sha256
from typing import Annotated, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from quipu.api.codes import Code
from quipu.api.faults import check_utf8, refuse_undecodable
from quipu.api.names import NAME_PATTERN, NAME_RULE
from quipu.api.problems import at, problem
from quipu.api.times import NotATime, time_ms
from quipu.ledger import limits as ledger_limits
from quipu.ledger.entry import (
    DEFAULT_STREAM,
    SALT_BYTES,
    ContentType,
    Entry,
    EntryKind,
    encode_entry,
    is_stream_name,
)

T = TypeVar("T")
_Decoder: TypeAlias = "msgspec.json.Decoder[T] | msgspec.msgpack.Decoder[T]"

JSON = "application/json"
MSGPACK = "application/msgpack"
NDJSON = "application/x-ndjson"
CLOUDEVENT = "application/cloudevents+json"
CLOUDEVENTS = "application/cloudevents-batch+json"

StreamName = Annotated[str, msgspec.Meta(pattern=NAME_PATTERN, examples=["orders"])]
IdempotencyKey = Annotated[
    str, msgspec.Meta(min_length=1, max_length=ledger_limits.IDEMPOTENCY_KEY_BYTES_MAX)
]
MediaType = Annotated[
    str, msgspec.Meta(min_length=1, max_length=ledger_limits.CONTENT_TYPE_BYTES_MAX)
]
Base64 = Annotated[str, msgspec.Meta(extra_json_schema={"contentEncoding": "base64"})]
Time = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]


class NewEntry(msgspec.Struct, forbid_unknown_fields=True):
    """One entry to be stored. Give either `data` (any JSON value) or `data_base64`."""

    data: Raw | UnsetType = UNSET
    data_base64: Base64 | UnsetType = UNSET
    stream: StreamName | UnsetType = UNSET
    content_type: MediaType | UnsetType = UNSET
    idempotency_key: IdempotencyKey | UnsetType = UNSET
    time: Time | UnsetType = UNSET


class _CloudEvent(msgspec.Struct):
    """What is needed of one; the event itself is kept whole."""

    specversion: str
    id: Annotated[str, msgspec.Meta(min_length=1)]
    source: Annotated[str, msgspec.Meta(min_length=1)]
    type: Annotated[str, msgspec.Meta(min_length=1)]
    time: str | None = None


_entries = msgspec.json.Decoder(NewEntry)
_packed_entries = msgspec.msgpack.Decoder(NewEntry)
_cloudevents = msgspec.json.Decoder(_CloudEvent)
_arrays = msgspec.json.Decoder(list[Raw])
_packed_arrays = msgspec.msgpack.Decoder(list[Raw])
_packed_bytes = msgspec.msgpack.Decoder(bytes)

COMMON_TYPES = {
    JSON: ContentType.JSON,
    MSGPACK: ContentType.MSGPACK,
    "application/octet-stream": ContentType.OCTETS,
    "text/plain": ContentType.TEXT,
    CLOUDEVENT: ContentType.CLOUDEVENT,
}
MEDIA_TYPES = {number: text for text, number in COMMON_TYPES.items()}
_MEDIA_TYPE = re.compile(
    r"[\w!#$&^.+-]+/[\w!#$&^.+-]+(; ?[\w!#$&^.+-]+=[\w!#$&^.+\"-]+)*\Z", re.ASCII
)


class Defaults(NamedTuple):
    """What the request says beside the body."""

    submitter: str | None = None
    stream: str | None = None  # of the query
    idempotency_key: str | None = None  # of the header
    streams_erasable: frozenset[str] = frozenset()


class Shaped(NamedTuple):
    """One entry, ready to be submitted."""

    entry: Entry  # without its salt: what a repetition is compared with
    canonical: bytes


@lru_cache(maxsize=256)
def media_type_of(header: str) -> str:
    """The type alone, without its parameters; only UTF-8 is read."""
    kind, _, rest = header.partition(";")
    charset = rest.strip().lower().removeprefix("charset=").strip('"')
    if rest.strip().lower().startswith("charset=") and charset not in {"utf-8", "us-ascii"}:
        problem(Code.UNSUPPORTED_MEDIA_TYPE, f"charset {charset[:40]} is not read, utf-8 is")
    return kind.strip().lower()


def read_entry(body: bytes, media_type: str, defaults: Defaults, where: str = "") -> Shaped:
    """One entry of that media type; `where` is its JSON pointer in a batch."""
    match media_type:
        case "application/json":
            new, is_packed = decoded(_entries, body, where), False
        case "application/msgpack":
            new, is_packed = decoded(_packed_entries, body, where), True
        case "application/cloudevents+json":
            return _cloudevent(body, defaults, where)
        case _:
            read = f"{JSON}, {MSGPACK} and {CLOUDEVENT} are"
            detail = f"{media_type or 'no type'} is not read here; {read}"
            problem(Code.UNSUPPORTED_MEDIA_TYPE, detail)
    content_type, data = _content(new, is_packed, where)
    given = None if new.time is UNSET else _time(new.time, f"{where}/time")
    key = None if new.idempotency_key is UNSET else new.idempotency_key
    return _shape(
        _Content(content_type, data, given, _one_key(key, defaults, where)),
        _one_stream(None if new.stream is UNSET else new.stream, defaults, where),
        defaults,
        where,
    )


def read_array(body: bytes, media_type: str) -> list[bytes]:
    """The items of a batch, each as its own bytes."""
    if media_type != MSGPACK:
        check_utf8(body, "")
    decoder = _packed_arrays if media_type == MSGPACK else _arrays
    try:
        return [bytes(item) for item in decoder.decode(body)]
    except (msgspec.DecodeError, RecursionError) as error:
        refuse_undecodable(error, "")


class _Content(NamedTuple):
    content_type: ContentType | str
    data: bytes
    time: int | None
    key: str | None


def _shape(content: _Content, stream: str, defaults: Defaults, where: str) -> Shaped:
    entry = Entry(
        salt=None,
        kind=EntryKind.DATA,
        stream=stream,
        submitter=defaults.submitter,
        client_id=None,
        message_id=None,
        idempotency_key=content.key,
        time=content.time,
        content_type=content.content_type,
        data=content.data,
        sig_type=0,
        signature=None,
    )
    canonical = encode_entry(salted(entry) if stream in defaults.streams_erasable else entry)
    if len(canonical) > ledger_limits.ENTRY_BYTES_MAX:
        size = f"{len(canonical)} bytes; an entry takes {ledger_limits.ENTRY_BYTES_MAX}"
        raise at(Code.TOO_LARGE, where, size)
    return Shaped(entry, canonical)


def salted(entry: Entry) -> Entry:
    """Else the hash that stays after an erasure could be matched with a guess."""
    return msgspec.structs.replace(entry, salt=secrets.token_bytes(SALT_BYTES))


def _content(new: NewEntry, is_packed: bool, where: str) -> tuple[ContentType | str, bytes]:
    named = None if new.content_type is UNSET else content_type_of(new.content_type, where)
    if (new.data is UNSET) == (new.data_base64 is UNSET):
        detail = "give either data or data_base64, and not both"
        raise at(Code.INVALID_FIELD, f"{where}/data", detail)
    if new.data_base64 is not UNSET:
        return _encoded(new.data_base64, named, where)
    assert new.data is not UNSET
    data = bytes(new.data)
    if is_packed:
        if named is None or named == ContentType.MSGPACK:
            return ContentType.MSGPACK, data
        try:
            return named, _packed_bytes.decode(data)
        except msgspec.DecodeError as error:
            detail = "with that content_type, data is a msgpack bin"
            raise at(Code.INVALID_FIELD, f"{where}/data", detail) from error
    if named is None:
        return ContentType.JSON, data
    if named == ContentType.JSON or (type(named) is str and named.endswith("+json")):
        return named, data
    detail = "data is JSON; bytes of another type are given as data_base64"
    raise at(Code.INVALID_FIELD, f"{where}/content_type", detail)


def _encoded(
    text: str, named: ContentType | str | None, where: str
) -> tuple[ContentType | str, bytes]:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        detail = f"is not base64: {error}"
        raise at(Code.INVALID_FIELD, f"{where}/data_base64", detail) from error
    if named in {ContentType.JSON, ContentType.CLOUDEVENT} and not is_json(data):
        detail = "these bytes are not JSON, as content_type says"
        raise at(Code.INVALID_FIELD, f"{where}/data_base64", detail)
    return ContentType.OCTETS if named is None else named, data


def is_json(data: bytes) -> bool:
    """One JSON value in UTF-8, so that it can stand inside another."""
    try:
        data.decode()
        msgspec.json.decode(data, type=Raw)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return False
    return True


def content_type_of(text: str, where: str) -> ContentType | str:
    lowered = text.lower()
    if lowered in COMMON_TYPES:
        return COMMON_TYPES[lowered]
    if _MEDIA_TYPE.match(text) is None:
        raise at(Code.INVALID_FIELD, f"{where}/content_type", "is no media type")
    return text


def _one_stream(given: str | None, defaults: Defaults, where: str) -> str:
    stream = given or defaults.stream or DEFAULT_STREAM
    if defaults.stream is not None and given not in {None, defaults.stream}:
        detail = f"says {given}, and the query says {defaults.stream}"
        raise at(Code.INVALID_FIELD, f"{where}/stream", detail)
    if not is_stream_name(stream):
        raise at(Code.INVALID_FIELD, f"{where}/stream", NAME_RULE)
    return stream


def _one_key(given: str | None, defaults: Defaults, where: str) -> str | None:
    header = defaults.idempotency_key
    if given is not None and header is not None and given != header:
        detail = "differs from the header Idempotency-Key"
        raise at(Code.INVALID_FIELD, f"{where}/idempotency_key", detail)
    key = header if given is None else given
    if key is not None and len(key.encode()) > ledger_limits.IDEMPOTENCY_KEY_BYTES_MAX:
        detail = f"takes {ledger_limits.IDEMPOTENCY_KEY_BYTES_MAX} bytes"
        raise at(Code.INVALID_FIELD, f"{where}/idempotency_key", detail)
    return key


def _time(text: str, where: str) -> int:
    try:
        return time_ms(text)
    except NotATime as error:
        raise at(Code.INVALID_FIELD, where, str(error)) from error


def _cloudevent(body: bytes, defaults: Defaults, where: str) -> Shaped:
    event = decoded(_cloudevents, body, where)
    if event.specversion != "1.0":
        raise at(Code.INVALID_FIELD, f"{where}/specversion", "1.0 is read")
    named = f"{event.source} {event.id}"  # a source has no space
    if len(named.encode()) > ledger_limits.IDEMPOTENCY_KEY_BYTES_MAX:
        named = f"sha256 {sha256(named.encode()).hexdigest()}"
    given = None if event.time is None else _time(event.time, f"{where}/time")
    key = _one_key(named, Defaults(), where)
    content = _Content(ContentType.CLOUDEVENT, body.strip(), given, key)
    return _shape(content, _one_stream(None, defaults, where), defaults, where)


def decoded(decoder: "_Decoder[T]", body: bytes, where: str = "") -> T:
    """What a body says, or the place where it is wrong."""
    if isinstance(decoder, msgspec.json.Decoder):
        check_utf8(body, where)
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        refuse_undecodable(error, where, getattr(decoder.type, "__struct_fields__", ()))
