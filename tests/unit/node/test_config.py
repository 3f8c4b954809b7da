from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import typer

from quipu.cli.main import app
from quipu.node.config import (
    CLIENT_VARIABLES,
    Config,
    Value,
    known_settings,
    load,
    parse_value,
    shown,
)
from quipu.node.exits import BadSetting
from quipu.node.settings import Address, Networks


def loaded(
    text: str | None = None, folder: Path | None = None, flags: Any = None, **environment: str
) -> Config:
    file = None
    if text is not None and folder is not None:
        file = folder / "quipu.toml"
        file.write_text(text)
    given = {key: Value(value, "--set") for key, value in (flags or {}).items()}
    return load(file, environment, given)


def test_every_setting_has_a_default_of_its_own_type() -> None:
    config = loaded()
    for known in known_settings():
        assert known.doc
        value = config.values[known.key].value
        assert value == known.default
        if value is not None:
            assert parse_value(known.type, shown(value).strip('"')) == value


def test_flags_over_environment_over_file_over_defaults(tmp_path: Path) -> None:
    text = '[node]\nname = "file"\ncluster_name = "file"\n[api]\nlisten = "[::1]:1"\n'
    environment = {"QUIPU_NODE_NAME": "env", "QUIPU_NODE_CLUSTER_NAME": "env"}
    config = loaded(text, tmp_path, {"node.name": "flag"}, **environment)
    assert config.settings.node.name == "flag"
    assert config.settings.node.cluster_name == "env"
    assert config.settings.api.listen == Address("::1", 1)
    origins = {key: value.origin for key, value in config.values.items()}
    assert origins["node.name"] == "--set"
    assert origins["node.cluster_name"] == "QUIPU_NODE_CLUSTER_NAME"
    assert origins["api.listen"].endswith("quipu.toml")
    assert origins["ops.listen"] == "default"


def test_a_file_may_be_named_by_the_environment(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("[api]\ninsecure = true\n")
    assert loaded(QUIPU_CONFIG=str(tmp_path / "c.toml")).settings.api.insecure


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ('[api]\nlisen = "x"', "Did you mean api.listen?"),
        ('[apy]\nlisten = "x"', "Did you mean api?"),
        ("[zzzzz]\n", "config show"),
        ("api = 3", "Write [api] above"),
        ("[api\n", "Repair that line"),
        ("[api]\ninsecure = 1", "api.insecure"),
        ("[api]\nlisten = 8470", "api.listen"),
        ('[log]\nlevel = "loud"', "log.level"),
        ("[api]\nconnections_max = 0", "api.connections_max"),
        ("[api]\nbody_bytes_max = 1_572_865", "Default: 1572864"),
        ('[api]\ntrusted_proxies = ["10.0.0.0/8", "proxy"]', "api.trusted_proxies"),
        ("[api]\ntrusted_proxies = [10]", "api.trusted_proxies"),
    ],
)
def test_what_a_file_may_not_say(text: str, advice: str, tmp_path: Path) -> None:
    with pytest.raises(BadSetting) as caught:
        loaded(text, tmp_path)
    assert advice in caught.value.next_step


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(BadSetting):
        load(tmp_path / "none.toml", {}, {})
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadSetting):
        load(tmp_path / "b.toml", {}, {})
    (tmp_path / "big.toml").write_text("#" * (2 << 20))
    with pytest.raises(BadSetting):
        load(tmp_path / "big.toml", {}, {})


def test_variables_and_flags_have_to_be_known() -> None:
    with pytest.raises(BadSetting) as caught:
        loaded(QUIPU_API_LISTN="x")
    assert "QUIPU_API_LISTEN?" in caught.value.next_step
    with pytest.raises(BadSetting):
        loaded(flags={"api.lisen": "x"})
    assert loaded(OTHER_LISTEN="x", QUIPU_FAILPOINTS="").settings == loaded().settings


@pytest.mark.parametrize("text", ["", "host", "host:", ":1", "h:x", "h:65536", "h:-1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match=r"host:port|a text"):
        parse_value(Address, text)


def test_values_by_their_type() -> None:
    assert parse_value(int, "7") == parse_value(int, 7) == 7
    assert parse_value(Path | None, "none") is None
    assert parse_value(Path | None, "a/b") == Path("a/b")
    assert parse_value(bool, "true") is True
    assert parse_value(tuple[str, ...], "a, b,") == parse_value(tuple[str, ...], ["a", "b"])
    with pytest.raises(ValueError, match="names with commas"):
        parse_value(tuple[str, ...], [1])
    for kind, wrong in ((int, True), (int, "7.5"), (bool, "yes"), (str, 3)):
        with pytest.raises(ValueError, match=r"a whole number|true or false|a text"):
            parse_value(kind, wrong)


def test_networks_as_an_array_and_as_text(tmp_path: Path) -> None:
    named = Networks((ip_network("10.0.0.0/8"), ip_network("::1")))
    text = '[api]\ntrusted_proxies = ["10.0.0.0/8", "::1"]'
    assert loaded(text, tmp_path).settings.api.trusted_proxies == named
    found = loaded(QUIPU_API_TRUSTED_PROXIES="10.0.0.0/8, ::1").settings.api.trusted_proxies
    assert found == parse_value(Networks, shown(named)) == named
    assert parse_value(Networks, "") == ()


def test_variables_of_the_commands_are_known_to_the_node() -> None:
    """A shell that is set up to ask a node can start one, too."""
    named = {
        variable
        for command in walked(typer.main.get_command(app))
        for parameter in command.params
        if isinstance(variable := parameter.envvar, str)
    }
    settings = {known.variable for known in known_settings()}
    assert named - settings == CLIENT_VARIABLES


def walked(group: Any) -> Iterator[Any]:
    below = getattr(group, "commands", {})
    yield group
    for command in below.values():
        yield from walked(command)


def test_loopback_is_known() -> None:
    for host in ("127.0.0.1", "127.9.9.9", "localhost", "::1"):
        assert Address(host, 1).is_loopback
    assert not Address("0.0.0.0", 1).is_loopback
