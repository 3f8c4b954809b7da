"""The table of settings in docs/settings.md, written from the settings themselves.

`python -m tests.settings_page` writes it anew; a test holds the page against it.
"""

from pathlib import Path

from quipu.node.config import known_settings, shown
from tests import tree

PAGE = "docs/settings.md"
BEGIN, END = "<!-- settings -->\n", "<!-- end -->\n"


def table() -> str:
    lines = ["| setting | variable | default | what it is |", "| --- | --- | --- | --- |"]
    for known in known_settings():
        default = shown(known.default).strip('"')
        lines.append(f"| `{known.key}` | `{known.variable}` | `{default}` | {known.doc} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    before, _, rest = tree.read(PAGE).partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table() + END + after


if __name__ == "__main__":
    Path(tree.ROOT / PAGE).write_text(page(), encoding="utf-8")
