"""The project's own ``.md`` files that are living documents: found, named, kept up to date (M2).

They are looked for where a project has its overviews, in its root and one folder down, as a
session's worker begins, and noticed when the assistant reads one or a person names it. One that
was only found is left as it is until it is accepted. A file that is away for a moment, as while
git changes branches, or empty, as while an editor saves it, is waited for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ipymemory import document_acceptance, document_files, gitfiles, places
from ipymemory.document_updates import Updated, update_file
from ipymemory.document_writers import Write
from ipymemory.documents import find
from ipymemory.errors import FormatError, IpymemoryError, PlaceError
from ipymemory.held import Held, resolved
from ipymemory.history import History
from ipymemory.places import Project

MOST_FOLDERS = 200
"""Folders below the root that are looked into."""
MOST_FILES = 2000
"""``.md`` files whose first lines are read while looking around."""
HEAD_BYTES = 4096
"""Bytes of a file in which its heading and instruction must stand to be found."""


@dataclass(slots=True)
class Kept:
    """What came of the files: those written or fresh, sentences, and what nobody accepted."""

    done: list[Updated] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    waiting: list[tuple[Path, str]] = field(default_factory=list)
    """Path and title of each that waits to be accepted."""


def top_of(project: Project, folder: Path | None) -> Path:
    """Return the folder whose files are the project's: the work tree of `folder`, if any."""
    if folder is not None:
        tree = gitfiles.work_tree(places.real_path(folder))
        if tree is not None and tree.main == project.root:
            return places.real_path(tree.top)
    return places.real_path(project.root)


def look_around(project: Project, top: Path) -> list[Path]:
    """Find the ``.md`` documents in `top` and one folder down, and remember them.

    Returns them. Links, hidden folders, environments, packages and our own home are passed over.
    Raises `IpymemoryError` when they cannot be remembered.
    """
    if not top.is_dir():
        return []
    return _register(project, [each for each in _prose(project, top) if _begins(each)])


def notice(project: Project, top: Path, paths: Iterable[Path]) -> list[Path]:
    """Remember those of `paths`, files that somebody read, that are documents of the project.

    Returns them; raises `IpymemoryError` when they cannot be remembered.
    """
    found = []
    for each in paths:
        real = resolved(each.absolute())
        if real.suffix.casefold() == ".md" and _is_inside(project, top, real) and _begins(real):
            found.append(real)
    return _register(project, found)


def add(path: Path, project: Project, top: Path) -> Path:
    """Keep the ``.md`` file `path` up to date from now on (M2); return its real path.

    Raises `FormatError` for one that is no living document, `PlaceError` for one outside of the
    project.
    """
    real = resolved(path.absolute())
    found = document_files.of_file(real) if real.suffix.casefold() == ".md" else []
    if not found:
        raise FormatError(
            f"{path} is no living document. Name a .md file that begins '# MAGIC DOC: title'."
        )
    if not any(real.is_relative_to(each) for each in (top, places.real_path(project.root))):
        raise PlaceError(f"{path} lies outside of {project.root}, so nothing of it is written.")
    document_acceptance.register(project, [real])
    document_acceptance.accept(project, [(real, each.head) for each in found])
    return real


def update_all(
    project: Project,
    top: Path,
    history: History,
    session: str,
    turns: Sequence[str],
    write: Write | None = None,
) -> Kept:
    """Bring the accepted files up to date, and forget those that are no document any more (M4).

    `turns` are those of the `session` since it was done last, for the record; `write` writes where
    it can, else the built-in engine does. Raises `IpymemoryError` when the project's record cannot
    be written.
    """
    kept = Kept()
    gone: list[Path] = []
    known = document_acceptance.known(project)
    for path in known.files:
        try:
            if not _is_inside(project, top, path) or not path.exists():
                continue
            data = document_files.bytes_of(path)
            heads = [each.head for each in document_files.of_file(path, data)]
            if not heads and data.strip():
                gone.append(path)
            if not all(document_acceptance.key(path, each) in known.accepted for each in heads):
                kept.waiting += [(path, each.title) for each in heads]
                continue
            kept.done += update_file(
                path, history, dry=False, session=session, turns=turns, write=write
            )
        except IpymemoryError as error:
            kept.problems.append(str(error))
    if gone:
        document_acceptance.forget(project, gone)
    return kept


def pending(project: Project, top: Path, history: History) -> list[Updated]:
    """Return what would be written of the accepted files; for the mode in which a person is asked.

    Nothing is written. A file that cannot be read is left out: an update says why.
    """
    known = document_acceptance.known(project)
    found: list[Updated] = []
    for path in known.files:
        with contextlib.suppress(IpymemoryError, OSError):
            if _is_inside(project, top, path) and path.exists():
                heads = [each.head for each in document_files.of_file(path)]
                if all(document_acceptance.key(path, each) in known.accepted for each in heads):
                    found += update_file(path, history, dry=True)
    return [each for each in found if not each.fresh]


def _register(project: Project, found: Sequence[Path]) -> list[Path]:
    known = document_acceptance.known(project).files
    if new := [each for each in found if each not in known]:
        document_acceptance.register(project, new)
    return list(found)


def _prose(project: Project, top: Path) -> Iterator[Path]:
    folders = [each for each in document_files.folders_in(top) if not _is_ours(project, each)]
    count = 0
    for folder in (top, *folders[:MOST_FOLDERS]):
        for each in document_files.files_in(folder):
            if each.suffix.casefold() == ".md":
                count += 1
                if count > MOST_FILES:
                    return
                yield each


def _begins(path: Path) -> bool:
    """Return whether a file begins as a document does; only its first bytes are read."""
    try:
        with Held(path) as held:
            file = held.opened()
            if file is None:
                return False
            with file:
                data = file.read(HEAD_BYTES)
    except (IpymemoryError, OSError):
        return False
    return find(data.decode("utf-8", "replace"), levels=1) is not None


def _is_inside(project: Project, top: Path, path: Path) -> bool:
    """Return whether `path` is a file of the project's own: none of ours, git's or a package's."""
    for root in (top, places.real_path(project.root)):
        if path.is_relative_to(root) and not _is_ours(project, path):
            between = path.parent.relative_to(root).parts
            folders = (root.joinpath(*between[: at + 1]) for at in range(len(between)))
            return not any(document_files.passed_over(each) for each in folders)
    return False


def _is_ours(project: Project, path: Path) -> bool:
    return path.is_relative_to(places.real_path(project.home))
