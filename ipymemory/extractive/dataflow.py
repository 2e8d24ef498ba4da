"""What one cell takes and gives: the names it binds, changes in place, and reads.

Told from the syntax tree alone, so it errs where only running would tell; it errs towards more:
a cell that may change a name counts as one that does. What is known to change nothing, such as
``df.head()`` and ``print(df)``, does not count.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ipymemory.extractive.cells import take_apart, without_automagics
from ipymemory.extractive.sources import parse

BUILTINS = frozenset(dir(builtins))
_ONLY_LOOKS = frozenset(
    (
        *("head", "tail", "sample", "describe", "info", "show", "plot", "hist", "boxplot"),
        *("scatter", "summary", "print", "display", "score", "predict", "transform", "savefig"),
        *("to_csv", "to_parquet", "to_json", "to_excel", "to_sql", "dump", "save", "count"),
        *("index", "keys", "values", "items", "get", "copy", "mean", "sum", "median", "min"),
        *("max", "std", "var", "corr", "nunique", "unique", "value_counts", "isna", "isnull"),
        *("notna", "groupby", "join", "split", "strip", "lower", "upper", "format"),
        *("startswith", "endswith"),
    )
)
"""Methods whose call alone, its result dropped, leaves the thing as it was."""

_TABLE = re.compile(r"DataFrame|Series|Index|GeoDataFrame|LazyFrame|Tensor|ndarray")
_TABLE_CHANGES = frozenset(
    ("insert", "pop", "update", "sort", "fill", "resize", "put", "partition", "itemset", "append")
)
_SETS = re.compile(
    r"(?:set_|reset_option|seed$|manual_seed|filterwarnings|simplefilter|use$|style$|theme|chdir$"
    r"|basicConfig|append$|insert$|update$|register|enable|disable|init|setup|config|load_dotenv)"
)
"""Calls of a module's functions that set something for all that follows."""

_SETTING_MAGIC = re.compile(
    r"%{1,2}(?:matplotlib|config|cd|env|set_env|load_ext|pylab|precision|sql|autoreload|aimport|run"
    r")\b(?!\s+ipymemory)"
)


@dataclass(slots=True)
class Flow:
    """Names a cell `binds`, `changes` in place, `reads`, and deletes as its last act on them.

    `afresh` are those of `binds` that hold nothing of what they were before; `within` the names
    that each function or class defined here reads when it is used; `shares` are pairs of names of
    which the second holds the first, or what is in it, so that who changes one may change both;
    `sets` tells that the cell sets something for all that follow; `stars` that it imports names
    nobody can list; `asks` that it waits for somebody's answer; `waits` that it has ``await`` at
    its top.
    """

    parsed: bool = True
    binds: set[str] = field(default_factory=set)
    afresh: set[str] = field(default_factory=set)
    changes: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    deletes: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    within: dict[str, frozenset[str]] = field(default_factory=dict)
    shares: list[tuple[str, str]] = field(default_factory=list)
    sets: bool = False
    stars: bool = False
    asks: bool = False
    waits: bool = False


def flow_of(source: str, types: dict[str, str], modules: Iterable[str]) -> Flow:
    """Return what a cell takes and gives. Never raises.

    `types` are those of names as the record has them, `modules` names that stand for modules.
    """
    cell = take_apart(source)
    found = Flow(sets=any(_SETTING_MAGIC.match(each) for each in cell.commands))
    tree = parse(cell.python)
    if tree is None:
        python, _ = without_automagics(cell.python)
        tree = parse(python)
    if tree is None:
        return Flow(parsed=False, sets=found.sets)
    try:
        _Reader(found, types, set(modules)).read(tree.body)
    except RecursionError:
        return Flow(parsed=False, sets=found.sets)
    return found


