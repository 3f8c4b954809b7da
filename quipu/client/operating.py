"""Admin verbs: what an operator asks one node to do, which is the first that a client was given.

A node takes them from its own machine alone, with a token of scope admin.
"""

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from quipu.client.transport import READ_ROUNDS, Answer, Transport

T = TypeVar("T")
JSON = "application/json"
OPERATIONS = "/v1/admin/operations"
LAST_REPORT = "/v1/reports/last"


class AsyncOperator:
    _transport: Transport

    async def drain(self) -> Any:
        """The node takes nothing more, finishes what it took, and ends."""
        return await self._admin("POST", "/v1/admin/drain", rounds=1)

    async def reload(self) -> Any:
        """Tokens, certificate, secrets, log level are read again; `faults`: what could not be."""
        return await self._admin("POST", "/v1/admin/reload", rounds=1)

    async def set_log_level(self, level: str) -> Any:
        """debug, info, warning or error, until the next start or reload."""
        return await self._admin("PUT", "/v1/admin/log-level", {"level": level})

    async def keys(self) -> Any:
        """Which keys the node has; no secret is among them."""
        return await self._admin("GET", "/v1/admin/keys")

    async def backup(self, target: str) -> Any:
        """Begins a copy of the last commit under that name in its data directory; `operation`
        tells how far it is. Raises `Conflict` while another one runs."""
        return await self._admin("POST", "/v1/admin/backup", {"target": target}, rounds=1)

    async def export(self, target: str, *, entries: str = "described") -> Any:
        """Begins a signed dump, or adds to one; `entries` may be "with data" or "none"."""
        asked = {"target": target, "entries": entries}
        return await self._admin("POST", "/v1/admin/exports", asked, rounds=1)

    async def scrub(self, *, signatures: bool = False) -> Any:
        """Begins a check of all that is stored, as `backup` begins a copy."""
        path = f"/v1/admin/scrub?signatures={str(signatures).lower()}"
        return await self._admin("POST", path, rounds=1)

    async def prune(
        self, *, keep: str | None = None, keep_mib: int | None = None, dry_run: bool = False
    ) -> Any:
        """Lets go what is older than `keep` ("30d") or what makes the store larger than `keep_mib`,
        else what the settings say; as `backup` begins a copy."""
        said = {"keep": keep, "keep_mib": None if keep_mib is None else str(keep_mib)}
        asked = {name: value for name, value in said.items() if value is not None}
        query = urlencode({**asked, "dry_run": str(dry_run).lower()})
        return await self._admin("POST", f"/v1/admin/prune?{query}", rounds=1)

    async def erase(self, entry_id: str, *, within: str = "30s") -> Any:
        """What the entry says goes, on every node; its place and its proof stay. `erased` is false
        where it `waits_for` something when the time is over. Raises `Conflict`, `NotFound`."""
        path = f"/v1/entries/{quote(entry_id)}?timeout={within}"
        return await self._admin("DELETE", path, rounds=1)

    async def operations(self) -> Any:
        """What runs, and what has ended since the start."""
        return await self._admin("GET", OPERATIONS)

    async def operation(self, operation_id: str) -> Any:
        """Raises `NotFound`."""
        return await self._admin("GET", f"{OPERATIONS}/{operation_id}")

    async def cancel(self, operation_id: str) -> Any:
        """One that has ended stays as it is. Raises `NotFound`."""
        return await self._admin("DELETE", f"{OPERATIONS}/{operation_id}")

    async def journal_recover(self) -> Any:
        """The node votes again, whatever its lost disk has said: see docs/order.md first."""
        return await self._admin("POST", "/v1/admin/journal/recover", rounds=1)

    async def propose_roster(self, change: str, **said: str) -> Any:
        """ "add-member" and "remove-member" with `node`, "replace-member" with `node` and `by`,
        "policy", "checkpoint"; `roster` tells how far it is. Raises `Conflict`."""
        body = {"change": change, **said}
        return await self._admin("POST", "/v1/cluster/roster:propose", body, rounds=1)

    async def recover_roster(self) -> Any:
        """By force: the other members are lost for ever. See docs/cluster.md first. Raises
        `Conflict` where enough of them answer."""
        return await self._admin("POST", "/v1/cluster/roster:recover", {"force": True}, rounds=1)

    async def journal_propose(self, kind: str, nodes: Sequence[str], *, within: str = "30s") -> Any:
        """A change of the configuration, such as "serializers" or "remove-ingest", waited for until
        it has ended or the time is over. Raises `Conflict` where it is refused."""
        path = f"/v1/journal/config:propose?timeout={within}"
        return await self._admin("POST", path, {"kind": kind, "nodes": list(nodes)}, rounds=1)

    async def publish_report(self, report: Mapping[str, Any]) -> None:
        """In place of the one before, durably."""
        await self._admin("PUT", LAST_REPORT, report)

    async def report(self) -> Any:
        """The last one, for which the scope cluster:read will do. Raises `NotFound`."""
        return await self._admin("GET", LAST_REPORT)

    async def _admin(
        self, method: str, path: str, body: Any = None, rounds: int = READ_ROUNDS
    ) -> Any:
        content = None if body is None else msgspec.json.encode(body)
        headers = {} if body is None else {"Content-Type": JSON}
        answer: Answer = await self._transport.ask_first(method, path, content, headers, rounds)
        return msgspec.json.decode(answer.body) if answer.body else None


