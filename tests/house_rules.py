"""The house rules as functions of a syntax tree: each yields (line, what is wrong)."""

import ast
from collections.abc import Iterator

Finding = tuple[int, str]
Function = ast.FunctionDef | ast.AsyncFunctionDef

IMPURE_MODULES = frozenset(
    {
        "aiohttp",
        "asyncio",
        "concurrent",
        "contextvars",
        "ctypes",
        "fcntl",
        "io",
        "lmdb",
        "logging",
        "multiprocessing",
        "os",
        "pathlib",
        "queue",
        "random",
        "secrets",
        "selectors",
        "shutil",
        "signal",
        "socket",
        "ssl",
        "structlog",
        "subprocess",
        "sys",
        "tempfile",
        "threading",
        "time",
        "uuid",
        "warnings",
        "zmq",
    }
)
IMPURE_BUILTINS = frozenset({"breakpoint", "input", "open", "print"})
ADDRESS_BOUND_CALLS = frozenset({"hash", "id"})  # another value in each process
IMPURE_CALLS = frozenset(
    {"datetime.now", "datetime.utcnow", "datetime.today", "date.today", "SigningKey.generate"}
)
VAGUE_MODULES = frozenset({"utils", "util", "helpers", "helper", "common", "misc"})
VAGUE_ENDINGS = ("Manager", "Handler")
LOCAL_FOLDERS = frozenset(
    {"api", "bench", "ledger", "node", "p2p", "spark_analytics", "storage", "docker"}
)
SET_CONSTRUCTORS = frozenset({"set", "frozenset"})
SET_TYPES = frozenset({"set", "frozenset", "AbstractSet", "Set", "MutableSet"})
SET_METHODS = frozenset({"union", "intersection", "difference", "symmetric_difference"})
SET_OPERATORS = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)
# What comes out of these is the same in whatever order the elements come.
ORDER_FREE = frozenset(["sorted", "set", "frozenset", "len", "any", "all", "sum", "min", "max"])
ORDER_BOUND_CALLS = frozenset(
    ["list", "tuple", "iter", "enumerate", "zip", "map", "filter", "reversed", "deque", "dict"]
)
ORDER_BOUND_METHODS = frozenset({"join", "extend", "fromkeys", "from_iterable"})


def dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            return f"{dotted(value)}.{attr}"
        case _:
            return "?"


def imported_modules(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, level=0):
                yield node.lineno, module or ""


def impurities(tree: ast.Module) -> Iterator[Finding]:
    """Clock, randomness, I/O, concurrency: what a pure module may not reach."""
    for line, module in imported_modules(tree):
        if module.split(".")[0] in IMPURE_MODULES or module == "nacl.utils":
            yield line, f"imports {module}"
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if name in IMPURE_BUILTINS:
                yield node.lineno, f"uses {name}"
            case ast.Call(func=ast.Name(id=name)) if name in ADDRESS_BOUND_CALLS:
                yield node.lineno, f"uses {name}"
            case ast.Attribute() if ".".join(dotted(node).split(".")[-2:]) in IMPURE_CALLS:
                yield node.lineno, f"uses {dotted(node)}"


def top_level_imports(tree: ast.Module) -> Iterator[Finding]:
    for line, module in imported_modules(tree):
        if module.split(".")[0] in LOCAL_FOLDERS - {"bench"}:
            yield line, f"imports {module} in place of quipu.{module}"


