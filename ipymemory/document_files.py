"""Living documents where they lie: cells of notebooks, and ``.md`` files with notebooks around.

Reading needs no model, no kernel and no folder of ours, so that it can run where none of them
is: in a check before a commit, on a server that tests. What cannot be read is a sentence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ipymemory import document_records
from ipymemory.document_records import Cell, Record, hash_of
from ipymemory.documents import Document, find
from ipymemory.errors import FormatError, IpymemoryError, NotebookError, PlaceError
from ipymemory.held import Held, resolved
from ipymemory.private import is_ours, is_private

MOST_TEXT = 500_000
"""Characters of one living document: hundreds of pages."""
MOST_WRITTEN = 100 * 1024
"""Bytes that a model may make of a document: some fifty pages."""
MOST_TITLE = 200
"""Characters of a title."""
MOST_BYTES = 200 * 1024 * 1024
"""Bytes of a notebook that is read."""
MOST_PROSE_BYTES = 4 * 1024 * 1024
"""Bytes of a ``.md`` file that is read."""
MOST_FILES = 20_000
"""Files below the folders that were named."""
AROUND = 200
"""Notebooks that a ``.md`` file rests on, at most."""

_PASSED_OVER = frozenset(["node_modules", "site-packages", "__pycache__"])
_ENDINGS = (".ipynb", ".md")


@dataclass(frozen=True, slots=True)
class Living:
    """A living document: `text` as it stands in the file, `cells` that it rests on now.

    `index` is its place among the notebook's cells, from 0, and -1 for a file of its own.
    """

    path: Path
    head: Document
    text: str
    cells: tuple[Cell, ...]
    record: Record | None
    index: int = -1
    cell: str = ""
    around: tuple[Path, ...] = ()

    @property
    def title(self) -> str:
        """The title in its heading."""
        return self.head.title

    @property
    def stale(self) -> tuple[str, ...]:
        """Why it is stale, a clause each; nothing when it is fresh."""
        return document_records.reasons(self.record, self.path.name, self.cells)


@dataclass(slots=True)
class Found:
    """What lies in some files: documents, and a sentence for each file that cannot be read."""

    documents: list[Living] = field(default_factory=list)
    problems: list[tuple[Path, str]] = field(default_factory=list)
    files: int = 0


def look(names: Sequence[Path]) -> Found:
    """Return the living documents in files, and in all ``.ipynb`` and ``.md`` below folders.

    A file that was named must be readable; below a folder only one that may hold a document must.
    Never raises `IpymemoryError`: what is wrong stands in `Found.problems`.
    """
    found = Found()
    notebooks: dict[Path, tuple[Cell, ...]] = {}
    seen: set[Path] = set()
    for name in names:
        try:
            for path, named in _files(name):
                if path in seen:
                    continue
                seen.add(path)
                found.files += 1
                try:
                    found.documents += of_file(path, named=named, notebooks=notebooks)
                except IpymemoryError as error:
                    found.problems.append((path, str(error)))
        except (IpymemoryError, OSError, ValueError) as error:
            found.problems.append((name, _sentence(name, error)))
    return found


def of_file(
    path: Path,
    data: bytes | None = None,
    *,
    named: bool = True,
    notebooks: dict[Path, tuple[Cell, ...]] | None = None,
) -> list[Living]:
    """Return the living documents in the file `path`, or in `data` that was read from it.

    `notebooks` keeps the cells of those around ``.md`` files, for a next call. Raises
    `IpymemoryError` for a file that cannot be read, unless it was not `named` and can hold none.
    """
    if path.suffix.casefold() == ".md":
        text = _decoded(path, bytes_of(path) if data is None else data)
        return _of_prose(path, text, {} if notebooks is None else notebooks)
    data = bytes_of(path) if data is None else data
    # Words in a JSON text may be written as escapes.
    if not named and b"magic" not in data.lower() and b"\\u00" not in data.lower():
        return []
    return _of_notebook(path, content(path, data))


def content(path: Path, data: bytes) -> Mapping[str, Any]:
    """Return the JSON of the notebook `path`, format 4; raises `NotebookError`."""
    try:
        value = json.loads(_decoded(path, data).removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise NotebookError(
            f"{path} is cut off, damaged or no notebook: its JSON cannot be read. If it is being "
            "saved, try again; else save it anew in Jupyter."
        ) from error
    if not isinstance(value, dict) or value.get("nbformat") != 4:
        raise NotebookError(
            f"{path} is no notebook of format 4. Open it in Jupyter and save it, then try again."
        )
    if not isinstance(value.get("cells"), list):
        raise NotebookError(f"{path} is a notebook without cells. Add some, then try again.")
    return value


def code_cells(content: Mapping[str, Any]) -> list[tuple[int, Cell]]:
    """Return each code cell that does something, with its place among all cells, from 0.

    Private cells and those that hold only our own magics are left out. `label` counts the rest
    from 1, so that a comment or a cell of prose changes no label.
    """
    found: list[tuple[int, Cell]] = []
    language = language_of(content)
    for index, cell in enumerate(content["cells"]):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = source_of(cell)
        if not source.strip() or is_private(source) or is_ours(source):
            continue
        hash = hash_of(source, language)
        if hash:
            found.append((index, Cell(_id(cell), hash, f"[code {len(found) + 1}]")))
    return found


def language_of(content: Mapping[str, Any]) -> str:
    """Return the language of a notebook's code, as its kernel calls it; Python where none says."""
    metadata = content.get("metadata")
    for where, name in (("language_info", "name"), ("kernelspec", "language")):
        told = metadata.get(where) if isinstance(metadata, dict) else None
        value = told.get(name) if isinstance(told, dict) else None
        if isinstance(value, str) and value:
            return value[:100]
    return "python"


