"""Commits, trees and the index of a repository, as values, out of its own files.

See `git_objects` for what is heard of a repository and what is not. Names in a tree that no
honest tree holds, such as ``..``, are passed over.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ipymemory.errors import PlaceError, ToolError
from ipymemory.git_objects import Objects
from ipymemory.held import Held

_SMALL = 8 * 1024 * 1024
"""Bytes of ``packed-refs`` and of the index, 80,000 files."""

_DEEPEST = 60
_REF = re.compile(r"(?!/)(?!.*(?:\.\.|//|@\{|\.lock$))[\w./+@=-]{1,200}")
_STEP = re.compile(r"(?:[~^]\d{0,4})")


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: its name, its tree, its parents, who wrote it and when, and what they say."""

    name: str
    tree: str
    parents: tuple[str, ...]
    author: str
    time: int
    """Seconds since 1970."""
    message: str

    @property
    def day(self) -> str:
        """Day and minute, in UTC."""
        with suppress(OverflowError, ValueError, OSError):
            return datetime.fromtimestamp(self.time, UTC).strftime("%Y-%m-%d %H:%M UTC")
        return "at no time"


@dataclass(frozen=True, slots=True)
class File:
    """What a tree or the index holds at a path."""

    name: str
    """The name of the object."""
    mode: int
    size: int = -1
    modified: int = -1
    """Size in bytes and nanoseconds since 1970, as the index has them."""

    @property
    def plain(self) -> bool:
        """Whether it is a file, no link and no other repository."""
        return self.mode & 0o170000 == 0o100000


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository: `own` is the folder of this work tree, `shared` that of all of them."""

    own: Path
    shared: Path
    objects: Objects

    def commit(self, revision: str) -> Commit:
        """Return the commit that `revision` names: HEAD, a branch, a tag, a hash, with ~2 or ^.

        Raises `ToolError`.
        """
        first = min((revision.find(each) for each in "~^" if each in revision), default=-1)
        name, steps = (revision, "") if first < 0 else (revision[:first], revision[first:])
        found = self.peeled(self._named(name or "HEAD"))
        while steps:
            match = _STEP.match(steps)
            if match is None:
                raise ToolError(f"{revision[:60]!r} is no revision; give one such as HEAD~2.")
            word, steps = match[0], steps[match.end() :]
            number = int(word[1:] or 1)
            if word[0] == "^":
                found = self._parent(found, number) if number else found
                continue
            for _ in range(number):
                found = self._parent(found, 1)
        return found

    def peeled(self, name: str) -> Commit:
        """Return the commit `name`, or the one that a tag of that name stands for."""
        for _ in range(10):
            kind, data = self.objects.any(name)
            if kind != "tag":
                break
            name = _headers(data)[0].get("object", [""])[0]
        if kind != "commit":
            raise ToolError(f"{name[:10]} is a {kind} and no commit; files are shown by path.")
        headers, message = _headers(data)
        author, _, when = headers.get("author", [""])[0].rpartition("> ")
        seconds = when.split(" ")[0]
        return Commit(
            name,
            headers.get("tree", [""])[0],
            tuple(headers.get("parent", ())),
            # No address: who wrote is what counts, and the address is theirs.
            author.partition("<")[0].strip() or "somebody",
            int(seconds) if seconds.isdecimal() and len(seconds) < 12 else 0,
            message.strip(),
        )

    def changes(
        self, before: str, after: str, over: Callable[[], bool]
    ) -> Iterator[tuple[str, File | None, File | None]]:
        """Yield path, file before and file after for each that two trees differ in; "" for none."""
        waiting = [("", before, after, 0)]
        while waiting and not over():
            path, old, new, depth = waiting.pop()
            olds, news = self._entries(old), self._entries(new)
            below = []
            for name in sorted({*olds, *news}):
                one, other = olds.get(name), news.get(name)
                if one == other:
                    continue
                trees = [each.name if each and _is_tree(each) else "" for each in (one, other)]
                if any(trees) and depth < _DEEPEST:
                    below.append((f"{path}{name}/", trees[0], trees[1], depth + 1))
                files = [None if each is None or _is_tree(each) else each for each in (one, other)]
                if any(files):
                    yield f"{path}{name}", files[0], files[1]
            waiting += reversed(below)

    def files(self, tree: str, over: Callable[[], bool]) -> dict[str, File]:
        """Return every file of a tree by its path."""
        return {path: file for path, _, file in self.changes("", tree, over) if file is not None}

    def index(self) -> dict[str, File]:
        """Return the files of the index by path; raises `ToolError` for one of no known form."""
        try:
            data = _read(self.own / "index") or b""
            return dict(_indexed(data)) if data else {}
        except (struct.error, IndexError, ValueError) as error:
            raise ToolError("The repository's index is damaged, or of no known form.") from error

    @property
    def branch(self) -> str:
        """The branch that is checked out, nothing where there is none."""
        head = (_read(self.own / "HEAD") or b"").decode("utf-8", "replace").strip()
        return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else ""

    def _parent(self, commit: Commit, number: int) -> Commit:
        if len(commit.parents) < number:
            raise ToolError(f"{commit.name[:10]} has {len(commit.parents)} parents.")
        return self.peeled(commit.parents[number - 1])

    def _named(self, name: str) -> str:
        """Return the hash that `name` stands for; raises `ToolError`."""
        if not _REF.fullmatch(name):
            raise ToolError(f"{name[:60]!r} is no revision; give HEAD, a branch, a tag or a hash.")
        for form in ("{}", "refs/{}", "refs/tags/{}", "refs/heads/{}", "refs/remotes/{}"):
            ref = form.format(name)
            # At the top lie other files too, such as the configuration.
            if (ref == "HEAD" or ref.startswith("refs/")) and (found := self._ref(ref)):
                return found
        if re.fullmatch(r"[0-9a-f]{4,40}", name):
            known = self.objects.beginning(name)
            if len(known) == 1:
                return known[0]
            if known:
                raise ToolError(f"{len(known)} objects begin with {name}; give more of the hash.")
        raise ToolError(f"The repository has no revision {name[:60]!r}.")

    def _ref(self, ref: str, depth: int = 0) -> str:
        for folder in dict.fromkeys((self.own, self.shared)):
            text = (_read(folder / ref) or b"").decode("utf-8", "replace").strip()
            if re.fullmatch(r"[0-9a-f]{40}", text):
                return text
            further = text.removeprefix("ref: ")
            if further != text and depth < 5 and re.match(r"refs/", further):
                return self._ref(further, depth + 1) if _REF.fullmatch(further) else ""
        for line in (
            (_read(self.shared / "packed-refs") or b"").decode("utf-8", "replace").split("\n")
        ):
            name, _, known = line.partition(" ")
            if known == ref and re.fullmatch(r"[0-9a-f]{40}", name):
                return name
        return ""

    def _entries(self, tree: str) -> dict[str, File]:
        if not tree:
            return {}
        data, at = self.objects.get(tree, "tree"), 0
        found: dict[str, File] = {}
        while at < len(data):
            space, end = data.find(b" ", at), data.find(b"\0", at)
            if not at < space < end or end + 21 > len(data):
                raise ToolError(f"The tree {tree[:10]} is damaged.")
            name = data[space + 1 : end].decode("utf-8", "replace")
            mode = data[at:space]
            if _is_name(name) and mode.isdigit() and len(mode) < 8:
                found[name] = File(data[end + 1 : end + 21].hex(), int(mode, 8))
            at = end + 21
        return found


def _is_tree(file: File) -> bool:
    return file.mode & 0o170000 == 0o040000


def _is_name(name: str) -> bool:
    return name not in ("", ".", "..") and not re.search(r"[/\\\0]", name)


def _read(path: Path) -> bytes | None:
    """Return a small file of a repository; None where there is none that may be read."""
    try:
        with Held(path) as held:
            return held.read(_SMALL)
    except PlaceError:
        return None


def _headers(data: bytes) -> tuple[dict[str, list[str]], str]:
    head, _, message = data.decode("utf-8", "replace").partition("\n\n")
    found: dict[str, list[str]] = {}
    for line in head.split("\n"):
        name, _, value = line.partition(" ")
        if name:  # a line that goes on, as of a signature, begins with a blank
            found.setdefault(name, []).append(value)
    return found, message


def _indexed(data: bytes) -> Iterator[tuple[str, File]]:
    """Yield path and file of each entry of an index, versions 2 to 4 (gitformat-index(5))."""
    mark, version, count = struct.unpack(">4sII", data[:12])
    if mark != b"DIRC" or version not in (2, 3, 4):
        raise ValueError(version)
    at, path = 12, b""
    for _ in range(count):
        begin = at
        _, _, second, nano, _, _, mode, _, _, size = struct.unpack(">10I", data[at : at + 40])
        name = data[at + 40 : at + 60].hex()
        (flags,) = struct.unpack(">H", data[at + 60 : at + 62])
        at += 64 if flags & 0x4000 else 62
        if version == 4:
            less = data[at] & 0x7F
            while data[at] & 0x80:
                at += 1
                less = ((less + 1) << 7) | (data[at] & 0x7F)
            end = data.index(b"\0", at + 1)
            path = path[: len(path) - less] + data[at + 1 : end]
            at = end + 1
        else:
            end = data.index(b"\0", at)
            path = data[at:end]
            at = begin + (end - begin + 8) // 8 * 8
        parts = path.decode("utf-8", "replace")
        if all(map(_is_name, parts.split("/"))) and not flags & 0x3000:
            yield parts, File(name, mode, size, second * 10**9 + nano)
