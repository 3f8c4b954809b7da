"""What `Clients` promises, on the registry of the journal, the order and the executor."""

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from quipu.ledger import limits as ledger_limits
from quipu.ledger import signing
from quipu.ledger.order import clients as orders
from quipu.ledger.order.client_items import (
    AccessList,
    AddClient,
    ChangeRights,
    ClientItem,
    ReadResults,
    RemoveClient,
    SigType,
    encode_client_item,
    signed_read,
)
from quipu.ledger.order.journal import Done
from quipu.ledger.order.registry import (
    Listed,
    ReadOrdered,
    Registered,
    Registry,
    RegistryRefusal,
    Removed,
    RightsChanged,
)
from quipu.node import limits
from quipu.node.client_service import (
    ClientRefused,
    ClientRequest,
    ClientStanding,
    ClientView,
    Executed,
    ExecutorStatus,
    NoExecutor,
)
from quipu.node.execution import Asked, Execution
from quipu.node.running_order import RunningOrder
from quipu.storage.executors.acl import EVERYTHING, decode_acl
from quipu.storage.executors.desk import Standing, content_digest, messages_of
from quipu.storage.executors.executor import RequestRefused
from quipu.storage.executors.outcome import Answer, Code, Kept, Value
from quipu.storage.executors.reader import QueryFailed, Table
from quipu.storage.executors.request import ClientId, MessageId, Request
from quipu.storage.executors.sqlite_executor import SqliteExecutor

T = TypeVar("T")


