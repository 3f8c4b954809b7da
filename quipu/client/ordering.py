"""What a client asks about the one order of the cluster."""

import base64
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class AsyncOrder(ABC):
    async def journal(self) -> Any:
        """How far the order is, as the node that answers sees it, and who leads it."""
        return await self._json("/v1/journal")

    async def journal_entries(self, *, after: int = 0, limit: int = 100) -> Any:
        """Entries of the log above that index, the same on every node."""
        return await self._json("/v1/journal/entries", {"after": after, "limit": limit})

    async def roster(self) -> Any:
        """Who is a member, who votes, and the change of the roster that is under way."""
        return await self._json("/v1/cluster/roster")

    async def journal_config(self) -> Any:
        """What each member does, and the change of the configuration that is in flight."""
        return await self._json("/v1/journal/config")

    async def sequences(self, *, after: str = "", limit: int = 100) -> Any:
        """The sequences by name, as the node that answers has applied them."""
        return await self._json("/v1/sequences", {"after": after, "limit": limit})

    async def sequence(self, name: str, *, consistency: str = "local") -> Any:
        """How far it is, and who holds its lock; "linear": as acknowledged anywhere before.
        Raises `NotFound` where nothing was ever published."""
        return await self._json(f"/v1/sequences/{name}", {"consistency": consistency})

    async def sequence_number(self, name: str, number: int | str) -> Any:
        """What was published under that number: its digest, and the running one. Raises `NotFound`
        where nothing is yet, `Gone` where it is not held any more."""
        return await self._json(f"/v1/sequences/{name}/{number}")

    async def sequence_publish(
        self,
        name: str,
        data: Any = None,
        *,
        digest: str | None = None,
        token: str | None = None,
        number: str | None = None,
    ) -> Any:
        """The next number, for the digest or for that of `data` (JSON, or bytes); with `token` and
        `number` under a lock. Never sent twice: raises `Undecided` where the answer was lost."""
        body: dict[str, Any] = {"token": token, "number": number, "digest": digest}
        body = {key: value for key, value in body.items() if value is not None}
        if digest is None:
            packed = base64.b64encode(data).decode() if isinstance(data, bytes) else None
            body |= {"data": data} if packed is None else {"data_base64": packed}
        return await self._order(f"/v1/sequences/{name}:publish", body)

    async def sequence_lock(self, name: str, count: int = 1) -> Any:
        """The next 1 to 64 numbers for the token in the answer. Raises `Conflict` where another
        has them."""
        return await self._order(f"/v1/sequences/{name}:lock", {"count": count})

    async def sequence_release(self, name: str, token: str) -> Any:
        """Gives back what was not published."""
        return await self._order(f"/v1/sequences/{name}:release", {"token": token})

    @abstractmethod
    async def _order(self, path: str, body: Mapping[str, Any]) -> Any:
        """A POST that goes to one node, once."""

    @abstractmethod
    async def _json(
        self,
        path: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """What a GET answers."""


class Order(ABC):
    """The same without `await`."""

    _client: AsyncOrder

    def journal(self) -> Any:
        """How far the order is, as the node that answers sees it, and who leads it."""
        return self._run(self._client.journal())

    def journal_entries(self, *, after: int = 0, limit: int = 100) -> Any:
        """Entries of the log above that index, the same on every node."""
        return self._run(self._client.journal_entries(after=after, limit=limit))

    def roster(self) -> Any:
        """Who is a member, who votes, and the change of the roster that is under way."""
        return self._run(self._client.roster())

    def journal_config(self) -> Any:
        """What each member does, and the change of the configuration that is in flight."""
        return self._run(self._client.journal_config())

    def sequences(self, *, after: str = "", limit: int = 100) -> Any:
        """The sequences by name, as the node that answers has applied them."""
        return self._run(self._client.sequences(after=after, limit=limit))

    def sequence(self, name: str, *, consistency: str = "local") -> Any:
        """How far it is, and who holds its lock; "linear": as acknowledged anywhere before.
        Raises `NotFound` where nothing was ever published."""
        return self._run(self._client.sequence(name, consistency=consistency))

    def sequence_number(self, name: str, number: int | str) -> Any:
        """What was published under that number: its digest, and the running one. Raises `NotFound`
        where nothing is yet, `Gone` where it is not held any more."""
        return self._run(self._client.sequence_number(name, number))

    def sequence_publish(
        self,
        name: str,
        data: Any = None,
        *,
        digest: str | None = None,
        token: str | None = None,
        number: str | None = None,
    ) -> Any:
        """The next number, for the digest or for that of `data` (JSON, or bytes); with `token` and
        `number` under a lock. Never sent twice: raises `Undecided` where the answer was lost."""
        wanted = self._client.sequence_publish(
            name, data, digest=digest, token=token, number=number
        )
        return self._run(wanted)

    def sequence_lock(self, name: str, count: int = 1) -> Any:
        """The next 1 to 64 numbers for the token in the answer. Raises `Conflict` where another
        has them."""
        return self._run(self._client.sequence_lock(name, count))

    def sequence_release(self, name: str, token: str) -> Any:
        """Gives back what was not published."""
        return self._run(self._client.sequence_release(name, token))

    @abstractmethod
    def _run(self, wanted: Coroutine[Any, Any, T]) -> T: ...
