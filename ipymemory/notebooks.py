"""Notebook files: what stands in an ``.ipynb`` as turns and prose, read and never written.

The cells come in the order in which they stand, with the outputs, errors and execution counts
that were saved with them; a cell that never ran has the status ``unknown``. All is bounded as a
recorded cell would be, and secrets are masked on the way in. Reads nbformat 4, and 3 as far as
it says the same. Only the standard library's json: `nbformat` takes a second to import.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ipymemory import excerpts
from ipymemory.errors import EmptyNotebook, NotebookError
from ipymemory.private import Quotes, is_ours, is_private
from ipymemory.redaction import Masker
from ipymemory.turns import CellError, Entry, Output, OutputKind, Prose, Status, Turn

MOST_BYTES = 200 * 1024 * 1024
"""Bytes of a file that is read: parsing that many takes less than a second."""
MOST_WORDS = 4_000_000
"""Characters of cells that are compared: masking as many takes some seconds of the worker's."""
SOURCE_CHARS = 32 * 1024
OUTPUT_CHARS = 4000
OUTPUTS = 60
"""Bounds of a cell: those of `ipymemory.config.Capture`, and its outputs at most so many."""
MASKED_CHARS = 4 * SOURCE_CHARS
"""Characters of a source that are masked: a longer one is a file that somebody pasted."""

_MORE = "\n[… {:,} characters left out …]"
_MORE_OUTPUTS = "[… {:,} more outputs left out …]"

_HEADING = re.compile(r"(?m)^ {0,3}#[ \t]+(?P<text>[^\n]*?)[ \t#]*$")
_KINDS: Mapping[str, OutputKind] = {
    "stream": "stream",
    "execute_result": "result",
    "pyout": "result",
    "display_data": "display",
    "error": "error",
    "pyerr": "error",
}
_OLD_MIMES = {
    "text": "text/plain",
    "html": "text/html",
    "png": "image/png",
    "jpeg": "image/jpeg",
    "svg": "image/svg+xml",
    "latex": "text/latex",
    "json": "application/json",
    "javascript": "application/javascript",
}


@dataclass(frozen=True, slots=True)
class NotebookFile:
    """A notebook as it was saved: `entries` in the order of its cells."""

    path: Path
    entries: tuple[Entry, ...]
    language: str = "python"
    title: str = ""


def read(path: Path) -> NotebookFile:
    """Return what the notebook `path` holds; raises `NotebookError` with one sentence."""
    return parse(path, bytes_of(path))


def parse(path: Path, data: bytes, source_chars: int = SOURCE_CHARS) -> NotebookFile:
    """Return what `data`, read from the notebook `path`, holds; raises `NotebookError`.

    Of each source at most `source_chars` and `MASKED_CHARS`; what is left out is told in it.
    """
    content = _content(path, data)
    cells = list(_cells(path, content))
    reader = _Reader(content, source_chars)
    reader.quotes.add_all(_source(cell) for cell in cells if cell.get("cell_type") == "code")
    entries: list[Entry] = []
    for position, cell in enumerate(cells, start=1):
        entry = reader.entry(cell, position)
        if entry is not None:
            entries.append(entry)
    if not entries:
        raise EmptyNotebook(
            f"{path} is a notebook without a cell that says anything, so there is nothing to "
            "write notes from. Add cells, save it, and try again."
        )
    title = reader.masker.mask(_title(content, entries))
    return NotebookFile(path, tuple(entries), reader.language, title)


def words(path: Path) -> str:
    """Return the sources of all cells of the notebook `path`, masked, private ones left out.

    For telling what came with the file; nothing for one that was never saved. Raises
    `NotebookError`, also for more than `MOST_WORDS`.
    """
    if path.is_file() and not path.stat().st_size:
        return ""
    if path.suffix != ".ipynb":
        # A notebook kept as plain text: all that its cells hold stands in it as it is.
        if path.stat().st_size > 4 * MOST_WORDS:
            raise NotebookError(f"{path} holds more than {MOST_WORDS:,} characters.")
        return Masker().mask_source(path.read_text("utf-8"))
    content, masker = _content(path, bytes_of(path)), Masker()
    sheets = content.get("worksheets") if content["nbformat"] == 3 else [content]
    cells = [
        cell
        for sheet in (sheets if isinstance(sheets, list) else [])
        for cell in _list(_mapping(sheet).get("cells"))
    ]
    found = [_source(cell) for cell in cells if isinstance(cell, dict)]
    if sum(map(len, found)) > MOST_WORDS:
        raise NotebookError(f"{path} holds more than {MOST_WORDS:,} characters of cells.")
    kept = [each for each in found if each.strip() and not is_private(each)]
    return "\n\n".join(masker.mask(masker.mask_source(each)) for each in kept)


