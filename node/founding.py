"""What a first start makes: a key, and a cluster of its own or a place in one that is there.

While the file `unsigned` is there, the key beside it has signed nothing: its store may be made
without asking others what it has said. A crash at any place leaves something usable.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from quipu.ledger import quorum
from quipu.ledger.canonical import encode
from quipu.ledger.epochs import GENESIS_VERSION, Founder, Genesis, decode_genesis
from quipu.ledger.refusals import Refused
from quipu.ledger.signing import SEED_BYTES, KeyPair
from quipu.ledger.words import NodeId
from quipu.node import secret_files
from quipu.node.exits import BadSetting, CannotStart, KeyExposed
from quipu.node.failpoints import passing
from quipu.node.invitation import Invitation
from quipu.p2p.addresses import BadUri, parse_uri, uri_of
from quipu.p2p.limits import SECRETS_MAX
from quipu.p2p.words import Endpoint

NODE_KEY_FILE = "node.key"
CLUSTER_KEY_FILE = "cluster.key"
GENESIS_FILE = "genesis"
UNSIGNED_FILE = "unsigned"
SEEDS_FILE = "seeds"
NODE_KEY_LABEL = "quipu-node-key-1"
CLUSTER_KEY_LABEL = "quipu-cluster-key-1"
MEMBER_ROLES = ("member", "serializer")
GENESIS_MODE = 0o644
SALT_BYTES = 16
RANDOM_BYTES = SEED_BYTES + SEED_BYTES + SALT_BYTES


class OtherFounder(NamedTuple):
    name: str
    node_id: NodeId
    endpoint: Endpoint


def parse_founder(text: str) -> OtherFounder:
    """`name=quipu://host:port/node-id`. Raises `BadSetting`."""
    name, equals, uri = text.partition("=")
    try:
        if not equals or not name:
            raise BadUri(f"{text!r} has no name")
        return OtherFounder(name, *parse_uri(uri))
    except BadUri as error:
        raise BadSetting(
            f"node.founders: {error}",
            "Write name=quipu://host:port/node-id; `quipu init --key-only` on the other node "
            "prints its node id.",
        ) from error


@dataclass(frozen=True, slots=True)
class Founding:
    """A new cluster of this node and `others`; the clock and the dice are the caller's."""

    node_name: str
    cluster_name: str
    now_ms: int
    random: bytes  # RANDOM_BYTES: 2 seeds and a salt
    streams_erasable: tuple[str, ...] = ()
    policy: str = quorum.MAJORITY
    others: tuple[OtherFounder, ...] = ()

    @property
    def seed(self) -> bytes:
        return self.random[:SEED_BYTES]

    def carry_out(self, path: Path, key: KeyPair) -> None:
        secret, salt = self.random[SEED_BYTES:-SALT_BYTES], self.random[-SALT_BYTES:]
        if not (path / CLUSTER_KEY_FILE).exists():
            secret_files.write_secret(path / CLUSTER_KEY_FILE, CLUSTER_KEY_LABEL, secret)
        passing("start.key")
        write_seeds(path, [(other.node_id, other.endpoint) for other in self.others])
        names = [(self.node_name, key.node_id), *((o.name, o.node_id) for o in self.others)]
        genesis = Genesis(
            GENESIS_VERSION,
            self.cluster_name,
            self.now_ms,
            self.policy,
            [Founder(node_id, name, list(MEMBER_ROLES)) for name, node_id in names],
            salt,
            sorted(set(self.streams_erasable)),
        )
        write_genesis(path, encode(genesis))


@dataclass(frozen=True, slots=True)
class Joining:
    """A place in a cluster that is there: founder where its genesis says so, else observer."""

    invitation: Invitation
    random: bytes

    @property
    def seed(self) -> bytes:
        return self.random[:SEED_BYTES]

    def carry_out(self, path: Path, key: KeyPair) -> None:
        (path / CLUSTER_KEY_FILE).unlink(missing_ok=True)  # of a start that was cut short
        secret = self.invitation.secret
        secret_files.write_secret(path / CLUSTER_KEY_FILE, CLUSTER_KEY_LABEL, secret)
        passing("start.key")
        write_seeds(path, self.invitation.seeds)
        write_genesis(path, self.invitation.genesis)


@dataclass(frozen=True, slots=True)
class Asking:
    """As `Joining`, with an invitation that is asked for: `ask` may take seconds."""

    ask: Callable[[KeyPair], Invitation]
    random: bytes

    @property
    def seed(self) -> bytes:
        return self.random[:SEED_BYTES]

    def carry_out(self, path: Path, key: KeyPair) -> None:
        invitation = self.ask(key)
        passing("join.asked")
        Joining(invitation, self.random).carry_out(path, key)


FirstStart = Founding | Joining | Asking


def make_key(path: Path, seed: bytes) -> KeyPair:
    """The key of this directory: the one that is there, or a new one that has signed nothing."""
    key = path / NODE_KEY_FILE
    if not key.exists():
        (path / UNSIGNED_FILE).touch(0o600)
        secret_files.write_secret(key, NODE_KEY_LABEL, seed)
    return read_key(path)


def read_key(path: Path) -> KeyPair:
    seed = secret_files.read_secret(path / NODE_KEY_FILE, NODE_KEY_LABEL, SEED_BYTES)
    return KeyPair.from_seed(seed)


def read_cluster_secrets(path: Path) -> tuple[bytes, ...]:
    """Raises `KeyExposed`, or FileNotFoundError."""
    found = secret_files.read_secrets(path, CLUSTER_KEY_LABEL, SEED_BYTES)
    if len(set(found)) > SECRETS_MAX or len(set(found)) < len(found):
        raise KeyExposed(
            f"{path} holds {len(found)} secrets, at most {SECRETS_MAX} different ones count",
            "Leave the new one first and the old one below it.",
        )
    return found


def write_seeds(path: Path, seeds: Sequence[tuple[NodeId, Endpoint]]) -> None:
    (path / SEEDS_FILE).unlink(missing_ok=True)
    if seeds:
        text = "".join(f"{uri_of(*seed)}\n" for seed in seeds)
        secret_files.write_new(path / SEEDS_FILE, text.encode(), GENESIS_MODE)


def read_seeds(path: Path) -> tuple[tuple[NodeId, Endpoint], ...]:
    """Raises `BadSetting`: people may edit this file."""
    file = path / SEEDS_FILE
    try:
        lines = file.read_text().split()
        return tuple(parse_uri(line) for line in lines)
    except FileNotFoundError:
        return ()
    except (ValueError, OSError) as error:
        raise BadSetting(f"{file}: {error}", "One URI a line, as `quipu keys` shows it.") from error


def write_genesis(path: Path, genesis: bytes) -> None:
    try:
        decode_genesis(genesis)
    except Refused as refusal:
        raise CannotStart(
            f"no genesis can be made of this: {refusal}",
            "Names of nodes and of the cluster are 1 to 128 bytes long; a stream is 1 to 128 of "
            "a-z 0-9 . _ - and begins with a letter or digit; a founder stands there once; the "
            "policy is majority, two-thirds, all, or a number below that of the founders.",
        ) from refusal
    secret_files.write_new(path / GENESIS_FILE, genesis, GENESIS_MODE)
    passing("start.genesis")
