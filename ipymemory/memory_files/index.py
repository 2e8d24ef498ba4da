"""``MEMORY.md``: one line per memory, kept in step with the files by code; text in, text out.

A line is ours when it reads as we last wrote it; every other line and heading is a person's, or
another program's, and stays where it is, also one that leads nowhere. Past the limits the lines
of the memories that were least recently recalled or changed move to ``MEMORY-2.md`` and so on,
each page linked from the one before; a page keeps its lines from then on, so that a save writes
one or two pages and not all (formats.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from ipymemory.memory_files.values import Memory, one_line
from ipymemory.redaction import mask

LINE_CHARS = 150
"""Longest line; this and the next two from behaviour E3."""
MOST_LINES = 200
MOST_BYTES = 25_000

SLACK = 10
"""Lines that are freed at once, so that not every save moves one."""

_LINK = re.compile(r"- \[(?:\\.|[^\]\\])*\]\((?P<file>[^()\s]+)\)(?: +[—–-] .*)?")
_UNSAFE = re.compile(r"[\s()<>%\x00-\x1f\x7f\ud800-\udfff]")
_MORE = re.compile(r"- \[More memories\]\(MEMORY-\d+\.md\)")


@dataclass(slots=True)
class _Item:
    """A line of a page; `file` is the memory it is of, empty for a person's line."""

    text: str
    file: str = ""

    @property
    def size(self) -> int:
        return len(self.text.encode("utf-8", "surrogateescape")) + 1


def page_name(number: int) -> str:
    """Return the file name of page `number`, counted from 1."""
    return "MEMORY.md" if number == 1 else f"MEMORY-{number}.md"


def line(memory: Memory) -> str:
    """Return the index's line for `memory`: ``- [Title](file.md) — hook``, masked."""
    link = _UNSAFE.sub(_percent, memory.file)
    room = LINE_CHARS - len(f"- []({link})")
    title = _bracketed(one_line(mask(memory.title)), max(room, 8))
    start = f"- [{title}]({link})"
    hook = one_line(mask(memory.description or memory.problem))
    room = LINE_CHARS - len(start) - 3
    return f"{start} — {one_line(hook, room)}" if hook and room >= 12 else start


@lru_cache(maxsize=4096)  # most lines are as they were at the last save
def linked(text: str) -> str:
    """Return the file that a line of the index leads to, empty when it is none of that form."""
    match = _LINK.fullmatch(text.removesuffix("\r"))
    return unquote(match["file"], errors="surrogateescape").removeprefix("./") if match else ""


def dangling(pages: Sequence[str], files: Set[str]) -> list[str]:
    """Return the lines of the index that lead to no file."""
    found = []
    for text in pages:
        for each in text.split("\n"):
            target = linked(each)
            here = target.endswith(".md") and "://" not in target
            if here and target not in files and not _MORE.fullmatch(each.removesuffix("\r")):
                found.append(each)
    return found


def too_long(page: str) -> bool:
    """Return whether a page is past the limits."""
    size = len(page.encode("utf-8", "surrogateescape"))
    return page.count("\n") > MOST_LINES or size > MOST_BYTES


def listed(pages: Sequence[str]) -> set[str]:
    """Return the files that the index leads to."""
    return {linked(each) for text in pages for each in text.split("\n")} - {""}


def arranged(
    pages: Sequence[str],
    lines: Mapping[str, str],
    ours: Callable[[str, str], bool],
    *,
    fresh: Set[str] = frozenset(),
    recency: Callable[[], Mapping[str, str]] = dict,
) -> list[str]:
    """Return the pages as they should read, the first one first.

    `pages` are the texts that there are now; `lines` the line of each file, newest memory first.
    ``ours(file, text)`` tells whether a line is as we wrote it. Files in `fresh` belong on the
    first page. `recency` gives, when it is needed, when each was last recalled or changed.
    """
    seen: set[str] = set()
    taken = [_taken(text, lines, ours, seen) for text in pages] or [[]]
    first = taken[0]
    for page in taken[1:]:
        moved = [each for each in page if each.file in fresh]
        page[:] = [each for each in page if each.file not in fresh]
        _add(first, moved)
    _add(first, [_Item(text, file) for file, text in lines.items() if file not in seen])
    _balance(taken, recency)
    kept = [taken[0], *(page for page in taken[1:] if page)]
    return [_text(page, number, len(kept)) for number, page in enumerate(kept, 1)]


