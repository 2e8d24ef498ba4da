"""Packages with their versions, and names: what they are and what they were made of."""

from __future__ import annotations

import re
import sys

from ipymemory.extractive.material import Line
from ipymemory.extractive.story import Named, Story, is_data
from ipymemory.extractive.wording import code, plain, spans

_DULL = re.compile(
    r"(?:module|function|type|method|builtin_function_or_method|NoneType|Figure|Axes|AxesSubplot"
    r"|PosixPath|WindowsPath|Path|range|TextIOWrapper|BufferedReader|BufferedWriter)\Z"
)
PLAIN = re.compile(
    r"(?:int|float|str|bool|bytes|int32|int64|float32|float64|bool_|complex|Timestamp)\Z"
)
_ALIASES = {"sklearn": "scikit_learn", "cv2": "opencv_python", "PIL": "pillow", "yaml": "pyyaml"}


def codebase(story: Story) -> list[Line]:
    """Return the lines about packages, by the cell that imports them, and about names."""
    lines: list[Line] = []
    by_cell: dict[str, list[str]] = {}
    for package, (label, alias, names) in story.packages.items():
        if _standard(package):
            continue
        version = _version(story, package)
        text = code(story.modules.get(alias, "") or package) + (f" {version}" if version else "")
        text += f" as {code(alias)}" if alias else ""
        text += f" ({spans(names, 6, 40)})" if names else ""
        by_cell.setdefault(label, []).append(text)
    for label, texts in by_cell.items():
        lines.append(Line(f"- {label} imports {', '.join(texts)}", 8))
    for package, (version, label) in story.installed.items():
        if package.casefold().replace("-", "_") not in story.packages:
            lines.append(Line(f"- {label} installed {code(package)} {plain(version, 40)}", 5))
    for named in story.names.values():
        if stands_out(story, named):
            lines.append(Line(line_of(story, named), 7 if named.columns or named.changed else 5))
    return lines


def stands_out(story: Story, named: Named) -> bool:
    """Return whether a name is more than a step on the way within one cell."""
    carried = named.columns or named.changed or named.added or named.name in story.used
    recent = any(step.label == named.label for step in story.steps[-3:])
    return bool(carried or recent) and matters(story, named)


def matters(story: Story, named: Named) -> bool:
    """Return whether a name is worth a line: data, a model, something made of something."""
    if _DULL.match(named.type) or not is_data(named.name, story):
        return False
    if named.columns or named.changed or named.added:
        return True
    if PLAIN.match(named.type):
        return False
    if named.shape:
        return True
    built = named.built
    if built is None or named.name in story.constants or "subplots(" in built.expression:
        return False
    return "(" in built.expression and len(named.name) > 1


def line_of(story: Story, named: Named) -> str:
    """Return the line about a name: what it is and what it was made of."""
    built = named.built
    sources = (
        [name for name in built.names if is_data(name, story) and name != named.name]
        if built
        else []
    )
    what = kind(named)
    text = f"- {code(named.name)} {named.label}" + (f" {what}" if what else "")
    if sources:
        text += " from " + ", ".join(code(name) for name in sources[:5])
    if built is not None and (sources or "(" in built.expression):
        text += f": {code(built.expression, 110)}"
    if named.columns:
        text += f"; columns {spans(named.columns, 16, 40)}"
    if named.added:
        text += "; set " + ", ".join(f"{code(name, 40)} {label}" for name, label in named.added)
    for expression, label in named.changed:
        text += f"; {code(expression, 90)} {label}"
    return text


def _version(story: Story, package: str) -> str:
    known = story.versions
    name = package.casefold()
    return plain(known.get(name) or known.get(_ALIASES.get(package, ""), ""), 40)


def _standard(package: str) -> bool:
    return package in sys.stdlib_module_names


def kind(named: Named) -> str:
    """Return type and shape: ``DataFrame 344 x 7``; empty when a file tells neither."""
    return plain(f"{named.type} {named.shape}".strip())