_WANTED = "Name a notebook file (.ipynb)."


def bytes_of(path: Path) -> bytes:
    """Return the file's content; raises `NotebookError`."""
    try:
        if path.is_dir():
            raise NotebookError(f"{path} is a folder, no notebook. {_WANTED}")
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise NotebookError(
                f"{path} has {size / 1e6:,.0f} MB, more than the {MOST_BYTES / 1e6:,.0f} MB that "
                "are read. Clear its largest outputs, save it, and try again."
            )
        return path.read_bytes()
    except (FileNotFoundError, ValueError) as error:
        # ValueError: a null character, which no name of a file can hold.
        raise NotebookError(f"There is no file {path}. Check the name.") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise NotebookError(f"{path} cannot be read ({reason}). Check its permissions.") from error


def _content(path: Path, data: bytes) -> dict[str, Any]:
    """Return the JSON object in `data`; raises `NotebookError`."""
    if not data.strip():
        raise EmptyNotebook(
            f"{path} is empty, as a notebook is that was never saved. Save it and try again."
        )
    try:
        content = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise NotebookError(f"{path} is not UTF-8 text, so it is no notebook. {_WANTED}") from error
    except (ValueError, RecursionError) as error:
        if data.lstrip()[:1] == b"{" and path.suffix.casefold() == ".ipynb":
            raise NotebookError(
                f"{path} is cut off or damaged, so its JSON cannot be read. If it is being saved, "
                "try again; else save it anew in Jupyter."
            ) from error
        raise NotebookError(f"{path} is no notebook: it holds no JSON. {_WANTED}") from error
    if not isinstance(content, dict) or not isinstance(content.get("nbformat"), int):
        raise NotebookError(f"{path} is no notebook: its JSON says no nbformat. {_WANTED}")
    if content["nbformat"] not in (3, 4):
        raise NotebookError(
            f"{path} has the notebook format {content['nbformat']}; 3 and 4 can be read. Open it "
            "in Jupyter and save it in format 4."
        )
    return content


