"""Commands about the node of this machine: run, init, doctor, config show.

Their options become flags of the configuration; nothing is imported before a command runs.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from quipu.node.config import Config, Value
    from quipu.node.settings import Settings

ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="TOML file of settings; or QUIPU_CONFIG.")
]
DataDir = Annotated[
    str | None, typer.Option("--data-dir", help="Keys, genesis and store; made when missing.")
]
Name = Annotated[str | None, typer.Option("--name", help="Name of this node.")]
ClusterName = Annotated[
    str | None, typer.Option("--cluster-name", help="Name of the cluster that is made.")
]
Erasable = Annotated[
    list[str] | None,
    typer.Option(
        "--erasable",
        metavar="STREAM",
        help="A stream whose entries carry a salt, so that an erased one cannot be guessed. "
        "Declared when the cluster is made. Repeatable.",
    ),
]
ApiListen = Annotated[str | None, typer.Option("--api-listen", help="host:port for apps.")]
OpsListen = Annotated[
    str | None, typer.Option("--ops-listen", help="host:port for health and metrics.")
]
P2pListen = Annotated[str | None, typer.Option("--p2p-listen", help="host:port for other nodes.")]
Advertise = Annotated[
    str | None, typer.Option("--advertise", help="host:port that other nodes are told to dial.")
]
Join = Annotated[
    str | None, typer.Option("--join", help="Invitation, or URI, that a first start follows.")
]
SecretFile = Annotated[
    str | None,
    typer.Option("--secret-file", help="With a URI: the cluster's secret, as its cluster.key."),
]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Serve a public address without tokens.")
]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="Any setting: section.name=value. Repeatable.")
]
Json = Annotated[bool, typer.Option("--json", help="Data as JSON on stdout.")]

FLAGS = {
    "data_dir": ("node.data_dir", "--data-dir"),
    "name": ("node.name", "--name"),
    "cluster_name": ("node.cluster_name", "--cluster-name"),
    "api_listen": ("api.listen", "--api-listen"),
    "ops_listen": ("ops.listen", "--ops-listen"),
    "p2p_listen": ("p2p.listen", "--p2p-listen"),
    "advertise": ("p2p.advertise", "--advertise"),
    "join": ("node.join", "--join"),
    "secret_file": ("node.secret_file", "--secret-file"),
    "policy": ("node.policy", "--policy"),
    "founders": ("node.founders", "--founder"),
    "erasable": ("node.streams_erasable", "--erasable"),
}


def run(
    data_dir: DataDir = None,
    join: Join = None,
    secret_file: SecretFile = None,
    api_listen: ApiListen = None,
    p2p_listen: P2pListen = None,
    advertise: Advertise = None,
    ops_listen: OpsListen = None,
    name: Name = None,
    cluster_name: ClusterName = None,
    erasable: Erasable = None,
    insecure: Insecure = False,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Run a node until SIGTERM or Ctrl-C. A first start makes a cluster of one."""
    with explained():
        from quipu.cli.running import run_node

        given = flags_of(
            settings,
            data_dir=data_dir,
            join=join,
            secret_file=secret_file,
            api_listen=api_listen,
            p2p_listen=p2p_listen,
            advertise=advertise,
            ops_listen=ops_listen,
            name=name,
            cluster_name=cluster_name,
            erasable=erasable,
        )
        if insecure:
            given["api.insecure"] = as_flag("true", "--insecure")

        def read() -> "Settings":
            return load(config, given).settings

        code = run_node(read(), json, again=read)
        raise typer.Exit(int(code))


