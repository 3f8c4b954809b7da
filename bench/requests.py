"""Requests as they go over the wire, encoded before anything is measured."""

import json

HOST = "Host: 127.0.0.1\r\n"
JSON = "Content-Type: application/json\r\n"


def value_of(size: int) -> str:
    """A JSON value of so many bytes."""
    return '"' + "x" * (size - 2) + '"'


def entry_of(stream: str, size: int) -> str:
    return f'{{"stream":"{stream}","data":{value_of(size)}}}'


def post(stream: str, size: int) -> bytes:
    return _posted("/v1/entries", entry_of(stream, size))


def batch(stream: str, size: int, count: int) -> bytes:
    return _posted("/v1/entries:batch", "[" + ",".join([entry_of(stream, size)] * count) + "]")


def lines(stream: str, size: int) -> list[bytes]:
    """The header of an NDJSON stream, and one line of it."""
    head = (
        f"POST /v1/entries:batch HTTP/1.1\r\n{HOST}Content-Type: application/x-ndjson\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    return [head.encode(), entry_of(stream, size).encode() + b"\n"]


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\n{HOST}\r\n".encode()


def ids_of(bodies: list[bytes]) -> list[str]:
    """Of the entries that these answers acknowledge."""
    found: list[str] = []
    for body in bodies:
        answer = json.loads(body)
        results = answer.get("results", [answer]) if isinstance(answer, dict) else answer
        found += [result["id"] for result in results]
    return found


def _posted(path: str, body: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\n{HOST}{JSON}Content-Length: {len(body)}\r\n\r\n"
    return (head + body).encode()
