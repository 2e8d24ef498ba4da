"""Tools that read: what an engine is shown of a file, and how much of it.

Every file is opened without following a link, read whole, masked whole and only then cut or
searched, so that neither a range nor a pattern tells a secret piece by piece (behaviour L7). A
notebook is shown as its cells, with as much of its outputs as `Privacy.sent_outputs` lets
through. Whatever is refused is answered with what is allowed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ipymemory import notebooks
from ipymemory.errors import IpymemoryError, ToolError
from ipymemory.excerpts import privacy_filter
from ipymemory.fence import Fence, shown
from ipymemory.held import Held, Listed, listed
from ipymemory.history import Run
from ipymemory.models import ToolSpec
from ipymemory.redaction import Masker, mask
from ipymemory.turns import ToolCall, Turn

MOST_BYTES = 4 * 1024 * 1024
"""Bytes of a file that is read: ten times the longest source files, masked in about a second."""

MOST_NOTEBOOK = 32 * 1024 * 1024
"""The same of a notebook, most of which are images that are not shown."""

MOST_CHARS = 40_000
"""Characters of one answer, some 10,000 tokens."""

MOST_LINES = 2000
LINE_CHARS = 2000
"""Lines of one answer, and characters of one line."""

MOST_ENTRIES = 50_000
"""Files and folders that one call looks at."""

SECONDS = 10.0
"""How long one call may look around."""

PASSED_OVER = frozenset(
    (
        *("node_modules", "site-packages", "__pycache__", ".venv", "venv", ".tox", ".nox"),
        *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints", ".hg", ".svn"),
    )
)
"""Folders that others filled: a search goes into one only when the call names it."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a walk comes by: its real path, its name below where the walk began, and its entry."""

    path: Path
    below: str
    entry: Listed


@dataclass(slots=True)
class Look:
    """One call's look around. `level` is what may be sent of outputs."""

    fence: Fence
    level: str
    stopped: Callable[[], bool] = lambda: False
    until: float = field(default_factory=lambda: time.monotonic() + SECONDS)
    cut: str = ""
    """Why the look ended before it had seen all, in a few words."""

    def over(self) -> bool:
        """Return whether to end here: the run was stopped, or the time is up."""
        if not self.cut and (self.stopped() or time.monotonic() > self.until):
            self.cut = "the time for one call was up; name a smaller folder"
        return bool(self.cut)

    def name(self, path: Path) -> str:
        """Return how `path` is called in an answer: from the project's folder on, on one line."""
        base = self.fence.base
        text = path.relative_to(base).as_posix() if path.is_relative_to(base) else str(path)
        return "".join(each if each.isprintable() else "?" for each in text) or "."

    def text(self, path: Path) -> str:
        """Return the file as it may be shown; raises `IpymemoryError`."""
        if why := self.fence.why_closed(path):
            raise ToolError(f"{path} was refused: {why}.")
        is_notebook = path.suffix.casefold() == ".ipynb"
        with Held(path) as held:
            data = held.read(MOST_NOTEBOOK if is_notebook else MOST_BYTES, alone=True)
        if data is None:
            raise ToolError(f"There is no file {self.name(path)}.")
        return self.shown(path, data)

    def shown(self, path: Path, data: bytes) -> str:
        """Return `data`, what the file holds or once held, as it may be shown; as `text` does."""
        is_notebook = path.suffix.casefold() == ".ipynb"
        # A copy of a notebook under another name holds the same outputs.
        if is_notebook or (data.lstrip()[:1] == b"{" and b'"nbformat"' in data):
            # A long cell is read on with offset, like any file.
            whole = notebooks.parse(path, data, notebooks.MASKED_CHARS)
            return _notebook(whole, self.level)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ToolError(f"{self.name(path)} is no UTF-8 text.") from error
        if "\0" in text:
            raise ToolError(f"{self.name(path)} is no text: it holds null characters.")
        text = text.replace("\r\n", "\n")
        code = path.suffix.casefold() in (".py", ".pyi", ".ipy")
        return Masker().mask_source(text) if code else Masker().mask(text)

    def listed(self, folder: Path) -> tuple[list[Listed], int]:
        """Return what of a folder may be seen, and how much of it may not; raises `PlaceError`."""
        found = listed(folder, MOST_ENTRIES)
        seen = [each for each in found if not self.fence.why_closed(folder / each.name)]
        return seen, len(found) - len(seen)

    def walk(self, top: Path) -> Iterator[Found]:
        """Yield what lies in and below `top`, in order; links are neither told of nor followed.

        Folders that cannot be listed are passed over, except `top`: raises `PlaceError`.
        """
        waiting, count = [(top, "")], 0
        while waiting:
            folder, below = waiting.pop()
            try:
                entries, _ = self.listed(folder)
            except IpymemoryError:
                if folder == top:
                    raise
                continue
            folders = []
            for each in entries:
                count += 1
                if count > MOST_ENTRIES:
                    self.cut = f"more than {MOST_ENTRIES:,} files lie there; name a smaller folder"
                if self.over():
                    return
                found = Found(folder / each.name, f"{below}{each.name}", each)
                if each.kind in ("file", "folder"):
                    yield found
                if each.kind == "folder" and each.name not in PASSED_OVER:
                    folders.append((found.path, f"{found.below}/"))
            waiting += reversed(folders)


