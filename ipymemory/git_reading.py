"""The tool Git: log, show, diff and status, inside us, from a repository's own files.

git itself is never started, since a repository's configuration can make it run programs, and that
configuration is not read. What files held in the past passes through the same fence, masking and
bounds as what they hold now; a file is named by its path, never by an object's name, so that
a private one stays closed in every commit too.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from ipymemory import gitfiles
from ipymemory.errors import IpymemoryError, PlaceError, ToolError
from ipymemory.git_history import Commit, File, Repository
from ipymemory.git_objects import MOST_BYTES, Objects
from ipymemory.held import Held
from ipymemory.reading import Look, bounded, clipped, tool_spec

MOST_COMMITS = 100
"""Commits of one answer of log."""

MOST_WALKED = 5000
"""Commits that are looked at for those that changed a path."""

MOST_COMPARED = 1500
"""Lines of a file that is compared: comparing takes time by the square of them."""

MOST_CHANGED = 200
"""Files of one answer of show, diff and status."""

_TEXT = {"type": "string"}

GIT = tool_spec(
    "Git",
    "Look into the project's git repository. log: commits, newest first, of path where given; "
    "show: one commit and what it changed; diff: from revision (HEAD without one) to the files as "
    "they are, or between two, as v1..main; status: what is not committed. Settings, filters and "
    "ignore rules of the repository are not heard.",
    ("command",),
    command={"type": "string", "enum": ["log", "show", "diff", "status"]},
    revision=_TEXT,
    limit={"type": "integer", "minimum": 1},
)

Change = tuple[str, File | None, File | None]


def git(look: Look, path: Path, given: Mapping[str, Any]) -> str:
    """Return the answer to one command; raises `IpymemoryError`."""
    top = look.fence.root
    if not path.is_relative_to(top):
        raise ToolError("Git looks at the project alone.")
    folders = gitfiles.git_folders(top)
    if folders is None:
        raise ToolError(f"{top} has no git repository of its own.")
    with ExitStack() as stack:
        objects = stack.enter_context(Objects(folders[1] / "objects"))
        repository = Repository(folders[0], folders[1], objects)
        inside = path.relative_to(top).as_posix()
        asked = _Asked(look, repository, top, "" if inside == "." else inside)
        command, revision = given["command"], given.get("revision", "")
        if len(revision) > 300 or (".." in revision and command != "diff"):
            raise ToolError(f"{revision[:60]!r} is no revision for {command}.")
        if command == "log":
            return asked.log(revision, min(given.get("limit", 20), MOST_COMMITS))
        if command == "show":
            return asked.show(revision)
        return asked.diff(revision) if command == "diff" else asked.status()


class _Asked:
    """One call: the look, the repository, the top of the work tree, and the path below it."""

    def __init__(self, look: Look, repository: Repository, top: Path, inside: str) -> None:
        self._look = look
        self._repository = repository
        self._top = top
        self._inside = inside

    def log(self, revision: str, limit: int) -> str:
        told: list[str] = []
        for number, commit in enumerate(self._commits(revision)):
            if number >= MOST_WALKED or self._look.over():
                self._look.cut = self._look.cut or f"{MOST_WALKED:,} commits were looked at"
                break
            if self._inside and not self._touched(commit):
                continue
            if len(told) >= limit:
                told.append("[There are more; limit and revision tell of them.]")
                break
            subject = commit.message.partition("\n")[0]
            told.append(f"{commit.name[:10]} {commit.day} {commit.author}: {clipped(subject, 200)}")
        return bounded(told or ["No commit changed that."])

    def show(self, revision: str) -> str:
        commit = self._repository.commit(revision)
        parents = " ".join(each[:10] for each in commit.parents) or "none"
        told = [
            f"commit {commit.name}",
            f"parents {parents}; {commit.author}, {commit.day}",
            "",
            clipped(commit.message, 4000),
            "",
        ]
        return bounded([*told, *self._compared(self._against_parent(commit))])

    def diff(self, revision: str) -> str:
        first, dots, second = revision.partition("..")
        before = self._repository.commit(first)
        if not dots:
            return bounded(list(self._compared(self._against_files(before))))
        after = self._repository.commit(second.removeprefix("."))
        found = self._repository.changes(before.tree, after.tree, self._look.over)
        return bounded(list(self._compared(found)))

    def status(self) -> str:
        repository, index = self._repository, self._repository.index()
        branch = repository.branch
        head: dict[str, File] = {}
        with suppress(ToolError):  # nothing is committed yet
            head = repository.files(repository.commit("HEAD").tree, self._look.over)
        lines = []
        for path in sorted({*head, *index}):
            old, new = head.get(path), index.get(path)
            if (old and (old.name, old.mode)) != (new and (new.name, new.mode)):
                lines.append((path, f"to commit: {_what(old, new)} "))
        for path, file in index.items():
            if self._look.over():
                break
            if file.plain and (what := self._differs(path, file)):
                lines.append((path, f"not staged: {what} "))
        for found in self._look.walk(self._top):
            if found.entry.kind == "file" and found.below not in index:
                lines.append((found.below, "not tracked: "))
        told = [f"{what}{path}" for path, what in lines if not self._closed(path)]
        hidden = len(lines) - len(told)
        ends = [f"[{len(told) - MOST_CHANGED:,} more.]"] if len(told) > MOST_CHANGED else []
        ends += [_hidden(hidden)] if hidden else []
        where = f"On {branch}." if branch else "On no branch."
        return bounded([where, *(told[:MOST_CHANGED] or ["Nothing to commit."]), *ends])

    def _commits(self, revision: str) -> Iterator[Commit]:
        """Yield commits from `revision` on, the newest of those that are known first."""
        waiting, seen = [self._repository.commit(revision)], set[str]()
        while waiting:
            newest = max(range(len(waiting)), key=lambda each: waiting[each].time)
            commit = waiting.pop(newest)
            if commit.name in seen:
                continue
            seen.add(commit.name)
            yield commit
            for each in commit.parents:
                if each not in seen:
                    with suppress(ToolError):  # a shallow clone ends somewhere
                        waiting.append(self._repository.peeled(each))

    def _touched(self, commit: Commit) -> bool:
        return any(self._in(path) for path, _, _ in self._against_parent(commit))

    def _against_parent(self, commit: Commit) -> Iterator[Change]:
        before = ""
        if commit.parents:
            before = self._repository.peeled(commit.parents[0]).tree
        return self._repository.changes(before, commit.tree, self._look.over)

    def _against_files(self, commit: Commit) -> Iterator[tuple[str, File | None, File | None]]:
        """Yield what became of a commit's files in the folder; a file there has no object."""
        index = self._repository.index()
        for path, file in self._repository.files(commit.tree, self._look.over).items():
            known = index.get(path)
            at = known if known is not None and known.name == file.name else file
            if self._in(path) and file.plain and not self._closed(path):
                what = self._differs(path, at)
                if what:
                    yield path, file, None if what == "gone" else File("", file.mode)

    def _compared(self, changes: Iterator[Change]) -> Iterator[str]:
        """Yield the lines of a comparison of all that changed and may be shown."""
        hidden = shown = 0
        for path, old, new in changes:
            if not self._in(path):
                continue
            if self._closed(path):
                hidden += 1
                continue
            shown += 1
            if shown > MOST_CHANGED or self._look.over():
                yield "[There are more; name a path.]"
                break
            yield f"{_what(old, new)} {path}"
            yield from self._lines(path, old, new)
        if hidden:
            yield _hidden(hidden)
        if not shown:
            yield "Nothing else changed." if hidden else "Nothing changed."

    def _lines(self, path: str, old: File | None, new: File | None) -> Iterator[str]:
        if any(each is not None and not each.plain for each in (old, new)):
            yield "[a link, or another repository: not shown]"
            return
        try:
            before, after = self._text(path, old), self._text(path, new)
        except IpymemoryError as error:
            yield f"[not shown: {error}]"
            return
        one, other = before.splitlines(), after.splitlines()
        if max(len(one), len(other)) > MOST_COMPARED and one and other:
            yield f"[{len(one):,} lines became {len(other):,}: too many to compare]"
            return
        names = (f"a/{path}" if old else "nothing", f"b/{path}" if new else "nothing")
        for line in difflib.unified_diff(one, other, *names, lineterm=""):
            yield clipped(line, 500)

    def _text(self, path: str, file: File | None) -> str:
        if file is None:
            return ""
        if not file.name:
            return self._look.text(self._top / path)
        return self._look.shown(self._top / path, self._repository.objects.get(file.name, "blob"))

    def _differs(self, path: str, file: File) -> str:
        """Return how the file in the work tree differs from `file`; nothing where it does not."""
        where = self._top / path
        try:
            found = where.lstat()
        except OSError:
            return "gone"
        if (found.st_size, found.st_mtime_ns) == (file.size & 0xFFFFFFFF, file.modified):
            return ""
        try:
            with Held(where) as held:
                data = held.read(MOST_BYTES)
        except PlaceError:
            return "changed"
        if data is None:
            return "gone"
        # With core.autocrlf the repository holds other ends of lines than the folder.
        same = file.name in (_object_name(data), _object_name(data.replace(b"\r\n", b"\n")))
        return "" if same else "changed"

    def _in(self, path: str) -> bool:
        inside = self._inside
        return not inside or path == inside or path.startswith(f"{inside}/")

    def _closed(self, path: str) -> bool:
        return bool(self._look.fence.why_closed(self._top / path)) or not self._in(path)


def _what(old: File | None, new: File | None) -> str:
    return "new" if old is None else "deleted" if new is None else "changed"


def _hidden(number: int) -> str:
    return f"[{number:,} more in files that no tool may read (Privacy.files).]"


def _object_name(data: bytes) -> str:
    # Git's own name for a file's content; no secret rests on it.
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
