"""Mutation testing of the modules that decide what counts: quorum, receipts, cut.

Each mutant is one small change of the source: a comparison turned, a number moved by one, a
condition denied, a statement left out. It is killed when a test fails; the figure is the part that
is. `make mutants` prints who lives. A mutant runs in a fork of its own, where the functions of the
real module get its code.
"""

import argparse
import ast
import copy
import importlib
import multiprocessing
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import pytest

from tests import tree

forked = multiprocessing.get_context("fork")
IMPORTED = "ignore::pytest.PytestAssertRewriteWarning"  # what was imported before the forks
PLAIN = ("--tb=no", "--assert=plain")  # nobody reads why: half the time of a mutant that is killed
KILLED_MIN = 0.9
LIMIT_S = 300.0

# Which tests judge a module: those that are about it, quickest first.
JUDGES: dict[str, tuple[str, ...]] = {
    "quipu.ledger.quorum": (
        "tests/unit/ledger/test_quorum.py",
        "tests/property/test_quorum.py",
    ),
    "quipu.ledger.receipts": (
        "tests/unit/ledger/test_receipts.py",
        "tests/unit/ledger/test_intake.py",
        "tests/unit/ledger/test_core_epochs.py",
    ),
    "quipu.ledger.order.cut": ("tests/unit/ledger/order/test_cut.py",),
}

_TURNED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_EXCHANGED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
}


class Mutant(NamedTuple):
    number: int
    line: int
    what: str
    module: ast.Module


def mutants(source: str) -> Iterator[Mutant]:
    """In the order of the source; the same each time."""
    original = ast.parse(source)
    count = sum(1 for _ in ast.walk(original))
    number = 0
    for place in range(count):
        for what, module, line in _changed(original, place):
            ast.fix_missing_locations(module)
            yield Mutant(number, line, what, module)
            number += 1


def _changed(original: ast.Module, place: int) -> Iterator[tuple[str, ast.Module, int]]:
    for way in range(2):
        module = copy.deepcopy(original)
        node = list(ast.walk(module))[place]
        what = _change(node, way)
        if what:
            yield what, module, getattr(node, "lineno", 0)


def _change(node: ast.AST, way: int) -> str:
    """Changes it in place; empty where there is no such way."""
    match node:
        case ast.Compare(ops=[op]) if way < len(_TURNED.get(type(op), ())):
            node.ops = [_TURNED[type(op)][way]()]
            return f"{type(op).__name__} is {type(node.ops[0]).__name__}"
        case ast.BinOp(op=op) if type(op) in _EXCHANGED and way == 0:
            node.op = _EXCHANGED[type(op)]()
            return f"{type(op).__name__} is {type(node.op).__name__}"
        case ast.BoolOp(op=op) if way == 0:
            node.op = ast.Or() if isinstance(op, ast.And) else ast.And()
            return f"{type(op).__name__} is {type(node.op).__name__}"
        case ast.UnaryOp(op=ast.Not()) if way == 0:
            node.op = ast.UAdd()
            node.operand = ast.Call(ast.Name("bool", ast.Load()), [node.operand], [])
            return "not is left out"
        case ast.Constant(value=bool(value)) if way == 0:
            node.value = not value
            return f"{value} is {not value}"
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            node.value = value + (1, -1)[way]
            return f"{value} is {node.value}"
        case ast.If() if way == 0:
            node.test = ast.UnaryOp(ast.Not(), node.test)
            return "if is denied"
        case ast.FunctionDef(body=body) if way == 0 and len(body) > 1:
            return _without(body)
    return ""


def _without(body: list[ast.stmt]) -> str:
    """The last statement that is done for its effect."""
    for place in range(len(body) - 1, -1, -1):
        statement = body[place]
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if isinstance(statement, ast.Expr | ast.AugAssign) and not is_text:
            body[place] = ast.copy_location(ast.Pass(), statement)
            return f"line {statement.lineno} is left out"
    return ""


# --- in the process of a mutant -------------------------------------------------------------------
def put_in_place(name: str, number: int) -> None:
    """The functions that everybody has imported get the code of the mutant's."""
    module = importlib.import_module(name)
    assert module.__file__ is not None
    mutant = next(m for m in mutants(Path(module.__file__).read_text()) if m.number == number)
    made = {"__name__": name, "__file__": module.__file__}
    exec(compile(mutant.module, module.__file__, "exec"), made)
    for key, value in made.items():
        if isinstance(value, int | str | tuple):
            setattr(module, key, value)
        elif getattr(value, "__module__", None) == name:
            _replace(getattr(module, key), value)


def _replace(old: Any, new: Any) -> None:
    if isinstance(new, FunctionType):
        old.__code__, old.__defaults__ = new.__code__, new.__defaults__
    elif isinstance(new, property):
        _replace(old.fget, new.fget)
    elif isinstance(new, classmethod | staticmethod):
        _replace(old.__func__, new.__func__)
    elif isinstance(new, type):
        for key, value in vars(new).items():
            if key in vars(old):
                _replace(vars(old)[key], value)


# --- all of them ----------------------------------------------------------------------------------
def is_killed(name: str, number: int | None, tests: tuple[str, ...]) -> bool:
    """In a fork: what all of them import is imported once, here. None: the module as it is."""
    process = forked.Process(target=_judge, args=(name, number, tests))
    process.start()
    process.join(LIMIT_S)
    if process.is_alive():
        process.kill()
        process.join()
        return True  # it does not end: that is noticed
    return process.exitcode != 0


def _judge(name: str, number: int | None, tests: tuple[str, ...]) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.chdir(tree.ROOT)
    if number is not None:
        put_in_place(name, number)
    chosen = ("-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-W", IMPORTED, *PLAIN)
    os._exit(int(pytest.main([*chosen, *tests])))


def judged(name: str) -> tuple[int, list[Mutant]]:
    """How many there are, and who lives."""
    path = tree.ROOT / (name.removeprefix("quipu.").replace(".", "/") + ".py")
    tests = JUDGES[name]
    for test in tests:
        importlib.import_module(test.removesuffix(".py").replace("/", "."))
    assert not is_killed(name, None, tests), "the tests pass without a mutant"
    alive, count = [], 0
    for mutant in mutants(path.read_text()):
        count += 1
        if not is_killed(name, mutant.number, tests):
            alive.append(mutant)
            print(f"    lives: {path.name}:{mutant.line} {mutant.what}", flush=True)
    return count, alive


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.mutants", description=__doc__)
    parser.add_argument("--modules", nargs="+", choices=JUDGES, default=tuple(JUDGES))
    parser.add_argument("--note", action="store_true", help="append to docs/figures.csv")
    chosen = parser.parse_args()
    failed = 0
    for name in chosen.modules:
        begun_s = time.monotonic()
        count, alive = judged(name)
        part = (count - len(alive)) / count
        took_s = time.monotonic() - begun_s
        print(f"{name}: {count - len(alive)} of {count} killed, {part:.1%}, {took_s:.0f} s")
        failed += part < KILLED_MIN
        if chosen.note:
            from bench.figures import note_figure

            note_figure("mutants", f"{name}: part killed of {count}", part)
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