def _cells(path: Path, content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    sheets = content.get("worksheets") if content["nbformat"] == 3 else [content]
    sheets = [each for each in sheets if isinstance(each, dict)] if isinstance(sheets, list) else []
    found = [each["cells"] for each in sheets if isinstance(each.get("cells"), list)]
    if not any(found):
        raise EmptyNotebook(
            f"{path} is a notebook without cells, so there is nothing to write notes from. Add "
            "cells, save it, and try again."
        )
    for cells in found:
        yield from (cell for cell in cells if isinstance(cell, dict))


def _title(content: dict[str, Any], entries: list[Entry]) -> str:
    named = _mapping(content.get("metadata")).get("title")
    if isinstance(named, str) and named.strip():
        return " ".join(named.split())
    for entry in entries:
        if isinstance(entry, Prose) and (match := _HEADING.search(entry.source)):
            return match["text"].strip()
    return ""


class _Reader:
    """Turns cells into entries; one masker for the file, so that it knows what it has seen."""

    def __init__(self, content: dict[str, Any], source_chars: int) -> None:
        metadata = _mapping(content.get("metadata"))
        language = _mapping(metadata.get("kernelspec")).get("language")
        language = language or _mapping(metadata.get("language_info")).get("name")
        self.language = language if isinstance(language, str) and language else "python"
        self.masker = Masker()
        self.quotes = Quotes()
        self._source_chars = source_chars

    def entry(self, cell: dict[str, Any], position: int) -> Entry | None:
        """Return a cell as an entry; None for a raw, empty, private, own or broken one."""
        kind = cell.get("cell_type")
        source = _source(cell)
        if not source.strip() or (kind == "code" and (is_private(source) or is_ours(source))):
            return None
        id, cell_id = f"cell {position}", cell.get("id")
        cell_id = cell_id if isinstance(cell_id, str) else None
        if kind in ("markdown", "heading"):
            if kind == "heading":
                level = cell.get("level")
                marks = level if isinstance(level, int) and 1 <= level <= 6 else 1
                source = "#" * marks + " " + source
            text = self._shortened(source, self.masker.mask)
            return Prose(id, "", text, cell_id, "file", position)
        return self._turn(cell, source, id, cell_id) if kind == "code" else None

    def _turn(self, cell: dict[str, Any], source: str, id: str, cell_id: str | None) -> Turn:
        count = cell.get("execution_count", cell.get("prompt_number"))
        count = count if type(count) is int and 0 <= count < 10**9 else None
        given = cell.get("outputs")
        raw = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
        error = next((self._error(each) for each in raw if _kind(each) == "error"), None)
        shown = [each for each in raw if _kind(each) not in ("", "error")]
        outputs = tuple(map(self._output, shown[: OUTPUTS - 2 if len(shown) > OUTPUTS else None]))
        if more := len(shown) - len(outputs):
            # The last is mostly what the cell came to.
            note = Output("display", _MORE_OUTPUTS.format(more - 1))
            outputs = (*outputs, note, self._output(shown[-1]))
        status: Status = "error" if error else "unknown" if count is None and not raw else "ok"
        text = self._shortened(source, self.masker.mask_source)
        began, duration = _timing(cell)
        return Turn(
            id=id,
            time=began,
            source=text,
            cell_id=cell_id,
            execution_count=count,
            status=status,
            duration_ms=duration,
            error=error,
            outputs=outputs,
            origin="file",
            complete=True,
        )

    def _shortened(self, source: str, masked: Callable[[str], str]) -> str:
        """Return a cell's source, masked; what is left out of it, in the middle or at its end."""
        more = len(source) - MASKED_CHARS
        end = _MORE.format(more) if more > 0 else ""
        most = min(self._source_chars, MASKED_CHARS) - len(end)
        return excerpts.clip(masked(source[:MASKED_CHARS]), most)[0] + end

    def _output(self, raw: dict[str, Any]) -> Output:
        kind = _KINDS[_kind(raw)]
        data = _mapping(raw.get("data"))
        if not data:
            data = {mime: raw[key] for key, mime in _OLD_MIMES.items() if key in raw}
        text = _text(raw.get("text", "")) if kind == "stream" else _text(data.get("text/plain", ""))
        text, cut = self._bounded(text, OUTPUT_CHARS)
        mimes = tuple(str(mime)[:100] for mime in list(data)[:10])
        return Output(kind, text, () if kind == "stream" else mimes, cut)

    def _error(self, raw: dict[str, Any]) -> CellError:
        name, value = _text(raw.get("ename", "")), _text(raw.get("evalue", ""))
        traceback = raw.get("traceback")
        lines = [_text(each) for each in traceback] if isinstance(traceback, list) else []
        return CellError(
            self._bounded(name, 200)[0] or "Error",
            self._bounded(value, 1000)[0],
            self._bounded("\n".join(lines), 2 * OUTPUT_CHARS)[0],
        )

    def _bounded(self, text: str, limit: int) -> tuple[str, int]:
        """Return `text` as it was seen on the screen, masked, and the characters left out."""
        excerpt = excerpts.Excerpt(limit)
        excerpt.add(text)
        return self.masker.mask(self.quotes.without(excerpt.text())), excerpt.truncated


def _source(cell: dict[str, Any]) -> str:
    return _text(cell.get("source", cell.get("input", "")))


def _kind(raw: dict[str, Any]) -> str:
    kind = raw.get("output_type")
    return kind if isinstance(kind, str) and kind in _KINDS else ""


def _timing(cell: dict[str, Any]) -> tuple[str, float | None]:
    """Return when a cell began and how many milliseconds it took, where Jupyter recorded it."""
    times = _mapping(_mapping(cell.get("metadata")).get("execution"))
    began = times.get("iopub.execute_input")
    ended = times.get("shell.execute_reply")
    try:
        start = datetime.fromisoformat(str(began))
    except ValueError:
        return "", None
    try:
        took = (datetime.fromisoformat(str(ended)) - start).total_seconds() * 1000
    except (ValueError, TypeError):
        return str(began), None
    return str(began), took if took >= 0 else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    """Return a multi-line string of nbformat: text, or a list of its lines."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(each for each in value if isinstance(each, str))
    return ""
