"""The rules of the house, as tests: which room may know which, and what may not be in any.

A new room gets its floor in `FLOORS` before anything else; a room without one fails here.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
PACKAGE = TOP / "ipymemory"

FLOORS = {
    0: "errors turns events gates markdown redaction excerpts config config_files files processes "
    "lines held images gitfiles private descriptors background",
    1: "places transcript sessions history prompts models extractive permissions tools notebooks "
    "beside memory_files recall consent messages_api prices documents dream_lock",
    2: "agent context cost notes_base notes_checks notes_found learning document_updates",
    3: "jobs ingest",
    4: "session worker engines",
    5: (
        "recorder client commands magics cli __main__ demo kernel_hook project live identity "
        "asking config_watch problems frontend"
    ),
    6: "extension __init__",
}
"""Floor by room. A room is a module of the package or a folder of sibling modules."""

PARTS = {
    "history_log": "history",
    "history_runs": "history",
    "tables": "excerpts",
    "table_lines": "excerpts",
    "screen": "excerpts",
    "secret_tokens": "redaction",
    "secret_marks": "redaction",
    "secret_names": "redaction",
    "secret_values": "redaction",
    "secret_beside": "redaction",
    "secret_places": "redaction",
    "secret_forms": "redaction",
    "secret_literals": "redaction",
    "secret_queries": "redaction",
    "secret_bare": "redaction",
    "secret_below": "redaction",
    "secret_calls": "redaction",
    "secret_clients": "redaction",
    "secret_languages": "redaction",
    "secret_commands": "redaction",
    "secret_siblings": "redaction",
    "secret_columns": "redaction",
    "secret_disguises": "redaction",
    "capture": "recorder",
    "taps": "recorder",
    "on_record": "recorder",
    "names": "recorder",
    "outputs": "recorder",
    "turning": "recorder",
    "earlier": "recorder",
    "private_cells": "recorder",
    "shown_again": "recorder",
    "expiry": "sessions",
    "pipes": "worker",
    "answers": "worker",
    "sending": "client",
    "unheard": "client",
    "starting": "client",
    "started": "client",
    "listening": "client",
    "streaming": "client",
    "pieces": "worker",
    "neutral": "markdown",
    "assistant": "prompts",
    "agent_summary": "agent",
    "doing": "events",
    "asks": "session",
    "session_model": "session",
    "model_notes": "session",
    "noting": "session",
    "ran": "session",
    "extracting": "session",
    "model_extraction": "session",
    "learning_tools": "learning",
    "learning_gate": "learning",
    "dreaming": "session",
    "looked_through": "sessions",
    "streamed": "asking",
    "stopping": "asking",
    "restarts": "client",
    "host": "extension",
    "entry_lines": "transcript",
    "steps": "transcript",
    "left_running": "transcript",
    "session_record": "sessions",
    "recent_sessions": "sessions",
    "greeting": "extension",
    "news": "live",
    "questions": "live",
    "run_again": "magics",
    "memory_place": "places",
    "fence": "permissions",
    "reading": "tools",
    "finding": "tools",
    "patterns": "tools",
    "config_reading": "config",
    "config_section": "config",
    "setting_classes": "config",
    "memory_tools": "tools",
    "said": "tools",
    "git_objects": "tools",
    "git_history": "tools",
    "git_reading": "tools",
    "open_page": "live",
    "page_standing": "frontend",
    "page_messages": "frontend",
    "page_text": "frontend",
    "page_documents": "frontend",
    "page_updates": "frontend",
    "page_thread": "frontend",
    "page_dream": "frontend",
    "notebook_spans": "notebooks",
    "document_records": "documents",
    "document_files": "documents",
    "document_proposals": "documents",
    "document_text": "document_updates",
    "document_ran": "document_updates",
    "document_history": "documents",
    "document_acceptance": "documents",
    "document_keeping": "document_updates",
    "fingerprints": "documents",
    "cell_languages": "documents",
    "documenting": "session",
    "document_look": "document_updates",
    "document_checks": "document_updates",
    "document_reading": "document_updates",
    "document_changes": "documents",
    "document_writers": "documents",
    "document_prompt": "prompts",
    "document_model": "session",
    "dream_journal": "dream_lock",
    "dream_state": "dream_lock",
    "dream_recovery": "dream_lock",
    "dream_line": "dream_lock",
    "dream_waiting": "dream_lock",
    "file_notes": "ingest",
    "file_memories": "ingest",
    "ingest_shown": "asking",
    "dream_undo": "learning",
    "dream_shown": "asking",
    "terminal_line": "asking",
    "dream_model": "session",
    "dream_questions": "learning",
    "dream_outcome": "learning",
    "dream_copy": "learning",
    "dream_words": "learning",
    "dream_tools": "learning",
    "dream_reading": "learning",
    "dream_prompt": "learning",
    "tidying": "extractive",
}
"""Modules that a room was split into, and the room: they stand on its floor."""

HOSTS = {"IPython", "ipykernel", "comm", "anywidget"}
ALLOWED_TOP = {
    *("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", ".ci", ".gitignore"),
    ".pre-commit-hooks.yaml",
    *("ipymemory", "notebooks", "tests", "labextension"),
}
FORBIDDEN_NAMES = {"manager", "service", "helper", "utils", "util", "core", "common"}
LONG = 350
SCREENS = {"cli", "magics", "extension", "worker", "recorder"}
"""Rooms that may touch the standard streams: faces that somebody asked, the worker's pipes, and
the tee of a terminal."""


@cache
def modules() -> dict[str, ast.Module]:
    """Return every module of the package by its dotted name, parsed."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(p for p in parts if p != "__init__" or len(parts) == 1)
        found[name] = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return found


