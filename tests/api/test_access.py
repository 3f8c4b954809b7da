"""Tokens, scopes, listeners: who is let in and what for."""

from pathlib import Path

import pytest

from quipu.api.server import serve
from quipu.api.settings import PublicWithoutAuth, Settings
from quipu.api.tokens import (
    TokensUnusable,
    WrongToken,
    new_token,
    read_tokens,
    revoke_token,
)
from tests.api.one_node import OneNode
from tests.api.talk import Talk, talking


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.json"


def guarded(path: Path) -> Settings:
    return Settings(port=0, ops_port=0, tokens_file=path)


def bearer(api: Talk, text: str) -> None:
    api.headers = {"Authorization": f"Bearer {text}"}


async def test_scopes(path: Path) -> None:
    writer = new_token(path, "writer", ["entries:write:orders"])
    reader = new_token(path, "reader", ["entries:read:orders"])
    watcher = new_token(path, "watcher", ["cluster:read"])
    admin = new_token(path, "admin", ["admin"])
    async with talking(guarded(path)) as api:
        assert (await api.get("/v1/node")).code == "unauthenticated"
        assert (await api.get("/openapi.json")).status == 200
        assert (await api.get("/problems/forbidden")).status == 200
        bearer(api, writer)
        assert (await api.submit(1, stream="orders")).status == 201
        assert (await api.submit(1, stream="other")).code == "forbidden"
        assert (await api.submit(1)).code == "forbidden"
        batch = await api.post("/v1/entries:batch", [{"data": 1}, {"data": 2, "stream": "orders"}])
        assert [result["status"] for result in batch.json["results"]] == [403, 201]
        assert (await api.get("/v1/entries")).code == "forbidden"
        bearer(api, admin)
        other = await api.stored("secret", stream="other")
        own = await api.stored("open", stream="orders")
        bearer(api, reader)
        streams = {item["stream"] for item in (await api.get("/v1/entries")).json["items"]}
        assert streams == {"orders"}
        assert (await api.get("/v1/entries?stream=other")).code == "forbidden"
        assert (await api.get(f"/v1/entries/{other}")).code == "entry-not-found"
        assert (await api.get(f"/v1/entries/{other}/proof")).code == "entry-not-found"
        assert (await api.get(f"/v1/entries/{own}/status")).status == 200
        rows = (await api.get("/v1/streams")).json["items"]
        assert [row["name"] for row in rows] == ["orders"]
        assert (await api.get("/v1/node")).code == "forbidden"
        bearer(api, watcher)
        assert (await api.get(f"/v1/events/{own[:64]}")).status == 200
        assert (await api.get("/v1/entries")).code == "forbidden"


async def test_submitter_is_the_name_of_the_token_and_scopes_its_keys(path: Path) -> None:
    one = new_token(path, "one", ["admin"])
    two = new_token(path, "two", ["admin"])
    async with talking(guarded(path)) as api:
        bearer(api, one)
        first = await api.stored(1, idempotency_key="k")
        assert (await api.get(f"/v1/entries/{first}")).json["submitter"] == "one"
        bearer(api, two)
        second = await api.stored(2, idempotency_key="k")
        assert second != first
        found = (await api.get("/v1/entries?idempotency_key=k")).json["items"]
        assert [item["id"] for item in found] == [second]
        mine = (await api.get("/v1/entries?submitter=one")).json["items"]
        assert [item["id"] for item in mine] == [first]


async def test_token_is_revoked_and_expires_without_a_restart(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quipu.api.limits.TOKEN_CHECK_S", 0.0)
    text = new_token(path, "app", ["admin"])
    old = new_token(path, "old", ["admin"], expires_ms=1)
    async with talking(guarded(path)) as api:
        bearer(api, old)
        assert (await api.get("/v1/node")).code == "unauthenticated"
        bearer(api, text)
        assert (await api.get("/v1/node")).status == 200
        assert revoke_token(path, "app")
        assert (await api.get("/v1/node")).code == "unauthenticated"
        later = new_token(path, "later", ["admin"])
        bearer(api, later)
        assert (await api.get("/v1/node")).status == 200
        path.write_text("{")
        assert (await api.get("/v1/node")).code == "unauthenticated"
        path.unlink()
        assert (await api.get("/v1/node")).code == "unauthenticated"


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic eDp5", "Bearer quipu_wrong", "Bearer \u00e9"]
)
async def test_wrong_token(path: Path, header: str) -> None:
    new_token(path, "app", ["admin"])
    async with talking(guarded(path)) as api:
        reply = await api.get("/v1/node", Authorization=header)
        assert (reply.status, reply.code) == (401, "unauthenticated")
        assert reply.headers["WWW-Authenticate"].startswith("Bearer")