def _taken(
    text: str, lines: Mapping[str, str], ours: Callable[[str, str], bool], seen: set[str]
) -> list[_Item]:
    """Return the items of one page, without what is ours and gone, or there twice."""
    items: list[_Item] = []
    for each in text.split("\n"):
        bare = each.removesuffix("\r")
        if _MORE.fullmatch(bare):
            continue
        file = linked(each)
        own = bool(file) and (lines.get(file) == bare or ours(file, bare))
        if file in lines and file not in seen:
            seen.add(file)
            items.append(_Item(lines[file] + each[len(bare) :] if own else each, file))
        elif not own:
            items.append(_Item(each))
    while items and not items[-1].text.strip():
        items.pop()
    return items


def _add(page: list[_Item], new: Sequence[_Item]) -> None:
    """Put `new` behind the last line of a memory, or at the end."""
    if not new:
        return
    places = [at for at, each in enumerate(page) if each.file]
    at = places[-1] + 1 if places else len(page)
    if not places and page and not page[-1].file and page[-1].text.strip():
        page.append(_Item(""))
        at = len(page)
    page[at:at] = new


def _balance(pages: list[list[_Item]], recency: Callable[[], Mapping[str, str]]) -> None:
    """Move lines between the pages until the limits hold; make pages as they are needed."""
    first = pages[0]
    room = _Room(first)
    if room.over(0 if len(pages) == 1 else 1):
        known = recency()
        order = sorted(
            (each for each in first if each.file), key=lambda each: known.get(each.file, "")
        )
        out: dict[str, _Item] = {}
        for each in order:
            if not room.over(1 + SLACK):
                break
            room.take(each, -1)
            out[each.file] = each
        first[:] = [each for each in first if each.file not in out]
        _spread(pages, list(out.values()))
    elif len(pages) > 1 and sum(bool(each.file) for each in first) < MOST_LINES // 2:
        known = recency()
        behind = [each for page in pages[1:] for each in page if each.file]
        behind.sort(key=lambda each: known.get(each.file, ""), reverse=True)
        back: dict[str, _Item] = {}
        for each in behind:
            room.take(each)
            if room.over(1 + SLACK):
                break
            back[each.file] = each
        _add(first, list(back.values()))
        for page in pages[1:]:
            page[:] = [each for each in page if each.file not in back]


def _spread(pages: list[list[_Item]], items: Sequence[_Item]) -> None:
    """Put `items` on the pages behind the first, where there is room, else on new ones."""
    number, room = 0, None
    for each in items:
        while room is None or room.full(each):
            number += 1
            if number == len(pages):
                pages.append([])
            room = _Room(pages[number])
        room.take(each)
        pages[number].append(each)


class _Room:
    """How full a page is."""

    def __init__(self, page: Sequence[_Item]) -> None:
        self._lines = len(page)
        self._bytes = sum(each.size for each in page)

    def take(self, item: _Item, sign: int = 1) -> None:
        self._lines += sign
        self._bytes += sign * item.size

    def over(self, reserve: int) -> bool:
        """Return whether the page is past a limit with `reserve` more lines, links to pages."""
        return self._lines + reserve > MOST_LINES or self._bytes + reserve * 40 > MOST_BYTES

    def full(self, item: _Item) -> bool:
        """Return whether there is no room for `item` and a link; an empty page takes anything."""
        if not self._lines:
            return False
        return self._lines + 2 > MOST_LINES or self._bytes + item.size + 40 > MOST_BYTES


def _text(page: Sequence[_Item], number: int, count: int) -> str:
    texts = [each.text for each in page]
    if number < count:
        texts.append(f"- [More memories]({page_name(number + 1)})")
    return "\n".join(texts) + "\n" if texts else ""


def _bracketed(text: str, most: int) -> str:
    """Return `text` with its brackets escaped, of at most `most` characters."""
    escaped = re.sub(r"([\[\]\\])", r"\\\1", text)
    while len(escaped) > most:
        text = text.rstrip("…")[:-1] + "…"
        escaped = re.sub(r"([\[\]\\])", r"\\\1", text)
    return escaped


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogateescape"))
