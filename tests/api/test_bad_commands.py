"""All that can be wrong in what a command is given: its exit code, a sentence, and what to do."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from quipu.api.settings import Settings
from quipu.api.tokens import new_token
from quipu.client import transport
from quipu.node.exits import Exit
from tests.api.test_commands import Threaded, quipu, submitted

HERE = "ab" * 32


class Case(NamedTuple):
    command: tuple[str, ...]
    code: Exit
    says: str
    advises: str
    stdin: str | None = None


MORE = "more: quipu errors lookup"
USAGE, REJECTED, AUTH, NOT_VERIFIED = Exit.USAGE, Exit.REJECTED, Exit.AUTH, Exit.NOT_VERIFIED
PARTLY = Exit.PARTLY
CASES = {
    # entries
    "no JSON": Case(("submit", "{order: 7}"), USAGE, "is not JSON", "--content-type"),
    "no data": Case(("submit",), USAGE, "Missing argument", "Try 'quipu submit"),
    "empty input": Case(("submit", "-"), USAGE, "is not JSON", "--content-type", ""),
    "stream": Case(("submit", "1", "-s", "Orders"), REJECTED, "/stream", MORE),
    "long stream": Case(("submit", "1", "-s", "a" * 129), REJECTED, "/stream", MORE),
    "long key": Case(("submit", "1", "--key", "k" * 300), REJECTED, "/idempotency_key", MORE),
    "media type": Case(("submit", "x", "--content-type", "x"), REJECTED, "/content_type", MORE),
    "size": Case(("submit", "-"), REJECTED, "too-large", MORE, json.dumps("x" * 1_048_577)),
    "state": Case(("submit", "1", "--wait", "final"), USAGE, "'final'", "Try 'quipu submit"),
    "timeout": Case(("submit", "1", "--timeout", "soon"), USAGE, "a valid number", "Try 'quipu"),
    "long timeout": Case(("submit", "1", "--timeout", "900"), REJECTED, "at most 2m", MORE),
    "line": Case(("submit", "-", "--lines"), PARTLY, "line 2", "is not JSON", "1\n{\n"),
    "used key": Case(("submit", "2", "--key", "used"), Exit.CONFLICT, "key-reused", MORE),
    # ids and cursors
    "id": Case(("get", "7"), REJECTED, "invalid-id", MORE),
    "cut id": Case(("get", f"{HERE}:"), REJECTED, "invalid-id", MORE),
    "no entry": Case(("get", f"{HERE}:0"), Exit.NOT_FOUND, "entry-not-found", MORE),
    "id of a status": Case(("status", "7"), REJECTED, "invalid-id", MORE),
    "id of a proof": Case(("proof", "7"), REJECTED, "invalid-id", MORE),
    "id to explain": Case(("explain", "7"), REJECTED, "invalid-id", MORE),
    "cursor": Case(("follow", "--from", "yesterday"), REJECTED, "invalid-cursor", MORE),
    "time": Case(("list", "--since", "yesterday"), REJECTED, "RFC 3339", MORE),
    "number": Case(("list", "-n", "many"), USAGE, "a valid integer", "Try 'quipu list"),
    "no number": Case(("list", "-n", "0"), USAGE, "equal to 1", "Try 'quipu list"),
    # who is asked, and as whom
    "nobody there": Case(
        ("list", "--url", "http://127.0.0.1:PORT"), Exit.UNREACHABLE, "127.0.0.1:PORT", "quipu run"
    ),
    "no address": Case(("list", "--url", "n1:8470"), USAGE, "n1:8470", "http://"),
    "no token": Case(
        ("list", "--token-file", "DIR/none"), USAGE, "none: No such file", "quipu token new",
    ),
    "unknown token": Case(("list", "--token-file", "DIR/wrong"), AUTH, "unauthenticated", MORE),
    "empty token": Case(("list", "--token-file", "DIR/empty"), AUTH, "unauthenticated", MORE),
    "token for less": Case(("submit", "1", "--token-file", "DIR/reader"), AUTH, "forbidden", MORE),
    "certificates": Case(("list", "--ca-file", "DIR/empty"), USAGE, "DIR/empty", "certificates"),
    # files of tokens
    "scope": Case(
        ("token", "new", "a", "--scope", "root", "--file", "DIR/t"), USAGE, "'root' is no scope",
        "entries:write:STREAM",
    ),
    "name of a token": Case(
        ("token", "new", "a b", "--scope", "admin", "--file", "DIR/t"), USAGE, "'a b' is no name",
        "letters, digits",
    ),
    "second token": Case(
        ("token", "new", "reader", "--scope", "admin", "--file", "DIR/tokens.json"), USAGE,
        "already", "revoke it first",
    ),
    "age of a token": Case(
        ("token", "new", "a", "--scope", "admin", "--days", "0", "--file", "DIR/t"), USAGE,
        "equal to 1", "Try 'quipu token new",
    ),
    "no file of tokens": Case(("token", "list", "--file", "DIR/none"), USAGE, "none", "token new"),
    "no such token": Case(
        ("token", "revoke", "x", "--file", "DIR/tokens.json"), Exit.NOT_FOUND, "no token 'x'",
        "quipu token list",
    ),
    # bundles
    "no bundle": Case(("verify", "DIR/wrong"), NOT_VERIFIED, "not verified", "bundle"),
    "empty bundle": Case(("verify", "DIR/empty"), NOT_VERIFIED, "not verified", "bundle"),
    "no file": Case(("verify", "DIR/none"), USAGE, "cannot read", "DIR/none"),
    "wrong genesis": Case(
        ("verify", "DIR/sound", "--genesis", "DIR/genesis"), NOT_VERIFIED, "not verified",
        "of another cluster",
    ),
    "signature": Case(("verify", "DIR/changed"), NOT_VERIFIED, "not verified", "signature"),
    # the rest
    "command": Case(("sumbit", "1"), USAGE, "sumbit", "submit"),
    "code": Case(("errors", "lookup", "key-resued"), Exit.NOT_FOUND, "key-resued", "key-reused?"),
    "form": Case(("list", "-o", "yaml"), USAGE, "'yaml'", "Try 'quipu list"),
    "nobody to check": Case(
        ("check", "--ops-url", "http://127.0.0.1:PORT"), Exit.UNREACHABLE, "no answer", "--ops-url"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A node that asks for tokens, and files of every kind."""
    folder = tmp_path_factory.mktemp("bad")
    tokens = folder / "tokens.json"
    (folder / "root").write_text(new_token(tokens, "root", ["admin"]))
    (folder / "reader").write_text(new_token(tokens, "reader", ["entries:read"]))
    (folder / "wrong").write_text("quipu_" + "x" * 43)
    (folder / "empty").write_text("")
    threaded = Threaded(Settings(port=0, ops_port=0, tokens_file=tokens))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transport, "PAUSE_S", 0.001)
        patch.setenv("QUIPU_URL", threaded.node.url)
        patch.setenv("QUIPU_TOKEN_FILE", str(folder / "root"))
        identity = submitted("1", "--key", "used")
        quipu("proof", identity, "--out", str(folder / "sound"))
        changed = bytearray((folder / "sound").read_bytes())
        changed[-40] ^= 1
        (folder / "changed").write_bytes(changed)
        (folder / "genesis").write_text("0" * 64)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # and nobody listens
            (folder / "port").write_text(str(taken.getsockname()[1]))
            yield folder
    threaded.stop()


@pytest.mark.parametrize("name", CASES)
def test_it_says_what_is_wrong_and_what_to_do(name: str, folder: Path) -> None:
    case, port = CASES[name], (folder / "port").read_text()

    def real(text: str) -> str:
        return text.replace("DIR", str(folder)).replace("PORT", port)

    done = quipu(*map(real, case.command), stdin=case.stdin)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    found = (done.exit_code, real(case.says) in done.stderr, real(case.advises) in done.stderr)
    assert found == (case.code, True, True), done.stderr
