"""A walk through one syntax tree: imports, definitions, names and what they are made of, files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ipymemory.extractive import paths
from ipymemory.extractive.material import Built, Constant, Definition, FileUse, Import
from ipymemory.extractive.wording import clean, shorten

_TITLE_CALLS = frozenset(["title", "set_title", "suptitle", "set_suptitle"])
_FITS = frozenset(["fit", "fit_transform", "partial_fit", "train", "fit_predict", "update"])
_PLACES = frozenset(["loc", "iloc", "at", "iat"])
"""Attributes through which a part of a frame is set."""
_DRAWS = re.compile(r"plot|hist|scatter|^bar|imshow|heatmap|^pie$|contour|errorbar|fill_between")
_MOST_NODES = 20_000
"""Nodes of a tree that are looked at: a cell that a person typed has a few hundred."""


class Reader:
    """Walks trees of one source and gathers what they say."""

    def __init__(self, python: str) -> None:
        self._lines = python.split("\n")
        self._ascii = python.isascii()
        self._left = _MOST_NODES
        self.imports: list[Import] = []
        self.definitions: list[Definition] = []
        self.built: list[Built] = []
        self.files: list[FileUse | Constant] = []
        self.titles: list[str] = []
        self.deleted: list[str] = []
        self.reads: set[str] = set()
        self.binds: set[str] = set()
        self.last = ""
        self.doc = ""
        self.drawn = ""

    def text(self, node: ast.AST) -> str:
        """Return a node's source on one line, its white space collapsed."""
        return " ".join(self._raw(node)[:4000].split())

    def read(self, tree: ast.Module) -> None:
        """Gather from one tree."""
        body = tree.body
        first = body[0] if body else None
        if not self.doc and isinstance(first, ast.Expr) and _is_text(first.value):
            self.doc = clean(str(first.value.value))  # type: ignore[attr-defined]
        self._block(body, frozenset())
        if body:
            end = body[-1]
            self.last = self.text(end.value) if isinstance(end, ast.Expr) else ""

    def _raw(self, node: ast.AST) -> str:
        first, last = node.lineno - 1, node.end_lineno - 1  # type: ignore[attr-defined]
        begin, end = node.col_offset, node.end_col_offset  # type: ignore[attr-defined]
        lines = self._lines[first : last + 1]
        if not self._ascii:
            begin = len(lines[0].encode("utf-8", "replace")[:begin].decode("utf-8", "replace"))
            end = len(lines[-1].encode("utf-8", "replace")[:end].decode("utf-8", "replace"))
        if len(lines) == 1:
            return lines[0][begin:end]
        return "\n".join([lines[0][begin:], *lines[1:-1], lines[-1][:end]])

    def _block(self, body: list[ast.stmt], local: frozenset[str]) -> None:
        for statement in body:
            if self._left <= 0:
                return
            self._statement(statement, local)

    def _statement(self, node: ast.stmt, local: frozenset[str]) -> None:
        self._left -= 1
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._definition(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self._import(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            self._assignment(node, local)
        elif isinstance(node, ast.Expr):
            self._expr(node.value, local)
            self._changed(node.value)
        elif isinstance(node, ast.Delete):
            self.deleted += [each.id for each in node.targets if isinstance(each, ast.Name)]
        elif isinstance(node, ast.For | ast.AsyncFor):
            self._expr(node.iter, local)
            self._target(node.target)
            self._block(node.body + node.orelse, local)
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                self._expr(item.context_expr, local)
                if item.optional_vars is not None:
                    self._target(item.optional_vars)
            self._block(node.body, local)
        elif isinstance(node, ast.If | ast.While):
            self._expr(node.test, local)
            self._block(node.body + node.orelse, local)
        elif isinstance(node, ast.Try | ast.TryStar):
            handled = [each for handler in node.handlers for each in handler.body]
            self._block(node.body + handled + node.orelse + node.finalbody, local)
        elif isinstance(node, ast.Match):
            self._expr(node.subject, local)
            self._block([each for case in node.cases for each in case.body], local)
        else:
            self._expr(node, local)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for each in node.names:
                self.imports.append(Import(each.name, each.asname or ""))
                self.binds.add(each.asname or each.name.partition(".")[0])
            return
        names = tuple(each.name for each in node.names)
        self.imports.append(Import("." * node.level + (node.module or ""), "", names))
        self.binds.update(each.asname or each.name for each in node.names)

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.binds.add(node.name)
        for each in node.decorator_list:
            self._expr(each, frozenset())
        doc = _doc(node)
        if isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            names = tuple(
                shorten(self._signature(each).removeprefix("def "), 70)
                for each in methods
                if not each.name.startswith("_") or each.name == "__init__"
            )
            self.definitions.append(
                Definition("class", node.name, self._signature(node), doc, names, self._raw(node))
            )
            for method in node.body:
                self._inside(method, frozenset())
        else:
            self.definitions.append(
                Definition("def", node.name, self._signature(node), doc, (), self._raw(node))
            )
            self._inside(node, frozenset())

    def _inside(self, node: ast.stmt, outer: frozenset[str]) -> None:
        """Read what a function's body uses; what it binds is its own."""
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._expr(node, outer)
            return
        args = node.args
        own = {each.arg for each in args.posonlyargs + args.args + args.kwonlyargs}
        for each in _parts(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                own.add(each.id)
        local = outer | own
        for statement in node.body:
            self._expr(statement, local)

    def _signature(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
        """Return ``def clean(df, drop=True) -> DataFrame`` as written, on one line."""
        first, column = node.lineno - 1, node.col_offset
        body = node.body[0]
        last = body.lineno - 1
        if getattr(body, "decorator_list", None):
            last = body.decorator_list[0].lineno - 1  # type: ignore[attr-defined]
        lines = self._lines[first : last + 1]
        if last == first:
            head = lines[0][column : body.col_offset]
        else:
            head = "\n".join([lines[0][column:], *lines[1:-1]])
        head = re.sub(r"(?m)(?:^|\s)#[^\n]*$", "", head)
        head = " ".join(head.split()).rstrip().removesuffix(":").rstrip()
        head = re.sub(r"([(\[]) ", r"\1", re.sub(r",? ([)\]])", r"\1", head))
        return shorten(head.removeprefix("class ") if isinstance(node, ast.ClassDef) else head, 200)

    def _assignment(
        self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, local: frozenset[str]
    ) -> None:
        value = node.value
        if value is None:
            return
        self._expr(value, local)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = self._names_in(value)
        expression = shorten(self.text(value), 300)
        for target in targets:
            if isinstance(target, ast.Name):
                self.binds.add(target.id)
                if isinstance(node, ast.AugAssign):
                    self.reads.add(target.id)
                    self.files.append(Constant(target.id, None))
                    continue
                if expression != "None":
                    self.built.append(Built(target.id, expression, names))
                path = paths.expression(value, self.text, local)
                known = path.kind in ("text", "add", "join")
                self.files.append(Constant(target.id, path if known else None))
            elif isinstance(target, ast.Tuple | ast.List):
                for each in target.elts:
                    if isinstance(each, ast.Name):
                        self.built.append(Built(each.id, expression, names))
                self._target(target)
            else:
                self._part(target, expression, names, local)

    def _part(
        self, target: ast.expr, expression: str, names: tuple[str, ...], local: frozenset[str]
    ) -> None:
        """Read a target such as ``df["x"]`` or ``df.loc[mask, "x"]``: a change of `df`."""
        root = target
        own = True  # a part of the thing itself and not of something that it holds
        while isinstance(root, ast.Attribute | ast.Subscript | ast.Starred):
            own = own and (not isinstance(root, ast.Attribute) or root.attr in _PLACES)
            root = root.value
        self._expr(target, local)
        column = ""
        if isinstance(target, ast.Subscript) and own:
            key = target.slice
            if isinstance(key, ast.Tuple) and key.elts:
                key = key.elts[-1]
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                column = clean(key.value)
        if isinstance(root, ast.Name) and column:
            self.built.append(Built(root.id, expression, names, "column", column))

    def _changed(self, value: ast.expr) -> None:
        """Read ``model.fit(X, y)``: the model is another one afterwards."""
        call = value
        while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            if call.func.attr in _FITS:
                root = call.func.value
                if isinstance(root, ast.Name):
                    names = tuple(
                        dict.fromkeys(name for each in call.args for name in self._names_in(each))
                    )
                    self.built.append(Built(root.id, self.text(call), names, "fit"))
                return
            call = call.func.value

    def _target(self, node: ast.expr) -> None:
        for each in _parts(node):
            if isinstance(each, ast.Name):
                self.binds.add(each.id)
                self.files.append(Constant(each.id, None))

    def _expr(self, node: ast.AST, local: frozenset[str]) -> None:
        """Gather what any part of `node` reads, calls and titles, in the order it stands."""
        calls: list[ast.Call] = []
        for each in _parts(node):
            self._left -= 1
            if self._left <= 0:
                return
            if isinstance(each, ast.Name):
                if isinstance(each.ctx, ast.Load):
                    if each.id not in local:
                        self.reads.add(each.id)
                elif isinstance(node, ast.NamedExpr):
                    self.binds.add(each.id)
            elif isinstance(each, ast.Call):
                calls.append(each)
        if len(calls) > 1:
            calls.sort(key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0))
        for call in calls:
            self._title(call)
            if isinstance(call.func, ast.Attribute) and _DRAWS.search(call.func.attr):
                self.drawn = shorten(self.text(call), 200)
            use = paths.file_use(call, self.text, local)
            if use is not None:
                self.files.append(use)

    def _title(self, call: ast.Call) -> None:
        func = call.func
        given: list[ast.expr] = [each.value for each in call.keywords if each.arg == "title"]
        name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        if name in _TITLE_CALLS:
            given += call.args[:1]
        self.titles += [clean(str(each.value)) for each in given if _is_text(each)]  # type: ignore[attr-defined]

    def _names_in(self, node: ast.AST) -> tuple[str, ...]:
        """Return the global names that `node` loads, in the order in which they stand.

        What is only called is not what a thing is made of.
        """
        found: list[tuple[int, int, str]] = []
        own: set[str] = set()
        called: set[int] = set()
        for each in _parts(node):
            if isinstance(each, ast.Call):
                called.add(id(each.func))
            elif isinstance(each, ast.Name):
                if isinstance(each.ctx, ast.Load) and id(each) not in called:
                    found.append((each.lineno, each.col_offset, each.id))
                elif not isinstance(each.ctx, ast.Load):
                    own.add(each.id)
            elif isinstance(each, ast.arg):
                own.add(each.arg)
        found.sort()
        return tuple(dict.fromkeys(name for _, _, name in found if name not in own))


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield `node` and all below it as `ast.walk` does, in its order and in half its time.

    What has no fields, such as the mark that a name is read, says nothing here and is left out.
    """
    found = [node]
    for each in found:
        yield each
        for name in each._fields:
            value = getattr(each, name, None)
            if isinstance(value, ast.AST):
                if value._fields:
                    found.append(value)
            elif isinstance(value, list):
                found += [one for one in value if isinstance(one, ast.AST) and one._fields]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _doc(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        value = first.value.value
        if isinstance(value, str):
            return clean(value.strip().partition("\n")[0])
    return ""
