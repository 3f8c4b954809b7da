"""The HTTP face of one node: takes a request, finds who asks and what for, and answers.

Whatever goes wrong becomes a problem with a code of the closed list, here and nowhere else.
"""

import asyncio
import itertools
import logging
import re
import secrets
import time
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from quipu.api import audit, limits
from quipu.api.callers import caller_of, is_of_this_machine
from quipu.api.calls import Call, Endpoint, Reply, Response
from quipu.api.codes import Code
from quipu.api.counters import Counters
from quipu.api.idempotency import Keys
from quipu.api.pressure import Pressure
from quipu.api.problems import CONTENT_TYPE, Problem
from quipu.api.refusals import FAULTS, as_problem
from quipu.api.routes import Routes
from quipu.api.settings import Settings
from quipu.api.shaping import Shapes
from quipu.api.tallies import StreamTallies
from quipu.api.tokens import ADMIN, ANYBODY, Principal, Tokens
from quipu.ledger.words import EventId
from quipu.node.administration import Administration
from quipu.node.service import Draining, Ledger

T = TypeVar("T")
log = logging.getLogger("quipu.api")
_REQUEST_ID = re.compile(r"[\w.:-]{1,64}\Z", re.ASCII)
_BEARER = "Bearer "


@dataclass(slots=True)
class Face:
    ledger: Ledger
    settings: Settings
    routes: Routes
    openapi: bytes
    counters: Counters
    keys: Keys
    shapes: Shapes
    pressure: Pressure
    tokens: Tokens | None
    administration: Administration | None = None
    tallies: StreamTallies = field(default_factory=StreamTallies)
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    under_way: int = 0
    _idle: asyncio.Event = field(default_factory=asyncio.Event)
    _waits: dict[asyncio.Future[bool], asyncio.TimerHandle] = field(default_factory=dict)
    _start: str = field(default_factory=lambda: secrets.token_hex(4))
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @classmethod
    def of(cls, ledger: Ledger, settings: Settings, routes: Routes, openapi: bytes) -> "Face":
        path = settings.tokens_file
        return cls(
            ledger,
            settings,
            routes,
            openapi,
            Counters(),
            Keys(ledger),
            Shapes(ledger),
            Pressure(settings.in_flight_max, settings.in_flight_per_caller_max),
            None if path is None else Tokens(path),
        )

    async def serve(self, routes: Routes, request: web.BaseRequest) -> Response:
        started_s = time.perf_counter()
        self.under_way += 1
        identity = self.request_id(request)
        operation, endpoint, principal = "unknown", None, None
        try:
            endpoint, argument = routes.find(request.method, request.path)
            operation = endpoint.name
            if len(request.rel_url.raw_query_string) > limits.QUERY_BYTES_MAX:
                raise Problem(Code.BAD_REQUEST, "the query string is too long")
            principal = ANYBODY if routes.is_private else self.identify(request, endpoint)
            call = Call(self, request, endpoint, argument, principal, identity, routes.is_private)
            response = await endpoint.run(call)
        except (ConnectionError, web.HTTPException):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it was, the caller is told
            response = problem_response(self.explained(error, identity), identity, request)
        finally:
            self.ended()
        if not response.prepared:
            response.headers["X-Request-Id"] = identity
        self.counters.answered(operation, response.status, time.perf_counter() - started_s)
        if endpoint is not None and endpoint.scope == ADMIN:
            who = audit.who(request, principal, self.settings)
            audit.noted(endpoint, request, who, response.status, identity)
        return response

    def ended(self) -> None:
        """One that was under way has its answer."""
        self.under_way -= 1
        if not self.under_way and self.closing.is_set():
            self._idle.set()

    def explained(self, error: BaseException, identity: str) -> Problem:
        if isinstance(error, Problem):
            return error
        if isinstance(error, FAULTS):
            return self._translated(error, identity)
        log.error("request %s failed", identity, exc_info=error)
        return Problem(Code.INTERNAL)

    def room(self, call: Call, size: int) -> "Admitted":
        """The same for so many bytes of a body that goes on."""
        return Admitted(self, call, size)

    def admitted(self, call: Call, bytes_max: int) -> "Admitted":
        """Room for one more submission, decided before its body is read."""
        length = call.request.content_length
        return Admitted(self, call, bytes_max if length is None else min(length, bytes_max))

    @property
    def draining(self) -> bool:
        return self.closing.is_set()

    def close(self) -> None:
        """From now on nothing new is taken, and whoever waits is answered."""
        self.closing.set()
        for answer in list(self._waits):
            _give_up(answer)

    async def drained(self, seconds: float) -> bool:
        """Whether all that was under way has been answered by then."""
        if self.under_way:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), seconds)
        return not self.under_way

    def read_within(self, event: EventId, seconds: float) -> asyncio.Future[bool]:
        """Whether it is Read: told when it is, when the time is over and when the node stops."""
        return self._within(self.ledger.when_read(event), seconds)

    def ordered_within(self, event: EventId, seconds: float) -> asyncio.Future[bool]:
        """The same for its place in the cluster journal."""
        return self._within(self.ledger.order.when_ordered(event), seconds)

    def _within(self, answer: asyncio.Future[bool], seconds: float) -> asyncio.Future[bool]:
        if self.closing.is_set():
            _give_up(answer)
        if not answer.done():
            loop = asyncio.get_running_loop()
            self._waits[answer] = loop.call_later(seconds, _give_up, answer)
            answer.add_done_callback(self._waited)
        return answer

    def _waited(self, answer: asyncio.Future[bool]) -> None:
        self._waits.pop(answer).cancel()

    async def unless_closing(self, waited: Coroutine[Any, Any, T], seconds: float) -> T | None:
        """What was waited for; None where the time is over or the node stops."""
        wanted = asyncio.ensure_future(waited)
        closing = asyncio.ensure_future(self.closing.wait())
        try:
            await asyncio.wait(
                (wanted, closing), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            return wanted.result() if wanted.done() else None
        finally:
            wanted.cancel()
            closing.cancel()

    async def count_streams(self) -> None:
        """Goes on where the last count ended; a long way takes many turns of the loop."""
        while True:
            if self.tallies.advance(self.ledger, limits.STREAM_COUNT_STEP):
                return
            await asyncio.sleep(0)

    def request_id(self, request: web.BaseRequest) -> str:
        given = request.headers.get("X-Request-Id")
        if given is not None and _REQUEST_ID.match(given):
            return given
        return f"{self._start}-{next(self._numbers):x}"

    def identify(self, request: web.BaseRequest, endpoint: Endpoint) -> Principal:
        """Who asks, as the file of tokens says now."""
        if endpoint.is_local:
            self._refuse_from_afar(request)
        if self.tokens is None or endpoint.scope is None:
            return ANYBODY
        given = request.headers.get("Authorization", "")
        if not given.startswith(_BEARER):
            raise Problem(Code.UNAUTHENTICATED, "the request has no bearer token")
        principal = self.tokens.principal(
            given.removeprefix(_BEARER).strip(), time.monotonic(), int(time.time() * 1_000)
        )
        if principal is None:
            if self.tokens.fault:
                log.error("no token is taken: %s", self.tokens.fault)
            raise Problem(Code.UNAUTHENTICATED, "the token is not known, revoked or expired")
        allowed = principal.may(endpoint.scope)
        if not allowed and endpoint.by_stream:
            allowed = bool(principal.streams(endpoint.scope))
        if not allowed:
            raise Problem(Code.FORBIDDEN, f"the scope {endpoint.scope} is needed")
        return principal

    def _refuse_from_afar(self, request: web.BaseRequest) -> None:
        if self.tokens is None:
            detail = "without a file of tokens this is for the admin socket alone"
            raise Problem(Code.FORBIDDEN, detail)
        if not is_of_this_machine(request):
            raise Problem(Code.FORBIDDEN, "this is for callers on the node's own machine")

    def _translated(self, error: BaseException, identity: str) -> Problem:
        found = as_problem(error)
        if found is None or found.code in {Code.STORAGE_FAILED, Code.OUTCOME_UNKNOWN}:
            log.error("request %s: %s: %s", identity, type(error).__name__, error)
        return found or Problem(Code.INTERNAL)


def _give_up(answer: asyncio.Future[bool]) -> None:
    if not answer.done():
        answer.set_result(False)


class Admitted:
    """A context by hand: two generators more cost a submission 10 us."""

    __slots__ = ("_admission", "_bytes", "_call", "_caller", "_face")

    def __init__(self, face: Face, call: Call, body_bytes: int) -> None:
        self._face = face
        self._call = call
        self._bytes = body_bytes
        self._caller = ""

    def __enter__(self) -> None:
        if self._face.closing.is_set():
            raise Draining("the node is stopping")
        self._caller = self._call.principal.name or caller_of(
            self._call.request, self._face.settings.trusted_proxies
        )
        self._face.pressure.enter(self._caller)
        try:
            self._admission = self._face.ledger.admit(self._bytes)
            self._admission.__enter__()
        except BaseException:
            self._face.pressure.leave(self._caller)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._face.pressure.leave(self._caller)
        self._admission.__exit__(kind, error, trace)


def problem_response(
    found: Problem, request_id: str, request: web.BaseRequest | None = None
) -> web.Response:
    response = problem_reply(found, request_id).response()
    if request is not None and not request.content.is_eof():
        response.force_close()  # what is left of the body is not worth reading
    return response


def problem_reply(found: Problem, request_id: str) -> Reply:
    body = found.body(request_id)
    headers = {"Cache-Control": "no-store"}
    if found.retry_after_s:
        headers["Retry-After"] = str(found.retry_after_s)
    if found.allow:
        headers["Allow"] = found.allow
    if found.code is Code.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = 'Bearer realm="quipu"'
    if found.code is Code.UPGRADE_REQUIRED:
        headers["Upgrade"], headers["Connection"] = "websocket", "Upgrade"
    return Reply(body.status, msgspec.json.encode(body), CONTENT_TYPE, headers)