def room(module: str) -> str:
    first = module.split(".")[0]
    return PARTS.get(first, first)


@cache
def floor_of() -> dict[str, int]:
    return {name: floor for floor, names in FLOORS.items() for name in names.split()}


def floor(module: str) -> int:
    return floor_of()[room(module)]


def imports(module: str, tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield each imported module, ours without the package's name, and whether it is ours."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative imports hide which floor they mean"
            base = node.module or ""
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            head, _, rest = name.partition(".")
            if head != "ipymemory":
                yield name, False
                continue
            while rest and rest not in modules():
                rest = rest.rpartition(".")[0]
            yield rest or "__init__", True


def own_imports(module: str) -> set[str]:
    return {name for name, ours in imports(module, modules()[module]) if ours} - {module}


def test_every_room_has_its_floor() -> None:
    missing = sorted({room(each) for each in modules()} - set(floor_of()))
    assert not missing, f"say in FLOORS or PARTS where these stand: {missing}"


def test_imports_point_down() -> None:
    up = [
        f"{module} (floor {floor(module)}) imports {name} (floor {floor(name)})"
        for module in modules()
        for name in own_imports(module)
        # `__init__` is the public face; its version is a constant that anyone may read.
        if name != "__init__" and floor(name) > floor(module)
        # the face imports the extension only when it is called
        if module != "__init__"
    ]
    assert not up


def test_no_job_imports_a_job() -> None:
    crossing = [
        f"{module} imports {name}"
        for module in modules()
        if module.startswith("jobs.")
        for name in own_imports(module)
        if name.startswith("jobs.") and name != module
    ]
    assert not crossing


def test_no_import_goes_in_circles() -> None:
    """Of whole modules, late imports inside functions included."""
    graph = {each: own_imports(each) - {"__init__"} for each in modules() if each != "__init__"}
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path[path.index(module) :], module))
        if module not in done:
            for each in sorted(graph.get(module, ())):
                visit(each, (*path, module))
            done.add(module)

    for each in graph:
        visit(each, ())


def test_only_the_faces_know_the_host() -> None:
    knowing = [
        f"{module} imports {name}"
        for module, tree in modules().items()
        for name, ours in imports(module, tree)
        if not ours and name.split(".")[0] in HOSTS
        if floor(module) < 5 or room(module) == "commands"
    ]
    assert not knowing


@pytest.mark.parametrize(
    ("library", "rooms"), [("traitlets", {"config"}), ("psutil", {"processes"})]
)
def test_a_library_that_one_room_wraps_is_imported_nowhere_else(
    library: str, rooms: set[str]
) -> None:
    elsewhere = [
        module
        for module, tree in modules().items()
        for name, ours in imports(module, tree)
        if not ours and name.split(".")[0] == library and room(module) not in rooms
    ]
    assert not elsewhere


def test_nothing_prints() -> None:
    """But for the places that answer somebody who asked: the command line and the magics."""
    printing = []
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                if node.func.id in ("print", "pprint", "breakpoint"):
                    printing.append(f"{module}:{node.lineno}")
            elif isinstance(node, ast.Attribute) and node.attr in ("stdout", "stderr"):
                named = isinstance(node.value, ast.Name) and node.value.id == "sys"
                if named and room(module) not in SCREENS:
                    printing.append(f"{module}:{node.lineno}")
    assert not printing