@dataclass(slots=True)
class RunningClients:
    order: RunningOrder
    execution: Execution

    # --- who ------------------------------------------------------------------------------------
    @property
    def _registry(self) -> Registry:
        return self.order.machine.ordering.journal.registry

    @property
    def _cluster_id(self) -> bytes:
        return self.order.machine.view.epochs.cluster_id

    def find(self, number: int) -> ClientView | None:
        found = self._registry.clients.get(orders.ClientId(number))
        if found is None:
            return None
        return ClientView(number, found.acl, found.sig_type, found.public, found.removed)

    def status(self) -> ExecutorStatus:
        return self.execution.status()

    async def standing(self, number: int) -> ClientStanding | None:
        def look(executor: SqliteExecutor) -> ClientStanding | None:
            found = executor.standing(ClientId(number))
            if found is None:
                return None
            return ClientStanding(
                found.next_id, found.have, found.proof, executor.rules(ClientId(number))
            )

        return await self.execution.ask(look)

    async def add(self, public: bytes, rules: bytes | None, acl: bytes | None) -> ClientView:
        if len(public) != signing.KEY_BYTES:
            raise ClientRefused(RegistryRefusal.BAD_KEY, "an Ed25519 key has 32 bytes")
        acl = await self._list(rules) if acl is None else acl
        outcome = await self._ordered(AddClient(acl, SigType.ED25519, public))
        assert isinstance(outcome, Registered)
        await self._reached()
        return self._found(outcome.client)

    async def change_rights(
        self, number: int, rules: bytes | None, acl: bytes | None
    ) -> ClientView:
        self._known(number)  # else a list would be left that nobody names
        acl = await self._list(rules) if acl is None else acl
        outcome = await self._ordered(ChangeRights(number, acl))
        assert isinstance(outcome, RightsChanged)
        await self._reached()
        return self._found(number)

    async def _list(self, rules: bytes | None) -> bytes:
        listed = await self._ordered(AccessList(rules or b""))
        assert isinstance(listed, Listed)
        return listed.acl

    async def remove(self, number: int) -> ClientView:
        outcome = await self._ordered(RemoveClient(number))
        assert isinstance(outcome, Removed)
        await self._reached()
        return self._found(number)

    async def _reached(self) -> None:
        """So that whoever has registered a client can ask about it at once."""
        with suppress(NoExecutor):
            await _within(self.execution.reach(self.order.machine.ordering.journal.applied))

    def _found(self, number: int) -> ClientView:
        found = self.find(number)
        assert found is not None  # its item is applied here
        return found

    async def _ordered(self, item: ClientItem) -> Done:
        _, outcome = await self.order.ordered(encode_client_item(item))
        if isinstance(outcome, RegistryRefusal):
            raise ClientRefused(outcome)
        return outcome

    # --- requests -------------------------------------------------------------------------------
    async def check(self, request: ClientRequest, *, is_again: bool = False) -> Executed | None:
        known = self._known(request.client)
        if not 1 <= request.message_id < ledger_limits.SEQUENCE_NUMBER_MAX:
            raise ClientRefused(Code.BAD_ID, "ids begin at 1")
        asked = _asked(request)
        of_client = orders.ClientId(request.client)
        signed = orders.Request(of_client, request.message_id, asked.digest, request.signature)
        text = orders.signed_request(self._cluster_id, signed)
        if request.sig_type != known.sig_type or not signing.verify(
            known.public, text, request.signature
        ):
            raise ClientRefused(Code.BAD_SIGNATURE, "not by the key of that client")
        if self.execution.executor is None:
            return None  # it will be judged where one runs
        if not self.execution.is_next(request.client, request.message_id):
            before = await self.execution.ask(partial(_executed, asked))
            if before is not None:
                return before
        if is_again:
            return None
        await self._validate(request)
        return None

    def _known(self, number: int) -> ClientView:
        refusal = self._registry.refusal(orders.ClientId(number))
        if refusal is not None:
            raise ClientRefused(refusal, f"client {number}")
        return self._found(number)

    async def _validate(self, request: ClientRequest) -> None:
        executor, messages = self.execution.check(), messages_of(request.data)
        wanted = Request(request.client, request.message_id, messages)
        try:
            if not executor.reader.validate_at_once(wanted):
                await asyncio.to_thread(executor.validate, wanted)
        except RequestRefused as refused:
            if refused.code is Code.UNKNOWN_CLIENT:
                return  # added a moment ago
            if refused.code is Code.RESULTS_UNREAD:
                raise ClientRefused(refused.code, refused.detail) from refused
            detail = f"message {refused.message}: {refused.code}: {refused.detail}"
            why = refused.code if refused.code is Code.NOT_DETERMINISTIC else "statement-refused"
            raise ClientRefused(why, detail) from refused

    def when_executed(self, request: ClientRequest) -> asyncio.Future[Executed]:
        return self.execution.when_executed(_asked(request))

    def is_executed(self, client: int, message_id: int) -> bool:
        return self.execution.watermarks.get(client, 0) >= message_id

    # --- results --------------------------------------------------------------------------------
    async def results(self, client: int, upto: int, have: int, signature: bytes) -> Answer:
        known = self._known(client)
        text = signed_read(self._cluster_id, client, upto, have)
        if not signing.verify(known.public, text, signature):
            raise ClientRefused(Code.BAD_SIGNATURE, "not by the key of that client")
        item = ReadResults(client, upto, have, signature)
        answer = self.execution.when_read(encode_client_item(item))
        try:
            ordered = await self._ordered(item)
            assert isinstance(ordered, ReadOrdered)
            return await _within(answer)
        finally:
            answer.cancel()

    async def query(self, sql: str, parameters: Sequence[Value], client: int | None) -> Table:
        executor, rights = self.execution.check(), EVERYTHING
        if client is not None:
            self._known(client)
            standing = await self.standing(client)
            if standing is None:
                raise NoExecutor(f"client {client} is not executed here yet", may_come=True)
            rights = decode_acl(standing.rules)
        try:
            return await asyncio.to_thread(executor.reader.query, sql, parameters, rights)
        except QueryFailed as failed:
            raise ClientRefused("statement-refused", f"{failed.code}: {failed.detail}") from failed

    async def linear(self) -> None:
        self.execution.check()
        await self.order.linear()
        await _within(self.execution.reach(self.order.machine.ordering.journal.applied))


def _asked(request: ClientRequest) -> Asked:
    return Asked(request.client, request.message_id, content_digest(request.data))


def _executed(asked: Asked, executor: SqliteExecutor) -> Executed | None:
    """Raises `ClientRefused` for what the executor would not take now."""
    client, message = ClientId(asked.client), MessageId(asked.message_id)
    standing = executor.standing(client)
    if standing is None:
        return None
    _refuse(standing, asked.message_id)
    if executor.signed_digest(client, message) != asked.digest:
        return None  # not there, or another content: that is for the order to find out
    found = executor.result(client, message)
    return Executed(found.outcome) if isinstance(found, Kept) else None


def _refuse(standing: Standing, message_id: int) -> None:
    if standing.proof:
        raise ClientRefused(Code.TERMINATED, "two of its requests have one id")
    if message_id <= standing.have:
        raise ClientRefused(Code.RELEASED, f"the client holds the results up to {standing.have}")
    if message_id >= standing.next_id + ledger_limits.CLIENT_AHEAD_MAX:
        raise ClientRefused(Code.TOO_FAR_AHEAD, f"{standing.next_id} is next")


async def _within(answer: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(limits.EXECUTED_WAIT_S):
            return await answer
    except TimeoutError as error:
        raise NoExecutor("the executor is behind the order", may_come=True) from error
