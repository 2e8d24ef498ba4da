"""What a memory must be before it is kept, and the name and text of its file.

Refused are what nobody should keep: secrets (behaviour L7), an unknown kind, nothing at all. What
could not be read back is taken out: control characters, lines that would end the frontmatter.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from ipymemory.errors import MemoryRefused
from ipymemory.memory_files import frontmatter
from ipymemory.memory_files.values import KINDS, Draft, Memory, fingerprint, one_line
from ipymemory.redaction import mask_with_marks

DESCRIPTION = 300
"""Characters of a description; the index shows at most 150 of a whole line."""

_TITLE = 80
_QUOTE = 1000
_SUBJECT = 120
_BODY = 16 * 1024
_NAME = 60
"""Characters of a file's name: at four bytes each below the 255 of common file systems."""

_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_BREAK = re.compile(r"\A(---[ \t]*(?:\n|\Z))")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s")
# Names that Windows gives to devices, and those that a file system without case takes for ours.
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|memory(?:-\d+)?|readme)")
_COMPARED_LINES = 15


def checked(draft: Draft) -> Draft:
    """Return `draft` as it can be kept; raises `MemoryRefused` for what may not be."""
    if draft.kind not in KINDS:
        raise MemoryRefused(
            f"{one_line(draft.kind, 40)!r} is no kind of memory; there are {', '.join(KINDS)}."
        )
    body = _UNSEEN.sub("", draft.body.replace("\r\n", "\n").replace("\r", "\n")).strip("\n")
    if len(body) > _BODY:
        raise MemoryRefused(
            f"A memory holds at most {_BODY // 1024} KB of text. Keep the fact and leave out "
            "what can be looked up."
        )
    body = _BREAK.sub(r"\\\1", body)
    first = body.strip().split("\n")[0].strip("#*> ")
    description = one_line(_UNSEEN.sub("", draft.description), DESCRIPTION) or one_line(
        _SENTENCE.split(first)[0], DESCRIPTION
    )
    if not description:
        raise MemoryRefused("There is nothing to remember: the text is empty.")
    source = replace(
        draft.source,
        session=one_line(draft.source.session, 100),
        notebook=one_line(_UNSEEN.sub("", draft.source.notebook), 300),
        quote=one_line(_UNSEEN.sub("", draft.source.quote), _QUOTE),
        origin=one_line(draft.source.origin, 20),
        turns=tuple(one_line(each, 64) for each in draft.source.turns[:50]),
    )
    title = one_line(_UNSEEN.sub("", draft.title), _TITLE) or one_line(description, _TITLE)
    subject = one_line(_UNSEEN.sub("", draft.subject), _SUBJECT)
    kept = Draft(draft.kind, title, description, body or description, source, subject)
    _without_secrets(kept)
    return kept


def _without_secrets(draft: Draft) -> None:
    texts = (draft.title, draft.description, draft.body, draft.subject, draft.source.quote)
    for text in (*texts, draft.source.notebook):
        _, marks = mask_with_marks(text)
        if marks:
            raise MemoryRefused(
                f"The text holds what looks like a secret ({marks[0].rule}), so it was not kept. "
                "Say where the secret is kept instead."
            )


def metadata(draft: Draft, modified: str) -> dict[str, Any]:
    """Return what stands below ``metadata`` in the file of `draft`, in its order."""
    source = draft.source.as_dict()
    if draft.subject:
        source["subject"] = draft.subject
    if draft.title:
        # The file's name has lost its capitals and marks.
        source["title"] = draft.title
    values: dict[str, Any] = {"node_type": "memory", "type": draft.kind}
    if draft.source.session:
        values["originSessionId"] = draft.source.session
    values["modified"] = modified
    if source:
        values["ipymemory_source"] = source
    return values


def file_text(name: str, draft: Draft, modified: str) -> str:
    """Return the whole file of a new memory (formats.md)."""
    return frontmatter.write(name, draft.description, metadata(draft, modified), draft.body)


def free_name(title: str, kind: str, taken: Collection[str]) -> str:
    """Return a file name without ``.md`` that none of `taken`, file names, stands for.

    On a file system without case, or one that changes how letters are composed, two names can
    be one file; so they are compared without either.
    """
    bare = re.sub("['’]", "", unicodedata.normalize("NFKC", title).casefold())
    words = re.findall(r"[^\W_]+", bare)
    base = ""
    for word in words:
        if len(base) + len(word) + 1 > _NAME and base:
            break
        base = f"{base}-{word}" if base else word
    base = unicodedata.normalize("NFC", base[:_NAME]) or kind
    if _RESERVED.fullmatch(base):
        base += "-note"
    folded = {folded_name(each) for each in taken}
    name, number = base, 2
    while folded_name(f"{name}.md") in folded:
        name, number = f"{base}-{number}", number + 1
    return name


def folded_name(name: str) -> str:
    """Return `name` as file systems compare that know neither case nor composition."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def said(text: Draft | Memory) -> tuple[str, str]:
    """Return what tells that two say the same, word for word: hashes of description and body."""
    lines = "\n".join(text.body.strip().split("\n")[:_COMPARED_LINES])
    return fingerprint(text.description), fingerprint(lines)