class SetIteration(ast.NodeVisitor):
    """Iteration over what is visibly a set, where the order could be seen.

    Visible are displays, comprehensions, calls of set and frozenset, set methods and operators on
    them, names that the function at hand annotates or assigns as sets, and attributes that a
    class of the module declares as sets.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.findings: list[Finding] = []
        self._attributes = {
            item.target.id
            for owner in ast.walk(tree)
            if isinstance(owner, ast.ClassDef)
            for item in owner.body
            if isinstance(item, ast.AnnAssign)
            and isinstance(item.target, ast.Name)
            and _is_set_type(item.annotation)
        }
        self._scopes: list[frozenset[str]] = [_set_names(tree.body, [])]
        self._order_free: list[ast.AST] = []
        self.visit(tree)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_function(node)

    def visit_For(self, node: ast.For) -> None:
        self._check(node.iter)
        self.generic_visit(node)

    def visit_Starred(self, node: ast.Starred) -> None:
        self._check(node.value)
        self.generic_visit(node)

    def visit_YieldFrom(self, node: ast.YieldFrom) -> None:
        self._check(node.value)
        self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._visit_comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._visit_comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._visit_comprehension(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = dotted(node.func)
        if name in ORDER_FREE:
            self._order_free.extend(node.args)
        elif name in ORDER_BOUND_CALLS or name.split(".")[-1] in ORDER_BOUND_METHODS:
            for argument in node.args:
                self._check(argument)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "pop" and not node.args:
            self._check(node.func.value)
        self.generic_visit(node)

    def _visit_function(self, node: Function) -> None:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        self._scopes.append(_set_names(node.body, arguments))
        self.generic_visit(node)
        self._scopes.pop()

    def _visit_comprehension(self, node: ast.ListComp | ast.DictComp | ast.GeneratorExp) -> None:
        if node not in self._order_free:
            for generator in node.generators:
                self._check(generator.iter)
        self.generic_visit(node)

    def _check(self, node: ast.expr) -> None:
        if self._is_set(node):
            self.findings.append((node.lineno, f"iterates a set: {ast.unparse(node)}"))

    def _is_set(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return any(name in scope for scope in self._scopes)
            case ast.Attribute(attr=attr):
                return attr in self._attributes
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, SET_OPERATORS):
                return self._is_set(left) or self._is_set(right)
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in SET_METHODS:
                return self._is_set(value)
            case _:
                return _makes_set(node)


def _makes_set(node: ast.expr | None) -> bool:
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in SET_CONSTRUCTORS
        case _:
            return False


def _is_set_type(annotation: ast.expr | None) -> bool:
    match annotation:
        case ast.Subscript(value=value):
            return _is_set_type(value)
        case ast.Name() | ast.Attribute():
            return dotted(annotation).split(".")[-1] in SET_TYPES
        case _:
            return False


def _set_names(body: list[ast.stmt], arguments: list[ast.arg]) -> frozenset[str]:
    """Names of one scope that are annotated as sets, or only ever assigned what makes one."""
    sets = {a.arg for a in arguments if _is_set_type(a.annotation)}
    others = {a.arg for a in arguments} - sets
    for node in _own_nodes(body):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                (sets if _is_set_type(annotation) else others).add(name)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                (sets if _makes_set(value) else others).add(name)
    return frozenset(sets - others)


def _own_nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def set_iterations(tree: ast.Module) -> Iterator[Finding]:
    yield from SetIteration(tree).findings


def stray_limits(tree: ast.Module, allowed: frozenset[str]) -> Iterator[Finding]:
    """Integer constants above 1 that a module other than the limits names at its top."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                continue
        number = _folded(value)
        if name.lstrip("_").isupper() and name not in allowed and number is not None and number > 1:
            yield node.lineno, f"{name} = {number} belongs into limits.py"


def _folded(node: ast.expr) -> int | None:
    """The value of an expression over integer literals, None for anything else."""
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int() as number):
            return number
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _folded(left), _folded(right)
            if a is None or b is None:
                return None
            match op:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.Pow() | ast.LShift() if 0 <= b <= 64:
                    return a**b if isinstance(op, ast.Pow) else a << b
                case ast.FloorDiv() if b:
                    return a // b
    return None


def bare_excepts(tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            yield node.lineno, "except without a type"


def vague_names(name: str, tree: ast.Module) -> Iterator[Finding]:
    parts = name.removesuffix(".py").split("/")
    yield from ((1, f"{part} says nothing") for part in parts if part in VAGUE_MODULES)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name.endswith(VAGUE_ENDINGS):
            yield node.lineno, f"class {node.name}: say what it is"


def functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Every function with its qualified name."""
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    while waiting:
        prefix, node = waiting.pop()
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}.{child.name}".lstrip(".")
                if not isinstance(child, ast.ClassDef):
                    yield name, child
            waiting.append((name, child))


def line_count(node: Function) -> int:
    """Lines from `def` to the end, without the docstring."""
    first = node.body[0]
    documented = ast.get_docstring(node, clean=False) is not None
    docstring = (first.end_lineno or first.lineno) - first.lineno + 1 if documented else 0
    return (node.end_lineno or node.lineno) - node.lineno + 1 - docstring


def parameter_count(node: Function) -> int:
    taken = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return len([a for a in taken if a.arg not in {"self", "cls"}])