def test_names_say_what_a_thing_is() -> None:
    wrong = []
    for module, tree in modules().items():
        names = [module.split(".")[-1]]
        names += [
            node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        for name in names:
            if name.startswith("_"):
                continue
            words = {w.lower() for w in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}
            if words & FORBIDDEN_NAMES:
                wrong.append(f"{module}: {name}")
    assert not wrong


def test_every_public_name_is_documented() -> None:
    """Every module, and every class and function without a leading underscore, has a docstring."""
    bare = [module for module, tree in modules().items() if not ast.get_docstring(tree)]
    for module, tree in modules().items():
        for node in _public(tree):
            if not ast.get_docstring(node):
                bare.append(f"{module}.{node.name}")
    assert not bare


Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _public(tree: ast.Module | ast.ClassDef) -> Iterator[Definition]:
    for node in tree.body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            if isinstance(node, ast.FunctionDef) and any(
                isinstance(each, ast.Attribute) and each.attr in ("setter", "deleter")
                for each in node.decorator_list
            ):
                continue
            yield node
            if isinstance(node, ast.ClassDef):
                yield from _public(node)


def test_rooms_stay_small(record_property: pytest.RecordProperty) -> None:
    """No wall, only a note: a room over the mark is listed in the warning summary and may stay."""
    sizes = {
        str(path.relative_to(TOP)): len(path.read_text(encoding="utf-8").splitlines())
        for path in PACKAGE.rglob("*.py")
    }
    long = {name: lines for name, lines in sizes.items() if lines > LONG}
    record_property("long rooms", long)
    assert all(lines < 2 * LONG for lines in sizes.values()), long


def test_changelog_and_version_agree() -> None:
    with (TOP / "pyproject.toml").open("rb") as file:
        version = tomllib.load(file)["project"]["version"]
    newest = re.search(
        r"^## (\S+)", (TOP / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    import ipymemory

    assert newest is not None
    assert newest[1] == version == ipymemory.__version__


def test_the_top_level_holds_only_what_belongs_there() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=TOP, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        # an unpacked source archive: what lies there is what was packed
        names = {each.name for each in TOP.iterdir()}
    else:
        names = {each.split("/")[0] for each in listed.stdout.split("\0") if each}
    assert names <= ALLOWED_TOP | {"PKG-INFO"}


def test_the_public_face_is_this() -> None:
    import ipymemory

    face = ["__version__", "load_ipython_extension", "open", "unload_ipython_extension"]
    assert sorted(ipymemory.__all__) == face
    public = {name for name in vars(ipymemory) if not name.startswith("_")}
    rooms = {each.split(".")[0] for each in modules()}
    assert public - rooms - {"annotations", "os", "TYPE_CHECKING", "Any"} == {
        *face[1:],
    }


HEAVY = {"anthropic", "ipywidgets", "nbformat", "pydantic", "httpx", "requests", "rich", "yaml"}
HEAVY |= {"numpy", "tokenizers"}
LATE = {"psutil", "argparse", "importlib.metadata", "asyncio", "multiprocessing"}

_FRESH = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
before = set(sys.modules)
shell.run_line_magic("load_ext", "ipymemory")
sys.stdout.write("\\n" + " ".join(sorted(set(sys.modules) - before)))
"""


def test_loading_imports_nothing_heavy(tmp_path: Path) -> None:
    """In a fresh process; the home folder stays as it was too."""
    home = tmp_path / "home"
    run = subprocess.run(
        [sys.executable, "-c", _FRESH],
        env={
            **os.environ,
            "PYTHONPATH": str(TOP),
            "IPYMEMORY_HOME": str(home),
            "IPYTHONDIR": str(tmp_path / "ipython"),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    new = set(run.stdout.splitlines()[-1].split())
    assert "ipymemory.extension" in new
    assert not {each.split(".")[0] for each in new} & HEAVY
    assert not new & LATE
    assert not home.exists()


def test_importing_the_package_imports_only_itself() -> None:
    code = (
        "import sys; before = set(sys.modules); import ipymemory; "
        "print(*(set(sys.modules) - before - {'os', 'typing', '__future__'}))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=True,
    )
    ours = {each for each in run.stdout.split() if each.startswith("ipymemory")}
    assert ours == {"ipymemory"}


def test_nothing_is_left_undone() -> None:
    """No mark for later and no stub, in comments and code; in a text the words may stand."""
    mark = re.compile(r"\b(TODO|FIXME|XXX)\b|NotImplementedError")
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        with path.open("rb") as file:
            for token in tokenize.tokenize(file.readline):
                code = token.type in (tokenize.COMMENT, tokenize.NAME)
                if code and mark.search(token.string):
                    found.append(f"{path.relative_to(TOP)}:{token.start[0]}")
    assert not found
