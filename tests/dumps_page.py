"""The tables of dumps as docs/dumps.md shows them."""

from quipu.dumps.tables import TABLES, WITHOUT_SOURCE

PAGE = "docs/dumps.md"
BEGIN, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"


def tables() -> str:
    """`make figures` writes it."""
    parts = []
    for table, columns in TABLES.items():
        absent = ": no source yet, left out" if table in WITHOUT_SOURCE else ""
        parts.append(f"### {table}{absent}\n\n| column | type | meaning |\n| --- | --- | --- |\n")
        for c in columns:
            kind = f"{c.kind}, may be null" if c.optional else c.kind
            parts.append(f"| `{c.name}` | {kind} | {c.meaning} |\n".replace("<<", "\\<\\<"))
        parts.append("\n")
    return "".join(parts)


def page(text: str) -> str:
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "\n" + tables() + END + rest.partition(END)[2]


if __name__ == "__main__":
    from tests import tree

    (tree.ROOT / PAGE).write_text(page(tree.read(PAGE)), encoding="utf-8")