def test_file_of_tokens(path: Path) -> None:
    text = new_token(path, "app", ["entries:write:orders", "cluster:read"])
    assert path.stat().st_mode & 0o777 == 0o600
    assert text not in path.read_text()
    assert [record.name for record in read_tokens(path)] == ["app"]
    assert not revoke_token(path, "nobody")
    for name, scopes in (
        ("app", ["admin"]),
        ("b d", ["admin"]),
        ("x", []),
        ("x", ["entries"]),
        ("x", ["entries:write:BAD"]),
        ("x", ["admin:orders"]),
    ):
        with pytest.raises(WrongToken):
            new_token(path, name, scopes)


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"version":2,"tokens":[]}', '{"version":1,"tokens":[{"name":"x"}]}', '{"x":1}'],
)
async def test_unusable_file_of_tokens_stops_the_start(path: Path, content: str) -> None:
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(TokensUnusable, match=r"tokens\.json"):
        await serve(OneNode(), guarded(path))


async def test_file_that_others_can_read_is_refused(path: Path) -> None:
    new_token(path, "app", ["admin"])
    path.chmod(0o640)
    with pytest.raises(TokensUnusable, match="chmod 600"):
        await serve(OneNode(), guarded(path))
    path.unlink()
    with pytest.raises(TokensUnusable, match="No such file"):
        await serve(OneNode(), guarded(path))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
async def test_public_address_without_tokens_is_refused(host: str) -> None:
    with pytest.raises(PublicWithoutAuth, match="--insecure"):
        await serve(OneNode(), Settings(host=host, port=0))


async def test_public_address_with_tokens_or_insecure(path: Path) -> None:
    new_token(path, "app", ["admin"])
    for settings in (
        Settings(host="0.0.0.0", port=0, ops_port=None, insecure=True),
        Settings(host="0.0.0.0", port=0, ops_port=None, tokens_file=path),
    ):
        running = await serve(OneNode(), settings)
        assert running.ops_url is None
        await running.stop(0)
        await running.stop(0)


async def test_occupied_port_is_an_error_of_the_system() -> None:
    async with talking() as api:
        port = int(api.running.url.rpartition(":")[2])
        with pytest.raises(OSError, match=str(port)):
            await serve(OneNode(), Settings(port=port, ops_port=0))


async def test_health() -> None:
    async with talking() as api:
        for probe in ("livez", "readyz", "startupz", "readyz?for=read"):
            reply = await api.ops(f"/{probe}")
            assert (reply.status, reply.json["status"], reply.json["checks"]) == (200, "ok", [])
        assert len((await api.ops("/readyz?verbose")).json["checks"]) == 3
        api.node.ready = False
        full = await api.ops("/readyz")
        assert (full.status, full.json["checks"][0]["name"]) == (503, "store")
        assert (await api.ops("/livez")).status == 200
        assert (await api.ops("/readyz?for=reading")).code == "invalid-parameter"
        assert (await api.ops("/v1/node")).code == "not-found"
        assert (await api.get("/metrics")).code == "not-found"
    async with talking(node=OneNode(size=3)) as api:
        assert (await api.ops("/readyz?for=read")).status == 503


async def test_metrics() -> None:
    async with talking() as api:
        await api.submit(1)
        text = (await api.ops("/metrics")).body.decode()
        for line in (
            "quipu_entries_stored_total 1.0",
            "quipu_feed_number",
            'quipu_commit_seconds_bucket{le="+Inf"} 2.0',
            'quipu_refused_total{reason="bad-entry"} 1.0',
            'quipu_http_requests_total{operation="submit",status="201"} 1.0',
            'quipu_http_request_seconds_count{operation="submit"} 1.0',
            "quipu_http_connections 1.0",
        ):
            assert line in text
