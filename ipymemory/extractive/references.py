"""What a memory names of the project that is not there any more: files and functions.

Only what surely names something of this project counts: a path in code quotes with a folder or a
known ending, and a function in code quotes beside the file that is to hold it. A path that leads
out of the project is not looked at, and a file that lies elsewhere in it is there. Where the
project is too large to know all its files, nothing is said to be gone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection
from pathlib import Path, PurePosixPath

_QUOTED = re.compile(r"(?<!`)`([^`\n]{2,200})`(?!`)")
_PATH = re.compile(
    r"(?:\./)?(?:[\w.-]+/)*[\w-][\w.-]*\.(?:py|ipynb|md|sql|toml|ya?ml|cfg|ini|sh|R)"
)
_CALL = re.compile(r"([A-Za-z_]\w*)\(\)")
_MARK = re.compile(
    r"\n*^\*\*Checked:\*\* .+ no longer in this project \(\d{4}-\d\d-\d\d\)\.$", re.M
)
_NAMES = re.compile(r"`([^`]+)`")

MOST_FILES = 20_000
"""Files of a project that are looked at by name."""

_NEVER = frozenset(["node_modules", "__pycache__", "site-packages", "venv", "env", "build", "dist"])


def files(root: Path, most: int = MOST_FILES) -> frozenset[str] | None:
    """Return the files below `root` with forward slashes, without hidden folders and copies.

    None where there are more than `most`, or they cannot be listed. No link is followed.
    """
    found: set[str] = set()
    refused: list[OSError] = []
    for folder, inner, names in os.walk(root, onerror=refused.append):
        inner[:] = [each for each in inner if each[0] != "." and each not in _NEVER]
        below = os.path.relpath(folder, root).replace(os.sep, "/")
        found.update(each if below == "." else f"{below}/{each}" for each in names)
        if len(found) > most:
            return None
    return None if refused else frozenset(found)


def gone(text: str, known: Collection[str], read: Callable[[str], str]) -> tuple[str, ...]:
    """Return what `text` names that is in none of the files `known`; `read` gives a file's text.

    A name without its folder is there when any file is called so.
    """
    bare = without_mark(text)
    names = {PurePosixPath(each).name for each in known}
    quoted = _QUOTED.findall(bare)
    paths = [each.removeprefix("./") for each in quoted if _PATH.fullmatch(each)]
    missing = [each for each in paths if _is_gone(each, known, names)]
    there = [each for each in paths if each in known]
    if there and not missing:
        texts = [read(each) for each in there]
        missing = [
            f"{each[1]}()"
            for one in quoted
            if (each := _CALL.fullmatch(one)) and texts and all(texts)
            if not any(re.search(rf"\b{each[1]}\b", held) for held in texts)
        ]
    return tuple(dict.fromkeys(missing))


def _is_gone(path: str, known: Collection[str], names: Collection[str]) -> bool:
    parts = path.split("/")
    if ".." in parts or any(each.startswith(".") for each in parts):
        return False  # hidden or outside: not looked at
    # Moved is not gone: whoever reads the memory finds it by its name.
    return path not in known and parts[-1] not in names


def marked(text: str, missing: Collection[str], day: str) -> str:
    """Return `text` with one last line that says what is `missing` on `day`; without, with none.

    Where it says so already, the day on which that was found stays.
    """
    mark = _MARK.search(text)
    if mark is not None and set(_NAMES.findall(mark[0])) == set(missing):
        return text
    bare = without_mark(text)
    if not missing:
        return bare
    listed = ", ".join(f"`{each}`" for each in missing)
    verb = "is" if len(missing) == 1 else "are"
    end = "\n\n" if not bare.endswith("\n") else "\n"
    return f"{bare}{end}**Checked:** {listed} {verb} no longer in this project ({day})."


def without_mark(text: str) -> str:
    """Return `text` without the line that `marked` adds."""
    return _MARK.sub("", text)
