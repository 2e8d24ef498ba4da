"""A memory's file with other words and the same dates: what tidying makes of it, and no more.

A merge or a date that was spelled out is no new memory: when it was said, by whom and how old it
is stay. Keys that nobody here knows stay too. Bytes in, bytes out; nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ipymemory.errors import FormatError
from ipymemory.memory_files import drafts, editing, frontmatter
from ipymemory.memory_files.values import Memory, Source

_LINK = re.compile(r"\[\[([^\[\]\n]+)\]\]")


def rewritten(
    data: bytes,
    memory: Memory,
    *,
    description: str = "",
    body: str = "",
    label: str = "",
    also: tuple[Source, ...] = (),
) -> bytes:
    """Return the file `data` of `memory` with these words; what is empty stays as it was.

    `label` is its title, where the file has one of ours. `also` are the sources of other memories
    that this one stands for from now on. Raises `FormatError` where the file has a form that a
    program should not edit.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"{memory.path} is no UTF-8 text.") from error
    fields = frontmatter.read(text).fields
    nested = fields.get("metadata")
    told: Mapping[str, Any] = nested if isinstance(nested, Mapping) else {}
    note = told.get("ipymemory_source", fields.get("ipymemory_source"))
    values: dict[str, Any] = {"modified": memory.modified}
    source = dict(note) if isinstance(note, Mapping) else {}
    new: dict[str, Any] = {"also": [_as_dict(each) for each in also]} if also else {}
    if label and "title" in source:
        new["title"] = label
    if new:
        values["ipymemory_source"] = source | new
    return editing.edited(
        text, description or memory.description, values, body or memory.body
    ).encode()


def relinked(text: str, names: Mapping[str, str]) -> str:
    """Return `text` with each link ``[[old]]`` leading to what stands for it now.

    `names` leads from a folded name to the new one.
    """
    return _LINK.sub(lambda found: _link(found, names), text)


def _link(found: re.Match[str], names: Mapping[str, str]) -> str:
    new, seen = found[1].strip(), set[str]()
    # What stands for one may have gone for a third.
    while (name := drafts.folded_name(new)) in names and name not in seen:
        seen.add(name)
        new = names[name]
    return f"[[{new}]]" if seen else found[0]


def _as_dict(source: Source) -> dict[str, Any]:
    return {"session": source.session, **source.as_dict()}
