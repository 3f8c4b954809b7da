"""The style of the house, held against every file. Each rule is also shown to bite."""

import ast
import re
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from quipu.ledger import limits
from quipu.p2p import limits as peer_limits
from tests import house_rules, tree
from tests.house_rules import Finding

MODULE_LINES_MAX = 500
FUNCTION_LINES_MAX = 40
PARAMETERS_MAX = 5

# Exceptions, each with its reason. These lists only shrink: an entry that is no longer
# needed fails the test until it is taken out.
LONG_MODULES: dict[str, str] = {  # "ledger/core.py": why it is over 500 lines
    "api/codes.py": "the closed list, one paragraph a code",
}
LONG_FUNCTIONS: dict[str, str] = {}  # "ledger/core.py:Core.step": why it is over 40 lines
OPTIONS = "each parameter is an option of the command: typer reads the signature"
WIDE_FUNCTIONS: dict[str, str] = {  # "ledger/core.py:Core.step": why it takes over 5 parameters
    "ledger/entry.py:data_entry": "keywords, one for each thing that an app may say of an entry",
    "ledger/inv.py:build_inv": "the fields of an Inv, each once",
    "quipu/cli/analysing.py:analyse": OPTIONS,
    "quipu/cli/benching.py:bench": OPTIONS,
    "quipu/cli/devnet_commands.py:up": OPTIONS,
    "quipu/cli/ledger_commands.py:list_": OPTIONS,
    "quipu/cli/member_commands.py:add": OPTIONS,
    "quipu/cli/member_commands.py:listed": OPTIONS,
    "quipu/cli/member_commands.py:policy": OPTIONS,
    "quipu/cli/member_commands.py:remove": OPTIONS,
    "quipu/cli/member_commands.py:replace": OPTIONS,
    "quipu/cli/node_commands.py:doctor": OPTIONS,
    "quipu/cli/node_commands.py:init": OPTIONS,
    "quipu/cli/node_commands.py:join": OPTIONS,
    "quipu/cli/node_commands.py:invite": OPTIONS,
    "quipu/cli/node_commands.py:run": OPTIONS,
    "quipu/cli/store_commands.py:erase": OPTIONS,
    "quipu/cli/store_commands.py:export": OPTIONS,
    "quipu/cli/store_commands.py:journal_propose": OPTIONS,
    "quipu/cli/store_commands.py:prune": OPTIONS,
    "quipu/cli/store_commands.py:restore": OPTIONS,
    "quipu/cli/store_commands.py:verify": OPTIONS,
    "ledger/sync.py:Sync.tell": "the fields of a SyncEvent that stand outside of its rows",
    "quipu/cli/ledger_commands.py:submit": "the options of the command",
}
VERSIONS = {"COMMAND_VERSION", "EVENT_VERSION", "GOSSIP_VERSION", "INV_VERSION", "FORMAT_VERSION"}
VERSIONS |= {"FIRST_VERSION", "LOG_VERSION", "RECORD_VERSION"}
# Widths that a primitive or the wire format fixes: nothing that somebody could choose otherwise.
WIDTHS = {"HASH_BYTES", "HLC_SHIFT", "PREFIX_BYTES", "SALT_BYTES", "SEED_BYTES", "SIGNATURE_BYTES"}
WIDTHS |= {"KEY_BYTES"}
LEAVING = {"LEAVING_KIND", "REMOVE"}  # two numbers of a form that never changes
CONSTANTS_OUTSIDE_LIMITS = frozenset(VERSIONS | WIDTHS | LEAVING)

# Written in pieces, so that this file keeps its own rule.
MACHINE_PATHS = tuple("/" + folder + "/" for folder in ("work", "root"))
REGISTRY_HOSTS = (
    "pypi" + ".org",
    "python" + "hosted.org",
    "npm" + "js.org",
    "crates" + ".io",
    "maven" + ".org",
    "deb.debian" + ".org",
)
INDEX_OPTIONS = ("--index" + "-url", "--extra-index" + "-url", "--trusted" + "-host")

PRODUCT = tree.python_files(*tree.PRODUCT_FOLDERS)
CORE = tree.python_files("ledger")
PEERS = tuple(n for n in tree.python_files("p2p") if not n.startswith("p2p/transports/"))
PURE = (*CORE, *PEERS)
EVERY_MODULE = tree.python_files()