class Operator(ABC):
    """The same without `await`."""

    _client: AsyncOperator

    def drain(self) -> Any:
        """The node takes nothing more, finishes what it took, and ends."""
        return self._run(self._client.drain())

    def reload(self) -> Any:
        """Tokens, certificate, secrets, log level are read again; `faults`: what could not be."""
        return self._run(self._client.reload())

    def set_log_level(self, level: str) -> Any:
        """debug, info, warning or error, until the next start or reload."""
        return self._run(self._client.set_log_level(level))

    def keys(self) -> Any:
        """Which keys the node has; no secret is among them."""
        return self._run(self._client.keys())

    def backup(self, target: str) -> Any:
        """Begins a copy of the last commit under that name in its data directory; `operation`
        tells how far it is. Raises `Conflict` while another one runs."""
        return self._run(self._client.backup(target))

    def export(self, target: str, *, entries: str = "described") -> Any:
        """Begins a signed dump, or adds to one; `entries` may be "with data" or "none"."""
        return self._run(self._client.export(target, entries=entries))

    def scrub(self, *, signatures: bool = False) -> Any:
        """Begins a check of all that is stored, as `backup` begins a copy."""
        return self._run(self._client.scrub(signatures=signatures))

    def prune(
        self, *, keep: str | None = None, keep_mib: int | None = None, dry_run: bool = False
    ) -> Any:
        """Lets go what is older than `keep` ("30d") or what makes the store larger than `keep_mib`,
        else what the settings say; as `backup` begins a copy."""
        return self._run(self._client.prune(keep=keep, keep_mib=keep_mib, dry_run=dry_run))

    def erase(self, entry_id: str, *, within: str = "30s") -> Any:
        """What the entry says goes, on every node; its place and its proof stay. `erased` is false
        where it `waits_for` something when the time is over. Raises `Conflict`, `NotFound`."""
        return self._run(self._client.erase(entry_id, within=within))

    def operations(self) -> Any:
        """What runs, and what has ended since the start."""
        return self._run(self._client.operations())

    def operation(self, operation_id: str) -> Any:
        """Raises `NotFound`."""
        return self._run(self._client.operation(operation_id))

    def cancel(self, operation_id: str) -> Any:
        """One that has ended stays as it is. Raises `NotFound`."""
        return self._run(self._client.cancel(operation_id))

    def journal_recover(self) -> Any:
        """The node votes again, whatever its lost disk has said: see docs/order.md first."""
        return self._run(self._client.journal_recover())

    def propose_roster(self, change: str, **said: str) -> Any:
        """ "add-member" and "remove-member" with `node`, "replace-member" with `node` and `by`,
        "policy", "checkpoint"; `roster` tells how far it is. Raises `Conflict`."""
        return self._run(self._client.propose_roster(change, **said))

    def recover_roster(self) -> Any:
        """By force: the other members are lost for ever. See docs/cluster.md first. Raises
        `Conflict` where enough of them answer."""
        return self._run(self._client.recover_roster())

    def journal_propose(self, kind: str, nodes: Sequence[str], *, within: str = "30s") -> Any:
        """A change of the configuration, such as "serializers" or "remove-ingest", waited for until
        it has ended or the time is over. Raises `Conflict` where it is refused."""
        return self._run(self._client.journal_propose(kind, nodes, within=within))

    def publish_report(self, report: Mapping[str, Any]) -> None:
        """In place of the one before, durably."""
        self._run(self._client.publish_report(report))

    def report(self) -> Any:
        """The last one, for which the scope cluster:read will do. Raises `NotFound`."""
        return self._run(self._client.report())

    @abstractmethod
    def _run(self, wanted: Coroutine[Any, Any, T]) -> T: ...
