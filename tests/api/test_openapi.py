"""/openapi.json lists what is built, and what it shows works; and the pages beside it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quipu.api.codes import Code
from quipu.api.openapi import document, query_parameters
from quipu.api.parameters import HEADERS, MEANINGS, MEANINGS_OF_ONE
from quipu.api.table import ADMIN, API, OPS
from quipu.api.tokens import new_token
from tests.api.administered import administration_in
from tests.api.talk import FREE, Talk, talking

LISTED = API + ADMIN
DOCUMENT = document(LISTED)
READ = "?upto=2&signature=" + "00" * 64
NEEDED = {  # parameters without which nothing goes
    "diff": "?peer=1",
    "events": "?prefix=0000",
    "client_results": READ,
}


def test_it_lists_every_endpoint_once() -> None:
    listed = {
        (method.upper(), path) for path, found in DOCUMENT["paths"].items() for method in found
    }
    assert listed == {(e.method, e.path) for e in LISTED}
    names = [e.name for e in LISTED]
    assert len(names) == len(set(names))


def test_every_reference_leads_somewhere() -> None:
    text = json.dumps(DOCUMENT)
    for part in text.split('"$ref": "')[1:]:
        name = part.partition('"')[0].removeprefix("#/components/schemas/")
        assert name in DOCUMENT["components"]["schemas"]


def test_every_parameter_says_what_it_means() -> None:
    given = [
        (operation["operationId"], one["name"], one.get("description", ""))
        for methods in document(LISTED + OPS)["paths"].values()
        for operation in methods.values()
        for one in operation.get("parameters", [])
    ]
    assert len(given) > 30
    assert [one for one in given if not one[2]] == []


def test_no_meaning_is_left_over() -> None:
    used = {f"{e.name}.{one['name']}" for e in LISTED + OPS for one in query_parameters(e)}
    assert set(MEANINGS_OF_ONE) <= used
    assert set(MEANINGS) <= {name.partition(".")[2] for name in used}
    assert set(HEADERS) <= {endpoint.name for endpoint in LISTED}


def test_codes_of_the_document_are_the_closed_list() -> None:
    body = DOCUMENT["components"]["schemas"]["ProblemBody"]
    assert body["properties"]["code"]["enum"] == [str(code) for code in Code]


@asynccontextmanager
async def administered(folder: Path) -> AsyncIterator[Talk]:
    """With a token that may do everything."""
    token = new_token(folder / "tokens.json", "root", ["admin"])
    settings = replace(FREE, tokens_file=folder / "tokens.json")
    administration, _ = administration_in(folder)
    async with talking(settings, administration=administration) as api:
        api.headers = {"Authorization": f"Bearer {token}"}
        yield api
        await administration.close()


async def _ready(api: Talk) -> str:
    await api.post("/v1/sequences/billing:lock", b"{}")
    return await api.stored({"order": 7}, stream="orders")


@pytest.mark.parametrize("endpoint", [e for e in LISTED if e.method == "GET"], ids=lambda e: e.name)
async def test_what_is_read_has_a_listed_status_and_the_listed_fields(
    endpoint: Any, tmp_path: Path
) -> None:
    async with administered(tmp_path) as api:
        identity = await _ready(api)
        if endpoint.name == "follow":
            url = f"{api.running.url}{endpoint.path}"
            async with api.session.get(url, headers=api.headers) as response:
                assert response.status == 200
            return
        argument = identity if "/entries/" in endpoint.path else identity[:64]
        if endpoint in ADMIN:
            argument = (await api.post("/v1/admin/scrub", b"")).json["id"]
            await api.ask("PUT", "/v1/reports/last", b"{}", Content_Type="application/json")
        await api.ask("PUT", "/v1/consumers/billing", b'{"cursor":"now"}')
        path = endpoint.path.replace("{id}", argument).replace("{code}", "not-found")
        path = path.replace("{name}", "billing").replace("{number}", "1")
        path += NEEDED.get(endpoint.name, "")
        reply = await api.get(path)
        listed = DOCUMENT["paths"][endpoint.path]["get"]["responses"]
        assert str(reply.status) in listed
        if endpoint.name == "ingest":  # 101 is for WebSockets: see test_ingest.py
            assert (reply.status, "101" in listed) == (426, True)
            return
        content = listed["200"]["content"]
        kind = reply.headers["Content-Type"].partition(";")[0]
        assert kind in content
        reference = content[kind]["schema"].get("$ref")
        if reference is not None:
            schema = DOCUMENT["components"]["schemas"][reference.rpartition("/")[2]]
            assert set(schema["required"]) <= set(reply.json) <= set(schema["properties"])


EXAMPLES = [
    (method, path, kind, content["example"])
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    for kind, content in operation.get("requestBody", {}).get("content", {}).items()
    if "example" in content
]


@pytest.mark.parametrize(("method", "path", "kind", "example"), EXAMPLES)
async def test_examples_run(
    method: str, path: str, kind: str, example: object, tmp_path: Path
) -> None:
    async with administered(tmp_path) as api:
        body = json.dumps(example).encode()
        await _ready(api)
        path = path.replace("{name}", "billing").replace("{number}", "1")
        reply = await api.ask(method.upper(), path, body, Content_Type=kind)
        assert reply.status in {200, 201, 202, 204}, reply.body


async def test_a_node_without_administration_lists_no_admin_verb() -> None:
    async with talking() as api:
        served = (await api.get("/openapi.json")).json
        assert set(served["paths"]) == {endpoint.path for endpoint in API}
        assert (await api.get("/v1/admin/keys")).code == "not-found"


async def test_the_document_is_served(tmp_path: Path) -> None:
    async with administered(tmp_path) as api:
        served = (await api.get("/openapi.json")).json
        assert served == json.loads(json.dumps(DOCUMENT))
        assert served["openapi"] == "3.1.0"