def each(names: tuple[str, ...], rule: Callable[[ast.Module], Iterator[Finding]]) -> list[str]:
    return [f"{n}:{line}: {what}" for n in names for line, what in rule(tree.parsed(n))]


def test_the_pure_part_is_pure() -> None:
    assert each(PURE, house_rules.impurities) == []


def test_the_pure_part_never_iterates_a_set() -> None:
    assert each(PURE, house_rules.set_iterations) == []


def test_limits_of_the_pure_part_stand_in_one_file_each() -> None:
    others = tuple(n for n in PURE if n not in {"ledger/limits.py", "p2p/limits.py"})
    found = each(others, lambda t: house_rules.stray_limits(t, CONSTANTS_OUTSIDE_LIMITS))
    assert found == []


def test_every_pure_module_says_what_it_decides() -> None:
    assert [n for n in PURE if not ast.get_docstring(tree.parsed(n))] == []


def test_imports_go_by_the_installed_name() -> None:
    assert each(EVERY_MODULE, house_rules.top_level_imports) == []


def test_names_say_something() -> None:
    found = [
        f"{n}:{line}: {what}"
        for n in EVERY_MODULE
        for line, what in house_rules.vague_names(n, tree.parsed(n))
    ]
    assert found == []


def test_except_names_what_it_catches() -> None:
    assert each(EVERY_MODULE, house_rules.bare_excepts) == []


def test_type_ignores_name_their_error() -> None:
    bare = re.compile(r"#\s*type:\s*" + r"ignore(?!\[)")
    assert _lines_matching(EVERY_MODULE, bare) == []


def test_modules_stay_readable() -> None:
    long = {n for n in PRODUCT if len(tree.read(n).splitlines()) > MODULE_LINES_MAX}
    assert long == set(LONG_MODULES)


def test_functions_stay_short() -> None:
    assert _functions_over(house_rules.line_count, FUNCTION_LINES_MAX) == set(LONG_FUNCTIONS)


def test_functions_take_few_parameters() -> None:
    assert _functions_over(house_rules.parameter_count, PARAMETERS_MAX) == set(WIDE_FUNCTIONS)


def test_no_file_names_a_path_of_one_machine() -> None:
    path = re.compile(r"(?<![\w.\-)}/*])(?:" + "|".join(map(re.escape, MACHINE_PATHS)) + ")")
    assert _lines_matching(tree.text_files(), path) == []


def test_no_file_names_a_package_registry() -> None:
    host = re.compile("|".join(map(re.escape, (*REGISTRY_HOSTS, *INDEX_OPTIONS))))
    assert _lines_matching(tree.text_files(), host) == []


def test_locked_requirements_carry_hashes() -> None:
    for name in ("run", "test", "analytics"):
        lock = tree.read(f"requirements/{name}.lock")
        pinned = re.findall(r"^([a-z0-9][\w.\-]*)==", lock, re.MULTILINE)
        assert pinned
        for block in re.split(r"\n(?=[a-z0-9])", lock):
            assert block.startswith("#") or "--hash=sha256:" in block


def test_no_two_paths_differ_in_case_alone() -> None:
    names = [n.lower() for n in tree.tracked_files()]
    assert len(names) == len(set(names))


def _lines_matching(names: tuple[str, ...], pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()}"
        for name in names
        for number, line in enumerate(tree.read(name).splitlines(), 1)
        if pattern.search(line)
    ]


def _functions_over(measure: Callable[[house_rules.Function], int], most: int) -> set[str]:
    return {
        f"{name}:{function_name}"
        for name in PRODUCT
        for function_name, function in house_rules.functions(tree.parsed(name))
        if measure(function) > most
    }