class _Reader:
    """Reads the statements of a cell into a `Flow`."""

    def __init__(self, flow: Flow, types: dict[str, str], modules: set[str]) -> None:
        self.flow = flow
        self.types = types
        self.modules = modules

    def read(self, body: list[ast.stmt], *, sure: bool = True) -> None:
        for each in body:
            self._statement(each, sure)

    def _statement(self, node: ast.stmt, sure: bool) -> None:
        flow = self.flow
        if isinstance(node, ast.Import | ast.ImportFrom):
            self._imports(node, sure)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = frozenset(_free(node))
            flow.within[node.name] = inner
            flow.reads |= inner - flow.afresh
            self._bind(node.name, sure)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            self._assigns(node, sure)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    flow.deletes.add(target.id)
                    flow.afresh.discard(target.id)
                else:
                    self._target(target, sure)
        elif isinstance(node, ast.Expr):
            self._reads(node.value)
            self._calls(node.value)
        else:
            self._compound(node)

    def _compound(self, node: ast.stmt) -> None:
        """Read a statement that holds others; what they bind is not sure."""
        self.flow.waits |= isinstance(node, ast.AsyncFor | ast.AsyncWith)
        for name, value in ast.iter_fields(node):
            if name in ("body", "orelse", "finalbody"):
                # A loop, a condition or a handler may not run; a with always does.
                sure = isinstance(node, ast.With | ast.AsyncWith)
                self.read(value, sure=sure)
            elif name in ("handlers", "cases"):
                for each in value:
                    if guard := getattr(each, "guard", None):
                        self._reads(guard)
                    if pattern := getattr(each, "pattern", None):
                        self._pattern(pattern)
                    if isinstance(each, ast.ExceptHandler):
                        self._handler(each)
                    else:
                        self.read(each.body, sure=False)
            elif name == "target":
                self._target(value, sure=False)
            elif name == "items":
                for each in value:
                    self._reads(each.context_expr)
                    if each.optional_vars is not None:
                        self._target(each.optional_vars, sure=True)
            elif isinstance(value, ast.expr):
                self._reads(value)

    def _handler(self, node: ast.ExceptHandler) -> None:
        """Read an except clause: its name lives there and no longer, and nobody else bound it."""
        if node.type is not None:
            self._reads(node.type)
        own = {node.name} - self.flow.afresh if node.name else set()
        self.flow.afresh |= own
        self.read(node.body, sure=False)
        self.flow.afresh -= own

    def _pattern(self, pattern: ast.AST) -> None:
        for each in ast.walk(pattern):
            if name := getattr(each, "name", None) or getattr(each, "rest", None):
                self._bind(name, sure=False)
            elif isinstance(each, ast.expr):
                self._reads(each)

    def _imports(self, node: ast.Import | ast.ImportFrom, sure: bool) -> None:
        for each in node.names:
            if each.name == "*":
                self.flow.stars = True
                continue
            name = each.asname or each.name.split(".")[0]
            self._bind(name, sure)
            if isinstance(node, ast.Import):
                self.flow.modules.add(name)
                self.modules.add(name)

    def _assigns(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, sure: bool) -> None:
        if node.value is not None:
            self._reads(node.value)
        if isinstance(node, ast.AugAssign):
            self._reads(node.target)
            if isinstance(node.target, ast.Name) and node.target.id not in self.flow.afresh:
                self.flow.changes.add(node.target.id)
                return
        if isinstance(node, ast.AnnAssign) and node.value is None:
            return
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            self._target(target, sure)
            self._shares(target, node.value)

    def _shares(self, target: ast.expr, value: ast.expr | None) -> None:
        if value is None:
            return
        if isinstance(target, ast.Tuple | ast.List):
            for each in target.elts:
                self._shares(each, value)
        elif name := _base(target):
            self.flow.shares += ((held, name) for held in _held(value) if held != name)

    def _target(self, target: ast.expr, sure: bool) -> None:
        if isinstance(target, ast.Name):
            self._bind(target.id, sure)
        elif isinstance(target, ast.Tuple | ast.List):
            for each in target.elts:
                self._target(each, sure)
        elif isinstance(target, ast.Starred):
            self._target(target.value, sure)
        else:
            # A part of something: an item, an attribute.
            self._reads(target)
            self._change(_base(target))

    def _bind(self, name: str, sure: bool) -> None:
        self.flow.binds.add(name)
        self.flow.deletes.discard(name)
        if sure and name not in self.flow.reads:
            self.flow.afresh.add(name)

    def _change(self, name: str) -> None:
        if not name:
            return
        if name in self.modules:
            self.flow.sets = True
        elif name not in self.flow.afresh:
            self.flow.changes.add(name)

    def _reads(self, node: ast.AST) -> None:
        """Note what an expression reads, and what it binds on the way."""
        for name in _loaded(node):
            if name not in self.flow.afresh:
                self.flow.reads.add(name)
        for each in ast.walk(node):
            if isinstance(each, ast.NamedExpr):
                self._bind(each.target.id, sure=False)
            elif isinstance(each, ast.Await):
                self.flow.waits = True
            elif isinstance(each, ast.Call) and _base(each.func) in ("input", "getpass"):
                self.flow.asks = True

    def _calls(self, node: ast.expr) -> None:
        """Note what a call may change whose result is dropped."""
        value = node.value if isinstance(node, ast.Await) else node
        if not isinstance(value, ast.Call):
            return
        function = value.func
        base = _base(function)
        if isinstance(function, ast.Attribute):
            name = function.attr
            if base in self.modules:
                self.flow.sets = self.flow.sets or _SETS.match(name) is not None
                if name in ("shuffle", "heappush", "heappop", "heapify", "put", "copyto"):
                    self._arguments(value)
            elif self._may_change(base, name, value):
                self._change(base)
        elif base not in BUILTINS and base != "display":
            # A function of the user's may change what it is given, and what it knows of.
            self._arguments(value)
        elif base in ("setattr", "delattr", "next", "exec"):
            self._arguments(value)

    def _may_change(self, base: str, method: str, call: ast.Call) -> bool:
        in_place = any(
            each.arg == "inplace" and getattr(each.value, "value", True) for each in call.keywords
        )
        if in_place:
            return True
        if _TABLE.search(self.types.get(base, "")):
            return method in _TABLE_CHANGES or method.endswith("_")
        return method not in _ONLY_LOOKS

    def _arguments(self, call: ast.Call) -> None:
        for each in (*call.args, *(keyword.value for keyword in call.keywords)):
            if isinstance(each, ast.Name | ast.Attribute | ast.Subscript):
                self._change(_base(each))


