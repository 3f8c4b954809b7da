"""Every setting of a node: its type, its default, and what it is for.

A field is a key `section.name`, the variable `QUIPU_SECTION_NAME` and the flag `--section-name`.
Settings of the API's conduct are added in `ApiSettings`; the docs list what is here.
"""

from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any, Literal, NamedTuple

from quipu.node.limits import KIB, MIB

ADMIN_SOCKET = "admin.sock"
EXECUTOR_FOLDER = "executor"


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        return self.host in {"localhost", "::1"} or self.host.startswith("127.")


class Networks(tuple[IPv4Network | IPv6Network, ...]):
    """Addresses, each one alone or a whole network."""

    __slots__ = ()

    def __str__(self) -> str:
        return "[" + ", ".join(f'"{network}"' for network in self) + "]"


def setting(default: Any, doc: str, least: int = 0, most: int | None = None) -> Any:
    """`least` and `most` are of numbers alone."""
    return field(default=default, metadata={"doc": doc, "least": least, "most": most})


@dataclass(frozen=True, slots=True)
class NodeSettings:
    name: str = setting("n1", "name of this node in its cluster, in logs and pages")
    data_dir: Path = setting(Path("var"), "where keys, genesis and the store stay")
    cluster_name: str = setting("quipu", "name of the cluster that a first start makes")
    streams_erasable: tuple[str, ...] = setting(
        (), "streams, with commas between, whose entries carry a salt; a first start declares them"
    )
    policy: str = setting(
        "majority",
        "how many confirm in the cluster that a first start makes: majority, "
        "two-thirds, all, or a number",
    )
    founders: tuple[str, ...] = setting(
        (),
        "the others in the cluster that a first start makes: name=quipu://host:port/node-id, "
        "with commas between",
    )
    join: str | None = setting(
        None,
        "invitation file, or the quipu:// URI of a member, that a first start follows; a node "
        "that has its place needs it no more",
    )
    secret_file: Path | None = setting(
        None, "with a URI in node.join: file of the cluster's secret, as cluster.key of a member"
    )


@dataclass(frozen=True, slots=True)
class P2pSettings:
    listen: Address = setting(Address("127.0.0.1", 8471), "where other nodes reach this one")
    advertise: Address | None = setting(
        None, "host:port that other nodes are told to dial; none: what p2p.listen says"
    )
    beacon: Address | None = setting(
        None,
        "IPv4 multicast group:port of the local network on which members say, sealed, where they "
        "are; none: no beacon",
    )
    multicast: Address | None = setting(
        None,
        "IPv4 multicast group:port of the local network to which what several peers get is sent "
        "once, sealed; none: a copy to each",
    )
    peers: tuple[str, ...] = setting(
        (), "nodes to dial besides those that are known: quipu://host:port/node-id, with commas"
    )


@dataclass(frozen=True, slots=True)
class ApiSettings:
    listen: Address = setting(Address("127.0.0.1", 8470), "where apps reach this node by HTTP")
    insecure: bool = setting(False, "serve an address other than loopback without tokens")
    tokens_file: Path | None = setting(None, "hashes of bearer tokens; read anew when it changes")
    tls_certificate: Path | None = setting(None, "PEM file: serve API and OPS by TLS")
    tls_key: Path | None = setting(None, "PEM file of its key; nobody else may read it")
    trusted_proxies: Networks = setting(
        Networks(), "addresses and networks of proxies whose X-Forwarded-For is believed"
    )
    connections_max: int = setting(1_000, "connections at one time; more wait in the kernel", 1)
    connections_per_s_max: int = setting(
        500, "new connections taken in a second, after 64 at once; more wait in the kernel", 1
    )
    connections_per_address_max: int = setting(
        256, "of one address; loopback and trusted proxies have no such limit", 1
    )
    in_flight_per_caller_max: int = setting(
        1_024, "submissions of one token, or address, under way; above: 429", 1
    )
    first_header_s: int = setting(10, "seconds a new connection has for its first header", 1)
    body_s: int = setting(30, "seconds a body has to come", 1)
    body_bytes_max: int = setting(
        1_536 * KIB, "bytes of one request with one entry", 1, 1_536 * KIB
    )
    batch_bytes_max: int = setting(16 * MIB, "bytes of a batch that is no NDJSON", 1, 16 * MIB)


@dataclass(frozen=True, slots=True)
class OpsSettings:
    listen: Address = setting(Address("127.0.0.1", 8472), "where health and metrics are served")


@dataclass(frozen=True, slots=True)
class LogSettings:
    level: Literal["debug", "info", "warning", "error"] = setting(
        "info", "the least that is written"
    )
    format: Literal["auto", "console", "json"] = setting(
        "auto", "auto: for people on a terminal, JSON lines elsewhere"
    )


@dataclass(frozen=True, slots=True)
class StoreSettings:
    writer: Literal["thread", "inline"] = setting(
        "thread", "thread: collect the next turn while one is synced; inline: for measuring"
    )
    scrub_interval_h: int = setting(
        24, "hours between two checks of everything that is stored; 0: never by itself"
    )
    keep_days: int = setting(
        0, "days that events are kept for below a checkpoint; 0: for ever", 0, 36_500
    )
    keep_mib: int = setting(
        0, "MiB of the store above which the oldest events below a checkpoint go; 0: no bound", 0
    )
    prune_archived_only: bool = setting(
        False, "let only go what a dump of this node (quipu export) holds"
    )


@dataclass(frozen=True, slots=True)
class ExecutorSettings:
    engine: Literal["sqlite", "off"] = setting(
        "sqlite", "what executes the requests of clients here; off: this node runs no executor"
    )
    dir: Path | None = setting(
        None, "where the executor keeps its database; none: executor in the data directory"
    )
    adopt: bool = setting(
        False, "go on with a database that another version or build of SQLite has made"
    )


@dataclass(frozen=True, slots=True)
class AdminSettings:
    socket: Path | None = setting(
        None, "Unix socket of the admin verbs; none: admin.sock in the data directory"
    )


@dataclass(frozen=True, slots=True)
class Settings:
    node: NodeSettings = field(default_factory=NodeSettings)
    api: ApiSettings = field(default_factory=ApiSettings)
    p2p: P2pSettings = field(default_factory=P2pSettings)
    ops: OpsSettings = field(default_factory=OpsSettings)
    log: LogSettings = field(default_factory=LogSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    executor: ExecutorSettings = field(default_factory=ExecutorSettings)
    admin: AdminSettings = field(default_factory=AdminSettings)

    @property
    def admin_socket(self) -> Path:
        return self.admin.socket or self.node.data_dir.absolute() / ADMIN_SOCKET

    @property
    def executor_dir(self) -> Path:
        return self.executor.dir or self.node.data_dir.absolute() / EXECUTOR_FOLDER
