"""An invitation: all that a new node needs to find a cluster, and to be let in.

One line in a file of mode 0600, for the cluster's secret stands in it. It makes an observer of
whoever has it; members are named by the genesis and by epoch documents.
"""

import base64
import binascii
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from quipu.ledger import limits as core_limits
from quipu.ledger.canonical import Canonical, encode
from quipu.ledger.epochs import cluster_id_of, decode_genesis
from quipu.ledger.refusals import Refused
from quipu.ledger.signing import SEED_BYTES
from quipu.ledger.words import NodeId
from quipu.node import limits, secret_files
from quipu.node.exits import BadInvitation
from quipu.p2p.addresses import BadUri, parse_uri, uri_of
from quipu.p2p.words import Endpoint

LABEL = "quipu-invitation-1"
INVITATION_VERSION = 1


class _Written(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    version: int
    genesis: bytes
    uris: Annotated[list[str], msgspec.Meta(max_length=limits.INVITATION_URIS_MAX)]
    secret: Annotated[bytes, msgspec.Meta(min_length=SEED_BYTES, max_length=SEED_BYTES)]


_form = Canonical(_Written, limits.INVITATION_BYTES_MAX)


@dataclass(frozen=True, slots=True)
class Invitation:
    genesis: bytes
    seeds: tuple[tuple[NodeId, Endpoint], ...]  # members, and where they listen
    secret: bytes

    @property
    def cluster_id(self) -> bytes:
        return cluster_id_of(self.genesis)

    @property
    def cluster_name(self) -> str:
        return decode_genesis(self.genesis).name

    def write(self, path: Path) -> None:
        """Raises FileExistsError."""
        uris = [uri_of(*seed) for seed in self.seeds]
        data = encode(_Written(INVITATION_VERSION, self.genesis, uris, self.secret))
        line = f"{LABEL} {base64.b64encode(data).decode()}\n"
        secret_files.write_new(path, line.encode())


def read_invitation(path: Path) -> Invitation:
    """Raises `KeyExposed` or `BadInvitation`."""
    try:
        secret_files.check_private(path)
        with path.open("rb") as file:
            line = file.read(2 * limits.INVITATION_BYTES_MAX)
    except OSError as error:
        raise BadInvitation(
            f"cannot read {path}: {error.strerror or error}",
            "`quipu invite --out FILE` on a member writes one.",
        ) from error
    label, _, text = line.decode(errors="replace").strip().partition(" ")
    try:
        if label != LABEL:
            raise ValueError(f"it does not begin with {LABEL}")
        written = _form.decode(base64.b64decode(text, validate=True))
        if written.version != INVITATION_VERSION:
            raise ValueError(f"version {written.version}")
        decode_genesis(written.genesis[: core_limits.EPOCH_BYTES_MAX + 1])
        seeds = tuple(parse_uri(uri) for uri in written.uris)
    except (ValueError, binascii.Error, Refused, BadUri) as error:
        raise BadInvitation(
            f"{path} is not an invitation: {error}",
            "Let a member write a new one with `quipu invite --out FILE`.",
        ) from error
    return Invitation(written.genesis, seeds, written.secret)