def _base(node: ast.AST) -> str:
    """Return the name that ``a.b[0].c`` begins with, nothing where it begins with none."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _held(node: ast.expr) -> Iterator[str]:
    """Yield the names whose things `node` itself may be or hold: not what a call makes of them."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        if name := _base(node):
            yield name
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        for each in node.elts:
            yield from _held(each)
    elif isinstance(node, ast.Dict):
        for each in node.values:
            yield from _held(each)
    elif isinstance(node, ast.IfExp):
        yield from _held(node.body)
        yield from _held(node.orelse)
    elif isinstance(node, ast.Starred | ast.NamedExpr):
        yield from _held(node.value)


def _loaded(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
            yield each.id


def _free(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Iterator[str]:
    """Yield what a definition reads from outside of itself, as far as its text tells."""
    own = {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    }
    shared = {
        name
        for each in ast.walk(node)
        if isinstance(each, ast.Global | ast.Nonlocal)
        for name in each.names
    }
    own |= {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    own |= set(_bound_unseen(node))
    yield from (name for name in _loaded(node) if name not in own or name in shared)


def _bound_unseen(node: ast.AST) -> Iterator[str]:
    """Yield what is bound inside a definition by statements that hold the name as bare text."""
    for parent in ast.walk(node):
        # A method is no name that a function can call.
        for each in () if isinstance(parent, ast.ClassDef) else ast.iter_child_nodes(parent):
            found = (getattr(each, key, None) for key in ("asname", "name", "rest"))
            name = next(filter(None, found), None)
            if isinstance(name, str):
                yield name.split(".")[0]