IMPURE = [
    "import time",
    "from time import monotonic_ns",
    "import os",
    "from os import urandom",
    "from asyncio import Queue",
    "import lmdb",
    "import logging.config",
    "from nacl.utils import random",
    "from uuid import uuid4",
    "print(1)",
    "datetime.now()",
    "x = datetime.datetime.now(UTC)",
    "key = SigningKey.generate()",
    "order = hash(b'')",
]
SET_ITERATED = [
    "for x in {1, 2}: pass",
    "for x in set(y): pass",
    "z = [x for x in frozenset(y)]",
    "z = {x: 1 for x in {a for a in y}}",
    "z = list(set(y))",
    "z = b''.join({a, b})",
    "z = (*set(y),)",
    "z = next(iter({1, 2}))",
    "for x in set(a) - set(b): pass",
    "for x in {1}.union(b): pass",
    "def f(a: set[int]) -> None:\n    for x in a: pass",
    "def f(a: frozenset[int]) -> None:\n    return tuple(a)",
    "def f():\n    seen = set()\n    for x in seen: pass",
    "def f():\n    seen: set[int] = g()\n    return seen.pop()",
    "class C:\n    held: set[bytes]\n    def f(self):\n        return [x for x in self.held]",
]
SET_USED_IN_ORDER = [
    "for x in sorted({1, 2}): pass",
    "z = sorted(x + 1 for x in set(y))",
    "z = len({1, 2})",
    "z = any(x for x in {1, 2})",
    "z = 1 in {1, 2}",
    "z = {x + 1 for x in set(y)}",
    "def f(a: dict[int, int]) -> None:\n    for x in a: pass",
    "def f():\n    seen = set()\n    seen = sorted(seen)\n    for x in seen: pass",
    "def f():\n    return [x.pop() for x in [[1]]]",
]
STRAY_LIMITS = ["PEERS_MAX = 32", "PEERS_MAX: Final = 32", "_BYTES_MAX = 4 * 1024", "X = 1 << 16"]
FINE_CONSTANTS = ["ZERO = 0", "ONE = 1", "TAG = b'x'", "lower = 5", "INV_VERSION = 2", "ON = True"]


@pytest.mark.parametrize("source", IMPURE)
def test_impurity_is_seen(source: str) -> None:
    assert list(house_rules.impurities(ast.parse(source)))


@pytest.mark.parametrize("source", SET_ITERATED)
def test_iterated_set_is_seen(source: str) -> None:
    assert list(house_rules.set_iterations(ast.parse(source)))


@pytest.mark.parametrize("source", SET_USED_IN_ORDER)
def test_set_without_visible_order_passes(source: str) -> None:
    assert list(house_rules.set_iterations(ast.parse(source))) == []


@pytest.mark.parametrize("source", STRAY_LIMITS)
def test_stray_limit_is_seen(source: str) -> None:
    assert list(house_rules.stray_limits(ast.parse(source), CONSTANTS_OUTSIDE_LIMITS))


@pytest.mark.parametrize("source", FINE_CONSTANTS)
def test_what_is_no_limit_passes(source: str) -> None:
    assert list(house_rules.stray_limits(ast.parse(source), CONSTANTS_OUTSIDE_LIMITS)) == []


@pytest.mark.parametrize("source", ["import ledger", "from storage.lmdb_store import x"])
def test_import_by_folder_is_seen(source: str) -> None:
    assert list(house_rules.top_level_imports(ast.parse(source)))


def test_vague_name_is_seen() -> None:
    assert list(house_rules.vague_names("ledger/utils.py", ast.parse("")))
    assert list(house_rules.vague_names("ledger/a.py", ast.parse("class PeerManager: pass")))


def test_bare_except_is_seen() -> None:
    assert list(house_rules.bare_excepts(ast.parse("try: pass\nexcept: pass")))


def test_functions_are_measured() -> None:
    source = "class C:\n    def f(self, a, *, b):\n        '''Doc.'''\n        return a"
    ((name, function),) = house_rules.functions(ast.parse(source))
    assert name == "C.f"
    assert house_rules.line_count(function) == 2
    assert house_rules.parameter_count(function) == 2


@pytest.mark.parametrize("bounds", [limits, peer_limits])
def test_every_limit_of_the_pure_part_is_used(bounds: ModuleType) -> None:
    """A bound that nothing reads bounds nothing."""
    text = "\n".join(
        path.read_text(encoding="utf-8")
        for folder in ("ledger", "storage", "p2p", "node", "api")
        for path in sorted((tree.ROOT / folder).glob("**/*.py"))
    )
    names = [name for name in vars(bounds) if name.isupper() and name not in {"KIB", "MIB"}]
    unused = [name for name in names if len(re.findall(rf"\b{name}\b", text)) < 2]
    assert unused == []
