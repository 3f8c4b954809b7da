"""The files of the page: where they lead, how they are kept, what they may do."""

import gzip
import re
from pathlib import Path

import pytest

from quipu.api.page import PAGE, page_files
from tests import tree
from tests.api.talk import talking

COMPRESSED_BYTES_MAX = 120_000
FOLDER = Path(tree.ROOT) / "api" / "ui"
IMPORT = re.compile(r"""(?:from|import\()\s*"\./([\w.-]+)\"""")


async def test_the_front_leads_to_the_page_whatever_path_a_proxy_puts_before_it() -> None:
    async with talking() as api:
        for path in ("/", "/ui"):
            reply = await api.get(path)
            assert (reply.status, reply.headers["Location"]) == (307, "ui/")
        page = await api.get("/ui/")
        assert page.status == 200
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        assert b"<title>Quipu</title>" in page.body


async def test_nothing_but_its_own_files_may_run() -> None:
    async with talking() as api:
        for path in ("/ui/", "/docs", "/ui/main.js"):
            policy = (await api.get(path)).headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "script-src 'self'" in policy
            assert "unsafe" not in policy


async def test_a_file_that_is_known_is_not_sent_again() -> None:
    async with talking() as api:
        first = await api.get("/ui/main.js", Accept_Encoding="gzip")
        again = await api.get(
            "/ui/main.js", Accept_Encoding="gzip", If_None_Match=first.headers["ETag"]
        )
        assert (again.status, again.body) == (304, b"")
        plain = await api.get("/ui/main.js", Accept_Encoding="identity")
        assert plain.headers["ETag"] != first.headers["ETag"]
        assert "Content-Encoding" not in plain.headers
        assert first.headers["Content-Encoding"] == "gzip"
        assert plain.body == first.body == (FOLDER / "main.js").read_bytes()


async def test_a_file_that_is_not_there() -> None:
    async with talking() as api:
        for name in ("nothing.js", "..%2Fpage.py", "page.py"):
            assert (await api.get(f"/ui/{name}")).code == "not-found"
        assert (await api.post("/ui/", b"")).code == "method-not-allowed"


def test_all_files_together_are_small() -> None:
    files = page_files()
    assert sum(len(file.packed) for file in files.values()) < COMPRESSED_BYTES_MAX
    for file in files.values():
        assert gzip.decompress(file.packed) == file.plain


def test_the_page_names_only_what_is_there() -> None:
    files = page_files()
    for name, file in files.items():
        text = file.plain.decode()
        for other in IMPORT.findall(text):
            assert other in files, f"{name} imports {other}"
        for other in re.findall(r'(?:src|href)="(?:ui/)?([\w-]+\.(?:js|css|svg))"', text):
            assert other in files, f"{name} names {other}"


@pytest.mark.parametrize("name", sorted(n for n in page_files() if n.endswith((".js", ".html"))))
def test_nothing_becomes_markup_and_nothing_comes_from_elsewhere(name: str) -> None:
    text = page_files()[name].plain.decode()
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in text
    assert re.search(r'"style"|style="|<style|\son\w+="', text) is None
    assert re.sub(r"http://www\.w3\.org/2000/svg", "", text).count("://") == 0


def test_the_page_is_no_part_of_the_interface_for_programs() -> None:
    assert {endpoint.scope for endpoint in PAGE} == {None}
    served = {"/", "/ui", "/ui/", "/ui/{file}", "/docs", "/favicon.ico"}
    assert {endpoint.path for endpoint in PAGE} == served