def init(
    data_dir: DataDir = None,
    name: Name = None,
    cluster_name: ClusterName = None,
    founder: Annotated[
        list[str] | None,
        typer.Option("--founder", help="Another founder: name=URI. Repeatable."),
    ] = None,
    policy: Annotated[
        str | None, typer.Option("--policy", help="majority, two-thirds, all, or a number.")
    ] = None,
    erasable: Erasable = None,
    key_only: Annotated[
        bool, typer.Option("--key-only", help="Make the key alone and print this node's URI.")
    ] = False,
    p2p_listen: P2pListen = None,
    advertise: Advertise = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Make keys, genesis and an empty store: a cluster of one, or with other founders."""
    with explained():
        from quipu.cli.founding import init_node

        given = flags_of(
            settings,
            data_dir=data_dir,
            name=name,
            cluster_name=cluster_name,
            founders=founder,
            policy=policy,
            erasable=erasable,
            p2p_listen=p2p_listen,
            advertise=advertise,
        )
        init_node(load(config, given).settings, key_only, as_json=json)


def join(
    invitation: Annotated[
        str,
        typer.Argument(help="File that `quipu invite` has written, or the URI of a member."),
    ],
    secret_file: SecretFile = None,
    data_dir: DataDir = None,
    name: Name = None,
    p2p_listen: P2pListen = None,
    advertise: Advertise = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Make a new node of an existing cluster, as `quipu run --join` does first, without running."""
    with explained():
        from quipu.cli.founding import init_node

        given = flags_of(
            settings,
            data_dir=data_dir,
            name=name,
            p2p_listen=p2p_listen,
            advertise=advertise,
            join=invitation,
            secret_file=secret_file,
        )
        init_node(load(config, given).settings, key_only=False, as_json=json)


def invite(
    out: Annotated[Path, typer.Option("--out", help="File to write; nobody else may read it.")],
    data_dir: DataDir = None,
    address: Annotated[
        str, typer.Option("--address", help="host:port by which others reach this node.")
    ] = "",
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Write a file with which a new node finds this cluster and is let in."""
    with explained():
        from quipu.cli.founding import invite as write_invitation

        given = flags_of(settings, data_dir=data_dir)
        write_invitation(load(config, given).settings, out, address, as_json=json)


def doctor(
    data_dir: DataDir = None,
    api_listen: ApiListen = None,
    p2p_listen: P2pListen = None,
    ops_listen: OpsListen = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """Look at this machine and the data directory, change nothing, and say what is wrong."""
    with explained():
        from quipu.cli.examining import examine_node

        given = flags_of(
            settings,
            data_dir=data_dir,
            api_listen=api_listen,
            p2p_listen=p2p_listen,
            ops_listen=ops_listen,
        )
        code = examine_node(load(config, given).settings, as_json=json)
        raise typer.Exit(int(code))


def show(
    origin: Annotated[bool, typer.Option("--origin", help="Say where each comes from.")] = False,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    settings: Set = None,
    json: Json = False,
) -> None:
    """All settings as a node would use them."""
    with explained():
        from quipu.cli.showing import show_config

        show_config(load(config, flags_of(settings, data_dir=data_dir)), origin, as_json=json)


# --- from options to settings -------------------------------------------------------------------
def flags_of(settings: list[str] | None, **options: str | list[str] | None) -> "dict[str, Value]":
    given: dict[str, Value] = {}
    for item in settings or []:
        key, equals, text = item.partition("=")
        if not equals:
            from quipu.node.exits import BadSetting

            raise BadSetting(f"--set {item}", "Write it as --set section.name=value.")
        given[key] = as_flag(text, "--set")
    for option, value in options.items():
        if value is not None:
            key, flag = FLAGS[option]
            given[key] = as_flag(value if isinstance(value, str) else ",".join(value), flag)
    return given


def as_flag(text: str, flag: str) -> "Value":
    from quipu.node.config import Value

    return Value(text, flag)


def load(config: Path | None, flags: "dict[str, Value]") -> "Config":
    import os

    from quipu.node.config import load as load_config

    return load_config(config, os.environ, flags)


@contextmanager
def explained() -> Iterator[None]:
    """What stops a start is one sentence, one step to take, and an exit code."""
    from quipu.node.exits import CannotStart

    try:
        yield
    except CannotStart as error:
        print(f"quipu: {error.what}\n  {error.next_step}", file=sys.stderr)
        raise typer.Exit(int(error.code)) from error
