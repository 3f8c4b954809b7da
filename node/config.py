"""Where settings come from: defaults < TOML file < environment < flags, each with its origin.

A key that is not known is an error that names the nearest one. No secret is a setting: secrets
are files, and settings name them.
"""

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from ipaddress import ip_network
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from quipu.node import clock, failpoints, limits
from quipu.node.exits import BadSetting
from quipu.node.settings import Address, Networks, Settings
from quipu.p2p.transports import screen

PREFIX = "QUIPU_"
FILE_VARIABLE = "QUIPU_CONFIG"
# Read elsewhere, by the commands that ask a node: they are no settings of one.
CLIENT_VARIABLES = frozenset({"QUIPU_URL", "QUIPU_OPS_URL", "QUIPU_TOKEN_FILE", "QUIPU_CA_FILE"})
TEST_VARIABLES = frozenset({failpoints.VARIABLE, clock.VARIABLE, screen.VARIABLE})
OTHER_VARIABLES = CLIENT_VARIABLES | TEST_VARIABLES | {FILE_VARIABLE}
PORT_MAX = (1 << 16) - 1


class Known(NamedTuple):
    """One setting, as its field declares it."""

    key: str
    type: Any
    default: Any
    doc: str
    least: int
    most: int | None

    @property
    def variable(self) -> str:
        return PREFIX + self.key.replace(".", "_").upper()


class Value(NamedTuple):
    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class Config:
    settings: Settings
    values: dict[str, Value]  # by key, in the order of the declaration


def known_settings() -> Iterator[Known]:
    for section in fields(Settings):
        holder: Any = section.type
        hints = get_type_hints(holder)
        for item in fields(holder):
            key = f"{section.name}.{item.name}"
            yield Known(key, hints[item.name], item.default, **item.metadata)


def load(file: Path | None, environment: Mapping[str, str], flags: Mapping[str, Value]) -> Config:
    """`flags` by key: the text given, and the flag it came by. Raises `BadSetting`."""
    known = {item.key: item for item in known_settings()}
    values = {key: Value(item.default, "default") for key, item in known.items()}
    path = file or _path_of(environment.get(FILE_VARIABLE))
    if path is not None:
        for key, given in _from_file(path, known):
            values[key] = Value(_parsed(known[key], given, f"{path}: {key}"), str(path))
    for key, text, origin in _from_environment(environment, known):
        values[key] = Value(_parsed(known[key], text, origin), origin)
    for key, (text, flag) in flags.items():
        if key not in known:
            raise _unknown("setting", key, list(known), flag)
        values[key] = Value(_parsed(known[key], text, f"{flag} {key}"), flag)
    return Config(_assembled(values), values)


def _assembled(values: Mapping[str, Value]) -> Settings:
    sections = {}
    for section in fields(Settings):
        holder: Any = section.type
        names = [item.name for item in fields(holder)]
        sections[section.name] = holder(
            **{name: values[f"{section.name}.{name}"].value for name in names}
        )
    return Settings(**sections)


def _path_of(text: str | None) -> Path | None:
    return Path(text) if text else None


# --- sources ------------------------------------------------------------------------------------
def _from_file(path: Path, known: Mapping[str, Known]) -> Iterator[tuple[str, object]]:
    try:
        if path.stat().st_size > limits.CONFIG_FILE_BYTES_MAX:
            raise BadSetting(f"{path} is too large for a configuration", "Name another file.")
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadSetting(
            f"cannot read {path}: {error.strerror}", "Name a file that is there, or none."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSetting(f"{path} is not TOML: {error}", "Repair that line.") from error
    sections = list(dict.fromkeys(key.partition(".")[0] for key in known))
    for section, content in tree.items():
        if section not in sections:
            raise _unknown("section", section, sections, str(path))
        if not isinstance(content, dict):
            raise BadSetting(
                f"{path}: {section} is a section", f"Write [{section}] above its keys."
            )
        for name, given in content.items():
            key = f"{section}.{name}"
            if key not in known:
                raise _unknown("setting", key, list(known), str(path))
            yield key, given


def _from_environment(
    environment: Mapping[str, str], known: Mapping[str, Known]
) -> Iterator[tuple[str, str, str]]:
    by_variable = {item.variable: key for key, item in known.items()}
    for variable, text in sorted(environment.items()):
        if not variable.startswith(PREFIX) or variable in OTHER_VARIABLES:
            continue
        if variable not in by_variable:
            raise _unknown("variable", variable, list(by_variable), "the environment")
        yield by_variable[variable], text, variable


def _unknown(what: str, name: str, known: list[str], where: str) -> BadSetting:
    near = difflib.get_close_matches(name, known, n=1)
    advice = f"Did you mean {near[0]}?" if near else "`quipu config show` lists what there is."
    return BadSetting(f"{where}: there is no {what} {name}", advice)


# --- values -------------------------------------------------------------------------------------
def _parsed(known: Known, given: object, where: str) -> Any:
    try:
        value = parse_value(known.type, given)
        if known.type is int:
            _check_range(value, known.least, known.most)
        return value
    except ValueError as error:
        raise BadSetting(
            f"{where} = {given!r}: {error}",
            f"{known.key}: {known.doc}. Default: {shown(known.default)}",
        ) from error


def _check_range(number: int, least: int, most: int | None) -> None:
    if number < least:
        raise ValueError(f"at least {least:,}")
    if most is not None and number > most:
        raise ValueError(f"at most {most:,}")


def parse_value(kind: Any, given: object) -> Any:
    """TOML gives values with types, environment and flags give text. Raises ValueError."""
    if get_origin(kind) is UnionType:
        (kind,) = (option for option in get_args(kind) if option is not NoneType)
        if given in ("", "none"):
            return None
    if get_origin(kind) is Literal:
        if given not in get_args(kind):
            raise ValueError("one of " + ", ".join(get_args(kind)))
        return given
    if kind is bool:
        return _parse_bool(given)
    if kind is int:
        if isinstance(given, bool) or not (isinstance(given, int) or str(given).isdigit()):
            raise ValueError("a whole number")
        return int(str(given))
    if kind is Networks:
        return Networks(ip_network(name) for name in _parse_names(given))
    if get_origin(kind) is tuple:
        return _parse_names(given)
    if not isinstance(given, str) or not given:
        raise ValueError("a text")
    if kind is Address:
        return parse_address(given)
    return kind(given)


def _parse_bool(given: object) -> bool:
    if isinstance(given, bool):
        return given
    if given in ("true", "false"):
        return given == "true"
    raise ValueError("true or false")


def _parse_names(given: object) -> tuple[str, ...]:
    """A TOML array, or a text with commas."""
    names = given.strip("[] ").split(",") if isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("names with commas between, or a list of texts")
    stripped = [name.strip(' "') for name in names]
    return tuple(name for name in stripped if name)


def parse_address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not host or not port.isdigit() or int(port) > PORT_MAX:
        raise ValueError("host:port, as 127.0.0.1:8470 or [::1]:8470")
    return Address(host, int(port))


def shown(value: object) -> str:
    """As it would stand in a TOML file."""
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case int() | Networks():
            return str(value)
        case tuple() if not isinstance(value, Address):
            return f'"{",".join(value)}"'
        case _:
            return f'"{value}"'
