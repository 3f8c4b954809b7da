"""docs/protocols.md and the conformance tests name the same clauses."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.conformance.clauses import CLAUSE_NUMBER, ClauseNumberError, clause

HERE: Final = Path(__file__).resolve().parent
PAGE: Final = HERE.parents[1] / "docs" / "protocols.md"
SEEDS: Final = ("000", "001", "002", "003", "004")
STATUSES: Final = frozenset({"built", "planned: network", "planned: order"})

SECTION: Final = re.compile(r"## (\d{3}) \S.*")
COUNT: Final = re.compile(r"(\d{3}): (\d+) clauses\.")
HEADING: Final = ("clause", "what it demands", "how Quipu does it", "status")


@dataclass(frozen=True, slots=True)
class Row:
    seed: str
    number: str
    demand: str
    mechanism: str
    status: str


@dataclass(frozen=True, slots=True)
class Page:
    rows: tuple[Row, ...]
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class Claim:
    number: str
    test: str


class PageError(ValueError):
    """The page has a line that is neither prose nor a clause as agreed."""


class ClaimError(ValueError):
    """A `@clause` that cannot be read from the source, or stands where no test is run."""


def parse_page(text: str) -> Page:
    rows: list[Row] = []
    counts: dict[str, int] = {}
    seed = ""
    for at, line in enumerate(text.splitlines(), start=1):
        if section := SECTION.fullmatch(line):
            seed = section[1]
        elif count := COUNT.fullmatch(line):
            counts[count[1]] = int(count[2])
        elif line.startswith("|"):
            cells = _cells(line, at)
            if cells != HEADING and set("".join(cells)) - set("- "):
                rows.append(_row(seed, cells, at))
    return Page(rows=tuple(rows), counts=counts)


def _cells(line: str, at: int) -> tuple[str, ...]:
    cells = tuple(cell.strip() for cell in line.strip().strip("|").split("|"))
    if len(cells) != len(HEADING) or not all(cells):
        raise PageError(f"line {at}: {len(HEADING)} filled cells wanted: {line}")
    return cells


def _row(seed: str, cells: tuple[str, ...], at: int) -> Row:
    number, demand, mechanism, status = cells
    if CLAUSE_NUMBER.fullmatch(number) is None:
        raise PageError(f"line {at}: {number!r} is not a clause number")
    if not number.startswith(f"{seed}-"):
        raise PageError(f"line {at}: {number} stands in the section of seed {seed or 'none'}")
    if status not in STATUSES:
        raise PageError(f"line {at}: {number} has the unknown status {status!r}")
    return Row(seed, number, demand, mechanism, status)


def numbering_faults(rows: Sequence[Row]) -> list[str]:
    faults = [f"{number} twice" for number, n in Counter(r.number for r in rows).items() if n > 1]
    for seed in sorted({row.seed for row in rows}):
        numbers = [row.number for row in rows if row.seed == seed]
        wanted = [f"{seed}-{n:02d}" for n in range(1, len(numbers) + 1)]
        faults += [
            f"{number} where {want} is due"
            for number, want in zip(numbers, wanted, strict=True)
            if number != want
        ][:1]
    return faults


def claims_in(source: str, name: str) -> list[Claim]:
    tree = ast.parse(source, filename=name)
    run = set(_tests_run(tree))
    claims: list[Claim] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for decorator in node.decorator_list:
            if not _is_clause(decorator):
                continue
            where = f"{name}:{node.lineno} {node.name}"
            if node not in run:
                raise ClaimError(f"{where}: @clause on what pytest does not run as a test")
            claims += [Claim(number, where) for number in _arguments(decorator, where)]
    return claims


def _tests_run(tree: ast.Module) -> Iterator[ast.AST]:
    bodies: list[ast.Module | ast.ClassDef] = [tree]
    while bodies:
        for node in bodies.pop().body:
            if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                bodies.append(node)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(
                "test_"
            ):
                yield node


def _is_clause(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (isinstance(called, ast.Name) and called.id == "clause") or (
        isinstance(called, ast.Attribute) and called.attr == "clause"
    )


def _arguments(decorator: ast.expr, where: str) -> Iterator[str]:
    if not isinstance(decorator, ast.Call) or not decorator.args or decorator.keywords:
        raise ClaimError(f"{where}: @clause wants clause numbers and nothing else")
    for argument in decorator.args:
        if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
            raise ClaimError(f"{where}: @clause wants literal strings")
        yield argument.value


@pytest.fixture(scope="module")
def page() -> Page:
    return parse_page(PAGE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def claims() -> list[Claim]:
    files = sorted(HERE.glob("test_*.py"))
    return [c for file in files for c in claims_in(file.read_text(encoding="utf-8"), file.name)]


def test_clause_numbers_are_unique_and_gapless_a_seed(page: Page) -> None:
    assert tuple(dict.fromkeys(row.seed for row in page.rows)) == SEEDS
    assert numbering_faults(page.rows) == []


def test_each_section_states_its_count(page: Page) -> None:
    assert page.counts == dict(Counter(row.seed for row in page.rows))


def test_every_built_clause_has_a_test(page: Page, claims: list[Claim]) -> None:
    named = {claim.number for claim in claims}
    untested = [
        f"{row.number} {row.demand}"
        for row in page.rows
        if row.status == "built" and row.number not in named
    ]
    assert untested == []


def test_no_test_names_an_unknown_clause(page: Page, claims: list[Claim]) -> None:
    known = {row.number for row in page.rows}
    assert [claim for claim in claims if claim.number not in known] == []


def _table(*lines: str, seed: str = "003") -> str:
    head = "| clause | what it demands | how Quipu does it | status |\n| --- | --- | --- | --- |\n"
    return f"## {seed} a seed\n\n{head}" + "\n".join(lines) + "\n"


def test_a_page_is_read_row_by_row() -> None:
    text = _table("| 003-01 | a | b | built |", "| 003-02 | c | d | planned: order |")
    page = parse_page(text + "\n003: 2 clauses.\n")
    assert page.rows == (
        Row("003", "003-01", "a", "b", "built"),
        Row("003", "003-02", "c", "d", "planned: order"),
    )
    assert page.counts == {"003": 2}
    assert numbering_faults(page.rows) == []


@pytest.mark.parametrize(
    "line",
    [
        "| 003-1 | a | b | built |",
        "| 003-001 | a | b | built |",
        "| 004-01 | a | b | built |",
        "| 003-01 | a | b | done |",
        "| 003-01 | a | built |",
        "| 003-01 | a |  | built |",
        "| 003-01 | a | b | c | built |",
    ],
)
def test_a_malformed_row_is_refused(line: str) -> None:
    with pytest.raises(PageError):
        parse_page(_table(line))


@pytest.mark.parametrize(
    ("numbers", "faults"),
    [
        (["003-01", "003-02"], []),
        (["003-01", "003-03"], ["003-03 where 003-02 is due"]),
        (["003-02", "003-01"], ["003-02 where 003-01 is due"]),
        (["003-01", "003-01"], ["003-01 twice", "003-01 where 003-02 is due"]),
        ([f"003-{n:02d}" for n in range(1, 102)], []),
    ],
)
def test_numbering_faults_are_found(numbers: list[str], faults: list[str]) -> None:
    rows = parse_page(_table(*(f"| {number} | a | b | built |" for number in numbers))).rows
    assert numbering_faults(rows) == faults


def test_claims_are_read_from_functions_and_methods() -> None:
    source = (
        '@clause("003-01", "003-02")\ndef test_one(): ...\n'
        '@clauses.clause("003-03")\nasync def test_two(): ...\n'
        'class TestThree:\n    @other\n    @clause("003-04")\n    def test_it(self): ...\n'
        "def test_without(): ...\n"
    )
    claims = claims_in(source, "test_x.py")
    assert sorted(c.number for c in claims) == ["003-01", "003-02", "003-03", "003-04"]
    assert claims[0].test == "test_x.py:2 test_one"


@pytest.mark.parametrize(
    "source",
    [
        '@clause("003-01")\ndef helper(): ...\n',
        '@clause("003-01")\nclass TestAll: ...\n',
        'def test_outer():\n    @clause("003-01")\n    def test_inner(): ...\n',
        "@clause()\ndef test_one(): ...\n",
        "@clause\ndef test_one(): ...\n",
        "@clause(NUMBER)\ndef test_one(): ...\n",
        "@clause(*NUMBERS)\ndef test_one(): ...\n",
        "@clause(3)\ndef test_one(): ...\n",
    ],
)
def test_a_claim_that_proves_nothing_is_refused(source: str) -> None:
    with pytest.raises(ClaimError):
        claims_in(source, "test_x.py")


def test_the_decorator_returns_the_test_itself() -> None:
    def test_one() -> None: ...

    assert clause("003-07", "001-119")(test_one) is test_one


@pytest.mark.parametrize("numbers", [(), ("3-07",), ("003-7",), ("003-007",), ("003-07 ",)])
def test_the_decorator_refuses_what_is_no_clause_number(numbers: tuple[str, ...]) -> None:
    with pytest.raises(ClauseNumberError):
        clause(*numbers)
