"""Bearer tokens: who calls, and what that one may do.

The file holds hashes alone. A token is 256 random bits, so one SHA-256 is enough: there is
nothing to guess. The file is read again when it changes; one that cannot be read refuses all.
"""

import hmac
import os
import re
import secrets
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from quipu.api import limits
from quipu.ledger.entry import is_stream_name

ENTRIES_WRITE = "entries:write"
ENTRIES_READ = "entries:read"
CLUSTER_READ = "cluster:read"
ADMIN = "admin"
SCOPES = (ENTRIES_WRITE, ENTRIES_READ, CLUSTER_READ, ADMIN)
PREFIX = "quipu_"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}\Z")


class TokensUnusable(Exception):
    """The file of tokens is missing, readable by others, or not what this program writes."""


class WrongToken(ValueError):
    """A name or scope that a token cannot have."""


class TokenRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    sha256: str
    scopes: list[str]
    created_ms: int
    expires_ms: int | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    tokens: list[TokenRecord]


_files = msgspec.json.Decoder(_File)


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller. Without tokens it is nobody, who may do everything."""

    name: str | None
    scopes: frozenset[str]

    def may(self, scope: str, stream: str | None = None) -> bool:
        if ADMIN in self.scopes or scope in self.scopes:
            return True
        return stream is not None and f"{scope}:{stream}" in self.scopes

    def streams(self, scope: str) -> frozenset[str] | None:
        """The only streams for which the scope is given; None: all of them."""
        if self.may(scope):
            return None
        start = f"{scope}:"
        return frozenset(s.removeprefix(start) for s in self.scopes if s.startswith(start))


ANYBODY = Principal(None, frozenset(SCOPES))


class _Known(NamedTuple):
    principal: Principal
    digest: bytes
    expires_ms: int | None


def checked_scope(scope: str) -> str:
    kind, _, stream = scope.partition(":")
    head, _, tail = stream.partition(":")
    plain = scope in SCOPES
    narrowed = kind == "entries" and head in {"write", "read"} and is_stream_name(tail)
    if not plain and not narrowed:
        raise WrongToken(
            f"{scope!r} is no scope; there are {', '.join(SCOPES)}, and entries:write:STREAM and "
            "entries:read:STREAM"
        )
    return scope


def is_token_name(text: str) -> bool:
    """Letters, digits and . _ @ -, and no dot at its start."""
    return _NAME.match(text) is not None


def read_tokens(path: Path) -> list[TokenRecord]:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(limits.TOKEN_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise TokensUnusable(f"{path}: {error.strerror}") from error
    if stat.S_IMODE(mode) & 0o077:
        raise TokensUnusable(f"{path} is readable by others: chmod 600 {path}")
    if len(data) > limits.TOKEN_FILE_BYTES_MAX:
        raise TokensUnusable(f"{path} is larger than {limits.TOKEN_FILE_BYTES_MAX} bytes")
    try:
        found = _files.decode(data)
        for record in found.tokens:
            bytes.fromhex(record.sha256)
            for scope in record.scopes:
                checked_scope(scope)
    except (msgspec.DecodeError, ValueError) as error:
        raise TokensUnusable(f"{path} is no file of tokens: {error}") from error
    if found.version != 1:
        raise TokensUnusable(f"{path} has version {found.version}, this program knows 1")
    return found.tokens


def write_tokens(path: Path, records: Iterable[TokenRecord]) -> None:
    """Whole or not at all, and for its owner alone."""
    content = msgspec.json.format(msgspec.json.encode(_File(1, list(records))), indent=2)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content + b"\n")
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def new_token(path: Path, name: str, scopes: Iterable[str], expires_ms: int | None = None) -> str:
    """Adds a token to the file and gives its text, which is kept nowhere else."""
    records = read_tokens(path) if path.exists() else []
    if not is_token_name(name):
        raise WrongToken(f"{name!r} is no name of a token: letters, digits and . _ @ - are")
    if any(record.name == name for record in records):
        raise WrongToken(f"there is a token {name!r} already: revoke it first")
    if len(records) >= limits.TOKENS_MAX:
        raise WrongToken(f"one file takes {limits.TOKENS_MAX} tokens")
    given = [checked_scope(scope) for scope in scopes]
    if not given:
        raise WrongToken("a token without a scope may do nothing")
    text = PREFIX + secrets.token_urlsafe(limits.TOKEN_SECRET_BYTES)
    record = TokenRecord(
        name=name,
        sha256=_digest(text).hex(),
        scopes=given,
        created_ms=int(time.time() * 1_000),
        expires_ms=expires_ms,
    )
    write_tokens(path, [*records, record])
    return text


def revoke_token(path: Path, name: str) -> bool:
    records = read_tokens(path)
    kept = [record for record in records if record.name != name]
    if len(kept) == len(records):
        return False
    write_tokens(path, kept)
    return True


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogateescape")).digest()


@dataclass(slots=True)
class Tokens:
    """Invariant: what it knows is the file as it was at most TOKEN_CHECK_S ago."""

    path: Path
    fault: str = ""  # why the file is unusable now; then nobody is let in
    _known: dict[bytes, _Known] = field(default_factory=dict)  # by the first half of the digest
    _stamp: tuple[int, int, int] | None = None
    _checked_s: float = float("-inf")

    def principal(self, text: str, monotonic_s: float, wall_ms: int) -> Principal | None:
        if monotonic_s - self._checked_s >= limits.TOKEN_CHECK_S:
            self._checked_s = monotonic_s
            self.refresh()
        digest = _digest(text)
        known = self._known.get(digest[:16])
        if known is None or not hmac.compare_digest(known.digest, digest):
            return None
        if known.expires_ms is not None and known.expires_ms <= wall_ms:
            return None
        return known.principal

    def require(self) -> None:
        """At the start a file that cannot be used is an error, and not a node that lets nobody
        in."""
        read_tokens(self.path)
        self.refresh()

    def reread(self) -> None:
        """Whether it looks changed or not. Raises `TokensUnusable`: then the old ones go on."""
        read_tokens(self.path)
        self._stamp = None
        self.refresh()

    def refresh(self) -> None:
        """Reads the file where it has changed."""
        try:
            found = self.path.stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if stamp == self._stamp:
                return
            records = read_tokens(self.path)
        except (OSError, TokensUnusable) as error:
            self._known, self._stamp, self.fault = {}, None, str(error)
            return
        self._stamp, self.fault = stamp, ""
        self._known = {
            digest[:16]: _Known(
                Principal(record.name, frozenset(record.scopes)), digest, record.expires_ms
            )
            for record in records
            for digest in [bytes.fromhex(record.sha256)]
        }
