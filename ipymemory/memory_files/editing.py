"""An edit of a memory's file: the values it is about are replaced where they stand.

Unknown keys, their order, comments, a byte order mark and line endings stay as they are. What
comes out is read again and compared before anybody gets it: a form of YAML that this does not
understand is refused and not guessed at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ipymemory.errors import FormatError
from ipymemory.memory_files.frontmatter import (
    block,
    fields_in,
    loader,
    read,
    scalar,
    text_of,
    value_of,
)

_Places = dict[str, tuple[int, int, dict[str, Any]]]
"""Where a key begins, where its value ends, and the same of the keys below it."""

_OTHER_FORM = "Its frontmatter has a form that is not edited by a program."


def edited(
    text: str,
    description: str,
    metadata: Mapping[str, str | Mapping[str, Any]],
    body: str,
) -> str:
    """Return the file `text` with another description, these metadata and another body.

    Where the type stands at the top, as in the older generations, it stays there. Raises
    `FormatError` when the frontmatter has a form in which that cannot be done.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    bare = text.removeprefix(mark)
    top = block(bare)
    before = read(text)
    if top is None or before.problem:
        raise FormatError(before.problem or "It has no frontmatter.")
    if before.fields != fields_in(top.yaml)[0]:
        raise FormatError("It has a second block of frontmatter below the first.")
    end = top.ending
    yaml = _replaced(top.yaml, description, dict(metadata), end)
    whole = f"---{end}{yaml}---{end}{end}" + body.strip("\n").replace("\n", end) + end
    after = read(whole)
    nested = after.fields.get("metadata")
    told = nested if isinstance(nested, Mapping) else {}
    same = text_of(after.fields, "description") == description and all(
        (after.fields.get(key) if key == "type" and "type" in after.fields else told.get(key))
        == value
        for key, value in metadata.items()
    )
    if not same or not _kept(fields_in(top.yaml)[0], after.fields, metadata):
        raise FormatError(_OTHER_FORM)
    return mark + whole


def _kept(before: Mapping[str, Any], after: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Return whether every key that the edit is not about holds what it held."""
    known = {"description", "metadata", "type"}
    nested = [each.get("metadata") for each in (before, after)]
    inner = [
        {key: value for key, value in each.items() if key not in metadata}
        if isinstance(each, Mapping)
        else {}
        for each in nested
    ]
    outer = [
        {key: value for key, value in each.items() if key not in known} for each in (before, after)
    ]
    return outer[0] == outer[1] and inner[0] == inner[1]


def _replaced(yaml: str, description: str, metadata: dict[str, Any], end: str) -> str:
    """Return `yaml` with these values in the places of the old ones, what is new behind them."""
    top = _places(yaml)
    edits: list[tuple[int, int, str]] = []
    if "description" in top:
        start, stop, _ = top["description"]
        edits.append((start, stop, f"description: {scalar(description)}"))
    if "type" in top and isinstance(metadata.get("type"), str):
        start, stop, _ = top["type"]
        edits.append((start, stop, f"type: {scalar(metadata.pop('type'))}"))
    tail = "" if "description" in top else f"description: {scalar(description)}{end}"
    nested = top.get("metadata")
    if nested is None or not nested[2]:
        if nested is not None and yaml[nested[0] : nested[1]].strip() != "metadata:":
            raise FormatError(_OTHER_FORM)
        if nested is not None:
            edits.append((nested[0], nested[1], f"metadata:{end}{_lines(metadata, end, '  ')}"))
        elif metadata:
            tail += f"metadata:{end}{_lines(metadata, end, '  ')}{end}"
    else:
        inner = nested[2]
        last = max(stop for _, stop, _ in inner.values())
        column = min(start for start, _, _ in inner.values())
        indent = " " * (column - yaml.rfind("\n", 0, column) - 1)
        new = {key: value for key, value in metadata.items() if key not in inner}
        edits += [
            (inner[key][0], inner[key][1], f"{key}: {value_of(key, value)}")
            for key, value in metadata.items()
            if key in inner
        ]
        if new:
            edits.append((last, last, end + _lines(new, end, indent)))
    for start, stop, text in sorted(edits, reverse=True):
        yaml = yaml[:start] + text + yaml[stop:]
    return yaml + tail


def _lines(values: Mapping[str, Any], end: str, indent: str) -> str:
    return end.join(f"{indent}{key}: {value_of(key, value)}" for key, value in values.items())


def _places(yaml: str) -> _Places:
    """Return where each key of the block mapping begins and its value ends, nested ones too."""
    import yaml as parser

    try:
        node = parser.compose(yaml, loader())
    except (parser.YAMLError, RecursionError) as error:
        raise FormatError("Its frontmatter is no valid YAML.") from error
    if not isinstance(node, parser.MappingNode) or node.flow_style:
        raise FormatError(_OTHER_FORM)
    return _places_in(yaml, node.value)


def _places_in(yaml: str, pairs: Sequence[Any]) -> _Places:
    import yaml as parser

    found: _Places = {}
    for key, value in pairs:
        start, stop = key.start_mark.index, value.end_mark.index
        written = yaml[start:stop].rstrip(" \r\n")
        block = isinstance(value, parser.MappingNode) and not value.flow_style
        inner = _places_in(yaml, value.value) if block and value.value else {}
        if isinstance(key.value, str):
            found[key.value] = (start, start + len(written), inner)
    return found
