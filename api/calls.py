"""One request on its way through an endpoint, and the endpoints as a table.

The table is the one source of routes, of scopes and of /openapi.json.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from quipu.api import limits
from quipu.api.bodies import JSON, MSGPACK, media_type_of
from quipu.api.codes import Code
from quipu.api.faults import readable
from quipu.api.problems import FieldError, Problem, at, problem
from quipu.api.tokens import Principal
from quipu.node.service import Ledger

if TYPE_CHECKING:
    from quipu.api.face import Face

Q = TypeVar("Q", bound=msgspec.Struct)
Response = web.StreamResponse

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass(slots=True)
class Call:
    face: "Face"
    request: web.BaseRequest
    endpoint: "Endpoint"
    argument: str  # of the one place in the path that varies
    principal: Principal
    request_id: str
    is_private: bool = False  # it came over the admin socket

    @property
    def ledger(self) -> Ledger:
        return self.face.ledger

    @property
    def media_type(self) -> str:
        """Of the answer, among those that the endpoint offers."""
        return chosen_type(self.request.headers.get("Accept", "*/*"), self.endpoint.offers)

    @property
    def body_type(self) -> str:
        return media_type_of(self.request.headers.get("Content-Type", JSON))

    def query(self, model: type[Q]) -> Q:
        """The parameters of the URL; what the model does not know is refused."""
        url = self.request.rel_url
        if not url.raw_query_string:
            return model()
        given = url.query
        values = dict(given)
        if len(values) != len(given):
            twice = next(name for name in values if len(given.getall(name)) > 1)
            raise at(Code.INVALID_PARAMETER, twice, "is given more than once")
        for name in values:
            if name not in model.__struct_encode_fields__:
                known = ", ".join(model.__struct_encode_fields__)
                raise at(Code.UNKNOWN_PARAMETER, name, f"is no parameter here; there are {known}")
        try:
            return msgspec.convert(values, model, strict=False)
        except msgspec.ValidationError as error:
            text, _, place = str(error).partition(" - at `$.")
            raise at(Code.INVALID_PARAMETER, place.rstrip("`"), readable(text)) from error

    async def read_body(self, bytes_max: int) -> bytes:
        """The whole body, within its deadline; a size that is named is refused unread."""
        request = self.request
        refuse_encoded(request)
        length = request.content_length
        if length is not None and length > bytes_max:
            raise too_large(length, bytes_max)
        content = request.content
        if content.is_eof():  # it came with its header: no timer is needed (5 us)
            body = content.read_nowait()
        else:
            await self.go_on()
            body = await self._read_slowly(bytes_max)
        if len(body) > bytes_max:
            raise too_large(len(body), bytes_max)
        return body

    async def go_on(self) -> None:
        """The body will be read: a client that waits for that word is told."""
        self.request.protocol.resume_reading()
        if self.request.headers.get("Expect", "").lower() == "100-continue":
            writer = self.request.writer
            await writer.write(CONTINUE)
            writer.output_size = 0  # these bytes are no part of the answer

    async def _read_slowly(self, bytes_max: int) -> bytes:
        size = 0
        try:
            waited_s = self.request.protocol.body_waited_s  # type: ignore[attr-defined]
            async with asyncio.timeout(self.face.settings.body_s - waited_s):
                if self.request.content_length is not None:
                    return await self._read_at_its_end(self.request.content_length)
                parts: list[bytes] = []
                async for part in self.request.content.iter_any():
                    parts.append(part)
                    size += len(part)
                    if size > bytes_max:
                        raise too_large(size, bytes_max)
                return b"".join(parts)
        except TimeoutError as error:
            seconds = f"{self.face.settings.body_s:g} s"
            size = size or self.request.content.total_bytes
            raise Problem(Code.BODY_TIMEOUT, f"{size} bytes came within {seconds}") from error
        except (web.RequestPayloadError, HttpProcessingError) as error:
            raise Problem(Code.BAD_REQUEST, f"the body is cut short: {error}") from error

    async def _read_at_its_end(self, length: int) -> bytes:
        """A length that is allowed was named, so nobody is woken before all of it is there: 500
        bodies that came by a byte a second held the loop for 15 ms each time."""
        content = self.request.content
        content.set_read_chunk_size(length)  # it is kept whole
        begun = content.read_nowait()
        await content.wait_eof()
        return begun + content.read_nowait()

    def reply(
        self, model: object, status: int = 200, headers: Mapping[str, str] = NO_HEADERS
    ) -> "Reply":
        kind = self.media_type
        encode = msgspec.msgpack.encode if kind == MSGPACK else msgspec.json.encode
        return Reply(status, encode(model), kind, headers)

    def answer(
        self, model: object, status: int = 200, headers: Mapping[str, str] = NO_HEADERS
    ) -> web.Response:
        return self.reply(model, status, headers).response()


class Reply(NamedTuple):
    """An answer as it will be sent, whatever way the request came."""

    status: int
    body: bytes
    media_type: str
    headers: Mapping[str, str] = NO_HEADERS

    def response(self) -> web.Response:
        return web.Response(
            body=self.body, status=self.status, headers=self.headers, content_type=self.media_type
        )


def too_large(size: int, bytes_max: int) -> Problem:
    return Problem(Code.TOO_LARGE, f"the body has {size} bytes or more; {bytes_max} are taken")


def refuse_encoded(request: web.BaseRequest) -> None:
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        detail = f"Content-Encoding {encoding[:40]} is not read: send bodies uncompressed"
        problem(Code.UNSUPPORTED_MEDIA_TYPE, detail)


@lru_cache(maxsize=1_024)
def _chosen(accept: str, offers: tuple[str, ...]) -> str | None:
    wanted: list[tuple[float, int, str]] = []
    for place, part in enumerate(accept.split(",")):
        kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    weight = float(parameter[2:])
                except ValueError:
                    weight = 0.0
        if weight > 0:
            wanted.append((-weight, place, kind))
    for _, _, kind in sorted(wanted):
        for offer in offers:
            if kind in {offer, "*/*"} or kind == offer.split("/", maxsplit=1)[0] + "/*":
                return offer
    return None


def chosen_type(accept: str, offers: tuple[str, ...]) -> str:
    kind = _chosen(accept[: limits.HEADER_BYTES_MAX], offers)
    if kind is None:
        raise Problem(
            Code.NOT_ACCEPTABLE,
            f"{accept[:100]} is not offered; {', '.join(offers)} are",
            (FieldError("Accept", "names none of " + ", ".join(offers)),),
        )
    return kind


class Answer(NamedTuple):
    """One successful answer, for the documentation."""

    status: int
    meaning: str
    model: Any = None  # a msgspec type
    example: object = None
    media_types: tuple[str, ...] = ()  # where they are not those that the endpoint offers


class RequestBody(NamedTuple):
    """What an endpoint reads, for the documentation: by media type a model and an example."""

    model: Any
    examples: Mapping[str, object]
    media_types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Endpoint:
    method: str
    path: str
    name: str  # of the operation, and of the client's method
    summary: str
    scope: str | None  # None: nobody is asked for a token
    run: Callable[[Call], Awaitable[Response]]
    answers: tuple[Answer, ...]
    codes: tuple[Code, ...] = ()  # beside those that any endpoint may give
    query: type[msgspec.Struct] | None = None
    body: RequestBody | None = None
    offers: tuple[str, ...] = (JSON, MSGPACK)
    by_stream: bool = False  # a token for single streams is enough: the endpoint checks which
    is_local: bool = False  # over the admin socket, or with a token from this machine
    tag: str = "entries"
    examples: Mapping[str, str] = field(default_factory=dict)  # of path and query