Act = Callable[[Look, Path, Mapping[str, Any]], str]


@dataclass(frozen=True, slots=True)
class LookTool:
    """A tool that reads; `act` is what it does with the resolved path and the checked input."""

    spec: ToolSpec
    act: Act
    look: Callable[[], Look]
    """Makes the look of one call."""

    def run(self, call: ToolCall, run: Run) -> str:
        """Return the answer, masked and bounded; raises `ToolError` that says what is allowed."""
        look = self.look()
        try:
            given = checked(self.spec, call.input)
            text = self.act(look, Path(call.input["path"]), given)
        except IpymemoryError as error:
            raise ToolError(f"{mask(str(error))} {look.fence.allowed}") from error
        # Names of files are masked too; what they hold was masked as a whole before.
        text = mask(text)
        ends = f"\n[Not all was looked at: {look.cut}.]" if look.cut else ""
        return f"{clipped(text, MOST_CHARS + 2000)}{ends}"


def tool_spec(
    tool: str, description: str, needed: tuple[str, ...] = (), /, **properties: Any
) -> ToolSpec:
    """Return what an engine is told of a tool; `needed` are names of input it must give."""
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string"}, **properties},
        "required": list(needed),
        "additionalProperties": False,
    }
    return ToolSpec(tool, description, schema, reads=True)


