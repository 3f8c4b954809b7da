"""What the node serves about itself: OpenAPI, and one page for each problem."""

from html import escape

import msgspec
from aiohttp import web

from quipu.api.bodies import JSON
from quipu.api.calls import Call, Response
from quipu.api.codes import KINDS, Code
from quipu.api.problems import problem

HTML = "text/html"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
STYLE = (
    "body{font:1rem/1.6 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem}"
    "code{font-family:ui-monospace,monospace}dt{font-weight:600}:root{color-scheme:light dark}"
)


def page(title: str, body: str) -> bytes:
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{STYLE}</style><main><h1>{escape(title)}</h1>{body}</main></html>\n"
    ).encode()


def _html(body: bytes) -> web.Response:
    headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}
    return web.Response(body=body, headers=headers, content_type=HTML, charset="utf-8")


async def openapi(call: Call) -> Response:
    headers = {"Cache-Control": "no-cache"}
    return web.Response(body=call.face.openapi, headers=headers, content_type=JSON)


async def problem_page(call: Call) -> Response:
    try:
        code = Code(call.argument)
    except ValueError:
        problem(Code.NOT_FOUND, f"there is no problem {call.argument[:100]}")
    kind = KINDS[code]
    if call.media_type == JSON:
        body = msgspec.json.encode({"code": str(code), **kind._asdict()})
        return web.Response(body=body, content_type=JSON)
    retry = "yes" if kind.retryable else "no"
    text = (
        f"<p>{escape(kind.meaning)}</p><p>{escape(kind.remedy)}</p><dl><dt>Code</dt>"
        f"<dd><code>{code}</code></dd><dt>Status</dt><dd>{kind.status}</dd>"
        f"<dt>Worth another try</dt><dd>{retry}</dd></dl>"
    )
    return _html(page(kind.title, text))
