"""Which keys a node has: public parts and fingerprints, never a secret."""

import base64
import ssl
import stat
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from quipu.node.data_directory import DataDirectory
from quipu.node.founding import CLUSTER_KEY_FILE, GENESIS_FILE, NODE_KEY_FILE
from quipu.node.settings import Settings
from quipu.p2p.addresses import uri_of
from quipu.p2p.words import Endpoint

# A hash of a secret of 256 random bits gives nothing away; the tag keeps it apart from others.
FINGERPRINT_TAG = b"quipu-fingerprint-1"


class KeyRow(NamedTuple):
    name: str  # node, cluster, genesis, tls, tokens
    file: str
    mode: str  # as chmod takes it; empty: the file is not there
    fingerprint: str  # equal where the key is
    public: str  # what may be shown to anybody; empty: there is none
    uri: str = ""  # of the node: what other nodes are told to dial


def key_rows(
    settings: Settings,
    directory: DataDirectory,
    endpoint: Endpoint | None = None,  # of a node that runs
) -> list[KeyRow]:
    folder, node_id, cluster_id = directory.path, directory.key.node_id, directory.cluster_id
    where = endpoint or Endpoint(*(settings.p2p.advertise or settings.p2p.listen))
    uri = uri_of(node_id, where) if where.port else ""
    node = _row("node", folder / NODE_KEY_FILE, _fingerprint(node_id), node_id.hex())
    rows = [
        node._replace(uri=uri),
        *(
            _row("cluster", folder / CLUSTER_KEY_FILE, secret_fingerprint(secret))
            for secret in directory.cluster_secrets
        ),
        _row("genesis", folder / GENESIS_FILE, _fingerprint(cluster_id), cluster_id.hex()),
    ]
    if settings.api.tls_certificate is not None:
        rows.append(
            _row("tls", settings.api.tls_certificate, _of_pem(settings.api.tls_certificate))
        )
    if settings.api.tokens_file is not None:
        rows.append(_row("tokens", settings.api.tokens_file, ""))
    return rows


def secret_fingerprint(secret: bytes) -> str:
    return _fingerprint(FINGERPRINT_TAG + secret)


def _row(name: str, file: Path, fingerprint: str, public: str = "") -> KeyRow:
    try:
        mode = f"{stat.S_IMODE(file.stat().st_mode):04o}"
    except OSError:
        mode = ""
    return KeyRow(name, str(file), mode, fingerprint, public)


def _fingerprint(data: bytes) -> str:
    """As ssh-keygen writes them."""
    return "SHA256:" + base64.b64encode(sha256(data).digest()).decode().rstrip("=")


def _of_pem(file: Path) -> str:
    """Of the first certificate, as browsers and openssl show it."""
    end = "-----END CERTIFICATE-----"
    try:
        first = file.read_text(encoding="ascii").partition(end)[0] + end
        return sha256(ssl.PEM_cert_to_DER_cert(first[first.index("-----BEGIN") :])).hexdigest()
    except (OSError, ValueError):
        return ""
