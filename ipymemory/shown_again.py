"""Which cells show again what a private cell returned: with ``_``, ``_3``, ``Out[3]``, ``%recall``.

A private cell that returned something left it in the shell's history of outputs. A later cell
that names it there shows what the private one showed, and so its outputs are left out too. What
a private cell bound to a name of the user's own, and a later cell prints, cannot be told from
anything else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

_LIKELY = re.compile(r"_|\b(?:Out|In)\b|\b(?:hist|recall|rep|macro|save|edit|pastebin|rerun)")
_HISTORIES = re.compile(
    r"(?<![\w.])(?:Out|In|_oh|_ih)(?!\w)(?:\[\s*(?P<at>\d+)\s*\]|\.get\(\s*(?P<got>\d+)\s*[,)])?"
)
_NUMBERED = re.compile(r"(?<![\w.])_i?(\d+)(?!\w)")
_LAST = re.compile(r"(?<![\w.])(_{1,3}|_i{1,3})(?!\w)")
_MAGIC = re.compile(
    r"(?m)^[ \t]*%?(?:(?:recall|rep|rerun|macro|save|edit|pastebin)\b(?P<of>[^\n]*)"
    r"|(?:history|hist)\b[^\n]*[ \t]-\w*o)"
)
_RANGE = re.compile(r"(?<![\w./~])(\d+)(?:-(\d+))?(?![\w./])")
_CAPTURE = re.compile(r"(?m)^[ \t]*%%capture\b[^\n]*?[ \t]([^\W\d]\w*)[ \t]*$")


class ShownAgain:
    """Knows which cells of `shell` were private, and tells whether another one shows them."""

    def __init__(self, shell: Any, sources: Callable[[], list[str]]) -> None:
        self._shell = shell
        self._sources = sources
        self._counts: set[int] = set()
        self._captures: set[str] = set()
        """Names that hold what a private cell below ``%%capture`` showed."""
        self._next = ""
        """What a cell that showed one wants the next cell to be: ``%recall`` puts it there."""

    def add(self, source: str, count: int | None) -> None:
        """Remember a private cell by its number, and where its output was captured."""
        if count is not None:
            self._counts.add(count)
        self._captures.update(_CAPTURE.findall(source))

    def public(self, count: int) -> None:
        """Forget the number of a private cell: it was given to another, after ``%reset``."""
        self._counts.discard(count)

    def shows(self, source: str) -> bool:
        """Return whether a cell that is about to run shows what a private one returned."""
        if not self._counts or not (_LIKELY.search(source) or self._captures):
            return False
        stored = _stored(source)
        self._captures -= stored
        if any(re.search(rf"(?<![\w.]){name}(?!\w)", source) for name in self._captures):
            return True
        if any(int(each) in self._counts for each in _NUMBERED.findall(source)):
            return True
        for match in _HISTORIES.finditer(source):
            number = match["at"] or match["got"]
            if match[0].split("[")[0].split(".")[0] in stored:
                continue
            if number is None or int(number) in self._counts:
                return True
        if any(self._is_last(each) for each in {*_LAST.findall(source)} - stored):
            return True
        return any(
            match["of"] is None or self._names(match["of"]) for match in _MAGIC.finditer(source)
        )

    def wants_next(self) -> str:
        """Return what the cell that ran, and showed a private one, put up as the next to run."""
        manager = getattr(self._shell, "payload_manager", None)
        for payload in manager.read_payload() if manager is not None else ():
            if payload.get("source") == "set_next_input" and isinstance(payload.get("text"), str):
                self._next = payload["text"].strip()
        put_up = getattr(self._shell, "rl_next_input", None)
        if isinstance(put_up, str) and put_up.strip():
            self._next = put_up.strip()
        return self._next

    def was_put_up(self, source: str) -> bool:
        """Return whether a cell that begins is the one that the cell before it put up."""
        put_up, self._next = self._next, ""
        return bool(put_up) and source.strip() == put_up

    def _is_last(self, name: str) -> bool:
        """Return whether ``_`` or ``__`` is what a private cell returned, ``_i`` its source."""
        if name.startswith("_i"):
            return len(self._sources()) - len(name) + 1 in self._counts
        results = self._shell.user_ns.get("_oh")
        if type(results) is not dict or len(results) < len(name):
            return False
        count = list(results)[-len(name)]
        # By identity: the user may have given the name to something else.
        return count in self._counts and self._shell.user_ns.get(name) is results[count]

    def _names(self, said: str) -> bool:
        """Return whether the numbers after a magic are those of a private cell; all, if none."""
        found = _RANGE.findall(said)
        if not found:
            return True
        return any(
            int(first) <= count <= int(last or first)
            for first, last in found
            for count in self._counts
        )


def _stored(source: str) -> set[str]:
    """Return the names that a cell gives to something itself, before or after it uses them."""
    plain = "\n".join(
        "pass" if line.lstrip()[:1] in ("%", "!") else line for line in source.splitlines()
    )
    try:
        tree = ast.parse(plain)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    return {
        each.id
        for each in ast.walk(tree)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    } | {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)}
