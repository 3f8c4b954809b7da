"""The web page: files of `ui/`, read and compressed once, served with an ETag and nothing made up.

The policy lets the page load its own files and ask its own node, and nothing else; scripts and
styles inside the HTML, and text that becomes markup, are refused by the browser.
"""

import gzip
import mimetypes
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import NamedTuple

from aiohttp import web

from quipu.api.calls import Answer, Call, Endpoint, Response
from quipu.api.codes import Code
from quipu.api.problems import problem

FOLDER = "ui"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",  # asked for again each time, and answered by 304
    "Vary": "Accept-Encoding",
}
Run = Callable[[Call], Awaitable[Response]]
KINDS = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}


class PageFile(NamedTuple):
    kind: str
    plain: bytes
    packed: bytes  # by gzip
    tag: str


@cache
def page_files() -> Mapping[str, PageFile]:
    """By name. 150 KB: 15 ms once, at the first request for one of them."""
    found = {}
    for entry in files("quipu.api").joinpath(FOLDER).iterdir():
        name, data = entry.name, entry.read_bytes()
        kind = KINDS.get(name[name.rfind(".") :]) or mimetypes.guess_type(name)[0]
        if kind is not None:
            packed = gzip.compress(data, 9, mtime=0)
            found[name] = PageFile(kind, data, packed, sha256(data).hexdigest()[:32])
    return found


async def front(_: Call) -> Response:
    """Relative: whatever path a proxy puts before it."""
    return web.Response(status=307, headers={"Location": "ui/", "Cache-Control": "no-cache"})


async def page(call: Call) -> Response:
    return _answer(call, "index.html")


async def docs(call: Call) -> Response:
    return _answer(call, "docs.html")


async def favicon(call: Call) -> Response:
    """Browsers ask for it where a page names none."""
    return _answer(call, "knot.svg")


async def page_file(call: Call) -> Response:
    return _answer(call, call.argument)


def _answer(call: Call, name: str) -> web.Response:
    found = page_files().get(name)
    if found is None:
        problem(Code.NOT_FOUND, f"the page has no file {name[:100]}")
    is_packed = "gzip" in call.request.headers.get("Accept-Encoding", "")
    tag = f'"{found.tag}{"-z" if is_packed else ""}"'
    headers = HEADERS | {"ETag": tag}
    if call.request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers=headers)
    if is_packed:
        headers["Content-Encoding"] = "gzip"
    charset = "utf-8" if found.kind.startswith("text/") else None
    body = found.packed if is_packed else found.plain
    return web.Response(body=body, headers=headers, content_type=found.kind, charset=charset)


def _shown(path: str, name: str, summary: str, run: Run) -> Endpoint:
    answers = (Answer(200, "A file of the page.", str),)
    return Endpoint("GET", path, name, summary, None, run, answers, (), tag="page")


# For browsers, not for programs: served beside the API and not listed in /openapi.json.
PAGE = (
    _shown("/", "front", "Leads to the page", front),
    _shown("/ui", "front_ui", "Leads to the page", front),
    _shown("/ui/", "page", "The page", page),
    _shown("/ui/{file}", "page_file", "A file of the page", page_file),
    _shown("/favicon.ico", "favicon", "The sign of the page", favicon),
    _shown("/docs", "docs", "This interface, to read", docs),
)
