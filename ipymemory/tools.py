"""The tools that an engine may call: each small, each atomic; none starts a process.

A tool gets a call that permissions allowed, with its path resolved, and answers with a sentence.
Whatever it will not do is a `ToolError` whose text is the answer to the engine, and changes
nothing. A guard is a pure function that sees a file's text before and after an edit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ipymemory import markdown
from ipymemory.errors import ToolError
from ipymemory.held import Held
from ipymemory.history import Run
from ipymemory.models import ToolSpec
from ipymemory.turns import ToolCall, tokens

Guard = Callable[[str, str], str]
"""``(before, after)`` to what is wrong with the edit, as a sentence, or to nothing."""

MOST_BYTES = 1024 * 1024
"""A file of notes is at most 12,000 tokens, 36 KB; thirty times that is no edit but an accident."""

# A carriage return that stands alone ends a line for a Markdown reader and so may hide a header.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")

_SMALL = 200
"""Tokens of one section that may go without a question; a tenth of its limit (behaviour S2)."""


class Tool(Protocol):
    """A tool."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description and input as an engine sees them."""

    def run(self, call: ToolCall, run: Run) -> str:
        """Carry out an allowed call; raises `ToolError` or another `IpymemoryError`."""


class EditTool:
    """Edit: one exact, unique piece of text in one file is replaced."""

    def __init__(self, guard: Guard = lambda before, after: "") -> None:
        self._guard = guard

    @property
    def spec(self) -> ToolSpec:
        """What an engine is told of the tool."""
        text = {"type": "string"}
        return ToolSpec(
            "Edit",
            "Replace old_string, which must occur exactly once in the file, by new_string. Write "
            "new_string out in full; headers and the italic lines below them must stay.",
            {
                "type": "object",
                "properties": {"path": text, "old_string": text, "new_string": text},
                "required": ["path", "old_string", "new_string"],
                "additionalProperties": False,
            },
        )

    def run(self, call: ToolCall, run: Run) -> str:
        """Make the edit; returns a sentence. Raises `ToolError` when it is refused."""
        named, old, new = _inputs(call)
        path = Path(named)
        with Held(path) as held:
            seen = held.read(MOST_BYTES)
        if seen is None:
            raise ToolError(f"There is no file {path}.")
        try:
            text = seen.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ToolError(f"{path} is not UTF-8 text, so it was left as it is.") from error
        old, new = (each.replace("\r\n", "\n") for each in (old, new))
        if carriage_returns(text):
            old, new = (each.replace("\n", "\r\n") for each in (old, new))
        after = replaced(text, old, new)
        if len(after.encode("utf-8", "surrogatepass")) > MOST_BYTES:
            raise ToolError(f"The file would grow past {MOST_BYTES // 1024} KB. Write less.")
        try:
            data = after.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ToolError("new_string holds characters that are no text.") from error
        # Many small edits must not add up to what one large edit may not do: so the guard sees
        # the text as it was before the run, unless a person has written since.
        original = run.original(path) if run.left(path) == seen else None
        befores = (
            [text] if original in (None, seen) else [text, original.decode("utf-8", "replace")]
        )
        for before in befores:
            if wrong := self._guard(before, after):
                raise ToolError(f"{wrong} The file is as it was.")
        run.write(path, data, seen=seen)
        return f"{path.name} was edited."


def replaced(text: str, old: str, new: str) -> str:
    """Return `text` with the one place that reads `old` reading `new`; raises `ToolError`."""
    if not old and text:
        raise ToolError("old_string is empty. Give the text to replace, as it stands in the file.")
    if old == new:
        raise ToolError("old_string and new_string are the same, so nothing would change.")
    if odd := _CONTROL.search(new):
        raise ToolError(f"new_string holds the control character {odd[0]!a}. Leave it out.")
    at = text.find(old)
    if at < 0:
        raise ToolError("old_string is not in the file. Give it exactly as the file has it now.")
    if old and text.find(old, at + 1) >= 0:
        raise ToolError("old_string is in the file more than once. Give more of what surrounds it.")
    if mark := elision(old, new):
        raise ToolError(
            f"new_string stands for other text instead of holding it ({mark!r}). "
            "Write it out in full."
        )
    return text[:at] + new + text[at + len(old) :]


