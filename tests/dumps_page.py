"""The tables of dumps and the checks of the analysis as the documents show them."""

from quipu.dumps.tables import TABLES, WITHOUT_SOURCE
from quipu.spark_analytics.findings import CHECKS
from tests import tree


def tables() -> str:
    parts = []
    for table, columns in TABLES.items():
        absent = ": no source yet, left out" if table in WITHOUT_SOURCE else ""
        parts.append(f"### {table}{absent}\n\n| column | type | meaning |\n| --- | --- | --- |\n")
        for c in columns:
            kind = f"{c.kind}, may be null" if c.optional else c.kind
            parts.append(f"| `{c.name}` | {kind} | {c.meaning} |\n".replace("<<", "\\<\\<"))
        parts.append("\n")
    return "".join(parts)


def checks() -> str:
    rows = "".join(f"| `{check}` | {meaning} |\n" for check, meaning in CHECKS.items())
    return f"| check | holds when |\n| --- | --- |\n{rows}\n"


def questions() -> str:
    """The cells of the notebook, each under what it answers."""
    cells = tree.read("docs/questions.py").split("# %% ")[1:]
    parts = []
    for cell in cells:
        title, _, code = cell.partition("\n")
        parts.append(f"### {title}\n\n```python\n{code.strip()}\n```\n\n")
    return "".join(parts)


PARTS = {
    "docs/dumps.md": {"tables": tables},
    "docs/analysis.md": {"checks": checks, "questions": questions},
}


def page(name: str) -> str:
    """As it has to be; `make figures` writes it."""
    text = tree.read(name)
    for what, made in PARTS[name].items():
        before, begin, rest = text.partition(f"<!-- {what}: begin -->\n")
        _, end, after = rest.partition(f"<!-- {what}: end -->\n")
        text = before + begin + "\n" + made() + end + after
    return text


if __name__ == "__main__":
    for name in PARTS:
        (tree.ROOT / name).write_text(page(name), encoding="utf-8")
