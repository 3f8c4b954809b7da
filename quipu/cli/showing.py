"""`quipu config show`."""

import json

from quipu.node.config import Config, shown


def show_config(config: Config, origin: bool, as_json: bool) -> None:
    """As a TOML file could hold it; `--origin` adds where each value comes from."""
    if as_json:
        rows = {
            key: {"value": shown(item.value).strip('"'), "origin": item.origin}
            for key, item in config.values.items()
        }
        plain = {key: row["value"] for key, row in rows.items()}
        print(json.dumps(rows if origin else plain, indent=2))
        return
    section = ""
    for key, (value, where) in config.values.items():
        head, _, name = key.partition(".")
        if head != section:
            print(f"{chr(10) if section else ''}[{head}]")
            section = head
        line = f"{name} = {shown(value)}" if value is not None else f"# {name} is not set"
        print(f"{line:<48} # {where}" if origin else line)
