"""/openapi.json, generated from the table of endpoints and the models: it lists what is built."""

from collections.abc import Iterable
from typing import Any

import msgspec

from quipu import __version__
from quipu.api.calls import Answer, Endpoint, RequestBody
from quipu.api.codes import KINDS, Code
from quipu.api.parameters import HEADERS, PLACES, meaning_of
from quipu.api.problems import CONTENT_TYPE, ProblemBody

REF = "#/components/schemas/{name}"
PROBLEM = {"$ref": REF.format(name="ProblemBody")}
ANY_CODES = (Code.BAD_REQUEST, Code.NOT_ACCEPTABLE, Code.INTERNAL, Code.STORAGE_FAILED)
TOKEN_CODES = (Code.UNAUTHENTICATED, Code.FORBIDDEN)
QUERY_CODES = (Code.INVALID_PARAMETER, Code.UNKNOWN_PARAMETER)


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    listed = tuple(endpoints)
    schemas = _schemas(listed)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in listed:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Quipu",
            "version": __version__,
            "description": "A replicated, tamper-evident, append-only ledger.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _models(endpoints: Iterable[Endpoint]) -> list[Any]:
    found: dict[Any, None] = {ProblemBody: None}
    for endpoint in endpoints:
        if endpoint.body is not None:
            found[endpoint.body.model] = None
        for answer in endpoint.answers:
            if answer.model not in {None, bytes, str, dict}:
                found[answer.model] = None
    return list(found)


def _schemas(endpoints: tuple[Endpoint, ...]) -> dict[str, Any]:
    _, components = msgspec.json.schema_components(_models(endpoints), ref_template=REF)
    components["ProblemBody"]["properties"]["code"] = {"enum": [str(code) for code in Code]}
    return dict(sorted(components.items()))


def _schema(model: Any) -> dict[str, Any]:
    if model is bytes:
        return {}
    if model is str:
        return {"type": "string"}
    if model is dict:
        return {"type": "object"}
    (schema,), _ = msgspec.json.schema_components([model], ref_template=REF)
    return schema


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    parameters = [*path_parameters(endpoint), *query_parameters(endpoint), *_headers(endpoint)]
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        "responses": _responses(endpoint, bool(parameters)),
    }
    if parameters:
        operation["parameters"] = parameters
    if endpoint.body is not None:
        operation["requestBody"] = _request_body(endpoint.body)
    if endpoint.scope is not None:
        operation["security"] = [{"token": []}, {}]
        operation["x-scope"] = endpoint.scope
    return operation


def path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    if "{" not in endpoint.path:
        return []
    found = []
    for end in (at for at, character in enumerate(endpoint.path) if character == "}"):
        place, name = PLACES[endpoint.path[: end + 1]], endpoint.path[:end].rpartition("{")[2]
        schema = {"type": "string", "pattern": place.pattern}
        found.append(_parameter(name, "path", schema, place.meaning))
    return found


def query_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    if endpoint.query is None:
        return []
    _, components = msgspec.json.schema_components([endpoint.query], ref_template=REF)
    given = components[endpoint.query.__name__]
    required = given.get("required", ())
    return [
        _parameter(name, "query", _given(schema), meaning_of(endpoint.name, name), name in required)
        for name, schema in given["properties"].items()
    ]


def _parameter(
    name: str, place: str, schema: dict[str, Any], meaning: str, required: bool = False
) -> dict[str, Any]:
    return {
        "name": name,
        "in": place,
        "required": required or place == "path",
        "description": meaning,
        "schema": schema,
    }


def _given(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter is left out, never null."""
    plain = {key: value for key, value in schema.items() if value is not None}
    kinds = [kind for kind in plain.pop("anyOf", []) if kind != {"type": "null"}]
    return {**plain, **kinds[0]} if len(kinds) == 1 else plain


def _headers(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        _parameter(name, "header", {"type": "string"}, meaning)
        for name, meaning in HEADERS.get(endpoint.name, {}).items()
    ]


def _request_body(body: RequestBody) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for kind in body.media_types:
        named: dict[str, Any] = {"schema": _body_schema(kind, body)}
        if kind in body.examples:
            named["example"] = body.examples[kind]
        content[kind] = named
    return {"required": True, "content": content}


def _body_schema(kind: str, body: RequestBody) -> dict[str, Any]:
    if kind == "application/json":
        return _schema(body.model)
    if kind.startswith("application/cloudevents"):
        event = {
            "type": "object",
            "required": ["specversion", "id", "source", "type"],
            "properties": {
                "specversion": {"const": "1.0"},
                "id": {"type": "string", "minLength": 1},
                "source": {"type": "string", "minLength": 1},
                "type": {"type": "string", "minLength": 1},
                "time": {"type": ["string", "null"], "format": "date-time"},
            },
        }
        return {"type": "array", "items": event} if "batch" in kind else event
    return {}


def _responses(endpoint: Endpoint, has_parameters: bool) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for answer in endpoint.answers:
        responses[str(answer.status)] = _success(endpoint, answer)
    codes = [*endpoint.codes, *ANY_CODES]
    if endpoint.scope is not None:
        codes += TOKEN_CODES
    if has_parameters or endpoint.query is None:
        codes += QUERY_CODES
    by_status: dict[int, list[Code]] = {}
    for code in sorted(set(codes)):
        by_status.setdefault(KINDS[code].status, []).append(code)
    for status, alike in sorted(by_status.items()):
        if str(status) in responses:
            continue
        responses[str(status)] = {
            "description": "; ".join(f"{code}: {KINDS[code].title}" for code in alike),
            "content": {CONTENT_TYPE: {"schema": PROBLEM}},
        }
    return responses


def _success(endpoint: Endpoint, answer: Answer) -> dict[str, Any]:
    described: dict[str, Any] = {"description": answer.meaning}
    if answer.model is not None:
        schema = _schema(answer.model)
        described["content"] = {
            kind: {"schema": schema if kind == "application/json" else {}}
            for kind in answer.media_types or endpoint.offers
        }
    return described
