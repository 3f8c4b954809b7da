"""The cluster's secret, changed in steps that lock nobody out: add the new one everywhere, let it
lead everywhere, drop the old one everywhere. One file at a time; a node reads it when it starts
and when it is told to.
"""

import os
from pathlib import Path

from quipu.ledger.signing import SEED_BYTES
from quipu.node import secret_files
from quipu.node.data_directory import read_directory
from quipu.node.exits import BadSetting, CannotStart, DirectoryTaken
from quipu.node.founding import CLUSTER_KEY_FILE, CLUSTER_KEY_LABEL, read_cluster_secrets
from quipu.node.key_list import secret_fingerprint
from quipu.p2p.limits import SECRETS_MAX
from quipu.storage.environment import sync_directory


def make(target: Path, secret: bytes) -> str:
    """A new secret in a file of its own, to be brought to every node. Gives its fingerprint."""
    try:
        secret_files.write_secret(target, CLUSTER_KEY_LABEL, secret)
    except FileExistsError as error:
        raise DirectoryTaken(f"{target} is there already", "Name another file.") from error
    except OSError as error:
        raise CannotStart(
            f"cannot write {target}: {error.strerror}", "Name a file in a folder that is there."
        ) from error
    return secret_fingerprint(secret)


def add(folder: Path, source: Path) -> list[str]:
    """Accepted once the node has read it, behind those that are there. Gives all fingerprints."""
    try:
        secret = secret_files.read_secret(source, CLUSTER_KEY_LABEL, SEED_BYTES)
    except FileNotFoundError as error:
        raise BadSetting(f"{source} is not there", "`quipu secret new FILE` makes one.") from error
    held = _held(folder)
    if secret in held:
        return _fingerprints(held)
    if len(held) >= SECRETS_MAX:
        raise DirectoryTaken(
            f"{folder} holds {len(held)} secrets already",
            "Take the oldest out first: `quipu secret drop FINGERPRINT`.",
        )
    return _write(folder, [*held, secret])


def lead(folder: Path, fingerprint: str) -> list[str]:
    """It comes first: invitations carry it."""
    held = _held(folder)
    chosen = _named(held, fingerprint)
    return _write(folder, [chosen, *(one for one in held if one != chosen)])


def drop(folder: Path, fingerprint: str) -> list[str]:
    held = _held(folder)
    chosen = _named(held, fingerprint)
    if len(held) == 1:
        raise DirectoryTaken(
            "this is the only secret: without it no other node lets this one in",
            "Add the new one first: `quipu secret add FILE`.",
        )
    return _write(folder, [one for one in held if one != chosen])


def _held(folder: Path) -> list[bytes]:
    return list(read_directory(folder).cluster_secrets)


def _named(held: list[bytes], fingerprint: str) -> bytes:
    found = [one for one in held if secret_fingerprint(one).startswith(fingerprint)]
    if len(found) != 1 or not fingerprint:
        raise BadSetting(
            f"{fingerprint!r} names {len(found)} of the secrets here",
            "`quipu keys` lists them: " + ", ".join(_fingerprints(held)),
        )
    return found[0]


def _fingerprints(secrets: list[bytes]) -> list[str]:
    return [secret_fingerprint(one) for one in secrets]


def _write(folder: Path, secrets: list[bytes]) -> list[str]:
    """All of it or nothing; never open to others."""
    file = folder / CLUSTER_KEY_FILE
    beside = file.with_name(f".{file.name}.{os.getpid()}.new")
    text = "".join(f"{CLUSTER_KEY_LABEL} {one.hex()}\n" for one in secrets)
    try:
        secret_files.write_new(beside, text.encode())
        read_cluster_secrets(beside)
        beside.replace(file)
        sync_directory(folder)
    except OSError as error:
        raise CannotStart(
            f"cannot write {file}: {error.strerror}", "Look at the mode and the disk."
        ) from error
    return _fingerprints(secrets)
