"""Which files a call reads or writes, and how their names are put together.

A path is often made of constants that stand in other cells: ``DATA = Path("data")`` in the first,
``pd.read_csv(DATA / "x.csv")`` in the third. So a path is kept as an `Expr` here, and `resolve`
settles it once the story knows what the names were bound to. A name that is not known stays
as ``{name}``, so that nothing is made up.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping

from ipymemory.extractive.material import Expr, FileUse

_READERS = re.compile(
    r"(?:read_(?:csv|table|parquet|json|excel|pickle|feather|hdf|html|xml|fwf|stata|spss|sas|orc"
    r"|file|ipc|ndjson)|scan_(?:csv|parquet|ndjson)|loadtxt|genfromtxt|fromfile|memmap|imread"
    r"|load_(?:workbook|dataset)|from_pretrained|open_(?:dataset|zarr)|urlopen|load|listdir"
    r"|scandir|connect|ZipFile)\Z"
)
_WRITERS = re.compile(
    r"(?:to_(?:csv|parquet|json|excel|pickle|feather|hdf|html|stata|xml|orc|zarr|netcdf|file)"
    r"|write_(?:csv|parquet|json|ndjson|html|image)|sink_(?:csv|parquet)|savefig|savetxt|tofile"
    r"|save(?:z|z_compressed|_model|_pretrained)?|dump|imwrite|imsave|ExcelWriter)\Z"
)
_ON_PATHS: Mapping[str, str] = {
    "read_text": "reads",
    "read_bytes": "reads",
    "glob": "reads",
    "rglob": "reads",
    "iterdir": "reads",
    "write_text": "writes",
    "write_bytes": "writes",
}
_SAME = frozenset(["absolute", "resolve", "expanduser", "as_posix", "as_uri", "__str__"])
_KEYWORDS = re.compile(
    r"(?:path|filename|fname|file|filepath|filepath_or_buffer|path_or_buf|excel_writer|io)\Z"
)
_NO_PATHS = re.compile(
    r"(?:print|append|Path|PurePath|join|joinpath|add_argument|getenv|get|[xy]?label|strftime"
    r"|(?:set_)?title)\Z"
)
_MODE = re.compile(r"[rwaxbtU+]{1,4}\Z")
_LOOKS = re.compile(
    r"(?:(?:[a-z][a-z0-9+]{1,9}://|~/|\.{1,2}/|/|[A-Za-z]:[\\/])[^\n]*[\w/*}]"
    r"|[^\n%:?=]*[\w*})\]]\.[A-Za-z][A-Za-z0-9]{0,7}(?:\.(?:gz|bz2|xz|zip|zst))?)\Z"
)
_EXTENSION = re.compile(
    r"\.(?:csv|tsv|txt|json|jsonl|ndjson|parquet|feather|xlsx?|pkl|pickle|npy|npz|h5|hdf5|nc|zarr|"
    r"png|jpe?g|svg|pdf|gif|tiff?|html?|xml|ya?ml|toml|md|db|sqlite3?|pt|pth|onnx|joblib|bin|"
    r"wav|mp3|mp4|geojson|shp|gpkg|arrow|orc|log|zip|gz|tar|py|ipynb|sql|ini|cfg)\Z",
    re.IGNORECASE,
)


def expression(node: ast.expr, text: Callable[[ast.AST], str], local: frozenset[str]) -> Expr:
    """Return what `node` says of a text or path; ``code`` for what only running it would tell.

    `text` gives a node's source; names in `local` are a function's own and never known.
    """
    return _expression(node, text, local, 0)


def resolve(expr: Expr, known: Mapping[str, str]) -> str:
    """Return the text of `expr`, with ``{name}`` for what `known` does not hold."""
    if expr.kind == "text":
        return expr.value
    if expr.kind == "name":
        return known.get(expr.value, f"{{{expr.value}}}")
    if expr.kind == "code":
        return f"{{{expr.value}}}"
    if expr.kind == "any":
        sure = [part for part in expr.parts if literal(part, known)]
        return resolve((sure or list(expr.parts))[0], known)
    parts = [resolve(part, known) for part in expr.parts]
    if expr.kind == "add":
        return "".join(parts)
    path = ""
    for part in parts:
        absolute = part.startswith("/") or not path
        path = part if absolute else f"{path.rstrip('/')}/{part.removeprefix('./')}"
    return path


def literal(expr: Expr, known: Mapping[str, str]) -> bool:
    """Return whether any part of `expr` is known, so that it names a file at all."""
    if expr.kind == "text":
        return bool(expr.value.strip())
    if expr.kind == "name":
        return expr.value in known
    return any(literal(part, known) for part in expr.parts)


def looks_like_path(text: str) -> bool:
    """Return whether `text` would be taken for a file, where the call does not say so."""
    return len(text) < 300 and _LOOKS.match(text) is not None


def has_data_ending(text: str) -> bool:
    """Return whether `text` ends as files do that notebooks read and write."""
    return len(text) < 300 and _EXTENSION.search(text) is not None and "\n" not in text


def file_use(
    call: ast.Call, text: Callable[[ast.AST], str], local: frozenset[str]
) -> FileUse | None:
    """Return the file that `call` takes, or None when it takes none that can be told."""
    func = call.func
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    if not name or _NO_PATHS.match(name):
        return None
    by = text(func) if isinstance(func, ast.Name) or _is_dotted(func) else name
    if name == "open":
        return _open(call, text, local, by)
    if name in _ON_PATHS and isinstance(func, ast.Attribute):
        if name == "glob" and isinstance(func.value, ast.Name) and func.value.id == "glob":
            return _taken(call, "reads", by, True, text, local)
        path = expression(func.value, text, local)
        if name in ("glob", "rglob") and call.args:
            path = Expr("join", parts=(path, expression(call.args[0], text, local)))
        return FileUse("reads" if _ON_PATHS[name] == "reads" else "writes", path, by)
    if _READERS.match(name):
        return _taken(call, "reads", by, name != "load" and name != "connect", text, local)
    if _WRITERS.match(name):
        return _taken(call, "writes", by, True, text, local)
    verb = _verb(name)
    return _taken(call, verb, by, False, text, local) if verb else _named(call, by, text, local)


def _expression(
    node: ast.expr, text: Callable[[ast.AST], str], local: frozenset[str], depth: int
) -> Expr:
    def inner(each: ast.expr) -> Expr:
        return _expression(each, text, local, depth + 1)

    if depth > 20:
        return Expr("code", "…")
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return Expr("text", node.value)
        written = text(node)
        if type(node.value) in (int, float) and repr(node.value) == written:
            return Expr("text", written)
    elif isinstance(node, ast.Name):
        return Expr("code" if node.id in local else "name", node.id)
    elif isinstance(node, ast.JoinedStr):
        return Expr("add", parts=tuple(inner(value) for value in node.values))
    elif isinstance(node, ast.FormattedValue):
        if node.format_spec is None and isinstance(node.value, ast.Name):
            return inner(node.value)
        return Expr("code", text(node.value))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Add):
        parts = (inner(node.left), inner(node.right))
        return Expr("join" if isinstance(node.op, ast.Div) else "add", parts=parts)
    elif isinstance(node, ast.Call):
        func = node.func
        name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        plain = not node.keywords and not any(isinstance(a, ast.Starred) for a in node.args)
        if plain and node.args and name in ("Path", "PurePath", "PosixPath", "join", "joinpath"):
            given = tuple(inner(each) for each in node.args)
            if name == "joinpath" and isinstance(func, ast.Attribute):
                given = (inner(func.value), *given)
            elif name == "join" and not text(func).endswith("path.join"):
                return Expr("code", text(node))
            return Expr("join", parts=given)
        if name in ("str", "fspath") and len(node.args) == 1:
            return inner(node.args[0])
        if name in _SAME and isinstance(func, ast.Attribute):
            return inner(func.value)
    return Expr("code", text(node))


def _open(
    call: ast.Call, text: Callable[[ast.AST], str], local: frozenset[str], by: str
) -> FileUse | None:
    func = call.func
    args = list(call.args)
    keywords = {each.arg: each.value for each in call.keywords if each.arg}
    path = args[0] if args else keywords.get("file")
    mode = args[1] if len(args) > 1 else keywords.get("mode")
    if isinstance(func, ast.Attribute) and (
        path is None
        or (
            isinstance(path, ast.Constant)
            and isinstance(path.value, str)
            and _MODE.match(path.value) is not None
        )
    ):
        path, mode, by = func.value, path or mode, "open"
    if path is None:
        return None
    way = mode.value if isinstance(mode, ast.Constant) and isinstance(mode.value, str) else "r"
    verb = "writes" if set(way) & set("wax+") else "reads"
    return FileUse("writes" if verb == "writes" else "reads", expression(path, text, local), by)


def _taken(
    call: ast.Call,
    verb: str,
    by: str,
    sure: bool,
    text: Callable[[ast.AST], str],
    local: frozenset[str],
) -> FileUse | None:
    """Return the file among the first arguments.

    The second is looked at for what is written only: ``joblib.dump(model, "m.joblib")``.
    """
    given = [each.value for each in call.keywords if each.arg and _KEYWORDS.match(each.arg)]
    two = verb == "writes" and not by.rpartition(".")[2].startswith("to_")
    given += call.args[: 2 if two else 1]
    found = [expression(each, text, local) for each in given]
    found = [each for each in found if each.kind != "code"]
    if not found:
        return None
    path = found[0]
    if len(found) > 1:
        texts = [each for each in found if looks_like_path(resolve(each, {}))]
        path = texts[0] if texts else Expr("any", parts=tuple(found))
    return FileUse("writes" if verb == "writes" else "reads", path, by, sure)


def _named(
    call: ast.Call, by: str, text: Callable[[ast.AST], str], local: frozenset[str]
) -> FileUse | None:
    """Return the file that a call of somebody's own names: only with a well-known ending."""
    for each in call.args[:3]:
        if isinstance(each, ast.Constant | ast.JoinedStr | ast.BinOp):
            path = expression(each, text, local)
            last = path
            while last.parts:
                last = last.parts[-1]
            if last.kind == "text" and has_data_ending(last.value):
                return FileUse("names", path, by, False)
    return None


def _verb(name: str) -> str:
    lower = name.lower()
    if lower.startswith(("read", "load", "scan_", "import_", "fetch", "download", "from_")):
        return "reads"
    if lower.startswith(("to_", "save", "write", "dump", "export", "store")):
        return "writes"
    return ""


def _is_dotted(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