def source_of(cell: Mapping[str, Any]) -> str:
    """Return the source of a notebook's cell, a text or a list of lines."""
    source = cell.get("source", "")
    if isinstance(source, list):
        return "".join(each for each in source if isinstance(each, str))
    return source if isinstance(source, str) else ""


def _of_notebook(path: Path, content: Mapping[str, Any]) -> list[Living]:
    found = []
    cells: tuple[Cell, ...] | None = None
    for index, cell in enumerate(content["cells"]):
        if not isinstance(cell, dict) or cell.get("cell_type") != "markdown":
            continue
        text = source_of(cell)
        head = find(text)
        if head is None:
            continue
        _bounded(path, head, text)
        if cells is None:
            cells = tuple(each for _, each in code_cells(content))
        metadata = cell.get("metadata")
        ours = metadata.get("ipymemory") if isinstance(metadata, dict) else None
        record = document_records.read(ours.get("doc")) if isinstance(ours, dict) else None
        found.append(Living(path, head, text, cells, record, index, _id(cell)))
    return found


def _of_prose(path: Path, text: str, notebooks: dict[Path, tuple[Cell, ...]]) -> list[Living]:
    head = find(text, levels=1)
    if head is None:
        return []
    _bounded(path, head, text)
    record, _ = document_records.in_text(text)
    around = notebooks_around(path)
    cells: list[Cell] = []
    for each in around:
        name = each.relative_to(path.parent).as_posix()
        if each not in notebooks:
            read = code_cells(content(each, bytes_of(each)))
            notebooks[each] = tuple(cell for _, cell in read)
        cells += called(notebooks[each], name)
    return [Living(path, head, text, tuple(cells), record, around=tuple(around))]


def called(cells: Sequence[Cell], file: str) -> list[Cell]:
    """Return `cells` as a document names them that rests on several notebooks."""
    return [replace(each, file=file, label=f"{each.label} of {file}") for each in cells]


def notebooks_around(path: Path) -> list[Path]:
    """Return the notebooks that the ``.md`` file `path` rests on: beside it and one level down.

    They are found by looking, never by what a record says. Links are not followed. Raises
    `PlaceError` when there are more than `AROUND`.
    """
    found: list[Path] = []
    for folder in (path.parent, *folders_in(path.parent)):
        found += (each for each in files_in(folder) if each.suffix.casefold() == ".ipynb")
        if len(found) > AROUND:
            raise PlaceError(
                f"More than {AROUND} notebooks lie around {path}, too many for one document. Put "
                "it beside those that it is about."
            )
    return found


def folders_in(folder: Path) -> list[Path]:
    """Return the folders in a folder that may hold a user's files, by name; links are none."""
    try:
        with os.scandir(folder) as entries:
            names = [each.name for each in entries if each.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [folder / name for name in sorted(names) if not passed_over(folder / name)]


def files_in(folder: Path) -> list[Path]:
    """Return the notebooks and ``.md`` files in a folder, by name; links and hidden are none."""
    try:
        with os.scandir(folder) as entries:
            names = [
                each.name
                for each in entries
                if each.name.casefold().endswith(_ENDINGS)
                and not each.name.startswith(".")
                and each.is_file(follow_symlinks=False)
            ]
    except OSError:
        return []
    return [folder / name for name in sorted(names)]


def _files(name: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the file `name`, else the files below the folder, and whether each was named."""
    path = resolved(Path(os.path.abspath(name)))  # noqa: PTH100 - links in the last part stay
    if not path.is_dir() or path.is_symlink():
        if path.suffix.casefold() not in _ENDINGS:
            raise FormatError(f"{name} is neither a notebook (.ipynb) nor a .md file nor a folder.")
        yield path, True
        return
    waiting, count = [path], 0
    while waiting:
        folder = waiting.pop()
        for each in files_in(folder):
            count += 1
            if count > MOST_FILES:
                raise PlaceError(f"{name} holds more than {MOST_FILES:,} files. Name a part of it.")
            yield each, False
        waiting += reversed(folders_in(folder))


def passed_over(folder: Path) -> bool:
    """Return whether a folder holds no document of the user's: hidden ones, environments."""
    if folder.name.startswith(".") or folder.name in _PASSED_OVER:
        return True
    # Not `Path.exists`: of a folder that may not be looked into it raises.
    return any(os.path.exists(folder / each) for each in ("pyvenv.cfg", "conda-meta"))  # noqa: PTH110


def bytes_of(path: Path) -> bytes:
    """Return what the file holds, links refused; raises `PlaceError`."""
    most = MOST_PROSE_BYTES if path.suffix.casefold() == ".md" else MOST_BYTES
    with Held(path) as held:
        data = held.read(most)
    if data is None:
        raise PlaceError(f"There is no file {path}. Check the name.")
    return data


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not UTF-8 text. Save it as UTF-8 and try again.") from error


def _bounded(path: Path, head: Document, text: str) -> None:
    if len(head.title) > MOST_TITLE:
        raise FormatError(
            f"{path} has a living document whose title has {len(head.title):,} characters, more "
            f"than {MOST_TITLE}. Shorten its heading."
        )
    if len(text) > MOST_TEXT:
        raise FormatError(
            f"{path} has a living document of {len(text):,} characters, more than {MOST_TEXT:,}. "
            "Shorten it or make several of it."
        )


def _id(cell: Mapping[str, Any]) -> str:
    value = cell.get("id")
    return value[:200] if isinstance(value, str) else ""


def _sentence(name: Path, error: Exception) -> str:
    if isinstance(error, IpymemoryError):
        return str(error)
    return f"{str(name)!r} is no path that can be read: {error}."
