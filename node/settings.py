"""Every setting of a node: its type, its default, and what it is for.

A field is a key `section.name`, the variable `QUIPU_SECTION_NAME` and the flag `--section-name`.
Settings of the API's conduct are added in `ApiSettings`; the docs list what is here.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        return self.host in {"localhost", "::1"} or self.host.startswith("127.")


def setting(default: Any, doc: str) -> Any:
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True, slots=True)
class NodeSettings:
    name: str = setting("n1", "name of this node in its cluster, in logs and pages")
    data_dir: Path = setting(Path("var"), "where keys, genesis and the store stay")
    cluster_name: str = setting("quipu", "name of the cluster that a first start makes")
    streams_erasable: tuple[str, ...] = setting(
        (), "streams, with commas between, whose entries carry a salt; a first start declares them"
    )


@dataclass(frozen=True, slots=True)
class ApiSettings:
    listen: Address = setting(Address("127.0.0.1", 8470), "where apps reach this node by HTTP")
    insecure: bool = setting(False, "serve an address other than loopback without tokens")
    tokens_file: Path | None = setting(None, "hashes of bearer tokens; read anew when it changes")
    tls_certificate: Path | None = setting(None, "PEM file: serve API and OPS by TLS")
    tls_key: Path | None = setting(None, "PEM file of its key; nobody else may read it")


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


@dataclass(frozen=True, slots=True)
class Settings:
    node: NodeSettings = field(default_factory=NodeSettings)
    api: ApiSettings = field(default_factory=ApiSettings)
    ops: OpsSettings = field(default_factory=OpsSettings)
    log: LogSettings = field(default_factory=LogSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