_REST = r"(?:the\s+|all\s+)?(?:rest|remain(?:ing|der|s)?|other|existing|previous|unchanged|same)\b"
_GAP = r"(?:(?!\[\d+\]).){0,60}?"
_LEFT_AS_IT_WAS = re.compile(
    rf"\W*{_REST}{_GAP}\b(?:unchanged|(?:the\s+)?same|as\s+(?:before|above|it\s+was|they\s+were)"
    r"|omitted|identical|continues?|stays?|remains?)\W*",
    re.IGNORECASE,
)
_LEFT_OUT = re.compile(
    rf"[\W_]*(?:\.{{3}}|…|[\[(<{{])[\W_]*(?:{_REST}{_GAP}\b(?:code|contents?|sections?|notes|file"
    r"|lines?|text|here)|unchanged|omitted|snip|no\s+changes?|as\s+before)[\W_]*",
    re.IGNORECASE,
)
_BARE = re.compile(r"[\W_]*(?:\.{3}|…)[\W_]*")


def elision(old: str, new: str) -> str:
    """Return the line of `new` that stands for text left out, or nothing.

    A line such as "... rest unchanged" or "(other sections omitted)" does, where `old` does not
    hold it too; a line of nothing but dots does where `new` is also shorter than `old`. A
    sentence that names a cell, ``[7]``, is a statement and no such mark.
    """
    had = {line.strip() for line in old.splitlines()}
    for line in new.splitlines():
        bare = line.strip()
        if not bare or bare in had or len(bare) > 120:
            continue
        if _LEFT_AS_IT_WAS.fullmatch(bare) or _LEFT_OUT.fullmatch(bare):
            return bare
        if _BARE.fullmatch(bare) and len(new) < len(old):
            return bare
    return ""


def notes_guard(section_tokens: int, total_tokens: int) -> Guard:
    """Return the guard of the session notes (behaviour S8 and "lost or overwritten").

    Refuses an edit that loses, adds, moves or renames a header or an italic line, one that
    empties a section of some size, and one that drops most of the file. A section over its
    limit, or any when the whole is over its own, may be condensed to a quarter of the limit.
    """

    def guard(before: str, after: str) -> str:
        return changed_skeleton(before, after) or _lost(
            before, after, section_tokens, tokens(before) > total_tokens
        )

    return guard


def changed_skeleton(before: str, after: str) -> str:
    """Return what an edit does to headers and italic lines, as a sentence, or nothing."""
    old, new = markdown.skeleton(before), markdown.skeleton(after)
    if old == new:
        if markdown.preamble(before) != markdown.preamble(after):
            return "The edit writes above the first header."
        return ""
    rule = "Headers and the italic lines below them stay exactly as they are."
    old_headers, new_headers = [each for each, _ in old], [each for each, _ in new]
    for header in old_headers:
        if old_headers.count(header) > new_headers.count(header):
            return f'The edit loses or renames the header "{_line(header)}". {rule}'
    for header in new_headers:
        if new_headers.count(header) > old_headers.count(header):
            return f'The edit adds the header "{_line(header)}". {rule}'
    if old_headers != new_headers:
        return f"The edit moves a header. {rule}"
    for (header, one), (_, other) in zip(old, new, strict=True):
        if one != other:
            return f'The edit changes the italic line below "{_line(header)}". {rule}'
    return ""


def _lost(before: str, after: str, limit: int, whole_too_large: bool) -> str:
    """Return which text an edit of the notes would lose without need, or nothing."""
    had = kept = 0
    for old, new in zip(markdown.sections(before), markdown.sections(after), strict=True):
        was, is_now = tokens(old.body.strip()), tokens(new.body.strip())
        may_condense = was > limit or whole_too_large
        if was > _SMALL and not is_now:
            return f'The edit empties the section "{old.name}".'
        had += was
        kept += was if may_condense and is_now >= min(was, limit) // 4 else is_now
    if had > 2 * _SMALL and kept < had // 2:
        return f"The edit drops most of the notes: {had:,} tokens would become {kept:,}."
    return ""


def _inputs(call: ToolCall) -> tuple[str, str, str]:
    names = ("path", "old_string", "new_string")
    extra = sorted(str(each)[:40] for each in call.input if each not in names)
    if extra:
        raise ToolError(f"Edit takes {', '.join(names)} and nothing else, such as {extra[0]!r}.")
    values: list[str] = []
    for name in names:
        value = call.input.get(name)
        if not isinstance(value, str):
            raise ToolError(f"Edit needs {name} as text.")
        if len(value) > MOST_BYTES:
            raise ToolError(f"{name} is longer than {MOST_BYTES // 1024} KB. Replace less at once.")
        values.append(value)
    return values[0], values[1], values[2]


def carriage_returns(text: str) -> bool:
    """Return whether every line of `text` ends as Windows ends them.

    An engine sees such a file with plain line feeds, and Edit puts the others back.
    """
    return "\n" in text and text.count("\n") == text.count("\r\n")


def _line(text: str) -> str:
    return text.strip()[:80]