def checked(spec: ToolSpec, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input as far as it is given; raises `ToolError` for one of the wrong kind."""
    known: Mapping[str, Mapping[str, Any]] = spec.schema["properties"]
    for name in given:
        if name not in known:
            raise ToolError(f"{spec.name} takes {', '.join(known)} and no {shown(name)}.")
    values = {name: value for name, value in given.items() if value not in (None, "")}
    for name in spec.schema["required"]:
        if name not in values:
            raise ToolError(f"{spec.name} needs {name}.")
    kinds = {"string": str, "integer": int, "boolean": bool}
    for name, value in values.items():
        kind = str(known[name]["type"])
        if type(value) is not kinds[kind]:
            raise ToolError(f"{spec.name} takes {name} as {kind}.")
        least = known[name].get("minimum")
        if least is not None and value < least:
            raise ToolError(f"{name} is at least {least}.")
        if known[name].get("enum") and value not in known[name]["enum"]:
            raise ToolError(f"{name} is one of {', '.join(known[name]['enum'])}.")
    return values


READ = tool_spec(
    "Read",
    "Read a text file or a notebook of the project, or a memory; path as the project has it. Its "
    f"lines come with their numbers, at most {MOST_LINES:,} at once: begin at line offset, take "
    "limit of them.",
    ("path",),
    offset={"type": "integer", "minimum": 1},
    limit={"type": "integer", "minimum": 1},
)

WC = tool_spec("Wc", "Count the lines, words and characters of one file.", ("path",))

LIST = tool_spec(
    "List",
    "List one folder, the project's own without path: names, sizes, when changed, as ls does.",
)


def read(look: Look, path: Path, given: Mapping[str, Any]) -> str:
    """Return a range of a file's lines, each with its number."""
    lines = look.text(path).removesuffix("\n").split("\n")
    first = given.get("offset", 1)
    if first > len(lines):
        raise ToolError(f"{look.name(path)} has {len(lines):,} lines.")
    told: list[str] = []
    size = wide = 0
    for number, line in enumerate(lines[first - 1 :], start=first):
        shown_line = f"{number}\t{clipped(line, LINE_CHARS)}"
        size += len(shown_line) + 1
        if len(told) >= min(given.get("limit", MOST_LINES), MOST_LINES) or size > MOST_CHARS:
            break
        told.append(shown_line)
        wide += len(line) > LINE_CHARS
    last = first + len(told) - 1
    head = f"{look.name(path)}, lines {first} to {last} of {len(lines):,}:"
    more = (
        f"\n[{len(lines) - last:,} more; offset {last + 1} goes on.]" if last < len(lines) else ""
    )
    cut = (
        f"\n[Lines are cut at {LINE_CHARS:,} characters; Grep shows the part of one that matches.]"
    )
    return "\n".join((head, *told)) + (cut if wide else "") + more


def count(look: Look, path: Path, given: Mapping[str, Any]) -> str:
    """Return how much a file holds, counted in what may be shown of it."""
    text = look.text(path)
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    return (
        f"{look.name(path)}: {lines:,} lines, {len(text.split()):,} words, "
        f"{len(text):,} characters."
    )


def list_folder(look: Look, path: Path, given: Mapping[str, Any]) -> str:
    """Return one folder's content, a line each."""
    entries, left_out = look.listed(path)
    told = [f"{look.name(path)}, {len(entries):,} entries:"]
    told += [line(look.name(path / each.name), each) for each in entries[:MOST_LINES]]
    if len(entries) > MOST_LINES:
        told.append(f"[{len(entries) - MOST_LINES:,} more; Glob or Find names fewer.]")
    if left_out:
        told.append(f"[{left_out:,} more that no tool may read (Privacy.files, git's own).]")
    return bounded(told)


def line(name: str, entry: Listed) -> str:
    """Return a file or folder as one line: name, size in bytes, day and minute of its change."""
    if entry.kind == "folder":
        return f"{name}/"
    if entry.kind != "file":
        return f"{name} ({'a link, not followed' if entry.kind == 'link' else 'no regular file'})"
    changed = datetime.fromtimestamp(entry.modified / 1e9, UTC).strftime("%Y-%m-%d %H:%M")
    return f"{name}  {entry.size:,} bytes  {changed} UTC"


def clipped(text: str, limit: int) -> str:
    """Return the first `limit` characters of `text`, and how many more there are."""
    return text if len(text) <= limit else f"{text[:limit]} [{len(text) - limit:,} more characters]"


def bounded(lines: list[str]) -> str:
    """Return as many lines as one answer holds, and how many more there are."""
    size = 0
    for number, each in enumerate(lines):
        size += len(each) + 1
        if size > MOST_CHARS:
            return "\n".join((*lines[:number], f"[{len(lines) - number:,} more lines.]"))
    return "\n".join(lines)


def _notebook(notebook: notebooks.NotebookFile, level: str) -> str:
    """Return a notebook as its cells; secrets were masked and private cells left out of it."""
    told: list[str] = []
    for each in notebook.entries:
        if not isinstance(each, Turn):
            told += [f"## {each.id}, markdown", getattr(each, "source", "")]
            continue
        told += [f"## {each.id}, code {each.label}", each.source]
        for output in each.outputs:
            if text := privacy_filter(output.kind, output.text, output.mime, level):
                told += ["### output", text]
        if each.error is not None:
            error = each.error.traceback or f"{each.error.name}: {each.error.value}"
            told += ["### error", privacy_filter("error", error, (), level) or each.error.name]
    return "\n".join(each.rstrip("\n") for each in told) + "\n"
