"""Requests as they go over the wire, encoded before anything is measured."""

import json

import msgspec

HOST = "Host: 127.0.0.1\r\n"
JSON = "Content-Type: application/json\r\n"
BINARY_MASKED = b"\x82\xff"  # one whole message; its length follows in 8 bytes, then the mask
NO_MASK = bytes(4)


def value_of(size: int) -> str:
    """A JSON value of so many bytes."""
    return '"' + "x" * (size - 2) + '"'


def entry_of(stream: str, size: int) -> str:
    return f'{{"stream":"{stream}","data":{value_of(size)}}}'


def post(stream: str, size: int, query: str = "") -> bytes:
    return posted(f"/v1/entries{query}", entry_of(stream, size))


def batch(stream: str, size: int, count: int, query: str = "") -> bytes:
    body = "[" + ",".join([entry_of(stream, size)] * count) + "]"
    return posted(f"/v1/entries:batch{query}", body)


def lines(stream: str, size: int, count: int) -> list[bytes]:
    """The header of an NDJSON stream, and so many lines of it as one chunk."""
    head = (
        f"POST /v1/entries:batch HTTP/1.1\r\n{HOST}Content-Type: application/x-ndjson\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    chunk = (entry_of(stream, size) + "\n") * count
    return [head.encode(), f"{len(chunk):x}\r\n{chunk}\r\n".encode()]


def frames(stream: str, size: int, count: int, query: str = "") -> list[bytes]:
    """The upgrade to a WebSocket, and one frame of ingest. Its mask is zero: a generator that has
    to turn every byte would measure itself."""
    head = (
        f"GET /v1/ingest?stream={stream}{query} HTTP/1.1\r\n{HOST}Upgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    payload = msgspec.msgpack.encode([0, [[value_of(size).encode()]] * count])
    return [head.encode(), BINARY_MASKED + len(payload).to_bytes(8) + NO_MASK + payload]


def publish(sequence: str) -> bytes:
    """Lock the next number and publish it, in one."""
    return posted(f"/v1/sequences/{sequence}:publish", '{"data":"x"}')


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


def posted(path: str, body: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\n{HOST}{JSON}Content-Length: {len(body)}\r\n\r\n"
    return (head + body).encode()
